/**
 * The operators of com.microsoft for Engram layers: a memory that is looked up by hashes of the last tokens,
 * and the gate of what was found. Definitions: ONNX Runtime's ContribOperators page.
 */
import {
  add,
  constant,
  constantValue,
  type IndexExpr,
  sub,
} from "../../../../semantics/index-expr.ts";
import { type NodeView, one } from "../node-view.ts";
import type { Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";
import { sliceAxis } from "./slicing.ts";

/** Below it a similarity counts as this, so that its root has a slope. */
const leastSimilarity = 1e-6;

/** The value of each token [b, s, h], for each of its streams times how much key and query [b, s, m, h] agree. */
function engramGate(node: NodeView): Operand {
  const [key, query, value] = [node.input(0), node.input(1), node.input(2)];
  for (const x of [key, query]) node.checkRank(x, 4, "a key or query");
  node.checkRank(value, 3, "a value");
  const { dtype, shape } = value.type;
  const [b, s, h] = shape as [IndexExpr, IndexExpr, IndexExpr];
  const width = node.fixedExtent(h, "the hidden size");
  const epsilon = node.attributes.float("epsilon") ?? 1e-5;
  const normed = (x: Operand, scale: number): Operand => {
    const ones = node.splat("f32", 1, [width]);
    const y = node.emit("rmsNorm", [node.cast(x, "f32"), ones], { axis: 3, epsilon });
    return node.emit("mul", [y, node.cast(node.input(scale), "f32")], {});
  };
  const both = node.emit("mul", [normed(key, 3), normed(query, 4)], {});
  const sum = node.emit("reduce", [both], { kind: "sum", axes: [3], keepDims: true });
  const dot = node.emit("mul", [sum, node.splat("f32", 1 / Math.sqrt(width))], {});
  const size = node.emit("abs", [dot], {});
  const root = node.emit(
    "sqrt",
    [node.emit("max", [size, node.splat("f32", leastSimilarity)], {})],
    {},
  );
  const signed = node.emit("mul", [node.emit("sign", [dot], {}), root], {});
  const gate = node.emit("sigmoid", [signed], {});
  const wide = node.reshape(node.cast(value, "f32"), [b, s, one, h]);
  return node.cast(node.emit("mul", [gate, wide], {}), dtype);
}

/**
 * Hashes of the last 2, 3, … tokens at each place, [b, s, orders · heads]: each token times the multiplier of
 * its distance, all joined by xor, modulo the size of the head's table; and the last tokens, for the next call.
 */
function ngramHashes(node: NodeView): readonly Operand[] {
  const { attributes } = node;
  const [ids, multipliers, sizes] = [node.input(0), node.input(1), node.input(2)];
  node.checkRank(ids, 2, "the ids");
  const most = attributes.int("max_ngram_size") ?? 0;
  const heads = attributes.int("n_head_per_ngram") ?? 0;
  if (most < 2 || most > largestGram)
    attributes.refuse("max_ngram_size", most, `2 to ${largestGram}`);
  if (heads < 1) attributes.refuse("n_head_per_ngram", heads, "1 or more");
  const { dtype } = ids.type;
  const [b, s] = ids.type.shape as [IndexExpr, IndexExpr];
  for (const [x, count] of [
    [multipliers, most],
    [sizes, (most - 1) * heads],
  ] as const) {
    node.checkRank(x, 1, "multipliers and sizes");
    const found = constantValue(x.type.shape[0]!);
    if (found !== count) node.refuse(`${found} multipliers or sizes`, `${count}`);
  }
  const padding = node.splat(dtype, attributes.int("pad_id") ?? 0);
  const history =
    node.optional(3) ?? node.emit("broadcast", [padding], { shape: [b, constant(most - 1)] });
  const all = node.emit("concat", [history, ids], { axis: 1 });
  const part = (x: Operand, axis: number, start: IndexExpr, size: IndexExpr) =>
    sliceAxis(node, x, { axis, start, step: 1, size });
  const product = (distance: number): Operand => {
    const shifted = part(all, 1, constant(most - 1 - distance), s);
    return node.emit("mul", [shifted, part(multipliers, 0, constant(distance), one)], {});
  };
  let mix = product(0);
  const hashes: Operand[] = [];
  for (let order = 0; order < most - 1; order++) {
    mix = node.emit("bitXor", [mix, product(order + 1)], {});
    const own = part(sizes, 0, constant(order * heads), constant(heads));
    hashes.push(node.emit("floorMod", [node.reshape(mix, [b, s, one]), own], {}));
  }
  const joined = hashes.length === 1 ? hashes[0]! : node.emit("concat", hashes, { axis: 2 });
  const total = add(s, most - 1);
  return [joined, part(all, 1, sub(total, most - 1), constant(most - 1))];
}

/** More tokens together than any model hashes. */
const largestGram = 64;

export const microsoftEngramRows = {
  EngramGate: { since: [1], convert: engramGate },
  NGramHashMapping: { since: [1], convert: ngramHashes },
} satisfies OperatorTable;
