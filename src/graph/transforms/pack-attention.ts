/**
 * Attention of tokens behind each other (packedAttention) without the padded batch that defines it, for
 * machines on which a row leaves out the columns that it does not meet: in floats of 16 bits, of sizes that are
 * known. Everywhere else it would multiply each token by those of all sequences.
 */
import { constantValue } from "../../semantics/index-expr.ts";
import { attendPacked } from "../composites/packed-attention.ts";
import type { Graph } from "../graph.ts";
import { type Rebuilt, rebuildGraph } from "./rebuild.ts";

/** Elements of heads, of which matrix instructions take whole multiples. */
const unit = 16;

export function packAttention(graph: Graph): Rebuilt {
  return rebuildGraph(graph, {
    node: ({ b, node, inputs }) => {
      if (node.op !== "packedAttention") return undefined;
      const operands = inputs.slice(0, 3);
      const isNarrow = operands.every((x) => ["bf16", "f16"].includes(b.dtypeOf(x)));
      const sizes = operands.flatMap((x) => b.shapeOf(x).map(constantValue));
      const isWhole = operands.every((x) => (constantValue(b.shapeOf(x)[2]!) ?? 1) % unit === 0);
      if (!isNarrow || !isWhole || sizes.includes(undefined)) return undefined;
      return attendPacked(b, inputs, node.attrs);
    },
  });
}
