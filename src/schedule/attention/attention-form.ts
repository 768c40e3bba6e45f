/**
 * Regions that are attention: scores of a product, their softmax and a product with it, over the same rows
 * (scores = f(Q K^T), Y = softmax(scores) V). Such a region can be one kernel that walks the columns of the
 * scores once, with a running maximum and sum of each row and sums that are scaled when the maximum grows
 * (Milakov and Gimelshein 2018; Dao 2023, "FlashAttention-2"). In: a region. Out: its operands in common
 * names and what becomes of a score, or why it has no such form.
 *
 * The walk changes the arithmetic as reassociating a sum does: only sums whose class allows that have the
 * form. What statements round to a narrow float between the two products stays in f32.
 */
import type { Access, Loop, Region, Statement, Write } from "../../region/nest.ts";
import { accessKey, substituteAccess, substituteScalar } from "../../region/statement.ts";
import { type DType, dtypes, isFloatDType } from "../../semantics/dtype.ts";
import {
  add,
  constant,
  constantValue,
  type IndexExpr,
  type IndexLike,
  indexEquals,
  mul,
  splitLinear,
  substitute,
  toIndex,
  variable,
  variablesOf,
} from "../../semantics/index-expr.ts";
import { type IndexRange, loopRange, rangeOf, simplify } from "../../semantics/index-range.ts";
import {
  apply,
  argument,
  bindArguments,
  literal,
  mapScalar,
  type ScalarExpr,
} from "../../semantics/scalar-expr.ts";
import { boundedScore, type Reach } from "./attention-bounds.ts";

/** Loops of the form: rows and columns of the scores, what is summed for one, elements of a result. */
export const [rowName, columnName, depthName, widthName] = ["@row", "@column", "@depth", "@width"];

/** Whether a number, over what a run decides too, is whole tiles of so many. */
export function isMultiple({ constant: own, terms }: IndexExpr, of: number): boolean {
  return own % of === 0 && terms.every((t) => t.coefficient % of === 0);
}

/** Whether rows, columns or problems are known at run time. */
export function isOpenAttention({ rowCount, columnCount, batch }: AttentionForm): boolean {
  const all = [rowCount, columnCount, ...batch.map((l) => l.extent)];
  return all.some((e) => constantValue(e) === undefined);
}

export interface AttentionOperand {
  readonly access: Access;
  /** The loop along which neighbours are neighbours in memory, and how many are one aligned vector. */
  readonly along: string;
  readonly lanes: number;
  /** How a tensor copy finds a tile of it; undefined where it cannot. */
  readonly box?: OperandBox;
}

/** Lines stand along one axis of the tensor, their elements along those behind it. */
export interface OperandBox {
  readonly axis: number;
  /** Whether the axis has the operand's lines and nothing else, so that zeros are what follows them. */
  readonly isWhole: boolean;
}

/** Axes of a tensor copy, and the step of each but the last in bytes. */
const [boxAxes, boxBytes] = [5, 16] as const;

export interface AttentionForm {
  readonly dtype: "bf16" | "f16";
  /** Loops of whole problems of their own: batches and heads. */
  readonly batch: readonly Loop[];
  /** How many problems there are, at most. */
  readonly problems: number;
  /** Of open rows and columns the upper ends, by which attention is planned and priced. */
  readonly rows: number;
  readonly columns: number;
  /** The same as a run has them. */
  readonly rowCount: IndexExpr;
  readonly columnCount: IndexExpr;
  readonly depth: number;
  readonly width: number;
  readonly query: AttentionOperand;
  readonly key: AttentionOperand;
  readonly value: AttentionOperand;
  /** A score in f32: argument 0 is the sum of products, then `scoreReads`. */
  readonly score: ScalarExpr;
  readonly scoreReads: readonly Access[];
  /** Columns up to `row + ahead` are met, the others are minus infinity; undefined: all. */
  readonly ahead?: number;
  /** Columns from `row - behind` on are met, where there is an end ahead as well; undefined: all. */
  readonly behind?: number;
  /** The same as data says; then there is neither of the former. */
  readonly reach?: Reach;
  /** What becomes of a result in f32 (argument 0, then `finishReads`), a value for each write. */
  readonly finish: readonly ScalarExpr[];
  readonly finishReads: readonly Access[];
  readonly writes: readonly Write[];
  /** How a tensor copy finds a tile of the results, where there is one result. */
  readonly result?: OperandBox;
  /** Type of the first result. */
  readonly finishType: DType;
  /** Statements by what their loops are called in the form. */
  readonly names: ReadonlyMap<string, ReadonlyMap<string, IndexExpr>>;
}

