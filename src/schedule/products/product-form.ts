/**
 * Statements that are a product of two operands (product-operands.ts) summed over shared loops: matrix products,
 * batched ones, convolutions. Every loop belongs to one of four parts: to the rows (it moves the first operand and the
 * results), to the columns (the second one, and neighbouring results), to the batch (both operands, or apart
 * in the results from the rest of its part), or to the depth (reduced). As a matrix product each part is one
 * index, its loops taken together row-major. The outermost loop of a part may be open: its extent is known at run time.
 */
import { areTogether } from "../../region/groups.ts";
import type { Access, Loop, Region, Statement } from "../../region/nest.ts";
import { picksOfBatch } from "../../region/picks.ts";
import { type DType, dtypes } from "../../semantics/dtype.ts";
import {
  add,
  constant,
  constantValue,
  type IndexExpr,
  mul,
  splitLinear,
  substitute,
  variablesOf,
} from "../../semantics/index-expr.ts";
import { rangeOf } from "../../semantics/index-range.ts";
import { type ScalarExpr, scalarOperands } from "../../semantics/scalar-expr.ts";
import type { MultiplyDirective } from "../directive.ts";
import { sumsApart } from "./apart-sums.ts";
import { isByte, operandsOf, type ProductOperand, type Prologue } from "./product-operands.ts";
import { type ResultFold, resultFold } from "./result-folds.ts";
import { runOf } from "./result-runs.ts";
import { isLineOf, mostAxes } from "./stream-operands.ts";

export interface ProductPart {
  readonly loops: readonly Loop[];
  /** Product of the loops' extents; of open ones their upper ends, by which the product is planned and priced. */
  readonly extent: number;
  /** The same as a run has it. */
  readonly size: IndexExpr;
}

export interface ProductSide extends ProductPart {
  readonly access: Access;
  /** Of its tensor. */
  readonly shape: readonly IndexExpr[];
  /** In which it is multiplied: of its tensor, or what the prologue makes of that. */
  readonly dtype: DType;
  readonly line: OperandLine;
  /** What becomes of elements in registers, before they are multiplied. */
  readonly prologue?: Prologue;
}

/** Along which part neighbours are neighbours in memory, and how many of them are one aligned vector at most. */
export interface OperandLine {
  readonly along: "depth" | "space";
  readonly lanes: number;
  /** Divisions that take an element's number apart. */
  readonly digits: number;
}

export interface ProductForm {
  /** Element type of the operand of the rows; that of the columns has as many bits. */
  readonly dtype: DType;
  /** What products are summed in. */
  readonly sum: "f32" | "i32";
  readonly rows: ProductSide;
  readonly columns: ProductSide;
  readonly batch: ProductPart;
  /** Numbers that data gives each problem of the batch, by which an operand is found. */
  readonly picks: Statement["indirects"];
  readonly depth: ProductPart;
  /** Whether the results are only a part of their tensors, as of a concatenation. */
  readonly isPart: boolean;
  /** Element type of the first of the results. */
  readonly result: DType;
  /** Why no tensor copy can write the results, or undefined. */
  readonly unwritable: string | undefined;
  /** Bits that the epilogue reads for each result by itself, not only for its row or column. */
  readonly operandBits: number;
  /** Whether it computes functions and rounds on the way to a result: many instructions and registers. */
  readonly roundsFunctions: boolean;
  /** Whether neighbouring results in memory are rows. */
  readonly isSwapped: boolean;
  /** Columns whose results are neighbours in memory, where the epilogue writes heads of so many apart; absent: all. */
  readonly run?: number;
  /** What the kernel folds of a tile's results, which are then stored nowhere. */
  readonly fold?: ResultFold;
}

/** Every candidate of a region asks for the same forms. */
const known = new WeakMap<Region, Map<string, ProductForm | string>>();

