/**
 * Physical layouts as invertible maps: which element of the logical tensor stands at each position of
 * the stored array. Stored positions that map outside the logical shape are padding and hold zero.
 *
 * `packed(j / 64, k, j % 64)` of a logical [k, j] is the stored array [ceil(J / 64), K, 64] with
 * logical index [p1, 64*p0 + p2] at position p.
 */
import { invariant } from "../support/invariant.ts";
import {
  add,
  atomOperands,
  constantValue,
  evaluate,
  floorDiv,
  type IndexAtom,
  type IndexExpr,
  type IndexTerm,
  indexEquals,
  mul,
  rebuildAtom,
  substitute,
  variable,
  variablesOf,
} from "./index-expr.ts";
import { loopRange, provesAtMost, provesLess } from "./index-range.ts";
import { makeTensor, type Tensor, tensorOnBytes } from "./tensor.ts";

export interface LayoutMap {
  /** Extents of the stored array, row-major. */
  readonly shape: readonly IndexExpr[];
  /** Logical index per logical axis, over the stored position's variables p0, p1, …. */
  readonly logical: readonly IndexExpr[];
  /** The inverse: stored position per stored axis, over the logical index's variables l0, l1, …. */
  readonly stored: readonly IndexExpr[];
}

/**
 * Why a map is no layout of a tensor of constant shape; undefined when it is one: each element has a
 * place of its own within the stored array, and the inverse finds it there. What is not proved is a
 * fault.
 */
export function layoutFault(layout: LayoutMap, shape: readonly IndexExpr[]): string | undefined {
  const { logical, stored } = layout;
  const ranks = logical.length === shape.length && stored.length === layout.shape.length;
  if (!ranks) return `it maps ${logical.length} axes to ${stored.length} stored ones`;
  const open = [...layout.shape, ...shape].find((e) => (constantValue(e) ?? -1) < 0);
  if (open) return `the extent ${open.key} is not a constant`;
  const bent = logical.find((e) => e.terms.some((t) => variablesOf(termOf(t)).size !== 1));
  if (bent) return `${bent.key} is no sum of a term for each stored axis`;
  const ranges = new Map(shape.map((e, axis) => [`l${axis}`, loopRange(e, new Map())]));
  for (const [axis, at] of stored.entries()) {
    const extent = layout.shape[axis]!;
    const inside = provesAtMost(0, at, ranges) && provesLess(at, extent, ranges);
    if (!inside) return `${at.key} leaves the stored axis of ${extent.key}`;
  }
  const places = new Map(stored.map((at, axis) => [`p${axis}`, at]));
  const lost = logical.findIndex(
    (e, axis) => !indexEquals(expandMods(substitute(e, places)), variable(`l${axis}`)),
  );
  return lost < 0 ? undefined : `the element stored for l${lost} is ${logical[lost]!.key}`;
}

function termOf({ coefficient, atoms }: Pick<IndexTerm, "coefficient" | "atoms">): IndexExpr {
  return mul(
    coefficient,
    ...atoms.map((a) =>
      a.kind === "variable" ? variable(a.name) : rebuildAtom(a, atomOperands(a)),
    ),
  );
}

/** The same value with a - b*floorDiv(a, b) for each mod(a, b), so that halves of a split meet. */
function expandMods(expr: IndexExpr): IndexExpr {
  const terms = expr.terms.map((t) => mul(t.coefficient, ...t.atoms.map(expandAtom)));
  return add(expr.constant, ...terms);
}

function expandAtom(atom: IndexAtom): IndexExpr {
  if (atom.kind === "variable") return variable(atom.name);
  const operands = atomOperands(atom).map(expandMods);
  if (atom.kind !== "mod") return rebuildAtom(atom, operands);
  const [numerator, denominator] = operands as [IndexExpr, IndexExpr];
  return add(numerator, mul(-1, denominator, floorDiv(numerator, denominator)));
}

/** The layout of a tensor that is stored in `first`, and that array in `second`. */
export function composeLayouts(first: LayoutMap, second: LayoutMap): LayoutMap {
  const between = new Map(second.logical.map((e, axis) => [`p${axis}`, e]));
  const places = new Map(first.stored.map((e, axis) => [`l${axis}`, e]));
  return {
    shape: second.shape,
    logical: first.logical.map((e) => substitute(e, between)),
    stored: second.stored.map((e) => substitute(e, places)),
  };
}

