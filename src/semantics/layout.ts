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
  indexEquals,
  mul,
  rebuildAtom,
  splitLinear,
  substitute,
  variable,
} from "./index-expr.ts";
import { loopRange, provesAtMost, provesLess } from "./index-range.ts";
import type { Tensor } from "./tensor.ts";

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
  const positions = stored.map((_, axis) => `p${axis}`);
  const bent = logical.find((e) => positions.some((p) => !splitLinear(e, p)));
  if (bent) return `${bent.key} is not linear in the stored position`;
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
  const none = new Map<string, number>();
  const shape = layout.shape.map((s) => evaluate(s, none));
  const count = shape.reduce((a, b) => a * b, 1);
  const make = tensor.data.constructor as new (n: number) => typeof tensor.data;
  const data = new make(count);
  const axes = layout.logical.map((e, axis) => linearAxis(e, shape.length, tensor.shape[axis]!));
  const at = new Array<number>(shape.length).fill(0);
  for (let i = 0; i < count; i++) {
    const source = logicalOffset(axes, at);
    if (source >= 0) data[i] = tensor.data[source]!;
    for (let axis = at.length - 1; axis >= 0; axis--) {
      at[axis] = at[axis]! + 1;
      if (at[axis]! < shape[axis]!) break;
      at[axis] = 0;
    }
  }
  return { dtype: tensor.dtype, shape, data };
}

/** A logical index as constant + sum of steps times the stored position. */
interface LinearAxis {
  readonly constant: number;
  readonly steps: readonly number[];
  readonly extent: number;
}

function linearAxis(expr: IndexExpr, rank: number, extent: number): LinearAxis {
  const steps = Array.from({ length: rank }, (_, axis) => {
    const linear = splitLinear(expr, `p${axis}`);
    invariant(linear, () => `layout index ${expr.key} is not linear in p${axis}`);
    return linear.coefficient;
  });
  return { constant: expr.constant, steps, extent };
}

/** Row-major offset of the logical element at a stored position; -1 outside the logical shape. */
function logicalOffset(axes: readonly LinearAxis[], at: readonly number[]): number {
  let offset = 0;
  for (const { constant, steps, extent } of axes) {
    let index = constant;
    for (let axis = 0; axis < steps.length; axis++) index += steps[axis]! * at[axis]!;
    if (index < 0 || index >= extent) return -1;
    offset = offset * extent + index;
  }
  return offset;
}
