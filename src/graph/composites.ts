/** Composite ops: their attributes here, their definitions in core ops beside. */
import type { NoAttrs } from "../semantics/core-ops.ts";

export interface CompositeAttrs {
  /** x * sigmoid(x) */
  silu: NoAttrs;
}
