/** Nodes that round floats to integers of a few bits: quantisations, however they are written. */
import { dtypes } from "../semantics/dtype.ts";
import type { Graph, Node } from "./graph.ts";

/** Bits of the integers that a node rounds floats to, a byte at most; 0: it does not. Zero points alone are no such values. */
export function narrowedBits({ inputs, outputs }: Node, { values }: Graph): number {
  const [from, to] = [inputs[0], outputs[0]].map((v) => v !== undefined && values[v]!.type);
  if (!from || !to || to.shape.length === 0) return 0;
  const { kind, bits } = dtypes[to.dtype];
  const isNarrowed = dtypes[from.dtype].kind === "float" && /int/.test(kind) && bits <= 8;
  return isNarrowed ? bits : 0;
}
