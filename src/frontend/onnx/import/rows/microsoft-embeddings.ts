/** The embeddings of BERT with their norm (com.microsoft), of tables of real numbers or of quantised ones. */
import type { NodeView } from "../node-view.ts";
import type { Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";

/** The norm of the sum of three embeddings; the mask's lengths; the sum. */
function embedLayerNorm(node: NodeView): readonly (Operand | undefined)[] {
  const ids = node.input(0);
  node.checkRank(ids, 2, "ids");
  const shape = [ids.type.shape[1]!];
  const word = node.emit("gather", [node.input(2), ids], { axis: 0 });
  const at = node.optional(8) ?? node.emit("iota", [], { shape, axis: 0, dtype: "i64" });
  const position = node.emit("gather", [node.input(3), at], { axis: 0 });
  const placed = node.emit("add", [word, position], {});
  const [segments, table] = [node.optional(1), node.optional(4)];
  const sum =
    segments && table
      ? node.emit("add", [placed, node.emit("gather", [table, segments], { axis: 0 })], {})
      : placed;
  const epsilon = node.attributes.float("epsilon") ?? 1e-12;
  node.attributes.ignore("mask_index_type");
  const y = node.emit("layerNorm", [sum, node.input(5), node.input(6)], { axis: 2, epsilon });
  const mask = node.optional(7);
  const lengths = mask && node.emit("reduce", [mask], { kind: "sum", axes: [1], keepDims: false });
  return [y, lengths, sum];
}

/** The same of five quantised tables: word, position, segment, gamma and beta, each with one scale. */
function quantizedEmbedLayerNorm(node: NodeView): readonly (Operand | undefined)[] {
  const [scales, zeros] = [8, 13];
  const real = (table: number, i: number): Operand | undefined => {
    const values = node.optional(table);
    if (!values) return undefined;
    const [scale, zero] = [node.input(scales + i), node.input(zeros + i)];
    const scalars = [scale, zero].map((o) => node.reshape(o, []));
    return node.emit("dequantize", [values, ...scalars], { to: scale.type.dtype });
  };
  const tables = [2, 3, 4, 5, 6].map(real);
  const plain = [node.inputs[0], node.inputs[1], ...tables, node.inputs[7]];
  return embedLayerNorm(node.withInputs(plain));
}

export const microsoftEmbeddingRows = {
  EmbedLayerNormalization: { since: [1], convert: embedLayerNorm },
  QEmbedLayerNormalization: { since: [1], convert: quantizedEmbedLayerNorm },
} satisfies OperatorTable;