/** The statement as a product, or why it is none; swapped where the second operand's loops are to be the rows. */
export function productForm(
  region: Region,
  statement: Statement,
  isSwapped = false,
): ProductForm | string {
  const place = region.statements.indexOf(statement);
  if (place < 0) return formOf(region, statement, isSwapped);
  const key = `${place} ${isSwapped}`;
  const forms = known.get(region) ?? new Map<string, ProductForm | string>();
  known.set(region, forms);
  const form = forms.get(key) ?? formOf(region, statement, isSwapped);
  forms.set(key, form);
  return form;
}

function formOf(region: Region, statement: Statement, isSwapped: boolean): ProductForm | string {
  const { reads, body, reduction, writes, indirects, guard, loops } = statement;
  const sum = reduction && body.length === 1 ? sumType(statement) : undefined;
  if (!reduction || !sum) return "it is no sum of products in f32 or i32";
  if (reduction.numericClass === "approximates") return "its sum may not be reassociated";
  const operands = operandsOf(statement, sum, region);
  if (typeof operands === "string") return operands;
  if (!areTogether(writes)) return "its results are not written plainly at one place each";
  if (writes[0]!.index.length === 0) return "its result is a single number";
  if (guard.length > 0) return "it has a guard";
  if (indirects.length > 0 && !picksOfBatch(statement))
    return "it has indices that are not the same for a whole problem of a batch";
  if (loops.some((l) => l.kind === "scan")) return "a loop of it is a scan";
  if (reads.some((r) => Number(r.fill) !== 0)) return "what is read outside an operand is not zero";
  const types = operands.map((o) => o.dtype);
  if (sum === "i32" && !types.every((t) => isByte(t!))) return "its integers are no bytes";
  const form = partsOf(statement, region, { operands, isSwapped });
  return typeof form === "string" ? form : (openFault(form) ?? form);
}

/** Why no tiles are made of parts whose extents are open, or undefined. */
function openFault({ rows, columns, batch, depth }: ProductForm): string | undefined {
  const parts = [rows, columns, batch, depth];
  if (parts.some((p) => !Number.isSafeInteger(p.extent))) return "an extent of it has no upper end";
  // Inner loops are the digits of a number, which are constants.
  return parts.some((p) => p.loops.slice(1).some((l) => constantValue(l.extent) === undefined))
    ? "an open extent stands inside of a loop with which it makes rows, columns or problems"
    : undefined;
}

/** Whether a run may have less of it than what is planned for. */
export function isOpen({ size }: Pick<ProductPart, "size">): boolean {
  return constantValue(size) === undefined;
}

/** Whether a product's part is whole tiles of so many, whatever it is at run time. */
export function isWhole({ size }: Pick<ProductPart, "size">, tile: number): boolean {
  return size.constant % tile === 0 && size.terms.every((t) => t.coefficient % tile === 0);
}

const addressRegisters = 2;

/**
 * Registers that the copies of a step take from each thread: elements on their way to shared memory, where no
 * copy of 4 bytes moves them or something becomes of them, and the addresses of those that copies move.
 */
export function heldRegisters(
  { tile, warps }: Pick<MultiplyDirective, "tile" | "warps">,
  form: ProductForm,
): number {
  const [rows, columns, depth] = tile;
  const held = ({ line, prologue }: ProductSide, extent: number): number => {
    const vectors = (extent * depth) / line.lanes;
    if (prologue)
      return vectors * (addressRegisters + Math.ceil((line.lanes * prologue.bits) / 32));
    const isMoved = line.lanes * (dtypes[form.dtype].bits / 8) >= 4;
    return vectors * (isMoved ? addressRegisters : 1);
  };
  return (held(form.rows, rows) + held(form.columns, columns)) / (32 * warps[0] * warps[1]);
}

/** Whether something becomes of an operand on its way. */
export function hasPrologue({ rows, columns }: ProductForm): boolean {
  return rows.prologue !== undefined || columns.prologue !== undefined;
}

/** Values of a thread up to which an equal share of the registers is enough; operands are half as many as sums. */
const [fewValues, ofOperands] = [64, 0.5] as const;

/** Sums of a tile that each thread holds. */
export function sumsOfThread({ tile, warps }: Pick<MultiplyDirective, "tile" | "warps">): number {
  return (tile[0] * tile[1]) / (32 * warps[0] * warps[1]);
}

