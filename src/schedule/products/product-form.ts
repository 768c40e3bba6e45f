/**
 * Statements that are a product of two operands (product-operands.ts) summed over shared loops: matrix products,
 * batched ones, convolutions. Every loop belongs to one of four parts: to the rows (it moves the first operand and the
 * results), to the columns (the second one, and neighbouring results), to the batch (both operands, or apart
 * in the results from the rest of its part), or to the depth (reduced). As a matrix product each part is one
 * index, its loops taken together row-major.
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
import { type ScalarExpr, scalarOperands } from "../../semantics/scalar-expr.ts";
import type { MultiplyDirective } from "../directive.ts";
import { apartFault, isByteFloat, sumsApart } from "./apart-sums.ts";
import { clusterFault, partsFault, productTiles } from "./product-blocks.ts";
import { isByte, operandsOf, type ProductOperand, type Prologue } from "./product-operands.ts";
import { foldFault, type ResultFold, resultFold } from "./result-folds.ts";
import { runFault, runOf } from "./result-runs.ts";
import {
  isLineOf,
  mostAxes,
  streamedDepth,
  streamedPanel,
  streamFault,
} from "./stream-operands.ts";

export interface ProductPart {
  readonly loops: readonly Loop[];
  /** Product of the loops' extents. */
  readonly extent: number;
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
  if (loops.some((l) => l.kind === "scan" || constantValue(l.extent) === undefined)) {
    return "not every loop has a constant extent";
  }
  if (reads.some((r) => Number(r.fill) !== 0)) return "what is read outside an operand is not zero";
  const types = operands.map((o) => o.dtype);
  if (sum === "i32" && !types.every((t) => isByte(t!))) return "its integers are no bytes";
  return partsOf(statement, region, { operands, isSwapped });
}

/** Results of a warp that come together. */
const units = { fma: [16, 32], mma: [16, 16], wgmma: [16, 8] } as const;
/** Elements of a vector of a thread, and bytes of the depth that one matrix instruction takes. */
const [vectorDepth, instructionBytes] = [4, 32] as const;
/** Columns and depth of one instruction of four warps at most, and its warps. */
const groupWarps = 4;
const mostGroups = 3;
const groupColumns = 256;
/** Columns up to which any multiple of 8 is an instruction for integers. */
const fewColumns = 32;
const groupRows = 256;
/** Sums that a thread holds at most, and with those of a step beside them. */
const [mostSums, mostAndPartial] = [128, 192] as const;
/** Of these and what copies take; fragments and the rest of the kernel need the others of 255. */
const mostHeld = 160;
const addressRegisters = 2;