/** Stored elements of `tensor` under a layout of constant shape; whole bytes per element only. */
export function packTensor(tensor: Tensor, layout: LayoutMap): Tensor {
  const shape = storedShape(layout);
  const count = shape.reduce((a, b) => a * b, 1);
  const make = tensor.data.constructor as new (n: number) => typeof tensor.data;
  const data = new make(count);
  new PackedRows(layout, shape, tensor.shape).copy(tensor.data, data);
  return { dtype: tensor.dtype, shape, data };
}

/** The same into the first bytes of `to`, where its elements may begin. */
export function packInto(to: Uint8Array, tensor: Tensor, layout: LayoutMap): void {
  const { data } = tensor;
  const shape = storedShape(layout);
  const count = shape.reduce((a, b) => a * b, 1);
  invariant(
    to.byteLength >= count * data.BYTES_PER_ELEMENT,
    () => `${to.byteLength} bytes do not hold ${count} elements`,
  );
  const make = data.constructor as new (b: ArrayBufferLike, at: number, n: number) => typeof data;
  new PackedRows(layout, shape, tensor.shape).copy(data, new make(to.buffer, to.byteOffset, count));
}

/** The inverse of `packInto`: a tensor of `like`'s type and shape out of its stored elements. */
export function unpackFrom(
  packed: Uint8Array,
  { dtype, shape }: Pick<Tensor, "dtype" | "shape">,
  layout: LayoutMap,
): Tensor {
  const tensor = makeTensor(dtype, shape);
  const stored = storedShape(layout);
  const count = stored.reduce((a, b) => a * b, 1);
  const { data } = tensorOnBytes(
    dtype,
    [count],
    packed.subarray(0, count * tensor.data.BYTES_PER_ELEMENT),
  );
  new PackedRows(layout, stored, shape).restore(data, tensor.data);
  return tensor;
}

function storedShape(layout: LayoutMap): readonly number[] {
  const none = new Map<string, number>();
  return layout.shape.map((s) => evaluate(s, none));
}

type Elements = Tensor["data"];

/** A logical index as a constant and what each stored position adds to it. */
interface PackedIndex {
  readonly tables: readonly Float64Array[];
  readonly constant: number;
  readonly extent: number;
  /** Elements from one index to the next. */
  readonly stride: number;
  /** The least and the most that positions along a stored row add. */
  readonly least: number;
  readonly most: number;
}

/**
 * Stored rows, the runs of positions along the last stored axis: what the other axes add is found once a row. Rows that
 * are inside as a whole, most of all, are sums of a table for each stored axis.
 */
class PackedRows {
  readonly #axes: readonly PackedIndex[];
  readonly #still: readonly PackedIndex[];
  readonly #moving: readonly PackedIndex[];
  /** Extents of the stored axes but the last. */
  readonly #outer: readonly number[];
  /** Where the elements of a row are in the logical tensor; no number for those outside. */
  readonly #offsets: Float64Array;
  /** Where the elements of a row inside are, from the row's own place. */
  readonly #steps: Int32Array;
  /** Whether that is one after the other. */
  readonly #isRun: boolean;

