/**
 * Extraction from the e-graph of a part. What weights decide costs nothing at run time, so such a class
 * is a leaf of the problem that is searched, and its own term, the one with fewest nodes, is chosen apart:
 * candidates differ in what the program does, not in how its constants are computed.
 */
import {
  type EGraph,
  extractDistinct,
  extractTree,
  type GraphProblem,
  makeProblem,
  type NodeId,
  type ProblemNode,
} from "../egraph/index.ts";
import { invariant } from "../support/invariant.ts";
import type { ChosenNode } from "./extracted-graph.ts";
import type { Facts } from "./facts.ts";

export interface ChooseOptions {
  /** Integer price of a node that runs. */
  readonly price: (node: NodeId) => number;
  readonly count: number;
  /** Effort: nodes looked at. */
  readonly work: number;
}

export interface Chosen {
  readonly choices: readonly ChosenNode[];
  readonly cost: number;
  readonly lowerBound: number;
}

export function chooseTerms(
  egraph: EGraph<Facts>,
  roots: readonly NodeId[],
  options: ChooseOptions,
): Chosen {
  const running = new ClassTable(egraph, (node, facts) =>
    facts.constant ? undefined : options.price(node),
  );
  const problem = running.problem(roots);
  const found = extractDistinct(problem.problem, options.count, { work: options.work });
  const constants = constantTerms(egraph, running.classes);
  const choices = found.map(({ choice }): ChosenNode => {
    return (id) => {
      const root = egraph.find(id);
      const known = constants(root);
      if (known !== undefined) return known;
      const node = problem.nodeIds[choice[problem.classOf.get(root)!]!];
      invariant(node !== undefined, () => "a class that is needed has no choice");
      return node;
    };
  });
  return { choices, cost: found[0]?.dagCost ?? 0, lowerBound: found[0]?.lowerBound ?? 0 };
}

/** Classes that a problem reaches, in the order in which it does. */
class ClassTable {
  readonly #egraph: EGraph<Facts>;
  readonly #price: (node: NodeId, facts: Facts) => number | undefined;
  readonly classes: NodeId[] = [];
  readonly #numbers = new Map<NodeId, number>();

  /** @param price undefined: the class is a leaf that costs nothing */
  constructor(egraph: EGraph<Facts>, price: (node: NodeId, facts: Facts) => number | undefined) {
    this.#egraph = egraph;
    this.#price = price;
  }

  problem(roots: readonly NodeId[]): GraphProblem {
    const rootNumbers = roots.map((id) => this.#visit(id));
    const nodeIds: NodeId[] = [];
    const lists: ProblemNode[][] = [];
    for (let c = 0; c < this.classes.length; c++) {
      const root = this.classes[c]!;
      const facts = this.#egraph.data(root);
      const members: ProblemNode[] = [];
      for (const node of this.#egraph.nodes(root)) {
        const cost = this.#price(node, facts);
        if (cost === Infinity) continue;
        const children = cost === undefined ? [] : this.#egraph.children(node);
        members.push({ cost: cost ?? 0, children: children.map((child) => this.#visit(child)) });
        nodeIds.push(node);
        if (cost === undefined) break;
      }
      lists.push(members);
    }
    return { problem: makeProblem(lists, rootNumbers), nodeIds, classOf: this.#numbers };
  }

  #visit(id: NodeId): number {
    const root = this.#egraph.find(id);
    const known = this.#numbers.get(root);
    if (known !== undefined) return known;
    this.#numbers.set(root, this.classes.length);
    return this.classes.push(root) - 1;
  }
}

/** The smallest term over weights of each constant class; undefined for other classes. */
function constantTerms(
  egraph: EGraph<Facts>,
  classes: readonly NodeId[],
): (root: NodeId) => NodeId | undefined {
  const roots = classes.filter((id) => egraph.data(id).constant);
  const table = new ClassTable(egraph, (node) =>
    egraph.children(node).every((child) => egraph.data(child).constant) ? 1 : Infinity,
  );
  const { problem, nodeIds, classOf } = table.problem(roots);
  const found = extractTree(problem);
  invariant(found, () => "a constant class has no term over weights");
  return (root) => {
    const number = classOf.get(root);
    const node = number === undefined ? -1 : found.choice[number]!;
    return node < 0 ? undefined : nodeIds[node]!;
  };
}
