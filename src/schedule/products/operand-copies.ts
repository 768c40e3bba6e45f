/**
 * Copies of operands that products read in their place. In: a tensor, the order of its axes in the copy, the copy; out:
 * the region that makes it, with zeros where the copy is longer.
 */
import type { Loop, Region, RegionTensor, Statement } from "../../region/nest.ts";
import { less } from "../../semantics/condition.ts";
import { type IndexExpr, variable } from "../../semantics/index-expr.ts";
import { argument } from "../../semantics/scalar-expr.ts";

/** Rows of operands that tensor copies bring are multiples of so many bits (PTX ISA, "Tensor map": strides of 16 bytes). */
export const copiedBits = 128;

/** A product, and the copies of its operands that it reads. */
export interface TurnedProduct {
  readonly product: Region;
  readonly copies: readonly Region[];
}

export interface OperandCopy {
  readonly tensor: RegionTensor;
  /** Axes of the tensor in the copy's order. */
  readonly order: readonly number[];
  readonly copy: RegionTensor;
  /** What the region's name begins with. */
  readonly way: "turn" | "pad";
  readonly origin: string;
}

export function copyRegion(
  { tensor, order, copy, way, origin }: OperandCopy,
  { symbols }: Region,
): Region {
  const name = `${way}.${copy.name}`;
  const loops = copy.shape.map((extent, i): Loop => ({ name: `i${i}`, extent, kind: "space" }));
  const at: readonly IndexExpr[] = loops.map((l) => variable(l.name));
  const ends = order.map((axis) => tensor.shape[axis]!);
  const guard = ends.flatMap((end, i) =>
    end.key === copy.shape[i]!.key ? [] : [less(at[i]!, end)],
  );
  const index = order.map((_, axis) => at[order.indexOf(axis)]!);
  const statement: Statement = {
    name,
    loops,
    guard: [],
    indirects: [],
    reads: [{ tensor: tensor.name, index, guard, fill: 0 }],
    body: [argument(0, tensor.dtype)],
    finishReads: [],
    writes: [{ tensor: copy.name, index: at, combine: "overwrite" }],
    origin,
  };
  const group = { name, anchor: name, inlined: [], epilogue: [] };
  const tensors = new Map([tensor, copy].map((t) => [t.name, t] as const));
  return { name, group, statements: [statement], symbols, tensors };
}
