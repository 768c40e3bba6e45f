/**
 * Weights in the order in which a statement's loops run through them: the axes of its results first, those
 * that it folds last, so that what one fold reads of a weight is one line of memory. In: a region. Out: the
 * same computation over weights that are stored so from the start.
 */
import type { IndexExpr } from "../semantics/index-expr.ts";
import { variable } from "../semantics/index-expr.ts";
import type { LayoutMap } from "../semantics/layout.ts";
import type { Access, Region, RegionTensor } from "./nest.ts";

/** The region with its folded weights in the order of its loops; undefined where they have it, or none is folded. */
export function orderWeights(region: Region): Region | undefined {
  const [statement] = region.statements;
  if (!statement?.reduction || region.statements.length !== 1) return undefined;
  const tensors = new Map(region.tensors);
  let isChanged = false;
  const reads = statement.reads.map((access): Access => {
    const { role, stored } = region.tensors.get(access.tensor)!;
    const order = role === "weight" && !stored ? loopOrder(access, region) : undefined;
    if (!order) return access;
    isChanged = true;
    const tensor = orderedTensor(region.tensors.get(access.tensor)!, order);
    tensors.set(tensor.name, tensor);
    return { ...access, tensor: tensor.name, index: order.map((axis) => access.index[axis]!) };
  });
  if (!isChanged) return undefined;
  const made = { ...statement, reads };
  const used = new Set([...reads, ...made.finishReads, ...made.writes].map((a) => a.tensor));
  const kept = [...tensors].filter(([name]) => used.has(name));
  return { ...region, statements: [made], tensors: new Map(kept) };
}

/** Axes of a tensor in the order of the loops; undefined where they are, or where an axis is no loop of its own. */
export function loopOrder(
  { tensor, index, guard }: Access,
  { tensors, statements }: Region,
): readonly number[] | undefined {
  const { shape } = tensors.get(tensor)!;
  if (guard.length > 0 || index.length < 2) return undefined;
  const { loops } = statements[0]!;
  const places = index.map((e) => loops.findIndex((l) => l.name === e.key));
  const isWhole = places.every((at, axis) => loops[at]?.extent.key === shape[axis]!.key);
  if (!isWhole || new Set(places).size < places.length) return undefined;
  const rank = (axis: number): number => {
    const at = places[axis]!;
    return loops[at]!.kind === "space" ? at : loops.length + at;
  };
  const order = index.map((_, axis) => axis).sort((a, b) => rank(a) - rank(b));
  return order.every((axis, at) => axis === at) ? undefined : order;
}

function orderedTensor(tensor: RegionTensor, order: readonly number[]): RegionTensor {
  const layout = orderedAxes(tensor.shape, order);
  const name = `${tensor.name}.o${order.join("_")}`;
  return { ...tensor, name, shape: layout.shape, stored: { of: tensor.name, layout } };
}

/** The axes of a tensor in another order. */
export function orderedAxes(shape: readonly IndexExpr[], order: readonly number[]): LayoutMap {
  return {
    shape: order.map((axis) => shape[axis]!),
    logical: shape.map((_, axis) => variable(`p${order.indexOf(axis)}`)),
    stored: order.map((axis) => variable(`l${axis}`)),
  };
}
