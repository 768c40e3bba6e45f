/** Small questions about shapes: which axis is not one, where broadcasting puts an axis. */
import { constantValue, type IndexExpr } from "../semantics/index-expr.ts";

export function isOne(extent: IndexExpr): boolean {
  return constantValue(extent) === 1;
}

/** The only axis whose extent is not 1, counted in a shape of `rank` axes; -1 if there are several. */
export function onlyAxis(shape: readonly IndexExpr[], rank: number): number | undefined {
  const wide = shape.flatMap((d, i) => (isOne(d) ? [] : [i + rank - shape.length]));
  if (wide.length === 0) return undefined;
  return wide.length === 1 ? wide[0] : -1;
}