  constructor(layout: LayoutMap, stored: readonly number[], logical: readonly number[]) {
    this.#outer = stored.slice(0, -1);
    this.#offsets = new Float64Array(stored.at(-1) ?? 1);
    const axes = layout.logical.map((e, axis): PackedIndex => {
      const tables = positionTables(e, stored);
      const along = tables.at(-1) ?? Float64Array.of(0);
      const first = along[0] ?? 0;
      return {
        tables,
        constant: e.constant,
        extent: logical[axis]!,
        stride: logical.slice(axis + 1).reduce((a, b) => a * b, 1),
        least: along.reduce((a, b) => Math.min(a, b), first),
        most: along.reduce((a, b) => Math.max(a, b), first),
      };
    });
    const moves = ({ tables }: PackedIndex): boolean =>
      tables.at(-1)?.some((s) => s !== 0) ?? false;
    this.#axes = axes;
    this.#moving = axes.filter(moves);
    this.#still = axes.filter((axis) => !moves(axis));
    this.#steps = Int32Array.from(this.#offsets, (_, i) =>
      this.#moving.reduce((sum, { tables, stride }) => sum + tables.at(-1)![i]! * stride, 0),
    );
    this.#isRun = this.#steps.every((step, i) => step === i);
  }

  /** Writes all of `to`: every element that is stored, and zeros between them. */
  copy(from: Elements, to: Elements): void {
    this.#eachRow(to.length, (start, at) => {
      const place = this.#placeInside(at);
      if (place >= 0) this.#copyInside(from, place, to, start);
      else {
        zeroRange(to, start, start + this.#offsets.length);
        if (this.#locate(at)) this.#copyLocated(from, to, start);
      }
    });
  }

  /** The other way: what is stored in `packed` to its places in `logical`. */
  restore(packed: Elements, logical: Elements): void {
    const steps = this.#steps;
    const offsets = this.#offsets;
    this.#eachRow(packed.length, (start, at) => {
      const place = this.#placeInside(at);
      if (place >= 0) {
        for (let i = 0; i < steps.length; i++) logical[place + steps[i]!] = packed[start + i]!;
      } else if (this.#locate(at)) {
        for (let i = 0; i < offsets.length; i++) {
          const offset = offsets[i]!;
          if (offset >= 0) logical[offset] = packed[start + i]!;
        }
      }
    });
  }

  /** Calls with the place of each stored row and its positions on the axes but the last. */
  #eachRow(count: number, body: (start: number, at: readonly number[]) => void): void {
    const outer = this.#outer;
    const at = new Array<number>(outer.length).fill(0);
    for (let start = 0; start < count; start += this.#offsets.length) {
      body(start, at);
      for (let axis = outer.length - 1; axis >= 0; axis--) {
        at[axis] = at[axis]! + 1;
        if (at[axis]! < outer[axis]!) break;
        at[axis] = 0;
      }
    }
  }

  /** Where the row at these positions begins; below zero where it is not inside as a whole. */
  #placeInside(at: readonly number[]): number {
    let place = 0;
    for (const axis of this.#axes) {
      const index = indexAt(axis, at);
      if (index + axis.least < 0 || index + axis.most >= axis.extent) return -1;
      place += index * axis.stride;
    }
    return place;
  }

  #copyInside(from: Elements, place: number, to: Elements, start: number): void {
    const steps = this.#steps;
    if (this.#isRun) for (let i = 0; i < steps.length; i++) to[start + i] = from[place + i]!;
    else for (let i = 0; i < steps.length; i++) to[start + i] = from[place + steps[i]!]!;
  }

  #copyLocated(from: Elements, to: Elements, start: number): void {
    const offsets = this.#offsets;
    for (let i = 0; i < offsets.length; i++) {
      const offset = offsets[i]!;
      if (offset >= 0) to[start + i] = from[offset]!;
    }
  }

  /** Finds the offsets of the row at these positions; false where it is outside as a whole. */
  #locate(at: readonly number[]): boolean {
    const offsets = this.#offsets;
    let base = 0;
    for (const axis of this.#still) {
      const index = indexAt(axis, at);
      if (index < 0 || index >= axis.extent) return false;
      base += index * axis.stride;
    }
    offsets.fill(base);
    for (const axis of this.#moving) {
      const { extent, stride, tables } = axis;
      const steps = tables[at.length]!;
      const start = indexAt(axis, at);
      for (let i = 0; i < offsets.length; i++) {
        const index = start + steps[i]!;
        offsets[i] = index < 0 || index >= extent ? Number.NaN : offsets[i]! + index * stride;
      }
    }
    return true;
  }
}

function zeroRange(data: Elements, start: number, end: number): void {
  if (data instanceof BigInt64Array || data instanceof BigUint64Array) data.fill(0n, start, end);
  else data.fill(0, start, end);
}

function indexAt({ constant, tables }: PackedIndex, at: readonly number[]): number {
  let index = constant;
  for (let axis = 0; axis < at.length; axis++) index += tables[axis]![at[axis]!]!;
  return index;
}

/** Per stored axis, what the terms of a separable index come to at each position. */
function positionTables(expr: IndexExpr, shape: readonly number[]): readonly Float64Array[] {
  const tables = shape.map((extent) => new Float64Array(extent));
  for (const { coefficient, atoms } of expr.terms) {
    const term = termOf({ coefficient, atoms });
    const axis = shape.findIndex((_, i) => variablesOf(term).has(`p${i}`));
    invariant(axis >= 0, () => `layout index ${expr.key} has a term without a position`);
    const table = tables[axis]!;
    for (let at = 0; at < table.length; at++) {
      table[at] = table[at]! + evaluate(term, new Map([[`p${axis}`, at]]));
    }
  }
  return tables;
}