/** Whether warpgroups take registers from the one that copies for them. */
export function takesRegisters(
  { by, tile, warps }: Pick<MultiplyDirective, "by" | "tile" | "warps">,
  form: Pick<ProductForm, "operandBits" | "dtype">,
): boolean {
  const values = sumsOfThread({ tile, warps }) * (form.operandBits > 0 ? 1 + ofOperands : 1);
  return by === "wgmma" && values + (sumsApart(form) ? tile[1] / 2 : 0) > fewValues;
}

/** What of a tile's schedule and form says how its results leave. */
type Leaving = Pick<MultiplyDirective, "tile" | "parts">;
type Placed = Pick<ProductForm, "run">;

/** Parts of 64 rows in which a warpgroup's results of a tile go through shared memory. */
export function resultParts(d: Leaving & Pick<MultiplyDirective, "warps">, form: Placed): number {
  const [rows, columns] = d.tile;
  return (rows * columns) / (16 * d.warps[0] * resultColumns(d, form));
}

/**
 * Columns of one part of the results that tensor copies write from shared memory: of a block's share, and of a run,
 * whole ones.
 */
export function resultColumns({ tile, parts }: Leaving, { run = 0 }: Placed): number {
  // No run, 0, is whatever is asked for.
  return [64, 32, 16].find((n) => tile[1] % (n * parts) === 0 && run % n === 0) ?? 0;
}

interface Operands {
  readonly operands: readonly [ProductOperand, ProductOperand];
  readonly isSwapped: boolean;
}

function partsOf(
  statement: Statement,
  region: Region,
  { operands, isSwapped }: Operands,
): ProductForm | string {
  const { writes, loops } = statement;
  const uses = operands.map((o) => o.loops);
  const nearest = [...variablesOf(writes[0]!.index.at(-1)!)];
  const space = loops.filter((l) => l.kind === "space");
  const inner = space.findLast((l) => nearest.includes(l.name));
  const near = uses[0]!.has(inner?.name ?? "") && !uses[1]!.has(inner?.name ?? "") ? 0 : 1;
  const second = isSwapped ? 1 - near : near;
  const [column, row] = [uses[second]!, uses[1 - second]!];
  const ranges = new Map(region.symbols.map((s) => [s.name, s.range]));
  const part = (chosen: readonly Loop[]): ProductPart => {
    const size = mul(...chosen.map((l) => l.extent));
    return { loops: chosen, extent: rangeOf(size, ranges).max, size };
  };
  if (space.some((l) => !row.has(l.name) && !column.has(l.name))) {
    return "a loop moves neither operand";
  }
  const only = (mine: ReadonlySet<string>, other: ReadonlySet<string>): ProductPart =>
    part(lastRun(space.filter((l) => mine.has(l.name) && !other.has(l.name))));
  // Results are tiled where rows and columns run on in them: other loops are dealt out to blocks.
  const lastRun = (own: readonly Loop[]): readonly Loop[] => {
    const from = own.findIndex((_, i) => i + 1 === own.length || isRun(own.slice(i)));
    return own.slice(from < 0 ? own.length : from);
  };
  const isRun = (own: readonly Loop[]): boolean =>
    writes.every((w) => axisOfRun(own, w.index, region.tensors.get(w.tensor)!.shape) !== undefined);
  const depth = part(loops.filter((l) => l.kind === "reduce"));
  const side = (own: ProductPart, operand: ProductOperand): ProductSide => {
    const { access, dtype, prologue } = operand;
    const { shape } = region.tensors.get(access.tensor)!;
    // A vector of what is read and one of what becomes of it are at most 16 bytes.
    const bits = Math.max(dtypes[dtype].bits, prologue?.widestBits ?? 0);
    const line = lineOf({ own, depth }, access, shape, bits / 8);
    return { ...own, access, shape, dtype, line, ...(prologue && { prologue }) };
  };
  const rows = side(only(row, column), operands[1 - second]!);
  const columns = side(only(column, row), operands[second]!);
  const run = runOf(writes, columns);
  const fold = resultFold(region, statement);
  if (typeof run === "string") return run;
  const tiled = new Set([...rows.loops, ...columns.loops]);
  const results = mul(...space.map((l) => l.extent));
  const isPart = writes.some((w) => {
    const { shape } = region.tensors.get(w.tensor)!;
    return mul(...shape).key !== results.key;
  });
  return {
    dtype: rows.dtype,
    sum: sumType(statement)!,
    isPart,
    rows,
    columns,
    batch: part(space.filter((l) => !tiled.has(l))),
    picks: statement.indirects,
    depth,
    result: region.tensors.get(writes[0]!.tensor)!.dtype,
    unwritable: fold
      ? "results are folded where they are made"
      : resultFault(statement, { rows, columns, ...run }, region),
    operandBits: statement.finishReads
      .filter((r) => isOfResult(r, rows, columns))
      .reduce((sum, { tensor }) => sum + dtypes[region.tensors.get(tensor)!.dtype].bits, 0),
    roundsFunctions: (statement.finish ?? []).some(
      (e) => computesFunction(e) && scalarOperands(e).some(roundsNarrow),
    ),
    isSwapped,
    ...run,
    ...(fold && { fold }),
  };
}

