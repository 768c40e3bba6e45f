/**
 * Bodies of tile intrinsics that say nothing but where elements go, or which products are added up where, as
 * tables of elements: what compiled statements (tile-code.ts) compute element by element, in the same order
 * and with the same roundings, without a call for each operator.
 *
 * In: a row, the extents of its operands. Out: code over their elements; undefined for any other body.
 */
import type { TileIntrinsic } from "../program/intrinsics.ts";
import type { Expr, Statement } from "../program/statement.ts";
import { isBigDType } from "../semantics/dtype.ts";
import {
  constantValue,
  type IndexExpr,
  mentionsVariable,
  variableName,
} from "../semantics/index-expr.ts";
import { castScalar, type ScalarValue } from "../semantics/scalar-meaning.ts";
import { compileIndex } from "./program-expr.ts";

/** Elements of an operand, row-major over its extents; what is only written has no values before. */
export interface Tile {
  readonly extents: readonly number[];
  readonly values: (ScalarValue | undefined)[];
}

/** Runs the body over all elements of the first tile. */
export type TileCode = (tiles: readonly Tile[]) => void;

export type Extents = readonly (readonly number[])[];

/** Visits all indices below the extents, row-major. */
export function forEachBox(
  extents: readonly number[],
  visit: (index: readonly number[]) => void,
): void {
  if (extents.some((e) => e === 0)) return;
  const index = extents.map(() => 0);
  for (;;) {
    visit(index);
    let axis = index.length - 1;
    while (axis >= 0 && ++index[axis]! === extents[axis]) index[axis--] = 0;
    if (axis < 0) return;
  }
}

export function compileTables(row: TileIntrinsic, extents: Extents): TileCode | undefined {
  const [only, second] = row.body;
  if (only && !second) return compileMove(row, only, extents) ?? compileProduct(row, extents);
  return compileProduct(row, extents);
}

/** An element of an operand. */
interface Element {
  readonly operand: number;
  readonly index: readonly IndexExpr[];
}

function elementOf(row: TileIntrinsic, name: string, index: readonly IndexExpr[]): Element {
  return { operand: row.operands.findIndex((o) => o.name === name), index };
}

/** What a load without conditions reads. */
function readElement(row: TileIntrinsic, expr: Expr): Element | undefined {
  if (expr.kind !== "load" || expr.lanes !== 1 || expr.guard.length > 0) return undefined;
  return elementOf(row, expr.buffer, expr.index);
}

/** Whether it is the element whose number the index variables are. */
function isSame({ index }: Element, extents: readonly number[]): boolean {
  if (index.length !== extents.length) return false;
  return index.every((e, axis) => variableName(e) === `e${axis}`);
}

function haveEqualExtents(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((extent, axis) => extent === b[axis]);
}

/** `to[…] = from[…]`. */
function compileMove(row: TileIntrinsic, s: Statement, extents: Extents): TileCode | undefined {
  if (s.kind !== "store") return undefined;
  const [to, from] = [elementOf(row, s.buffer, s.index), readElement(row, s.value)];
  if (!from || to.operand === from.operand) return undefined;
  const [a, b] = [to.operand, from.operand];
  const first = extents[0]!;
  const areWhole = [to, from].every(
    (e) => isSame(e, first) && haveEqualExtents(extents[e.operand]!, first),
  );
  if (areWhole) {
    return (tiles) => {
      const [into, values] = [tiles[a]!.values, tiles[b]!.values];
      for (let i = 0; i < values.length; i++) into[i] = values[i];
    };
  }
  const names = first.map((_, axis) => `e${axis}`);
  const [places, sources] = [to, from].map((e) =>
    numbersOf(e.index, extents[e.operand]!, { names, extents: first }),
  ) as [Int32Array, Int32Array];
  return (tiles) => {
    const [into, values] = [tiles[a]!.values, tiles[b]!.values];
    for (let i = 0; i < places.length; i++) into[places[i]!] = values[sources[i]!];
  };
}

/** Index variables and how far they go. */
interface Box {
  readonly names: readonly string[];
  readonly extents: readonly number[];
}

/** Numbers of the elements at an index, for all values of the variables, row-major. */
function numbersOf(index: readonly IndexExpr[], extents: readonly number[], box: Box): Int32Array {
  const codes = index.map((e) => compileIndex(e, (name) => box.names.indexOf(name)));
  const numbers = new Int32Array(box.extents.reduce((a, b) => a * b, 1));
  let next = 0;
  forEachBox(box.extents, (ints) => {
    let at = 0;
    for (let axis = 0; axis < codes.length; axis++) at = at * extents[axis]! + codes[axis]!(ints);
    numbers[next++] = at;
  });
  return numbers;
}

/** `d[…] += a[…] * b[…]` along a loop, the factors as they are or converted. */
interface ProductForm {
  readonly sum: "f32" | "i32";
  /** Whether the sums begin at zero. */
  readonly forgets: boolean;
  readonly variable: string;
  readonly depth: number;
  readonly left: Factor;
  readonly right: Factor;
}

interface Factor extends Element {
  readonly convert: (value: ScalarValue) => ScalarValue;
}

