/**
 * Which statements are computed together. The default partition is greedy and deterministic:
 *
 * 1. Anchors in the order contractions, other reductions, the rest (each by position) absorb
 *    elementwise consumers of their results, as many as compose (compose-epilogue.ts). A consumer
 *    may be any statement that reads the result at its own place, also one part of a concat. A result
 *    that others read as well is stored as well.
 * 2. A group that only moves data or computes elementwise is inlined into all its readers, when each of
 *    them is willing: always where every element is used once; where it would be recomputed, if its
 *    body costs at most `inlineCost`. Operands of contractions take pure data movement that keeps
 *    their innermost axis, and nothing else.
 *
 * What was refused is kept with its reason. Whether the choice is good is search/'s business: the
 * alternatives are `candidateGroups`.
 */
import { dtypes, isFloatDType, isIntegerDType } from "../semantics/dtype.ts";
import {
  constantValue,
  type IndexExpr,
  splitLinear,
  variablesOf,
} from "../semantics/index-expr.ts";
import { type ScalarExpr, scalarCost, scalarOperands } from "../semantics/scalar-expr.ts";
import type { Composition } from "./compose-epilogue.ts";
import {
  type AnalysedProgram,
  analyseProgram,
  composeGroup,
  groupPosition,
  statementNamed,
} from "./form-region.ts";
import { movesWhole } from "./inline-producer.ts";
import type { Access, Group, Loop, NestProgram, Statement } from "./nest.ts";
import { picksOfBatch } from "./picks.ts";
import { isTrouble, type Refusal, type Trouble } from "./refusals.ts";
import { tensorsRead, updatesInPlace } from "./uses.ts";

export interface GroupOptions {
  /** Largest cost, in fused multiply-adds, of a body that may be computed more than once per element. */
  readonly inlineCost: number;
  /**
   * Whether floats of 16 bits stay so in memory: readers that want them wider convert them as they read, where
   * that is one instruction, instead of the product or convolution that makes them. Default: no.
   */
  readonly keepsHalves?: boolean;
  /**
   * Whether products read an operand where data says which of its matrices each of the batch takes (grouped
   * products: an expert's weights for a tile of its tokens), in place of a copy of it. Default: no.
   */
  readonly picksOperands?: boolean;
  /**
   * Whether sums of products keep their results at one place: matrix units leave them nowhere else, so that what
   * moves a result that others read too is computed by itself. Default: no.
   */
  readonly writesTogether?: boolean;
  /**
   * Whether maps read rows of a table by their numbers as often as they need them, in place of a copy of those rows
   * (angles of positions). Default: no.
   */
  readonly repeatsGathers?: boolean;
  /**
   * Whether what only moves elements is left to its readers where several maps read it, in place of being stored
   * beside the first of them. Default: no.
   */
  readonly repeatsMoves?: boolean;
}

/** Two operations: a bias or scale with its conversion, but no division and no exponential. */
export const defaultGroupOptions: GroupOptions = { inlineCost: 2 };

/** Channels from which products of integers are summed over them, and not along rows. */
const deepFold = 8;

export interface GroupPlan {
  /** In the order in which they run. */
  readonly groups: readonly Group[];
  readonly refusals: readonly Refusal[];
}

/** The default groups of a program. */
export function fuseElementwise(
  program: NestProgram,
  options: GroupOptions = defaultGroupOptions,
): readonly Group[] {
  return planGroups(analyseProgram(program), options).groups;
}

/** The default groups with what was refused on the way. */
export function planGroups(analysed: AnalysedProgram, options: GroupOptions): GroupPlan {
  const planner = new Planner(analysed, options);
  planner.absorbEpilogues();
  planner.inlineProducers();
  return planner.plan();
}

/**
 * Alternatives for each anchor: alone, then with one more of its epilogues at a time; at most `limit`
 * in all, in the order of the anchors.
 */
export function candidateGroups(program: NestProgram, limit: number): readonly Group[] {
  const analysed = analyseProgram(program);
  const found: Group[] = [];
  for (const name of analysed.uses.statementAt.keys()) {
    const planner = new Planner(analysed, defaultGroupOptions);
    const full = planner.grow(name);
    for (let n = 0; n <= full.epilogue.length; n++) {
      const group = { ...full, epilogue: full.epilogue.slice(0, n) };
      if (composeGroup(analysed, group).kind === "refused") continue;
      if (found.length === limit) return found;
      found.push(group);
    }
  }
  return found;
}

