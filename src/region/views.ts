/**
 * Reads through views. A view has the elements of another tensor under another shape; where the place
 * in the base is an affine expression of the place in the view (axes of extent 1 added or dropped,
 * neighbouring axes merged into one) statements can read the base directly, and fusion is not
 * stopped by a reshape. Where it would take divisions the view stays.
 */
import {
  add,
  constant,
  constantValue,
  floorDiv,
  type IndexExpr,
  indexEquals,
  mul,
} from "../semantics/index-expr.ts";
import type { Access, NestProgram, Statement, View } from "./nest.ts";

type Shape = readonly IndexExpr[];

/** The same program with reads of views turned into reads of what they are views of, where affine. */
export function readThroughViews(program: NestProgram): NestProgram {
  const views = new Map<string, View>();
  const rewrite = (access: Access): Access => {
    const view = views.get(access.tensor);
    if (!view) return access;
    const from = program.tensors.get(view.tensor)!.shape;
    const to = program.tensors.get(view.of)!.shape;
    const index = indexInBase(from, to, access.index);
    return index ? rewrite({ ...access, tensor: view.of, index }) : access;
  };
  const items = program.items.map((item) => {
    if (item.kind === "view") views.set(item.view.tensor, item.view);
    if (item.kind !== "statement") return item;
    return { ...item, statement: rewriteReads(item.statement, rewrite) };
  });
  return { ...program, items };
}

function rewriteReads(statement: Statement, rewrite: (access: Access) => Access): Statement {
  return {
    ...statement,
    reads: statement.reads.map(rewrite),
    finishReads: statement.finishReads.map(rewrite),
    indirects: statement.indirects.map((v) => ({ ...v, access: rewrite(v.access) })),
  };
}

/** The place in a tensor of shape `to` of an index of its view of shape `from`; undefined: not affine. */
export function indexInBase(
  from: Shape,
  to: Shape,
  index: readonly IndexExpr[],
): readonly IndexExpr[] | undefined {
  const wide = (shape: Shape) => shape.flatMap((d, i) => (constantValue(d) === 1 ? [] : [i]));
  const [source, target] = [wide(from), wide(to)];
  const result: IndexExpr[] = to.map(() => constant(0));
  let next = 0;
  for (const axis of target) {
    let extent: IndexExpr = constant(1);
    let flat: IndexExpr = constant(0);
    while (!indexEquals(extent, to[axis]!)) {
      const own = source[next++];
      if (own === undefined || !divides(mul(extent, from[own]!), to[axis]!)) return undefined;
      extent = mul(extent, from[own]!);
      flat = add(mul(flat, from[own]!), index[own]!);
    }
    result[axis] = flat;
  }
  return next === source.length ? result : undefined;
}

function divides(part: IndexExpr, whole: IndexExpr): boolean {
  if (constantValue(part) === 0) return constantValue(whole) === 0;
  return indexEquals(mul(floorDiv(whole, part), part), whole);
}