function productForm(row: TileIntrinsic, extents: Extents): ProductForm | undefined {
  const loop = row.body.at(-1);
  if (loop?.kind !== "for" || loop.mode.kind !== "serial" || loop.body.length !== 1) {
    return undefined;
  }
  const depth = constantValue(loop.extent);
  const [s] = loop.body;
  if (depth === undefined || s?.kind !== "store" || s.value.kind !== "apply") return undefined;
  const isSum = (e: Element | undefined): boolean => e?.operand === 0 && isSame(e, extents[0]!);
  if (!isSum(elementOf(row, s.buffer, s.index))) return undefined;
  const { op, dtype, operands } = s.value;
  const [old, product] = operands;
  if (op !== "add" || (dtype !== "f32" && dtype !== "i32")) return undefined;
  if (!isSum(readElement(row, old!)) || product?.kind !== "apply") return undefined;
  if (product.op !== "mul" || product.dtype !== dtype) return undefined;
  const [left, right] = product.operands.map((o) => factorOf(row, o));
  if (!left || !right || left.operand === 0 || right.operand === 0) return undefined;
  const [zero] = row.body;
  const forgets = row.body.length === 2;
  if (row.body.length > 2 || (forgets && !isZeroing(row, zero!, isSum))) return undefined;
  return { sum: dtype, forgets, variable: loop.variable, depth, left, right };
}

function factorOf(row: TileIntrinsic, expr: Expr): Factor | undefined {
  const cast = expr.kind === "cast" ? expr : undefined;
  const read = cast ? cast.operand : expr;
  const element = readElement(row, read);
  if (!element || isBigDType(read.dtype)) return undefined;
  const convert = cast
    ? (value: ScalarValue) => castScalar(value, cast.dtype, cast.saturate)
    : (value: ScalarValue) => value;
  return { ...element, convert };
}

function isZeroing(
  row: TileIntrinsic,
  s: Statement,
  isSum: (e: Element | undefined) => boolean,
): boolean {
  if (s.kind !== "store" || s.value.kind !== "literal" || s.value.value !== 0) return false;
  return isSum(elementOf(row, s.buffer, s.index));
}

function compileProduct(row: TileIntrinsic, extents: Extents): TileCode | undefined {
  const form = productForm(row, extents);
  if (!form) return undefined;
  const [left, right] = [form.left, form.right].map((factor) => tableOf(factor, form, extents)) as [
    FactorTable,
    FactorTable,
  ];
  const addUp = form.sum === "f32" ? addFloats : addIntegers;
  const count = extents[0]!.reduce((a, b) => a * b, 1);
  return (tiles) => {
    const { values } = tiles[0]!;
    const [a, b] = [valuesOf(left, tiles), valuesOf(right, tiles)];
    for (let i = 0; i < count; i++) {
      const old = form.forgets ? 0 : (values[i] as number);
      const [from, other] = [left.starts[i]!, right.starts[i]!];
      values[i] = addUp(old, a, from, b, other, form.depth);
    }
  };
}

/** Where a factor's values stand: for each element of the sums, those along the depth beside each other. */
interface FactorTable {
  readonly factor: Factor;
  /** Numbers of elements of the operand: for all values of the index variables it hangs on, and of the loop's. */
  readonly numbers: Int32Array;
  /** Of each element of the sums, the place of its first in `numbers`. */
  readonly starts: Int32Array;
}

function tableOf(factor: Factor, { variable, depth }: ProductForm, extents: Extents): FactorTable {
  const first = extents[0]!;
  const axes = first
    .map((_, axis) => axis)
    .filter((axis) => factor.index.some((e) => mentionsVariable(e, `e${axis}`)));
  const numbers = numbersOf(factor.index, extents[factor.operand]!, {
    names: [...axes.map((axis) => `e${axis}`), variable],
    extents: [...axes.map((axis) => first[axis]!), depth],
  });
  const starts: number[] = [];
  forEachBox(first, (index) => {
    const line = axes.reduce((at, axis) => at * first[axis]! + index[axis]!, 0);
    starts.push(line * depth);
  });
  return { factor, numbers, starts: Int32Array.from(starts) };
}

function valuesOf({ factor, numbers }: FactorTable, tiles: readonly Tile[]): Float64Array {
  const { values } = tiles[factor.operand]!;
  const result = new Float64Array(numbers.length);
  for (let i = 0; i < numbers.length; i++) {
    result[i] = factor.convert(values[numbers[i]!]!) as number;
  }
  return result;
}

type AddUp = (
  sum: number,
  a: Float64Array,
  from: number,
  b: Float64Array,
  other: number,
  depth: number,
) => number;

const addFloats: AddUp = (sum, a, from, b, other, depth) => {
  let total = sum;
  for (let k = 0; k < depth; k++) {
    total = Math.fround(total + Math.fround(a[from + k]! * b[other + k]!));
  }
  return total;
};

const addIntegers: AddUp = (sum, a, from, b, other, depth) => {
  let total = sum;
  for (let k = 0; k < depth; k++) total = (total + Math.imul(a[from + k]!, b[other + k]!)) | 0;
  return total;
};
