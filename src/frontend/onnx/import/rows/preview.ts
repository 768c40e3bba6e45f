/** Operators of ai.onnx.preview: attention whose scores and probabilities a body of the model changes. */
import { constant, constantValue } from "../../../../semantics/index-expr.ts";
import type { NodeView } from "../node-view.ts";
import { isOperand, type Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";

/** softmax(modified(Q K^T * scale)) V; query heads share the key heads in groups. */
function flexAttention(node: NodeView): Operand {
  const { attributes } = node;
  const [query, key, value] = [0, 1, 2].map((i) => node.input(i)) as [Operand, Operand, Operand];
  for (const x of [query, key, value]) node.checkRank(x, 4, "an operand");
  const [batch, heads, rows, width] = query.type.shape;
  const [queryHeads, groups] = [heads, key.type.shape[1]].map((d) => constantValue(d!));
  if (!queryHeads || !groups || queryHeads % groups !== 0) {
    node.refuse(`${queryHeads} heads of queries and ${groups} of keys`, "a multiple");
  }
  const size = node.fixedExtent(width!, "the head size");
  const scale = attributes.float("scale") ?? 1 / Math.sqrt(size);
  const precise = attributes.int("softmax_precision");
  const { dtype } = query.type;
  const sumType = dtype === "f16" || dtype === "bf16" ? "f32" : dtype;
  const shared = [constant(groups), constant(queryHeads / groups)];
  const split = node.reshape(query, [batch!, ...shared, rows!, width!]);
  const products = node.emit("contract", [split, key], {
    lhs: ["b", "g", "h", "q", "d"],
    rhs: ["b", "g", "k", "d"],
    output: ["b", "g", "h", "q", "k"],
    accumulator: sumType,
  });
  const columns = key.type.shape[2]!;
  const all = node.reshape(products, [batch!, heads!, rows!, columns]);
  const scaled = node.emit("mul", [all, node.splat(sumType, scale)], {});
  const scores = applyBody(node, "score_mod", node.cast(scaled, dtype));
  const softmaxType = precise === undefined ? sumType : node.dtype(precise);
  const normal = node.emit("softmax", [node.cast(scores, softmaxType)], { axis: 3 });
  const weights = applyBody(node, "prob_mod", node.cast(normal, dtype));
  const result = node.emit(
    "contract",
    [node.reshape(weights, [batch!, ...shared, rows!, columns]), value],
    {
      lhs: ["b", "g", "h", "q", "k"],
      rhs: ["b", "g", "k", "d"],
      output: ["b", "g", "h", "q", "d"],
      accumulator: sumType,
    },
  );
  return node.cast(node.reshape(result, [batch!, heads!, rows!, value.type.shape[3]!]), dtype);
}

function applyBody(node: NodeView, name: "score_mod" | "prob_mod", x: Operand): Operand {
  const body = node.attributes.graph(name);
  if (!body) return x;
  const [result] = node.subgraphs.inline(body, [x]);
  if (result && isOperand(result)) return result;
  return node.attributes.refuse(name, "a body without a tensor", "one result");
}

export const previewRows = {
  FlexAttention: { since: [1], convert: flexAttention },
} satisfies OperatorTable;