/** A sum of products: what matrix units and register tiles are for. */
export function isContraction({ reduction, body }: Statement): boolean {
  if (reduction?.monoid.name !== "sum" || body.length !== 1) return false;
  const [root] = body;
  return root!.kind === "apply" && root!.op === "mul" && root!.operands.every((e) => isOperand(e));
}

function isOperand(expr: ScalarExpr): boolean {
  return expr.kind === "argument" || (expr.kind === "cast" && isOperand(expr.operand));
}

/** Whether results, as of a fused epilogue, are whole and stand at one index of their tensors, axes of one element apart. */
export function areTogether(writes: Statement["writes"]): boolean {
  const placeOf = ({ index }: Statement["writes"][number]): string =>
    index.flatMap((e) => (constantValue(e) === undefined ? [e.key] : [])).join();
  const [first] = writes;
  return writes.every((w) => w.combine === "overwrite" && placeOf(w) === placeOf(first!));
}

class Planner {
  readonly #analysed: AnalysedProgram;
  readonly #options: GroupOptions;
  readonly #refusals = new Map<string, Refusal>();
  readonly #claimed = new Set<string>();
  #groups: Group[] = [];

  constructor(analysed: AnalysedProgram, options: GroupOptions) {
    this.#analysed = analysed;
    this.#options = options;
  }

