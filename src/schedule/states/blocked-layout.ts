/** The layout of packed weights: blocks of one axis, one after the other, the block's elements innermost. */
import {
  add,
  ceilDiv,
  floorDiv,
  type IndexExpr,
  mod,
  mul,
  variable,
} from "../../semantics/index-expr.ts";
import type { LayoutMap } from "../../semantics/layout.ts";

/** Blocks of `width` along one axis moved innermost: [axis / width, …the rest…, axis % width]. */
export function blockedLayout(shape: readonly IndexExpr[], axis: number, width: number): LayoutMap {
  const rest = shape.flatMap((_, i) => (i === axis ? [] : [i]));
  const last = rest.length + 1;
  const logical = shape.map((_, i) =>
    i === axis
      ? add(mul(width, variable("p0")), variable(`p${last}`))
      : variable(`p${1 + rest.indexOf(i)}`),
  );
  const blocked = variable(`l${axis}`);
  return {
    shape: [ceilDiv(shape[axis]!, width), ...rest.map((i) => shape[i]!), add(width)],
    logical,
    stored: [floorDiv(blocked, width), ...rest.map((i) => variable(`l${i}`)), mod(blocked, width)],
  };
}
