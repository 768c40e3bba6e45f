/**
 * Extraction: the cheapest term of an e-graph, as a tree or with shared parts counted once. By DAG cost:
 * reductions (reduce.ts), then for each block that is left the better of two greedy choices, ruin and
 * recreate, a dual bound, branch and bound, and an integer program where a solver is injected. Every answer carries a lower bound; `gap` is 0 when it is proved optimal. Work is
 * counted, so that the same problem gives the same answer everywhere.
 */
import { invariant } from "../../support/invariant.ts";
import { type Branched, branchAndBound } from "./branch.ts";
import { boundFromBelow, type DualBound } from "./dual-bound.ts";
import { evaluateChoice } from "./evaluate.ts";
import { chooseGreedily } from "./greedy-dag.ts";
import { CheapestTrees, usersOf } from "./knuth.ts";
import { type SolveMilp, solveByMilp } from "./milp.ts";
import type { Choice, ExtractionProblem } from "./problem.ts";
import { type Block, reduceProblem } from "./reduce.ts";
import { type Improved, RuinAndRecreate, type Trimmed, tolerance, trim } from "./ruin-recreate.ts";

export interface ExtractOptions {
  /** Effort over all blocks: nodes of a block times rounds of improvement, and nodes branched on. */
  readonly work?: number;
  readonly seed?: number;
  /** Solves integer programs of blocks that branch and bound leaves open. */
  readonly solveMilp?: SolveMilp;
  /** Blocks with more nodes are not given to `solveMilp`. */
  readonly mostMilpNodes?: number;
}

export interface Extraction {
  /** The chosen node of each class that is needed. */
  readonly choice: Choice;
  readonly dagCost: number;
  readonly treeCost: number;
  /** No solution costs less; for `extractTree` of tree cost, else of DAG cost. */
  readonly lowerBound: number;
  /** (cost - lower bound) / cost: 0 is proved optimal. */
  readonly gap: number;
}

/** undefined: some root has no finite term of finite cost. */
export type ExtractionResult = Extraction | undefined;

/** The term of least tree cost. Exact. */
export function extractTree(problem: ExtractionProblem): ExtractionResult {
  const trees = new CheapestTrees(problem, usersOf(problem));
  trees.run(problem.cost);
  if (problem.roots.some((root) => trees.choice[root]! < 0)) return undefined;
  const { choice } = trim(problem, trees.choice);
  return conclude(problem, choice, ({ treeCost }) => ({ cost: treeCost, lowerBound: treeCost }));
}

/** The term of least DAG cost that was found, with what is known of the least there is. */
export function extractDag(
  problem: ExtractionProblem,
  options: ExtractOptions = {},
): ExtractionResult {
  const unit = costUnit(problem.cost);
  const reduction = reduceProblem(problem);
  if (!reduction.isSolvable) return undefined;
  const size = reduction.blocks.reduce((sum, block) => sum + block.problem.cost.length, 0);
  const solved = reduction.blocks.map((block) =>
    solveBlock(block, unit, { ...defaults, ...options }, block.problem.cost.length / size),
  );
  const choice = trim(problem, reduction.expand(solved.map(({ best }) => best.choice))).choice;
  const bound = solved.reduce((sum, block) => sum + block.bound, reduction.fixedCost);
  const concluded = (found: Choice): Extraction =>
    conclude(problem, found, ({ dagCost }) => ({ cost: dagCost, lowerBound: bound }));
  const found = concluded(choice);
  const greedy = found.gap > 0 ? greedyChoice(problem) : undefined;
  return greedy && greedy.cost < found.dagCost ? concluded(greedy.choice) : found;
}

/** The greedy choice of the whole: that of a part that reductions left may be worse. */
function greedyChoice(problem: ExtractionProblem): Trimmed | undefined {
  const greedy = chooseGreedily(problem);
  return evaluateChoice(problem, greedy).ok ? trim(problem, greedy) : undefined;
}

const defaults = { work: 2_500_000, seed: 1, solveMilp: undefined, mostMilpNodes: 5000 };

type Settings = Required<Omit<ExtractOptions, "solveMilp">> & { solveMilp: SolveMilp | undefined };

/** The judge's costs, and a bound that rounding cannot lift above them. */
function conclude(
  problem: ExtractionProblem,
  choice: Choice,
  judge: (costs: { dagCost: number; treeCost: number }) => { cost: number; lowerBound: number },
): Extraction {
  const evaluation = evaluateChoice(problem, choice);
  invariant(evaluation.ok, () => `extraction gave no solution: ${JSON.stringify(evaluation)}`);
  const { dagCost, treeCost } = evaluation;
  const { cost, lowerBound } = judge(evaluation);
  const isProved = lowerBound >= cost - tolerance(cost);
  const bound = isProved ? cost : lowerBound;
  const gap = cost === bound ? 0 : (cost - bound) / cost;
  return { choice, dagCost, treeCost, lowerBound: bound, gap };
}