  plan(): GroupPlan {
    const position = (g: Group) => groupPosition(this.#analysed, g);
    const groups = [...this.#groups].sort((a, b) => position(a) - position(b));
    return { groups, refusals: [...this.#refusals.values()] };
  }

  #compose(group: Group): Composition {
    return composeGroup(this.#analysed, group);
  }

  absorbEpilogues(): void {
    const names = [...this.#analysed.uses.statementAt.keys()];
    const rank = (name: string): number => {
      const statement = statementNamed(this.#analysed, name);
      return isContraction(statement) ? 0 : statement.reduction ? 1 : 2;
    };
    const ranked = names.map((name, at) => ({ name, at, rank: rank(name) }));
    for (const { name } of ranked.sort((a, b) => a.rank - b.rank || a.at - b.at)) {
      if (!this.#claimed.has(name)) this.#groups.push(this.grow(name));
    }
  }

  /** Whether readers, several maps, can take what a group moves from where it was, as halves also in f32. */
  #isLeftToReaders(group: Group): boolean {
    if (!this.#options.repeatsMoves) return false;
    const { uses, program } = this.#analysed;
    const composed = this.#compose(group);
    if (composed.kind === "refused" || !isPure(composed.statement)) return false;
    const { statement } = composed;
    const { tensor } = statement.writes[0]!;
    const isNear = statement.indirects.length > 0 ? movesRows(statement) : staysNear(statement);
    if (!isTaken(statement) || !isNear || uses.aliased.has(tensor)) return false;
    const readers = uses.readers.get(tensor) ?? [];
    const areMaps = readers.every((at) => {
      const item = program.items[at];
      return item?.kind === "statement" && isPure(item.statement);
    });
    return readers.length > 1 && areMaps;
  }

  /** The largest group of an anchor: consumers are tried in program order until none is added. */
  grow(anchor: string): Group {
    let group: Group = { name: anchor, anchor, inlined: [], epilogue: [] };
    this.#claimed.add(anchor);
    for (let grown = true; grown; ) {
      grown = false;
      if (this.#isLeftToReaders(group)) return group;
      for (const name of this.#consumersOf(group)) {
        const larger = this.#withEpilogue(group, name);
        if (!larger) continue;
        group = larger;
        this.#claimed.add(name);
        grown = true;
        break;
      }
    }
    return group;
  }

  /** Unclaimed statements that read what the group writes, by position. */
  #consumersOf(group: Group): readonly string[] {
    const composed = this.#compose(group);
    if (composed.kind === "refused") return [];
    const { uses, program } = this.#analysed;
    const at = new Set(
      composed.statement.writes
        .filter((w) => uses.writers.get(w.tensor)?.length === 1)
        .flatMap((w) => uses.readers.get(w.tensor) ?? []),
    );
    return [...at]
      .sort((a, b) => a - b)
      .flatMap((position) => {
        const item = program.items[position];
        return item?.kind === "statement" ? [item.statement.name] : [];
      })
      .filter((name) => !this.#claimed.has(name));
  }

  #withEpilogue(group: Group, name: string): Group | undefined {
    const larger = { ...group, epilogue: [...group.epilogue, name] };
    const trouble = this.#epilogueTrouble(name, group, larger);
    if (!trouble) return larger;
    this.#refuse({ ...trouble, as: "epilogue", statement: name, into: group.name });
    return undefined;
  }

  #epilogueTrouble(name: string, group: Group, larger: Group): Trouble | undefined {
    if (this.#isWidenedLater(name, group)) {
      return { kind: "rule", reason: "its readers widen what is there themselves" };
    }
    const composed = this.#compose(larger);
    if (composed.kind === "composed") return this.#placeTrouble(group, composed.statement);
    const {
      uses: { roots },
      program,
    } = this.#analysed;
    const statement = statementNamed(this.#analysed, name);
    const between = program.items[composed.between ?? -1];
    const isSumBetween = between?.kind === "statement" && between.statement.reduction;
    if (statement.reduction || isSumBetween) return { kind: "reduction", reason: composed.reason };
    const before = this.#compose(group);
    const made = before.kind === "composed" ? before.statement.writes.map((w) => w.tensor) : [];
    const [first, ...views] = [...tensorsRead(statement)].filter((t) =>
      made.includes(roots.get(t) ?? t),
    );
    const isView = first !== undefined && [first, ...views].every((t) => roots.has(t));
    const reason = isView
      ? `${name} reads ${roots.get(first)!} under another shape`
      : composed.reason;
    return { kind: "illegal", reason };
  }

  /** Why a product may not leave its results where the statement does. */
  #placeTrouble(group: Group, { writes, body }: Statement): Trouble | undefined {
    const isSummed = body[0]!.dtype === "f32" || body[0]!.dtype === "i32";
    const isOfUnits = this.#options.writesTogether && this.#isOfContraction(group) && isSummed;
    if (!isOfUnits || areTogether(writes)) return undefined;
    return { kind: "illegal", reason: "results would lie at several places" };
  }

  /**
   * Whether short numbers are only made wider here: for contractions, which can do so where they read them, or
   * of a tensor that others read as it is, or that another group reads, for one reader, which then reads a
   * quarter or half.
   */
  #isWidenedLater(name: string, group: Group): boolean {
    const { uses, program } = this.#analysed;
    const statement = statementNamed(this.#analysed, name);
    if (!isPure(statement) || statement.indirects.length > 0) return false;
    const { tensor } = statement.writes[0]!;
    const readers = uses.readers.get(tensor) ?? [];
    if (uses.aliased.has(tensor) || readers.length === 0) return false;
    const keepsHalves = this.#options.keepsHalves && this.#isOfContraction(group);
    if (keepsHalves && isHalf(statement.body[0]!)) {
      return readers.every((at) => {
        const item = program.items[at];
        return item?.kind === "statement" && !isContraction(item.statement);
      });
    }
    if (isWidening(statement.body[0]!)) {
      return readers.every((at) => {
        const item = program.items[at];
        return item?.kind === "statement" && isContraction(item.statement);
      });
    }
    const [from, ...others] = statement.reads;
    if (!from || others.length > 0 || readers.length > 1) return false;
    const [source, result] = [from.tensor, tensor].map((t) => program.tensors.get(t)!.dtype);
    const isShort =
      dtypes[source!].bits === 8 || (isIntegerDType(source!) && dtypes[source!].bits === 16);
    const isWider = isShort && dtypes[result!].bits >= 32;
    if (!isWider) return false;
    return (uses.readers.get(from.tensor)?.length ?? 0) > 1 || this.#isReadElsewhere(readers[0]!);
  }

  /** Whether a statement without products of its own is in another group already, which can widen what it reads. */
  #isReadElsewhere(at: number): boolean {
    const item = this.#analysed.program.items[at];
    if (item?.kind !== "statement" || isContraction(item.statement)) return false;
    return this.#claimed.has(item.statement.name);
  }

  /** Whether a product or convolution makes it: sums alone are in one kernel with the norm that reads them. */
  #isOfContraction(group: Group): boolean {
    return isContraction(statementNamed(this.#analysed, group.anchor));
  }

  #refuse(refusal: Refusal): void {
    this.#refusals.set(`${refusal.statement} ${refusal.into ?? ""}`, refusal);
  }

  inlineProducers(): void {
    const position = (g: Group) => groupPosition(this.#analysed, g);
    for (const producer of [...this.#groups].sort((a, b) => position(a) - position(b))) {
      this.#inlineEverywhere(this.#groups.find((g) => g.name === producer.name)!);
    }
  }

  /** Puts a group into all groups that read its result, or into none. */
  #inlineEverywhere(producer: Group): void {
    const composed = this.#compose(producer);
    if (composed.kind === "refused") return;
    const { statement } = composed;
    const readers = isPure(statement) ? this.#readerGroups(statement) : storedTogether(statement);
    if (isTrouble(readers)) {
      this.#refuse({ ...readers, as: "producer", statement: producer.name });
      return;
    }
    const grown = this.#withReaders(producer, statement, readers);
    if (!grown) return;
    this.#groups = this.#groups
      .filter((g) => g.name !== producer.name)
      .map((g) => grown.get(g.name) ?? g);
  }

  /** The readers with the group in them, by their names; undefined where one of them is unwilling. */
  #withReaders(
    group: Group,
    producer: Statement,
    readers: readonly Group[],
  ): ReadonlyMap<string, Group> | undefined {
    const members = [...group.inlined, group.anchor, ...group.epilogue];
    const grown = new Map<string, Group>();
    const unwillingly = new Map<string, Trouble>();
    for (const reader of readers) {
      const larger = this.#withInlined(reader, members, { producer, shared: readers.length > 1 });
      if (isTrouble(larger)) unwillingly.set(reader.name, larger);
      else grown.set(reader.name, larger);
    }
    const [first] = unwillingly;
    if (!first) return grown;
    const [other, { reason: why }] = first;
    const reason = `${grown.size} of ${readers.length} readers would compute it, ${other} does not: ${why}`;
    for (const { name } of readers) {
      const own: Trouble = unwillingly.get(name) ?? { kind: "readers", reason };
      this.#refuse({ ...own, as: "producer", statement: group.name, into: name });
    }
    return undefined;
  }

  /** The groups that read the one result of a statement, or who else does. */
  #readerGroups(statement: Statement): readonly Group[] | Trouble {
    const { uses, program } = this.#analysed;
    const { tensor } = statement.writes[0]!;
    const illegal = (reason: string): Trouble => ({ kind: "illegal", reason });
    if (uses.aliased.has(tensor)) return illegal(`${tensor} is read under another shape`);
    if (uses.writers.get(tensor)?.length !== 1) return illegal(`${tensor} is written in parts`);
    const groups = new Set<Group>();
    for (const at of uses.readers.get(tensor) ?? []) {
      const item = program.items[at];
      if (!item) return { kind: "output", reason: `${tensor} is an output` };
      if (item.kind !== "statement") return illegal(`${tensor} is read by what is no nest`);
      const { name } = item.statement;
      if (updatesInPlace(item.statement)) return illegal(`${name} updates ${tensor} in place`);
      const holders = this.#groups.filter((g) =>
        [g.anchor, ...g.epilogue, ...g.inlined].includes(name),
      );
      for (const holder of holders) groups.add(holder);
    }
    return groups.size === 0 ? illegal(`nobody reads ${tensor}`) : [...groups];
  }

  #withInlined(
    reader: Group,
    members: readonly string[],
    { producer, shared }: { readonly producer: Statement; readonly shared: boolean },
  ): Group | Trouble {
    const before = this.#compose(reader);
    if (before.kind === "refused") return { kind: "illegal", reason: before.reason };
    const trouble = unwilling(before.statement, producer, { shared, ...this.#options });
    if (trouble) return trouble;
    const at = (name: string) => this.#analysed.uses.statementAt.get(name)!;
    const inlined = [...new Set([...reader.inlined, ...members])].sort((a, b) => at(a) - at(b));
    const larger = { ...reader, inlined };
    const composed = this.#compose(larger);
    if (composed.kind === "refused") return { kind: "illegal", reason: composed.reason };
    const isPicked = isContraction(before.statement) && composed.statement.indirects.length > 0;
    if (isPicked && !picksOfBatch(composed.statement))
      return { kind: "reduction", reason: "an index would be loaded for each term of a sum" };
    return larger;
  }
}

/** A group without one result of its own is put into nobody. */
function storedTogether({ name, reduction, writes }: Statement): Trouble {
  if (reduction) return { kind: "reduction", reason: `${name} is a reduction` };
  const reason =
    writes.length > 1 ? `${name} stores ${writes.length} results` : `${name} is no map`;
  return { kind: "illegal", reason };
}

/** One tensor, written without a fold. */
function isPure(statement: Statement): boolean {
  const { reduction, finish, writes, loops } = statement;
  const plain = !reduction && !finish && writes.length === 1 && !updatesInPlace(statement);
  return plain && loops.every((l) => l.kind === "space");
}

/** Why a reader would lose by computing the producer itself; undefined: it would not. */
function unwilling(
  reader: Statement,
  producer: Statement,
  options: GroupOptions & { readonly shared: boolean },
): Trouble | undefined {
  const { shared, inlineCost, picksOperands, repeatsGathers } = options;
  const { tensor } = producer.writes[0]!;
  const inBody = reader.reads.filter((a) => a.tensor === tensor);
  const all = [...inBody, ...reader.finishReads.filter((a) => a.tensor === tensor)];
  const moves = producer.body[0]!.kind === "argument";
  if (all.length === 0 && movesWhole(producer)) return undefined;
  if (isContraction(reader) && inBody.length > 0) {
    const plain = moves || isWidening(producer.body[0]!);
    const isFixed = producer.indirects.length === 0 || (picksOperands && moves);
    if (!plain || !isFixed) return besideSums("operands of contractions stay plain");
    if (isFilledAlongRows(producer) && inBody.some((access) => sumsRows(reader, access))) {
      return besideSums("products of integers are summed along rows that are filled ahead");
    }
    if (keepsInnermost(producer)) return undefined;
    return besideSums("the operand would lose its innermost axis");
  }
  const inFinish = inBody.length === 0;
  const once = !shared && all.length === 1 && coversLoops(reader, all[0]!, inFinish);
  // What is computed from indices alone costs no memory traffic.
  if (once || producer.reads.length === 0) return undefined;
  if (producer.indirects.length > 0) {
    const isMap = !reader.reduction && !reader.finish;
    if (repeatsGathers && isMap && movesRows(producer)) return undefined;
    return loss("indices would be loaded again");
  }
  if (moves) {
    const isNear = options.repeatsMoves ? staysNear(producer) : keepsInnermost(producer);
    return isNear ? undefined : loss("strided reads would be repeated");
  }
  if (producer.loops.length === 0 && isLong(producer.body[0]!) && !isLong(reader.body[0]!)) {
    return loss("one number of 64 bits would keep all results out of lanes");
  }
  const cost = scalarCost(producer.body[0]!);
  if (cost <= inlineCost) return undefined;
  return loss(`computing it again costs ${cost} multiply-adds a use, more than ${inlineCost}`);
}

const besideSums = (reason: string): Trouble => ({ kind: "reduction", reason });
const loss = (reason: string): Trouble => ({ kind: "rule", reason });

/** Whether integers of 64 bits are computed with, for which lanes have few instructions. */
function isLong(expr: ScalarExpr): boolean {
  const isInteger = isIntegerDType(expr.dtype) && dtypes[expr.dtype].bits > 32;
  return isInteger || scalarOperands(expr).some(isLong);
}

/** Whether some of a row is not there in what it is made of, as where it is padded. */
function isFilledAlongRows({ reads, writes }: Statement): boolean {
  const along = variablesOf(...writes[0]!.index.slice(-1));
  return reads.some((a) =>
    [...variablesOf(...a.guard.map((c) => c.expr))].some((v) => along.has(v)),
  );
}

/** Whether neighbours of a row are what an instruction for products of integers can sum, and no channels are. */
function sumsRows({ body, loops }: Statement, { index }: Access): boolean {
  if (!isIntegerDType(body[0]!.dtype)) return false;
  const reduce = loops.filter((l) => l.kind === "reduce");
  const isDeep = (name: string): boolean =>
    index.slice(0, -1).some((e) => e.key === name) &&
    (constantValue(reduce.find((l) => l.name === name)!.extent) ?? deepFold) >= deepFold;
  const alongRow = variablesOf(...index.slice(-1));
  return reduce.some((l) => alongRow.has(l.name)) && !reduce.some((l) => isDeep(l.name));
}

/** A byte as a wider number: a quarter of the traffic, one instruction. */
function isWidening(expr: ScalarExpr): boolean {
  if (expr.kind !== "cast" || expr.operand.kind !== "argument") return false;
  const narrow = expr.operand.dtype === "i8" || expr.operand.dtype === "u8";
  return narrow && dtypes[expr.dtype].bits >= 32;
}

/** A float of 16 bits as a wider one. */
function isHalf(expr: ScalarExpr): boolean {
  if (expr.kind !== "cast" || expr.operand.kind !== "argument") return false;
  const { dtype } = expr.operand;
  return isFloatDType(dtype) && dtypes[dtype].bits === 16 && dtypes[expr.dtype].bits > 16;
}

/**
 * Whether different iterations of the reader, or of its results alone, read different elements: windows
 * that overlap do not.
 */
function coversLoops(reader: Statement, access: Access, perResult: boolean): boolean {
  const used = variablesOf(...access.index);
  return (
    reader.loops.every((l) => used.has(l.name) || (perResult && l.kind === "reduce")) &&
    access.index.every((axis) => !stepsMeet(axis, reader.loops))
  );
}

/** Whether two loops that move along one axis come to the same place: 2 i + k does for k from 0 to 2. */
function stepsMeet(axis: IndexExpr, loops: readonly Loop[]): boolean {
  const moving = loops.flatMap(({ name, extent }) => {
    const step = splitLinear(axis, name)?.coefficient ?? 0;
    return step === 0 ? [] : [{ step: Math.abs(step), extent: constantValue(extent) ?? Infinity }];
  });
  const [first, ...wider] = moving.sort((a, b) => a.step - b.step);
  let reach = first ? first.step * (first.extent - 1) : 0;
  for (const { step, extent } of wider) {
    if (step <= reach) return true;
    reach += step * (extent - 1);
  }
  return false;
}

/** Whether a producer moves rows whose numbers are loaded: neighbours have theirs in common. */
function movesRows(producer: Statement): boolean {
  const { writes, indirects } = producer;
  const along = variablesOf(...writes[0]!.index.slice(-1));
  const isShared = indirects.every(({ access }) =>
    [...variablesOf(...access.index)].every((name) => !along.has(name)),
  );
  return along.size > 0 && isTaken(producer) && isShared && keepsInnermost(producer);
}

/** Whether elements are those that are read, or halves of them. */
function isTaken({ body }: Statement): boolean {
  return body[0]!.kind === "argument" || isHalf(body[0]!);
}

/** Of neighbours, every second to every fourth: what is read with them is the other's. */
const widestStep = 4;

/** The same, or some of the neighbours. */
function staysNear(producer: Statement): boolean {
  return keepsInnermost(producer, widestStep);
}

/** Whether the innermost axis of what the producer writes is that of what it reads, at unit stride. */
function keepsInnermost(producer: Statement, most = 1): boolean {
  const last = producer.writes[0]!.index.at(-1);
  const [loop] = last ? variablesOf(last) : [];
  if (loop === undefined) return true;
  return producer.reads.every(({ index }) => {
    const inner = index.at(-1)?.terms.find((t) => t.key === loop);
    const elsewhere = index.slice(0, -1).some((e) => variablesOf(e).has(loop));
    return inner !== undefined && inner.coefficient >= 1 && inner.coefficient <= most && !elsewhere;
  });
}