/** Why no block can be given such a tile, or undefined. */
export function multiplyFault(d: MultiplyDirective, form: ProductForm): string | undefined {
  const { dtype } = form;
  const [rows, columns, depth] = d.tile;
  const [down, across] = d.warps;
  const numbers = [
    ...[...d.tile, ...d.warps, d.stages, d.group, d.teams, d.parts, d.cluster],
    ...[d.results + 1, d.blocks + 1],
  ];
  if (numbers.some((n) => !Number.isSafeInteger(n) || n < 1))
    return "not all are positive integers";
  if (!isTaken(d.by, dtype)) return `${d.by} does not multiply ${dtype}`;
  if (d.by === "mma" && dtypes[dtype].bits !== 16 && !isAlongDepth(form))
    return `operands of ${dtype} are read along the depth alone`;
  if (d.by === "fma" && d.swizzle !== 0) return "threads read vectors, which no swizzle parts";
  const [tall, wide] = units[d.by];
  const deep = leastDepthOf(d.by, dtype);
  if (rows % (tall * down) !== 0) return `${rows} rows for ${down} warps of a multiple of ${tall}`;
  if (columns % (wide * across) !== 0)
    return `${columns} columns for ${across} warps of a multiple of ${wide}`;
  if (d.by === "wgmma") {
    const streamed = streamFault(form);
    if (streamed !== undefined) return streamed;
    if (across !== 1 || down % groupWarps !== 0 || down > mostGroups * groupWarps)
      return "multiplying warps stand below each other, 4, 8 or 12";
    if (rows % (16 * down) !== 0) return `${rows} rows for ${down / groupWarps} times 64`;
    if (rows > groupRows || columns > groupColumns) return "a copy moves at most 256 rows";
    if (form.sum === "i32" && columns > fewColumns && columns % 16 !== 0)
      return `${columns} columns of integers are no multiple of 16`;
    if (form.columns.line.along === "space" && streamedPanel(columns) === 0)
      return `${columns} columns that are neighbours are no multiple of 16`;
    if (depth !== deep || d.swizzle !== 128)
      return `a row of a stage is ${deep} elements, swizzle 128`;
  }
  const fault =
    runFault(d.tile, form) ??
    foldFault(d, form) ??
    gatherFault(d, form) ??
    turnFault(d, form) ??
    partsFault(d, form) ??
    clusterFault(d, form) ??
    apartFault(d, form) ??
    aheadFault(d, form);
  if (fault !== undefined) return fault;
  if (d.swapped && d.by !== "wgmma") return "only warpgroups take columns for rows";
  if (depth % deep !== 0) return `a depth of ${depth}, not a multiple of ${deep}`;
  if (passesRegisters(form) && d.stages > 2)
    return "what passes through registers is one stage ahead";
  if (d.stages < 2) return "one stage: copies would wait for what they overwrite";
  const sums = (rows * columns) / (32 * down * across);
  if (sums > mostSums) return `more than ${mostSums} sums in a thread`;
  const held = d.by === "wgmma" ? 0 : heldRegisters(d, form);
  if (sums + held > mostHeld)
    return `${sums} sums and ${held} registers for copies in a thread, of at most ${mostHeld}`;
  if (d.by === "wgmma" && sumsApart(form) && sums + columns / 2 > mostAndPartial)
    return `more than ${mostAndPartial} sums and parts of sums in a thread`;
  return down * across > 32 ? `${down * across} warps` : undefined;
}

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

/** Whether something becomes of both operands on their way. */
function passesRegisters({ rows, columns }: ProductForm): boolean {
  return rows.prologue !== undefined && columns.prologue !== undefined;
}

/** Whether something becomes of an operand on its way. */
export function hasPrologue({ rows, columns }: ProductForm): boolean {
  return rows.prologue !== undefined || columns.prologue !== undefined;
}

function isTaken(by: MultiplyDirective["by"], dtype: DType): boolean {
  if (by === "fma" || dtype === "f32") return dtype === "f32";
  return isNarrow(dtype) || isByte(dtype) || isByteFloat(dtype);
}

/** Matrix loads turn elements of 16 bits alone. */
function isAlongDepth({ rows, columns }: ProductForm): boolean {
  return rows.line.along === "depth" && columns.line.along === "depth";
}

function leastDepthOf(by: MultiplyDirective["by"], dtype: DType): number {
  if (by === "fma") return vectorDepth;
  return by === "wgmma" ? streamedDepth(dtype) : (8 * instructionBytes) / dtypes[dtype].bits;
}

/** Why blocks cannot go on from tile to tile, or warps not take turns with others. */
function turnFault(d: MultiplyDirective, form: ProductForm): string | undefined {
  const { by, warps, blocks, teams } = d;
  if (blocks === 0)
    return teams > 1 ? "teams take turns where blocks go on to further tiles" : undefined;
  if (by !== "wgmma") return "only warpgroups go on from tile to tile";
  if (form.picks.length > 0) return "data says for each tile what its operand is";
  const tiles = productTiles(d, form);
  if (blocks > tiles) return `${blocks} blocks for ${tiles} tiles`;
  if (teams * warps[0] > mostGroups * groupWarps) return `${teams} teams of ${warps[0]} warps`;
  return undefined;
}

/** Values of a thread up to which an equal share of the registers is enough; operands are half as many as sums. */
const [fewValues, ofOperands] = [64, 0.5] as const;