/** The score as a multiple of the sum with something added, both constant over the sum. */
export interface LinearScore {
  readonly scale: number;
  readonly bias?: ScalarExpr;
}

/** The form is asked for by candidates, prices and lowering of one region. */
const known = new WeakMap<Region, AttentionForm | string>();

export function attentionForm(region: Region): AttentionForm | string {
  const made = known.get(region) ?? makeForm(region);
  known.set(region, made);
  return made;
}

function makeForm(region: Region): AttentionForm | string {
  try {
    return new FormReader(region).read();
  } catch (error) {
    if (error instanceof NoForm) return error.message;
    throw error;
  }
}

class NoForm extends Error {}

function refuse(why: string): never {
  throw new NoForm(why);
}

/** What an expression is over: an element from outside, or the fold of a statement at a place. */
type Leaf =
  | { readonly kind: "read"; readonly access: Access }
  | { readonly kind: "fold"; readonly statement: Statement; readonly at: Places };

type Places = ReadonlyMap<string, IndexExpr>;

class FormReader {
  readonly #region: Region;
  readonly #writers = new Map<string, Statement>();
  readonly #leaves: Leaf[] = [];
  readonly #byKey = new Map<string, number>();
  readonly #names = new Map<string, Places>();
  /** Of the last statement's loops, in whose names everything is read. */
  readonly #ranges = new Map<string, IndexRange>();

