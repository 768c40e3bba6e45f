/**
 * Results and operands as the tiles of a product number them: where the loops of its rows, columns or depth
 * run together through neighbouring axes of a tensor (the pixels of a picture, the window of a filter), the
 * tensor is seen with those axes as one, and the element's place is the row's, column's or step's number
 * itself, which is neither divided nor proved apart. In: an access. Out: the access through the view, and the view.
 */
import type { Access, Region, Write } from "../../region/nest.ts";
import { axisOfRun, type ProductForm } from "../../schedule/products/product-form.ts";
import { type IndexExpr, mul, variable } from "../../semantics/index-expr.ts";
import type { Operand } from "../operands.ts";

/** A tensor with neighbouring axes as one. */
export interface FlatView {
  readonly name: string;
  readonly of: string;
  readonly shape: readonly IndexExpr[];
}

/** Index variables that stand for the number of a row, a column and a step of the sum in an access through a view. */
export const flatRow = "flat row";
export const flatColumn = "flat column";
export const flatDepth = "flat depth";

/** Where tensors are found, those that are seen through views too. */
export function operandsThrough(
  views: ReadonlyMap<string, FlatView>,
  { tensors }: Pick<Region, "tensors">,
  operand: (tensor: string) => Operand,
): (tensor: string) => Operand {
  return (tensor) => {
    const view = views.get(tensor);
    if (!view) return operand(tensor);
    const { dtype } = tensors.get(view.of)!;
    return { buffer: tensor, dtype, position: (index) => index };
  };
}

type Shapes = (tensor: string) => readonly IndexExpr[];

/** The access through a view, with the view; undefined where no part runs through several axes. */
export function flattenAccess<T extends Access | Write>(
  access: T,
  { rows, columns, depth }: ProductForm,
  shapeOf: Shapes,
): { readonly access: T; readonly view: FlatView } | undefined {
  if ("guard" in access && access.guard.length > 0) return undefined;
  const parts = [
    [rows, flatRow],
    [columns, flatColumn],
    [depth, flatDepth],
  ] as const;
  for (const [part, name] of parts) {
    const { tensor, index } = access;
    const count = part.loops.length;
    const axis = count < 2 ? undefined : axisOfRun(part.loops, index, shapeOf(tensor));
    if (axis === undefined) continue;
    const shape = shapeOf(tensor).toSpliced(axis, count, mul(...part.loops.map((l) => l.extent)));
    // Named as region/coalesce.ts names the views of loops that run on together.
    const view = { name: tensor + `.j${axis}`.repeat(count - 1), of: tensor, shape };
    const flat = index.toSpliced(axis, count, variable(name));
    return { access: { ...access, tensor: view.name, index: flat }, view };
  }
  return undefined;
}
