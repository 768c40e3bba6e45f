/**
 * Batches without their padding (com.microsoft): tokens of all rows behind each other, and attention over
 * them. `token_offset` [b, s] holds the places of tokens in the padded batch, then those of the padding.
 * Attention puts tokens back to their places, lets no one see padding, and takes them out again.
 * Definitions: ONNX Runtime's operator schemas.
 */
import { constant, type IndexExpr, mul } from "../../../../semantics/index-expr.ts";
import { type NodeView, one } from "../node-view.ts";
import type { Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";
import { joinHeads, positions, splitHeads } from "./attention.ts";
import { matMul } from "./linear.ts";
import { scaleOf, splitLast } from "./microsoft-attention.ts";
import { sliceAxis } from "./slicing.ts";

/** [b, s]: whether a place holds a token of rows that are filled up to their counts. */
function isToken(node: NodeView, counts: Operand, length: IndexExpr): Operand {
  const [, column] = positions(node, one, length);
  const limit = node.reshape(node.cast(counts, "i64"), [counts.type.shape[0]!, one]);
  return node.emit("less", [column, limit], {});
}

function removePadding(node: NodeView): readonly Operand[] {
  const [x, counts] = [node.input(0), node.input(1)];
  node.checkRank(x, 3, "a batch");
  node.checkRank(counts, 1, "counts of tokens");
  const [b, s, width] = x.type.shape as [IndexExpr, IndexExpr, IndexExpr];
  const places = mul(b, s);
  const tokens = node.reshape(isToken(node, counts, s), [places]);
  const found = node.emit("nonZero", [tokens], {});
  const kept = node.reshape(found, [found.type.shape[1]!]);
  const y = node.emit("gather", [node.reshape(x, [places, width]), kept], { axis: 0 });
  // The padding behind the tokens, each in order: sorted by what it is.
  const padding = node.cast(node.emit("not", [tokens], {}), "i64");
  const sorted = { k: places, axis: 0, largest: false, sorted: true };
  const [, order] = node.emitAll("topK", [padding], sorted);
  const { dtype } = counts.type;
  const sums = node.emit("cumulative", [counts], {
    kind: "sum",
    axis: 0,
    exclusive: false,
    reverse: false,
  });
  const zero = node.reshape(node.splat(dtype, 0), [one]);
  const longest = node.emit("reduce", [counts], { kind: "max", axes: [0], keepDims: true });
  return [
    y,
    node.cast(node.reshape(order!, [b, s]), dtype),
    node.emit("concat", [zero, sums], { axis: 0 }),
    longest,
  ];
}

interface Packing {
  readonly rows: IndexExpr;
  readonly length: IndexExpr;
  /** [t, 1]: the place of each token among those of the padded batch. */
  readonly places: Operand;
}

function packingOf(node: NodeView, offsets: Operand, tokens: IndexExpr): Packing {
  node.checkRank(offsets, 2, "places of tokens");
  const [rows, length] = offsets.type.shape as [IndexExpr, IndexExpr];
  const flat = node.reshape(node.cast(offsets, "i64"), [mul(rows, length)]);
  const first = node.emit("iota", [], { shape: [tokens], axis: 0, dtype: "i64" });
  const own = node.emit("gather", [flat, first], { axis: 0 });
  return { rows, length, places: node.reshape(own, [tokens, one]) };
}

/** [t, w] as [b, s, w], with zeros where the padding is. */
function padded(node: NodeView, x: Operand, { rows, length, places }: Packing): Operand {
  node.checkRank(x, 2, "tokens");
  const width = x.type.shape[1]!;
  const shape = [mul(rows, length), width];
  const empty = node.emit("broadcast", [node.splat(x.type.dtype, 0)], { shape });
  const filled = node.emit("scatterNd", [empty, places, x], { reduction: "none" });
  return node.reshape(filled, [rows, length, width]);
}

function restorePadding(node: NodeView): Operand {
  const x = node.input(0);
  node.checkRank(x, 2, "tokens");
  return padded(node, x, packingOf(node, node.input(1), x.type.shape[0]!));
}

/** Attention of tokens [t, w] within their rows; offsets, sums of counts and a bias stand from `first` on. */
function packedAttention(node: NodeView, parts: readonly Operand[], first: number): Operand {
  const tokens = parts[0]!.type.shape[0]!;
  const heads = node.attributes.int("num_heads") ?? 0;
  const bias = node.optional(first + 2);
  if (!bias) return withinSequences(node, parts, { heads, first });
  const packing = packingOf(node, node.input(first), tokens);
  const { rows, length, places } = packing;
  const [query, key, value] = parts.map((x) =>
    splitHeads(node, padded(node, x, packing), heads),
  ) as [Operand, Operand, Operand];
  const sums = node.input(first + 1);
  node.checkRank(sums, 1, "sums of counts");
  const part = (start: number) =>
    sliceAxis(node, sums, { axis: 0, start: constant(start), step: 1, size: rows });
  const counts = node.emit("sub", [part(1), part(0)], {});
  const seen = node.reshape(isToken(node, counts, length), [rows, one, one, length]);
  const mask = node.emit("select", [seen, bias, node.splat(query.type.dtype, -Infinity)], {});
  const attrs = { scale: scaleOf(node, query), causal: "none" as const, mask: true, softcap: 0 };
  const y = joinHeads(node, node.emit("attention", [query, key, value, mask], attrs));
  const width = y.type.shape[2]!;
  const flat = node.reshape(y, [mul(rows, length), width]);
  return node.emit("gather", [flat, node.reshape(places, [tokens])], { axis: 0 });
}

/** The same without a bias, whose places are those of the padded batch. */
function withinSequences(
  node: NodeView,
  parts: readonly Operand[],
  { heads, first }: { readonly heads: number; readonly first: number },
): Operand {
  const [offsets, sums] = [node.input(first), node.input(first + 1)];
  node.checkRank(offsets, 2, "places of tokens");
  node.checkRank(sums, 1, "sums of counts");
  const split = parts.map((x) => {
    node.checkRank(x, 2, "tokens");
    const [tokens, width] = x.type.shape as [IndexExpr, IndexExpr];
    const hidden = node.fixedExtent(width, "the hidden size");
    if (heads < 1 || hidden % heads !== 0)
      node.refuse(`${hidden} channels in ${heads} heads`, "a multiple");
    return node.reshape(x, [tokens, constant(heads), constant(hidden / heads)]);
  });
  const scale = scaleOf(node, split[0]!);
  const y = node.emit("packedAttention", [...split, offsets, sums], { scale });
  return node.reshape(y, [y.type.shape[0]!, mul(y.type.shape[1]!, y.type.shape[2]!)]);
}

function projectedPackedAttention(node: NodeView): Operand {
  const x = node.input(0);
  node.checkRank(x, 2, "tokens");
  const projected = node.emit("add", [matMul(node, x, node.input(1)), node.input(2)], {});
  node.checkRank(projected, 2, "a projection");
  const width = node.fixedExtent(projected.type.shape[1]!, "the hidden size");
  const sizes = node.attributes.ints("qkv_hidden_sizes") ?? [width / 3, width / 3, width / 3];
  return packedAttention(node, splitLast(node, projected, sizes), 3);
}

/** Operands apart, or by head behind each other [t, heads, 3, d]; a bias is theirs in order. */
function packedMultiHeadAttention(node: NodeView): Operand {
  node.attributes.ignore("mask_filter_value");
  const first = node.input(0);
  if (first.type.shape.length === 4) {
    if (node.inputs[3]) node.refuse("a bias of packed operands", "operands with their bias added");
    const [tokens, heads, , size] = first.type.shape as [
      IndexExpr,
      IndexExpr,
      IndexExpr,
      IndexExpr,
    ];
    const width = mul(heads, size);
    const parts = [0, 1, 2].map((i) => {
      const part = sliceAxis(node, first, { axis: 2, start: constant(i), step: 1, size: one });
      return node.reshape(part, [tokens, width]);
    });
    return packedAttention(node, parts, 4);
  }
  const apart = [0, 1, 2].map((i) => node.input(i));
  for (const x of apart) node.checkRank(x, 2, "tokens");
  const bias = node.optional(3);
  if (!bias) return packedAttention(node, apart, 4);
  const sizes = apart.map((x) => node.fixedExtent(x.type.shape[1]!, "the hidden size"));
  const shifts = splitLast(node, bias, sizes);
  const shifted = apart.map((x, i) => node.emit("add", [x, shifts[i]!], {}));
  return packedAttention(node, shifted, 4);
}

export const microsoftPackingRows = {
  RemovePadding: { since: [1], convert: removePadding },
  RestorePadding: { since: [1], convert: restorePadding },
  PackedAttention: { since: [1], convert: projectedPackedAttention },
  PackedMultiHeadAttention: { since: [1], convert: packedMultiHeadAttention },
} satisfies OperatorTable;
