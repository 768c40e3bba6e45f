/**
 * Whether a scheduled region computes what its statements say, decided on the transformed schedule:
 * every statement gets a time vector from the order in which it really runs (execution-order.ts) and
 * affine/ proves that each dependence still goes forward. What is not proved is refused.
 *
 * The time vector is (kernel, grid loops, place, outer loop, place, …, reduce loops, tile loops). Grid
 * loops stand first because nothing synchronises the threads inside a kernel: a dependence may cross
 * kernels, never two iterations of a grid loop. Points of the tile are live at once, so a dependence
 * may not connect them, in lanes or copied out. A reduction within its numeric class may run in any
 * order and in lanes (each has its accumulator), but not on several threads.
 *
 * What is proved for sizes of any value is proved for all regions of the same shape at once
 * (legality-class.ts); only the others are decided with their own sizes.
 *
 * Beside order: fused statements must find all their iterations under the host's loops, and a tensor
 * that is placed or staged in a tile must be written and read in the same iteration outside it.
 */
import * as affine from "../../affine/index.ts";
import { type BridgedRegion, bridgeRegion } from "../../region/affine-bridge.ts";
import type { Statement } from "../../region/nest.ts";
import { dtypes } from "../../semantics/dtype.ts";
import { attempt, type Result, reject } from "../../support/diagnostic.ts";
import { treeOf } from "../products/product-tree.ts";
import {
  type LoopsOfTime,
  type Placing,
  refusePair,
  refuseUnproved,
  refuseWitness,
} from "../refusal.ts";
import {
  isSpread,
  type PlacedTensor,
  type ScheduledLoop,
  type ScheduledRegion,
  type StagedTensor,
} from "../scheduled-region.ts";
import { withCure } from "./cure.ts";
import { type ExecutedStatement, executionOrder } from "./execution-order.ts";
import { type ClassKnowledge, dependentTensors, LegalityClasses } from "./legality-class.ts";
import { instanceOutside, outsideUse, pairThrough, separatedPair, touchedArray } from "./pairs.ts";
import { checkTreeSchedule } from "./tree-legality.ts";

/**
 * The region as given when the schedule is proved legal; SCH016 with a witness and a cure, or SCH017.
 * Regions that are decided with the same `classes` are proved together where sizes do not matter.
 */
export function checkSchedule(
  scheduled: ScheduledRegion,
  classes: ClassKnowledge = new LegalityClasses(),
): Result<ScheduledRegion> {
  const decided = decideSchedule(scheduled, classes);
  if (decided.ok) return decided;
  return withCure(scheduled, decided, (other, memory) => decideSchedule(other, classes, memory));
}

/**
 * The same without looking for a cure, for who tries many schedules; with `memory`, what refused other
 * schedules of the region may refuse this one.
 */
export function decideSchedule(
  scheduled: ScheduledRegion,
  classes: ClassKnowledge = new LegalityClasses(),
  memory?: affine.ConflictMemory,
): Result<ScheduledRegion> {
  return attempt(() => {
    const tree = treeOf(scheduled);
    if (tree) return checkTreeSchedule(scheduled, tree);
    const executed = executionOrder(scheduled);
    for (const s of executed) {
      checkScans(scheduled, s);
      checkGrid(scheduled, s);
      checkBytes(scheduled, s);
    }
    const inGeneral = (general: ScheduledRegion): boolean =>
      attempt(() => new LegalityCheck(general, executionOrder(general)).check()).ok;
    if (memory) new LegalityCheck(scheduled, executed, memory.of(scheduled.region)).recall();
    const known = memory?.of(scheduled.region);
    const proved = classes.isProved(scheduled, inGeneral);
    if (!proved) new LegalityCheck(scheduled, executed, known).check();
    return scheduled;
  });
}

/** Threads share no accumulator, and every statement of a kernel is dealt out the same way. */
function checkGrid(region: ScheduledRegion, executed: ExecutedStatement): void {
  const { scheduled, reduce } = executed;
  const { name } = scheduled.statement;
  const shared = reduce.find((l) => isSpread(l) && !isLanes(scheduled.statement, l));
  if (shared) {
    const pair = separatedPair(region, new Map([[name, executed.values.get(shared.name)!]]));
    refusePair(region, pair, {
      fault: `threads would add to one result: ${name}:${shared.name} is a reduce loop`,
      at: `${shared.mode === "grid" ? "parallelize" : "bind"} ${name}:${shared.name}`,
      help: `leave ${shared.name} serial, or vectorize it: lanes have an accumulator each`,
    });
  }
  for (const { statement, into, depth } of region.fused) {
    const deeper = scheduled.loops.find((l, at) => isSpread(l) && at >= depth);
    if (deeper && (name === statement || name === into)) {
      const apart = new Map([statement, into].map((s, i) => [s, i]));
      refusePair(region, separatedPair(region, apart), {
        fault: `${statement} and ${into} do not share the grid loop ${name}:${deeper.name}`,
        at: `fuse ${statement} into ${into}`,
        help: `fuse at ${deeper.name} or deeper, or leave it serial: threads meet only between kernels`,
      });
    }
  }
}