/** Whether each result reads an element of its own. */
export function isOfResult(read: Access, rows: ProductPart, columns: ProductPart): boolean {
  const used = variablesOf(...read.index);
  return [rows, columns].every(({ loops }) => loops.some((l) => used.has(l.name)));
}

const widestBytes = 16;

function lineOf(
  { own, depth }: { readonly own: ProductPart; readonly depth: ProductPart },
  access: Access,
  shape: readonly IndexExpr[],
  bytes: number,
): OperandLine {
  const address = addressOf(access, shape);
  const stepOf = (part: ProductPart): number => {
    const name = part.loops.at(-1)?.name;
    const linear = name === undefined ? undefined : splitLinear(address, name);
    return linear?.coefficient ?? 0;
  };
  const steps = { depth: stepOf(depth), space: stepOf(own) };
  const isNearer = steps.space !== 0 && Math.abs(steps.space) < Math.abs(steps.depth);
  const isOnly = steps.space !== 0 && (steps.depth === 0 || !isOneLine(depth, address));
  const lines = {
    depth: {
      along: "depth",
      ...vectorsOf({ part: depth, step: steps.depth }, access, shape, bytes),
    },
    space: { along: "space", ...vectorsOf({ part: own, step: steps.space }, access, shape, bytes) },
  } as const;
  // A window's channels are vectors, though the window is no line.
  const prefersSpace = isNearer || (isOnly && lines.depth.lanes <= lines.space.lanes);
  const { along, lanes, isRun } = lines[prefersSpace ? "space" : "depth"];
  const digitsOf = (loops: readonly Loop[]): number => Math.max(0, loops.length - 1);
  const digits = digitsOf(own.loops) + digitsOf(depth.loops);
  const { loops } = prefersSpace ? own : depth;
  return { along, lanes, digits: isRun ? digits - digitsOf(loops) : digits };
}

/** Elements of one aligned vector along a part's loops, and whether they run on as one. */
function vectorsOf(
  { part: { loops }, step }: { readonly part: ProductPart; readonly step: number },
  access: Access,
  shape: readonly IndexExpr[],
  bytes: number,
): { readonly lanes: number; readonly isRun: boolean } {
  const last = loops.at(-1);
  if (!last || step !== 1) return { lanes: 1, isRun: false };
  // Loops that run through whole axes count as one, which the lowering reaches through a view.
  const isRun = access.guard.length === 0 && axisOfRun(loops, access.index, shape) !== undefined;
  const line = isRun ? loops : [last];
  const guarded = access.guard.some((c) => variablesOf(c.expr).has(last.name));
  // A vector is loaded along the last axis, even where the others behind the loop's own have one element.
  if (guarded || !variablesOf(access.index.at(-1)!).has(last.name)) {
    return { lanes: 1, isRun: false };
  }
  const start = substitute(
    addressOf(access, shape),
    new Map(line.map((l) => [l.name, constant(0)])),
  );
  const length = mul(...line.map((l) => l.extent));
  const [lengths, starts] = [length, start].map((e) => [
    e.constant,
    ...e.terms.map((t) => t.coefficient),
  ]);
  const parts = [...lengths!, ...starts!];
  let lanes = widestBytes / bytes;
  while (parts.some((n) => n % lanes !== 0)) lanes /= 2;
  return { lanes, isRun };
}

