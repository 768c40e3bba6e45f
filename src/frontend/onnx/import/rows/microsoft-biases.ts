/**
 * Biases of attention scores by the distance between query and key, of com.microsoft. Definitions: ONNX Runtime's ContribOperators page; the buckets are those of T5 (Raffel
 * et al., "Exploring the Limits of Transfer Learning", section 2.1, and its published code).
 */
import { constant } from "../../../../semantics/index-expr.ts";
import { refTensor } from "../../../../semantics/tensor.ts";
import { type NodeView, one } from "../node-view.ts";
import { constantFromRef, type Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";
import { positions, splitHeads } from "./attention.ts";
import { matMul } from "./linear.ts";
import { sliceAxis } from "./slicing.ts";

/** Distances up to this have a bucket of their own in the tables that are made here. */
const largestDistance = 2 ** 16;

interface Buckets {
  readonly count: number;
  readonly maxDistance: number;
  readonly bidirectional: boolean;
}

/**
 * The bucket of a key `offset` positions behind (negative: before) the query. Half of the buckets hold one
 * distance each, the others grow with its logarithm up to `maxDistance`; both steps in float32, as in T5.
 */
function bucketOf(offset: number, { count, maxDistance, bidirectional }: Buckets): number {
  const side = bidirectional ? Math.floor(count / 2) : count;
  const first = bidirectional && offset > 0 ? side : 0;
  const distance = bidirectional ? Math.abs(offset) : Math.max(0, -offset);
  const exact = Math.floor(side / 2);
  if (distance < exact) return first + distance;
  const log = (x: number) => Math.fround(Math.log(Math.fround(x)));
  const share = Math.fround(log(distance / exact) / log(maxDistance / exact));
  const grown = exact + Math.trunc(Math.fround(share * (side - exact)));
  return first + Math.min(grown, side - 1);
}

/** The table holds one row of buckets per head, whatever its shape says; the result is [1, h, s, t]. */
function relativePositionBias(node: NodeView): Operand {
  const { attributes } = node;
  const table = node.input(0);
  node.checkRank(table, 2, "a table of biases");
  const count = node.fixedExtent(table.type.shape[0]!, "the number of buckets");
  const maxDistance = attributes.int("max_distance") ?? 0;
  const bidirectional = attributes.flag("is_bidirectional", false);
  const exact = Math.floor(count / (bidirectional ? 4 : 2));
  if (exact < 1 || maxDistance <= exact || maxDistance > largestDistance)
    attributes.refuse("max_distance", maxDistance, `${exact + 1} to ${largestDistance}`);
  const offsets = Array.from({ length: 2 * maxDistance + 1 }, (_, i) => i - maxDistance);
  const buckets = { count, maxDistance, bidirectional };
  const byOffset = offsets.map((offset) => bucketOf(offset, buckets));
  const bucket = constantFromRef(refTensor("i64", [offsets.length], byOffset));
  const rows = node.reshape(table, [table.type.shape[1]!, table.type.shape[0]!]);
  const biases = node.emit("gather", [rows, bucket], { axis: 1 });
  const extent = (i: number, what: string) => node.indexList(i, what)[0] ?? one;
  const [row, column] = positions(node, extent(1, "query_length"), extent(2, "key_length"));
  const limit = (value: number) => node.splat("i64", value);
  const behind = node.emit("sub", [column, row], {});
  const near = node.emit("min", [behind, limit(maxDistance)], {});
  const clipped = node.emit("max", [near, limit(-maxDistance)], {});
  const index = node.emit("add", [clipped, limit(maxDistance)], {});
  const found = node.emit("gather", [biases, index], { axis: 1 });
  const [, s, t] = found.type.shape;
  return node.reshape(found, [one, table.type.shape[1]!, s!, t!]);
}

/** Biases [1, h, s, s] times a factor that each query gives itself (WavLM). */
function gatedRelativePositionBias(node: NodeView): Operand {
  const heads = node.attributes.int("num_heads") ?? 0;
  if (node.inputs[6]) node.refuse("packed tokens (token_offset)", "padded sequences");
  const [layer, bias] = [node.input(0), node.input(1)];
  node.checkRank(layer, 3, "a query");
  const query = splitHeads(node, node.emit("add", [layer, bias], {}), heads);
  const product = matMul(node, query, node.input(3));
  const raised = node.emit("add", [product, node.input(4)], {});
  const [b, h, s, width] = raised.type.shape;
  const half = node.fixedExtent(width!, "the width of the gate") / 2;
  if (!Number.isInteger(half)) node.refuse(`a gate of ${2 * half} channels`, "an even number");
  const halves = node.reshape(raised, [b!, h!, s!, constant(2), constant(half)]);
  const sums = node.emit("reduce", [halves], { kind: "sum", axes: [4], keepDims: false });
  const gates = node.emit("sigmoid", [sums], {});
  const gate = (i: number) =>
    sliceAxis(node, gates, { axis: 3, start: constant(i), step: 1, size: one });
  const number = (value: number) => node.splat(gates.type.dtype, value);
  const reset = node.emit("mul", [gate(1), node.input(5)], {});
  const less = node.emit("sub", [reset, number(1)], {});
  const factor = node.emit("add", [node.emit("mul", [gate(0), less], {}), number(2)], {});
  return node.emit("mul", [factor, node.input(2)], {});
}

export const microsoftBiasRows = {
  RelativePositionBias: { since: [1], convert: relativePositionBias },
  GatedRelativePositionBias: { since: [1], convert: gatedRelativePositionBias },
} satisfies OperatorTable;