/** Elements below a byte are written with what else is in it: threads that write neighbours lose one of them. */
function checkBytes({ region }: ScheduledRegion, { scheduled }: ExecutedStatement): void {
  const { name, writes } = scheduled.statement;
  const dealt = scheduled.loops.find((l) => l.mode === "grid");
  const packed = dealt && writes.find((w) => dtypes[region.tensors.get(w.tensor)!.dtype].bits < 8);
  if (!packed) return;
  const { dtype } = region.tensors.get(packed.tensor)!;
  reject("SCH016", `threads would write parts of one byte: ${packed.tensor} is ${dtype}`, {
    at: `parallelize ${name}:${dealt.name}`,
    help: `leave ${dealt.name} serial`,
  });
}

/** Lanes run at once, and each trip of a scan needs the one before. */
function checkScans(region: ScheduledRegion, executed: ExecutedStatement): void {
  const { statement, loops } = executed.scheduled;
  const scan = loops.find((l) => l.mode === "vector" && l.kind === "scan");
  if (!scan) return;
  const { name } = statement;
  const pair = separatedPair(region, new Map([[name, executed.values.get(scan.name)!]]));
  refusePair(region, pair, {
    fault: `lanes of ${name}:${scan.name} would run both at once: it is a scan`,
    at: `vectorize ${name}:${scan.name}`,
    help: "vectorize another loop",
  });
}

/** Threads of a warp work on one result like lanes: each has an accumulator. */
function isLanes({ reduction }: Statement, { mode }: ScheduledLoop): boolean {
  return mode === "threads" && reduction !== undefined && reduction.numericClass !== "approximates";
}

/** One time dimension of a statement, and the loop whose value it is. */
interface TimePart {
  readonly value: affine.AffineLike;
  readonly loop?: ScheduledLoop | undefined;
}

interface LabelledSchedule extends affine.TimeSchedule {
  readonly loops: ReadonlyMap<string, LoopsOfTime>;
}

class LegalityCheck {
  readonly #region: ScheduledRegion;
  readonly #executed: ReadonlyMap<string, ExecutedStatement>;
  readonly #bridged: BridgedRegion;
  readonly #gridLoops: number;
  readonly #known: affine.KnownConflicts | undefined;

  constructor(
    region: ScheduledRegion,
    executed: readonly ExecutedStatement[],
    known?: affine.KnownConflicts,
  ) {
    this.#known = known;
    this.#region = region;
    this.#executed = new Map(executed.map((s) => [s.scheduled.statement.name, s]));
    this.#bridged = bridgeRegion(region.region, dependentTensors(region));
    this.#gridLoops = Math.max(0, ...executed.map((s) => gridLoops(s).length));
  }