/** The place of an element, row-major. */
function addressOf({ index }: Access, shape: readonly IndexExpr[]): IndexExpr {
  return index.reduce<IndexExpr>((at, e, axis) => add(mul(at, shape[axis]!), e), constant(0));
}

/** The axis from which on the loops, and nothing else, run through whole axes in their order. */
export function axisOfRun(
  loops: readonly Loop[],
  index: readonly IndexExpr[],
  shape: readonly IndexExpr[],
): number | undefined {
  const axis = index.findIndex((e) => e.key === loops[0]!.name);
  const follows = loops.every(({ name, extent }, i) => {
    const isWhole = i === 0 || shape[axis + i]?.key === extent.key;
    return isWhole && index[axis + i]?.key === name;
  });
  return axis >= 0 && follows ? axis : undefined;
}

/** Whether the part's loops together step through memory as one would. */
function isOneLine({ loops }: ProductPart, address: IndexExpr): boolean {
  let stride: number | undefined;
  for (const { name, extent } of loops.toReversed()) {
    const own = splitLinear(address, name)?.coefficient;
    if (own === undefined || (stride !== undefined && own !== stride)) return false;
    // Only the outermost loop of a part may be open.
    stride = own * (constantValue(extent) ?? 0);
  }
  return true;
}

/** Tensor copies write one matrix of 16-bit elements whose rows are multiples of 16 bytes. */
function resultFault(
  { writes, indirects }: Statement,
  { rows, columns, run }: Pick<ProductForm, "rows" | "columns" | "run">,
  region: Region,
): string | undefined {
  const [write] = writes;
  if (writes.length > 1) return "there are several results";
  const { dtype } = region.tensors.get(write!.tensor)!;
  if (!isNarrow(dtype)) return `results of ${dtype} are not moved as matrices`;
  const [row, column] = [rows.loops[0], columns.loops[0]];
  const [at, line, ...before] = write!.index.toReversed();
  const isUncut = run === undefined;
  const others = [row, ...(isUncut ? [column] : []), ...indirects].map((l) => l?.name);
  const isPlain =
    rows.loops.length === 1 &&
    columns.loops.length === 1 &&
    line !== undefined &&
    write!.index.length <= mostAxes &&
    isLineOf(line, row!) &&
    (!isUncut || at!.key === column!.name) &&
    ![...variablesOf(...before)].some((name) => others.includes(name));
  if (!isPlain) return "results are no plain matrix";
  return isWhole(run === undefined ? columns : { size: constant(run) }, 8)
    ? undefined
    : "rows of results are no multiples of 16 bytes";
}

function roundsNarrow(expr: ScalarExpr): boolean {
  if (expr.kind === "cast" && isNarrow(expr.dtype)) return true;
  return scalarOperands(expr).some(roundsNarrow);
}

const functions = new Set(["exp", "exp2", "log", "erf", "tanh", "sigmoid", "sin", "cos", "pow"]);

function computesFunction(expr: ScalarExpr): boolean {
  if (expr.kind === "apply" && functions.has(expr.op)) return true;
  return scalarOperands(expr).some(computesFunction);
}

export function isNarrow(dtype: DType): boolean {
  return dtype === "bf16" || dtype === "f16";
}

/** Whether f32 or i32 are summed, one value at a time; undefined: something else is done. */
function sumType({ reduction }: Statement): ProductForm["sum"] | undefined {
  const { name, components } = reduction!.monoid;
  const dtype = components[0]!.dtype;
  if (name !== "sum" || components.length !== 1) return undefined;
  return dtype === "f32" || dtype === "i32" ? dtype : undefined;
}