  constructor(region: Region) {
    this.#region = region;
    for (const { name, range } of region.symbols) this.#ranges.set(name, range);
    const symbols = new Map(this.#ranges);
    for (const { name, extent, kind } of region.statements.at(-1)!.loops) {
      this.#ranges.set(kind === "reduce" ? columnName! : name, loopRange(extent, symbols));
    }
    for (const s of region.statements) {
      const isPlain = s.guard.length === 0 && s.indirects.length === 0;
      if (!isPlain || s.loops.some((l) => l.kind === "scan"))
        refuse(`${s.name} covers a part, reads indices or scans`);
      if (s.writes.some((w) => w.combine !== "overwrite")) refuse(`${s.name} updates in place`);
      if (s.loops.some((l) => !Number.isSafeInteger(this.#most(l.extent))))
        refuse(`an extent of ${s.name} has no upper end`);
      for (const w of s.writes) this.#writers.set(w.tensor, s);
    }
  }

  /** The upper end of an extent. */
  #most(extent: IndexExpr): number {
    return rangeOf(extent, this.#ranges).max;
  }

  read(): AttentionForm {
    const last = this.#region.statements.at(-1)!;
    const sum = this.#product(last);
    const column = sum.deep.name;
    const [mixed, others] = sum.reads.map((r) => this.#writers.has(r.tensor));
    if (mixed === others) return refuse(`${last.name} multiplies no softmax by a tensor`);
    const [weights, value] = mixed ? sum.reads : ([sum.reads[1]!, sum.reads[0]!] as const);
    const own = new Map(last.loops.map((l) => [l.name, variable(l.name)]));
    const named = new Map(own).set(column, variable(columnName));
    this.#names.set(last.name, named);
    const inForm = (access: Access): Access => substituteAccess(access, named);
    const score = this.#softmax(this.#expand(inForm(weights!)));
    const scores = this.#scores(score);
    const space = last.loops.filter((l) => l.kind === "space");
    const parts = this.#parts(space, inForm(value!), scores);
    const { names } = parts;
    const rename = <T extends Access | Write>(a: T): T =>
      ({ ...a, index: a.index.map((e) => substitute(e, names)) }) as T;
    const access = (a: Access): Access => substituteAccess(a, names);
    const { dtype } = this.#region.tensors.get(value!.tensor)!;
    const [query, key] = [access(scores.query), access(scores.key)];
    const types = [query, key].map((a) => this.#region.tensors.get(a.tensor)!.dtype);
    if ((dtype !== "bf16" && dtype !== "f16") || types.some((t) => t !== dtype))
      return refuse("its operands are not all bf16 or all f16");
    const { rowCount, width, batch } = parts;
    const depth = constantValue(scores.deep.extent);
    if (depth === undefined) return refuse("how many elements its keys have is open");
    const columnCount = sum.deep.extent;
    if (scores.columns.key !== columnCount.key) return refuse("its columns differ");
    const [rows, columns] = [this.#most(rowCount), this.#most(columnCount)];
    const extents = { rows: rowCount, columns: columnCount, depth, width };
    const masked = boundedScore(substituteScalar(scores.score, names), scores.reads.map(access), {
      row: rowName!,
      column: columnName!,
    });
    for (const [statement, at] of this.#names) {
      this.#names.set(statement, new Map([...at].map(([loop, e]) => [loop, substitute(e, names)])));
    }
    const finish = last.finish ?? [argument(0, "f32")];
    const writes = last.writes.map(rename);
    const result = this.#resultBox(writes, extents);
    return {
      dtype,
      ...{ batch, problems: this.#most(mul(...batch.map((l) => l.extent))) },
      ...{ rows, columns, rowCount, columnCount, depth, width },
      query: this.#operand(access(scores.query), [depthName!, rowName!], extents),
      key: this.#operand(access(scores.key), [depthName!, columnName!], extents),
      value: this.#operand(access(inForm(value!)), [widthName!, columnName!], extents),
      score: masked.score,
      scoreReads: masked.reads,
      ...(masked.reach && { reach: masked.reach }),
      ...(masked.ahead !== undefined && { ahead: masked.ahead }),
      ...(masked.behind !== undefined && { behind: masked.behind }),
      finish: finish.map((e) => substituteScalar(substituteScalar(e, named), names)),
      finishReads: last.finishReads.map((a) => access(inForm(a))),
      writes,
      ...(result && { result }),
      finishType: this.#region.tensors.get(writes[0]!.tensor)!.dtype,
      names: this.#names,
    };
  }

  /** A sum of products of two reads in f32. */
  #product({ name, body, reduction, reads, loops }: Statement): {
    readonly reads: readonly [Access, Access];
    readonly deep: Loop;
  } {
    const [value] = body;
    const isSum = reduction?.monoid.name === "sum" && reduction.monoid.components.length === 1;
    const deep = loops.filter((l) => l.kind === "reduce");
    if (!isSum || body.length !== 1 || reduction.numericClass === "approximates")
      return refuse(`${name} is no sum that may be reassociated`);
    if (deep.length !== 1) return refuse(`${name} sums over ${deep.length} loops`);
    const isProduct = value!.kind === "apply" && value!.op === "mul" && value!.dtype === "f32";
    const factors = isProduct ? value!.operands.map(withoutCast) : [];
    const [a, b] = factors.map((f) => (f.kind === "argument" ? reads[f.index] : undefined));
    if (!a || !b || reads.length !== 2 || a === b)
      return refuse(`${name} does not multiply two reads`);
    if (a.guard.length + b.guard.length > 0) return refuse(`${name} reads under a guard`);
    return { reads: [a, b], deep: deep[0]! };
  }

  /** What an element is made of: statements that map put in, folds and reads from outside as arguments. */
  #expand(access: Access): ScalarExpr {
    const maker = this.#writers.get(access.tensor);
    const { dtype } = this.#region.tensors.get(access.tensor)!;
    if (!maker) return argument(this.#leaf({ kind: "read", access }, accessKey(access)), dtype);
    if (access.guard.length > 0) return refuse(`${access.tensor} is read under a guard`);
    const which = maker.writes.findIndex((w) => w.tensor === access.tensor);
    const at = new Map<string, IndexExpr>();
    maker.writes[which]!.index.forEach((e, axis) => {
      const place = simplify(access.index[axis]!, this.#ranges);
      const loop = maker.loops.find((l) => l.kind === "space" && l.name === e.key);
      if (loop && !at.has(loop.name)) at.set(loop.name, place);
      else if (!indexEquals(substitute(e, at), place))
        refuse(`${access.tensor} is read at another place than it is written`);
    });
    if (maker.loops.some((l) => l.kind === "space" && !at.has(l.name)))
      return refuse(`${maker.name} writes ${access.tensor} several times`);
    this.#names.set(maker.name, at);
    const values = maker.reduction
      ? maker.reduction.monoid.components.map((c) => this.#fold(maker, at, c.dtype))
      : this.#values(maker.body, maker.reads, at);
    if (!maker.finish) return values[which] ?? refuse(`${maker.name} gives no value`);
    const operands = maker.finishReads.map((a) => this.#expand(substituteAccess(a, at)));
    return bindArguments(substituteScalar(maker.finish[which]!, at), [...values, ...operands]);
  }

  #fold(statement: Statement, at: Places, dtype: DType): ScalarExpr {
    if (statement.reduction!.monoid.components.length !== 1)
      return refuse(`${statement.name} folds tuples`);
    const key = [...at].map(([loop, e]) => `${loop}=${e.key}`).join();
    return argument(this.#leaf({ kind: "fold", statement, at }, `${statement.name} ${key}`), dtype);
  }

  #values(
    body: readonly ScalarExpr[],
    reads: readonly Access[],
    at: Places,
  ): readonly ScalarExpr[] {
    const operands = reads.map((a) => this.#expand(substituteAccess(a, at)));
    return body.map((e) => bindArguments(substituteScalar(e, at), operands));
  }

  #leaf(leaf: Leaf, key: string): number {
    const found = this.#byKey.get(key) ?? this.#leaves.push(leaf) - 1;
    this.#byKey.set(key, found);
    return found;
  }

  /** exp(score - max) / sum of exp(score - max): the score. */
  #softmax(weights: ScalarExpr): ScalarExpr {
    const quotient = inF32(weights);
    if (quotient.kind !== "apply" || quotient.op !== "div") return refuse("it has no softmax");
    const [power, total] = quotient.operands as [ScalarExpr, ScalarExpr];
    if (power.kind !== "apply" || power.op !== "exp") return refuse("it has no exponential");
    const [difference] = power.operands as [ScalarExpr];
    if (difference.kind !== "apply" || difference.op !== "sub")
      return refuse("nothing is taken off its scores");
    const [score, most] = difference.operands as [ScalarExpr, ScalarExpr];
    this.#checkFold(most, "max", score);
    this.#checkFold(total, "sum", power);
    return score;
  }

  /** That a value is the fold over the columns of what is expected. */
  #checkFold(value: ScalarExpr, monoid: "max" | "sum", of: ScalarExpr): void {
    const inner = withoutCast(value);
    const leaf = inner.kind === "argument" ? this.#leaves[inner.index] : undefined;
    if (leaf?.kind !== "fold") refuse(`it has no ${monoid} of a row`);
    const { statement, at } = leaf;
    const { reduction, loops, name } = statement;
    const deep = loops.filter((l) => l.kind === "reduce");
    if (reduction!.monoid.name !== monoid || deep.length !== 1)
      refuse(`${name} is no ${monoid} of a row`);
    if (reduction!.numericClass === "approximates") refuse(`${name} may not be reassociated`);
    const places = new Map(at).set(deep[0]!.name, variable(columnName!));
    this.#names.set(name, places);
    const [folded] = this.#values(statement.body, statement.reads, places);
    if (scalarKey(inF32(folded!)) !== scalarKey(of))
      refuse(`${name} folds something else than the scores`);
  }

  /** The score over its one sum of products and what else is read for it. */
  #scores(score: ScalarExpr) {
    const used = [...new Set(argumentsOf(score))];
    const folds = used.filter((i) => this.#leaves[i]!.kind === "fold");
    const [fold] = folds.map((i) => this.#leaves[i] as Extract<Leaf, { kind: "fold" }>);
    if (!fold || folds.length !== 1) return refuse("its scores are not of one product");
    const { statement, at } = fold;
    const { reads, deep } = this.#product(statement);
    const places = new Map(at).set(deep.name, variable(depthName!));
    this.#names.set(statement.name, places);
    const inForm = (read: Access): Access => {
      const { index, ...rest } = substituteAccess(read, places);
      return { ...rest, index: index.map((e) => simplify(e, this.#ranges)) };
    };
    const [a, b] = [inForm(reads[0]), inForm(reads[1])];
    if ([a, b].some((r) => this.#writers.has(r.tensor)))
      return refuse("its operands are made in the region");
    const moves = (r: Access): boolean => variablesOf(...r.index).has(columnName!);
    if (moves(a) === moves(b)) return refuse("both or none of its operands move with a column");
    const [query, key] = moves(b) ? [a, b] : [b, a];
    const columns = statement.loops.find((l) => at.get(l.name)?.key === columnName)?.extent;
    const rest = used.filter((i) => !folds.includes(i));
    const accesses = rest.map((i) => (this.#leaves[i] as Extract<Leaf, { kind: "read" }>).access);
    const numbers = new Map([...folds, ...rest].map((i, n) => [i, n]));
    const over = mapScalar(score, (leaf) =>
      leaf.kind === "argument" ? { ...leaf, index: numbers.get(leaf.index)! } : leaf,
    );
    return { score: over, query, key, deep, reads: accesses, columns: columns ?? constant(0) };
  }

  /** Loops of the results as rows, elements of a result, and problems of their own. */
  #parts(
    space: readonly Loop[],
    value: Access,
    { query, key }: { readonly query: Access; readonly key: Access },
  ) {
    const [ofValue, ofKey, ofQuery] = [value, key, query].map((a) => variablesOf(...a.index));
    const wide = space.filter((l) => ofValue!.has(l.name) && !ofQuery!.has(l.name));
    const [width] = wide.filter((l) => !ofKey!.has(l.name));
    if (!width || wide.length !== 1) return refuse("its results have no one loop of elements");
    const free = space.filter((l) => !ofValue!.has(l.name) && !ofKey!.has(l.name));
    const longest = Math.max(0, ...free.map((l) => this.#most(l.extent)));
    const row = free.findLast((l) => this.#most(l.extent) === longest);
    const others = space.filter((l) => l !== row && l !== width);
    const names = new Map<string, IndexExpr>([[width.name, variable(widthName!)]]);
    if (row) names.set(row.name, variable(rowName!));
    const batch = others.map((l, i) => ({ ...l, name: `@batch${i}` }));
    others.forEach((l, i) => {
      names.set(l.name, variable(batch[i]!.name));
    });
    const wideness = constantValue(width.extent);
    if (wideness === undefined) return refuse("how many elements its values have is open");
    return { names, batch, rowCount: row?.extent ?? constant(1), width: wideness };
  }

  /** How an operand lies in memory, over the two loops of a tile. */
  #operand(
    access: Access,
    [first, second]: readonly [string, string],
    extents: Readonly<Record<string, IndexLike>>,
  ): AttentionOperand {
    const { shape, dtype } = this.#region.tensors.get(access.tensor)!;
    const address = access.index.reduce<IndexExpr>(
      (at, e, axis) => add(mul(at, shape[axis]!), e),
      constant(0),
    );
    const most = 128 / dtypes[dtype].bits;
    for (const along of [first, second]) {
      const linear = splitLinear(address, along);
      const last = splitLinear(access.index.at(-1)!, along);
      if (linear?.coefficient !== 1 || last?.coefficient !== 1) continue;
      const { rest } = linear;
      const length = toIndex(extents[along.slice(1)] ?? extents[`${along.slice(1)}s`]!);
      const parts = [length, rest].flatMap((e) => [
        e.constant,
        ...e.terms.map((t) => t.coefficient),
      ]);
      let lanes = most;
      while (parts.some((n) => n % lanes !== 0)) lanes /= 2;
      const box = along === first ? this.#box(access, second, extents) : undefined;
      return { access, along, lanes, ...(box && { box }) };
    }
    return refuse(`neighbours in ${access.tensor} are not along one of its loops`);
  }

  #resultBox([only, ...others]: readonly Write[], extents: Readonly<Record<string, IndexLike>>) {
    if (!only || others.length > 0) return undefined;
    const isAlong = splitLinear(only.index.at(-1)!, widthName!)?.coefficient === 1;
    return isAlong ? this.#box(only, rowName!, extents) : undefined;
  }

  #box(
    { tensor, index }: Access | Write,
    line: string,
    extents: Readonly<Record<string, IndexLike>>,
  ) {
    const { shape, dtype } = this.#region.tensors.get(tensor)!;
    const axes = index.flatMap((e, i) => (variablesOf(e).has(line) ? [i] : []));
    const [axis] = axes;
    if (axis === undefined || axes.length > 1 || axis + 2 > boxAxes) return undefined;
    if (axis === index.length - 1 || splitLinear(index[axis]!, line)?.coefficient !== 1)
      return undefined;
    const step = mul(...shape.slice(axis + 1), dtypes[dtype].bits / 8);
    if (!isMultiple(step, boxBytes)) return undefined;
    const isWhole =
      index[axis]!.key === line && indexEquals(shape[axis]!, extents[`${line.slice(1)}s`]!);
    return { axis, isWhole };
  }
}

/** Without the rounding to a narrow float and back. */
function withoutCast(e: ScalarExpr): ScalarExpr {
  return e.kind === "cast" && isFloatDType(e.dtype) && isFloatDType(e.operand.dtype)
    ? withoutCast(e.operand)
    : e;
}

/** The value with all floats on the way in f32. */
function inF32(e: ScalarExpr): ScalarExpr {
  if (!isFloatDType(e.dtype)) {
    if (e.kind !== "apply") return e;
    return { ...e, operands: e.operands.map(inF32) };
  }
  switch (e.kind) {
    case "literal":
      return literal(e.value, "f32");
    case "argument":
      return e.dtype === "f32" ? e : { kind: "cast", dtype: "f32", saturate: false, operand: e };
    case "index":
      return { ...e, dtype: "f32" };
    case "cast":
      return isFloatDType(e.operand.dtype)
        ? inF32(e.operand)
        : { ...e, dtype: "f32", operand: inF32(e.operand) };
    case "apply":
      return { ...e, dtype: "f32", operands: e.operands.map(inF32) };
  }
}

function argumentsOf(e: ScalarExpr): readonly number[] {
  if (e.kind === "argument") return [e.index];
  if (e.kind === "cast") return argumentsOf(e.operand);
  return e.kind === "apply" ? e.operands.flatMap(argumentsOf) : [];
}

/** Equal for structurally equal expressions. */
function scalarKey(e: ScalarExpr): string {
  switch (e.kind) {
    case "literal":
      return `${e.dtype}:${Object.is(e.value, -0) ? "-0" : e.value}`;
    case "argument":
      return `${e.dtype}:_${e.index}`;
    case "index":
      return `${e.dtype}:${e.expr.key}`;
    case "cast":
      return `${e.dtype}${e.saturate && !isFloatDType(e.dtype)}(${scalarKey(e.operand)})`;
    case "apply":
      return `${e.op}.${e.dtype}(${e.operands.map(scalarKey).join()})`;
  }
}

/** The score as a multiple of the sum and something added to it; undefined where it is none. */
export function linearScore(e: ScalarExpr): LinearScore | undefined {
  const inner = withoutCast(e);
  if (inner.kind === "argument") return inner.index === 0 ? { scale: 1 } : undefined;
  if (inner.kind !== "apply" || inner.operands.length !== 2) return undefined;
  const [a, b] = inner.operands as [ScalarExpr, ScalarExpr];
  const [left, right] = [a, b].map((o) => argumentsOf(o).includes(0));
  if (left === right) return undefined;
  const [own, other] = left ? [a, b] : [b, a];
  const linear = linearScore(own);
  if (!linear) return undefined;
  const { scale, bias } = linear;
  const factor = other.kind === "literal" ? Number(other.value) : undefined;
  switch (inner.op) {
    case "mul":
      if (factor === undefined) return undefined;
      return scaled(linear, factor, (x) => apply("mul", x, other));
    case "div":
      if (factor === undefined || !left) return undefined;
      return scaled(linear, 1 / factor, (x) => apply("div", x, other));
    case "add":
      return { scale, bias: bias ? apply("add", bias, other) : other };
    case "sub":
      if (!left) return undefined;
      return { scale, bias: bias ? apply("sub", bias, other) : apply("neg", other) };
    default:
      return undefined;
  }
}

/** By what a score is a multiple of its sum, in the same order; undefined where it is made in another way. */
export function plainScale(score: ScalarExpr): number | undefined {
  const linear = linearScore(score);
  return linear && !linear.bias && linear.scale > 0 ? linear.scale : undefined;
}

function scaled(
  { scale, bias }: LinearScore,
  factor: number,
  change: (bias: ScalarExpr) => ScalarExpr,
): LinearScore {
  return { scale: scale * factor, ...(bias && { bias: change(bias) }) };
}
