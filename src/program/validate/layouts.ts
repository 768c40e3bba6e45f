/** Which orders of elements a buffer has, as operands of instructions ask for them. */
import { dtypes } from "../../semantics/dtype.ts";
import { constant, constantValue } from "../../semantics/index-expr.ts";
import type { TileOperand } from "../intrinsics.ts";
import type { Buffer } from "../program.ts";

/** The order of the buffer's elements first, then what else it fits. */
export function layoutsOf({
  swizzleBytes,
  shape,
  dtype,
}: Pick<Buffer, "swizzleBytes" | "shape" | "dtype">): readonly TileOperand["layout"][] {
  const any = ["buffer", "fragment"] as const;
  if (swizzleBytes === undefined) return ["rowMajor", ...any];
  const row = constantValue(shape.at(-1) ?? constant(1)) ?? 0;
  const isAsWide = row * dtypes[dtype].bits === 8 * swizzleBytes;
  return [`swizzle${swizzleBytes}`, ...(isAsWide ? (["swizzled"] as const) : []), ...any];
}