/** The largest number that all costs are multiples of, when they are integers; else 0. */
function costUnit(cost: Float64Array): number {
  let unit = 0;
  for (const price of cost) {
    if (price === Number.POSITIVE_INFINITY) continue;
    if (!Number.isSafeInteger(price)) return 0;
    for (let rest = price; rest !== 0; ) [unit, rest] = [rest, unit % rest];
  }
  return unit;
}

interface Solved {
  readonly best: Improved;
  readonly bound: number;
}

function solveBlock(block: Block, unit: number, settings: Settings, part: number): Solved {
  const { problem } = block;
  const trees = new CheapestTrees(problem, usersOf(problem));
  trees.run(problem.cost);
  const order = trees.order.slice(0, trees.settledCount);
  const start = bestStart(problem, trees.choice.slice());
  const work = settings.work * part;
  const branch = (incumbent: Improved, dual: DualBound, most: number): Branched =>
    branchAndBound(problem, { incumbent, dual, order: [...order], unit, work: most });
  const quick = boundFromBelow(problem, order, { rounds: 60, upper: start.cost });
  const first = branch(start, quick, Math.min(work / 40, quickBranches));
  if (first.isProved) return { best: first.best, bound: first.best.cost };
  const rounds = Math.ceil(work / problem.cost.length);
  const improver = new RuinAndRecreate(problem, settings.seed);
  const best = improver.run(first.best.choice, rounds, quick.bound);
  const dual = boundFromBelow(problem, order, { rounds: 300, upper: best.cost });
  const bound = roundUp(dual.bound, unit);
  if (bound >= best.cost - tolerance(best.cost)) return { best, bound: best.cost };
  const second = branch(best, dual, work / 40);
  if (second.isProved) return { best: second.best, bound: second.best.cost };
  const { solveMilp } = settings;
  if (!solveMilp || problem.cost.length > settings.mostMilpNodes) {
    return { best: second.best, bound };
  }
  const exact = solveByMilp(problem, solveMilp, second.best);
  return { best: exact.best, bound: Math.max(bound, roundUp(exact.bound, unit)) };
}

/** Nodes to try before improving at random: small blocks need no more. */
const quickBranches = 5000;

/** The better of cheapest trees and greedy DAG extraction. */
function bestStart(problem: ExtractionProblem, trees: Choice): Improved {
  const byTree = trim(problem, trees);
  const greedy = chooseGreedily(problem);
  if (!evaluateChoice(problem, greedy).ok) return byTree;
  const byDag = trim(problem, greedy);
  return byDag.cost < byTree.cost ? byDag : byTree;
}

/** Costs are multiples of the unit, so a bound may rise to the next. */
function roundUp(bound: number, unit: number): number {
  return unit === 0 ? bound : Math.ceil(bound / unit - 1e-6) * unit;
}

/** Terms with different nodes, the cheapest that were found, ascending by DAG cost. */
export function extractDistinct(
  problem: ExtractionProblem,
  count: number,
  options: ExtractOptions = {},
): readonly Extraction[] {
  const first = extractDag(problem, options);
  if (!first) return [];
  const improver = new RuinAndRecreate(problem, options.seed ?? defaults.seed);
  const pool = new Map([[keyOf(first.choice), trim(problem, first.choice)]]);
  const taken = new Set<string>();
  let left = options.work ?? defaults.work;
  while (taken.size < count) {
    const next = cheapestOf(pool, taken);
    if (!next) break;
    taken.add(next[0]);
    if (taken.size === count) break;
    for (const victim of next[1].selected) {
      left -= problem.cost.length;
      if (left < 0) break;
      const near = improver.neighbour(next[1], victim);
      if (near) pool.set(keyOf(near.choice), near);
    }
  }
  const bound = { cost: 0, lowerBound: first.lowerBound };
  // A neighbour of a later term may be cheaper than an earlier one.
  const results = [...taken].map((key) =>
    conclude(problem, pool.get(key)!.choice, ({ dagCost }) => ({ ...bound, cost: dagCost })),
  );
  return results.sort((a, b) => a.dagCost - b.dagCost);
}

function keyOf(choice: Choice): string {
  return choice.join(" ");
}

/** The cheapest that was not taken; of equal ones the first by its nodes. */
function cheapestOf(
  pool: ReadonlyMap<string, Trimmed>,
  taken: ReadonlySet<string>,
): readonly [string, Trimmed] | undefined {
  let best: readonly [string, Trimmed] | undefined;
  for (const entry of pool) {
    if (taken.has(entry[0])) continue;
    const isBetter = !best || entry[1].cost < best[1].cost;
    if (isBetter || (entry[1].cost === best![1].cost && entry[0] < best![0])) best = entry;
  }
  return best;
}