/** Sums of a thread beside gathered results of functions, rounded on the way, and operands: more are spilled. */
const withFunctions = 96;

/** Whether warpgroups take registers from the one that copies for them. */
export function takesRegisters(
  { by, tile, warps }: Pick<MultiplyDirective, "by" | "tile" | "warps">,
  form: Pick<ProductForm, "operandBits" | "dtype">,
): boolean {
  const sums = (tile[0] * tile[1]) / (32 * warps[0] * warps[1]);
  const values = sums * (form.operandBits > 0 ? 1 + ofOperands : 1);
  return by === "wgmma" && values + (sumsApart(form) ? tile[1] / 2 : 0) > fewValues;
}

/** Why what the epilogue reads cannot be loaded before the products. */
function aheadFault(
  { by, tile, warps, results, parts, ahead }: MultiplyDirective,
  form: ProductForm,
): string | undefined {
  if (!ahead) return undefined;
  if (parts > 1) return "blocks that exchange sums need the registers";
  if (by !== "wgmma" || results === 0) return "only warpgroups that gather results load ahead";
  if (form.operandBits === 0) return "the epilogue reads nothing for each result";
  if (form.roundsFunctions) return "functions and what they are rounded to need the registers";
  const sums = (tile[0] * tile[1]) / (32 * warps[0] * warps[1]);
  const held = (sums * form.operandBits) / 32 + (sumsApart(form) ? tile[1] / 2 : 0);
  return sums + held > mostAndPartial ? "registers do not hold the operands" : undefined;
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

/** Why results cannot go through shared memory. */
function gatherFault(
  { by, tile, warps, results, blocks, parts }: MultiplyDirective,
  form: ProductForm,
): string | undefined {
  if (results === 0) return undefined;
  if (by !== "wgmma") return "only warpgroups gather results";
  const sums = (tile[0] * tile[1]) / (32 * warps[0] * warps[1]);
  const most = blocks > 0 ? fewValues : withFunctions;
  if (form.operandBits > 0 && form.roundsFunctions && sums > most)
    return `${sums} sums in a thread beside rounded functions of operands, of at most ${most}`;
  if (resultColumns({ tile, parts }, form) === 0)
    return `${tile[1]} columns, or heads of them, are no multiple of ${16 * parts}`;
  return form.unwritable;
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
  const part = (chosen: readonly Loop[]): ProductPart => ({
    loops: chosen,
    extent: chosen.reduce((n, l) => n * constantValue(l.extent)!, 1),
  });
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
  const results = space.reduce((n, l) => n * constantValue(l.extent)!, 1);
  const isPart = writes.some((w) => {
    const { shape } = region.tensors.get(w.tensor)!;
    return constantValue(mul(...shape)) !== results;
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
  const length = line.reduce((n, l) => n * constantValue(l.extent)!, 1);
  const parts = [length, start.constant, ...start.terms.map((t) => t.coefficient)];
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
    stride = own * constantValue(extent)!;
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
  const isWhole = run === undefined;
  const others = [row, ...(isWhole ? [column] : []), ...indirects].map((l) => l?.name);
  const isPlain =
    rows.loops.length === 1 &&
    columns.loops.length === 1 &&
    line !== undefined &&
    write!.index.length <= mostAxes &&
    isLineOf(line, row!) &&
    (!isWhole || at!.key === column!.name) &&
    ![...variablesOf(...before)].some((name) => others.includes(name));
  if (!isPlain) return "results are no plain matrix";
  return (run ?? columns.extent) % 8 === 0
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

function isNarrow(dtype: DType): boolean {
  return dtype === "bf16" || dtype === "f16";
}

/** Whether f32 or i32 are summed, one value at a time; undefined: something else is done. */
function sumType({ reduction }: Statement): ProductForm["sum"] | undefined {
  const { name, components } = reduction!.monoid;
  const dtype = components[0]!.dtype;
  if (name !== "sum" || components.length !== 1) return undefined;
  return dtype === "f32" || dtype === "i32" ? dtype : undefined;
}