  /** Refuses what a pair breaks that refused another schedule of the region. */
  recall(): void {
    if (!this.#known || this.#bridged.approximated.length > 0) return;
    const ordered = this.#schedule(this.#marks(), orderedTime);
    const broken = this.#known.find(ordered, "ordered") ?? this.#known.find(this.#apart(), "apart");
    const { loops } = ordered;
    if (broken) refuseWitness(this.#region, { witness: broken, loops, place: undefined });
  }

  check(): void {
    this.#checkCovered();
    const found = affine.findDependences(this.#bridged.affine);
    if (found.kind === "unknown") {
      refuseUnproved(this.#region, "the dependences", found.reason);
    }
    let ordered: LabelledSchedule | undefined;
    let apart: LabelledSchedule | undefined;
    for (const dependence of found.value) {
      if (dependence.reassociable) apart ??= this.#apart();
      else ordered ??= this.#schedule(this.#marks(), orderedTime);
      this.#checkOne((dependence.reassociable ? apart : ordered)!, dependence);
    }
    for (const placed of this.#region.placed) this.#checkPlaced(placed, found.value);
    for (const staged of this.#region.staged) this.#checkStaged(staged, found.value);
  }

  #checkOne(schedule: LabelledSchedule, dependence: affine.Dependence, place?: Placing): void {
    const { context, approximated } = this.#bridged;
    const one = affine.checkDependence(schedule, dependence, { context });
    if (one.kind === "legal") return;
    if (one.kind === "illegal" && !place) this.#known?.add(one.witness);
    const what = `a ${dependence.kind} dependence from ${dependence.source} to ${dependence.sink}`;
    if (one.kind === "unknown") refuseUnproved(this.#region, what, one.reason);
    if (approximated.length > 0) {
      refuseUnproved(this.#region, what, `not affine: ${approximated.join(", ")}`);
    }
    refuseWitness(this.#region, { witness: one.witness, loops: schedule.loops, place });
  }

  /** Time vectors with the grid loops at the dimensions from 1 on and `rest` behind them. */
  #schedule(
    marks: readonly affine.TimeMark[],
    rest: (s: ExecutedStatement) => readonly TimePart[],
  ): LabelledSchedule {
    const times = new Map<string, affine.IntegerMap>();
    const loops = new Map<string, LoopsOfTime>();
    for (const [name, s] of this.#executed) {
      const grid = gridLoops(s).map((l) => timeOf(s, l));
      const padding = Array.from({ length: this.#gridLoops - grid.length }, () => at(0));
      const parts = [at(s.kernel), ...grid, ...padding, ...rest(s)];
      const from = { tuple: name, dims: s.scheduled.statement.loops.map((l) => l.name) };
      times.set(name, affine.makeMap({ from, to: { values: parts.map((p) => p.value) } }));
      loops.set(
        name,
        parts.map((p) => p.loop),
      );
    }
    return { times, marks, loops };
  }

  #gridMarks(): affine.TimeMark[] {
    return Array.from({ length: this.#gridLoops }, (_, i) => ({
      dimension: 1 + i,
      kind: "parallel" as const,
    }));
  }

  #marks(): affine.TimeMark[] {
    const tiles = [...this.#executed].flatMap(([name, s]) => {
      const before = 1 + this.#gridLoops + 2 * s.outer.length + 1 + s.reduce.length;
      const lanes = s.reduce.flatMap((l, i) =>
        l.mode === "vector" ? [before - s.reduce.length + i] : [],
      );
      return [...lanes, ...s.tile.map((_, i) => before + i)].map((dimension) => ({
        dimension,
        kind: "vector" as const,
        statements: [name],
      }));
    });
    return [...this.#gridMarks(), ...tiles];
  }

  /** For updates that may be reordered: only threads and space lanes must not share an element. */
  #apart(): LabelledSchedule {
    const lanes = (s: ExecutedStatement): readonly ScheduledLoop[] =>
      s.tile.filter((l) => l.mode === "vector");
    const marks = [...this.#executed].flatMap(([name, s]) =>
      lanes(s).map((_, i) => ({
        dimension: 1 + this.#gridLoops + i,
        kind: "vector" as const,
        statements: [name],
      })),
    );
    return this.#schedule([...this.#gridMarks(), ...marks], (s) => [
      ...lanes(s).map((l) => timeOf(s, l)),
      ...originalTime(s),
    ]);
  }

  /** Every iteration of the shared loops that a guest needs is one that its host runs. */
  #checkCovered(): void {
    for (const { statement, into, depth } of this.#region.fused) {
      const needed = this.#sharedPoints(statement, depth);
      const run = affine.range(this.#sharedPoints(into, depth));
      const answer = affine.isSubset(affine.range(needed), run);
      if (answer === "yes") continue;
      const at = `fuse ${statement} into ${into}`;
      const what = `that ${into} runs every iteration of the loops which ${statement} shares`;
      if (answer === "unknown") refuseUnproved(this.#region, what, "too much work");
      const left = instanceOutside(this.#region, needed, run);
      refusePair(this.#region, left && `${left} is left out`, {
        fault: `${into} does not run every iteration that ${statement} needs`,
        at,
        help: `fuse ${statement} outside the loops where ${into} has fewer iterations`,
      });
    }
  }

  /** The shared loops at each instance of a statement. */
  #sharedPoints(name: string, depth: number): affine.IntegerMap {
    const s = this.#executed.get(name)!;
    const from = { tuple: name, dims: s.scheduled.statement.loops.map((l) => l.name) };
    const values = s.outer.slice(0, depth).map((l) => s.values.get(l.name)!);
    const domain = affine.intersectParams(
      this.#bridged.statements.get(name)!.domain,
      this.#bridged.context,
    );
    return affine.intersectDomain(affine.makeMap({ from, to: { values } }), domain);
  }

  /** A tile lives for one iteration of the loops outside it. */
  #checkPlaced(placed: PlacedTensor, dependences: readonly affine.Dependence[]): void {
    const { tensor, scope, statement, depth } = placed;
    if (scope === "memory") return;
    const at = `place ${tensor} in ${scope}`;
    const { role } = this.#region.region.tensors.get(tensor)!;
    if (role !== "local") {
      refusePair(this.#region, outsideUse(this.#region, tensor), {
        fault: `${tensor} is ${role}: it is used outside the region`,
        at,
        help: "place only tensors that live and die in the region",
      });
    }
    const owner = this.#executed.get(statement)!;
    const users = [...this.#executed.values()].filter((s) => touches(s, tensor));
    const stranger = users.find(
      (s) => s.root !== owner.root || this.#sharedDepth(s, owner) < depth,
    );
    if (stranger) {
      const { name } = stranger.scheduled.statement;
      refusePair(this.#region, pairThrough(this.#region, tensor, name), {
        fault: `${name} uses ${tensor} outside the loops that hold its tile`,
        at,
        help: `fuse ${name} as deep as the place, or place ${tensor} further outside`,
      });
    }
    const place = { at, fault: "the tile does not live from one to the other" };
    const held = this.#held(owner, depth);
    for (const d of dependences) {
      if (d.kind === "flow" && touchedArray(d) === tensor) this.#checkOne(held, d, place);
    }
  }

  /** The order of the statements, in which no dependence may leave an iteration outside a tile. */
  #held(owner: ExecutedStatement, depth: number): LabelledSchedule {
    const { loops } = owner.scheduled;
    const outside = loops.slice(0, depth).filter((l) => owner.outer.includes(l)).length;
    const order = [...this.#executed.keys()];
    const marks = Array.from({ length: outside }, (_, i) => ({
      dimension: 1 + this.#gridLoops + 1 + 2 * i,
      kind: "parallel" as const,
    }));
    return this.#schedule([...this.#gridMarks(), ...marks], (s) => [
      ...s.outer.slice(0, outside).flatMap((l, i) => [at(s.positions[i]!), timeOf(s, l)]),
      at(order.indexOf(s.scheduled.statement.name)),
      ...originalTime(s),
    ]);
  }

  /** Number of outer loops that a statement has in common with the owner of a tile. */
  #sharedDepth(s: ExecutedStatement, owner: ExecutedStatement): number {
    if (s === owner) return owner.outer.length;
    const own = this.#region.fused.find((f) => f.statement === s.scheduled.statement.name);
    const other = this.#region.fused.find((f) => f.statement === owner.scheduled.statement.name);
    if (own?.into === owner.scheduled.statement.name) return own.depth;
    if (other?.into === s.scheduled.statement.name) return other.depth;
    return own && other && own.into === other.into ? Math.min(own.depth, other.depth) : 0;
  }

  /**
   * The copy is made before the rest of an iteration of the loops outside it, or, where several are in
   * flight, before the innermost of them starts: what is read must be written in an earlier one.
   */
  #checkStaged(
    { tensor, scope, statement, depth, copies }: StagedTensor,
    dependences: readonly affine.Dependence[],
  ): void {
    const reader = this.#executed.get(statement)!;
    const outside = reader.scheduled.loops.slice(0, copies > 1 ? depth - 1 : depth);
    const outer = outside.filter((l) => reader.outer.includes(l)).length;
    const reduce = outside.filter((l) => reader.reduce.includes(l)).length;
    const length = reduce > 0 ? 2 * reader.outer.length + 1 + reduce : 2 * outer;
    const early = this.#schedule(this.#gridMarks(), (s) => orderedTime(s).slice(0, length));
    const place = { at: `stage ${tensor} in ${scope}`, fault: "the copy is made before either" };
    for (const d of dependences) {
      if (d.sink !== statement || touchedArray(d) !== tensor) continue;
      if (d.kind === "flow" || d.kind === "scan") this.#checkOne(early, d, place);
    }
  }
}

function at(position: number): TimePart {
  return { value: position };
}

function timeOf(s: ExecutedStatement, loop: ScheduledLoop): TimePart {
  return { value: s.values.get(loop.name)!, loop };
}

function orderedTime(s: ExecutedStatement): readonly TimePart[] {
  return [
    at(s.positions[0]!),
    ...s.outer.flatMap((l, i) => [timeOf(s, l), at(s.positions[i + 1]!)]),
    ...[...s.reduce, ...s.tile].map((l) => timeOf(s, l)),
  ];
}

function originalTime(s: ExecutedStatement): readonly TimePart[] {
  return s.scheduled.statement.loops.map((l) => ({ value: l.name }));
}

function gridLoops(s: ExecutedStatement): readonly ScheduledLoop[] {
  return s.outer.filter(isSpread);
}

function touches(s: ExecutedStatement, tensor: string): boolean {
  const { reads, finishReads, writes, indirects } = s.scheduled.statement;
  const accesses = [...reads, ...finishReads, ...indirects.map((v) => v.access), ...writes];
  return accesses.some((a) => a.tensor === tensor);
}
