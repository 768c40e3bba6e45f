/**
 * Attention layers of com.microsoft, as exporters and ONNX Runtime's optimizer write them: heads packed
 * into one axis, caches, padding given as lengths. Each becomes the composite `attention` with a mask
 * that says which keys a query sees. Definitions: ONNX Runtime's ContribOperators page.
 */
import {
  add,
  constant,
  type IndexExpr,
  indexEquals,
  max,
  sub,
} from "../../../../semantics/index-expr.ts";
import { simplify } from "../../../../semantics/index-range.ts";
import { type NodeView, one } from "../node-view.ts";
import type { Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";
import { joinHeads, places, rotaryTable, rotated, splitHeads } from "./attention.ts";
import { matMul } from "./linear.ts";
import { sliceAxis } from "./slicing.ts";

/** The attribute, or 1 / sqrt(head size) where it is 0 or not there. */
export function scaleOf(node: NodeView, query: Operand): number {
  const given = node.attributes.float("scale") ?? 0;
  return given === 0
    ? 1 / Math.sqrt(node.fixedExtent(query.type.shape.at(-1)!, "the head size"))
    : given;
}

/** Consecutive parts of the last axis. */
export function splitLast(
  node: NodeView,
  x: Operand,
  sizes: readonly number[],
): readonly Operand[] {
  const axis = x.type.shape.length - 1;
  const width = node.fixedExtent(x.type.shape[axis]!, "the hidden size");
  const sum = sizes.reduce((a, b) => a + b, 0);
  if (sum !== width || !sizes.every((size) => Number.isInteger(size) && size >= 0))
    node.refuse(`${width} channels`, `${sizes.join(" + ")} channels`);
  let next = 0;
  return sizes.map((size) => {
    const start = next;
    next += size;
    return sliceAxis(node, x, { axis, start: constant(start), step: 1, size: constant(size) });
  });
}

/** A cache and what is new behind it; the cache of key and value may be stacked. */
function behind(node: NodeView, past: Operand | undefined, x: Operand): Operand {
  return past ? node.emit("concat", [past, x], { axis: 2 }) : x;
}

/** An additive mask: `filter` where `allowed` is false. */
export function additive(node: NodeView, allowed: Operand, like: Operand, filter: number): Operand {
  const { dtype } = like.type;
  return node.emit("select", [allowed, node.splat(dtype, 0), node.splat(dtype, filter)], {});
}

/**
 * What a padding mask allows, over [b, h, s, t]. By rank and extent: lengths [b], ends and starts [2 b],
 * keys [b, t] or pairs [b, s, t] that are 0 where nothing is to be seen.
 */
export function paddingMask(node: NodeView, mask: Operand, parts: Heads): Operand {
  const { shape, dtype } = mask.type;
  const batch = parts.query.type.shape[0]!;
  const columns = parts.key.type.shape[2]!;
  const [, column] = places(node, one, columns);
  const bound = (x: Operand) => node.reshape(node.cast(x, "i64"), [batch, one, one, one]);
  if (shape.length === 1) {
    if (indexEquals(shape[0]!, batch)) return node.emit("less", [column, bound(mask)], {});
    if (!indexEquals(shape[0]!, add(batch, batch)))
      node.refuse(`a mask of ${shape[0]!.key} numbers`, `${batch.key} or twice as many`);
    const half = (start: IndexExpr) =>
      bound(sliceAxis(node, mask, { axis: 0, start, step: 1, size: batch }));
    const before = node.emit("less", [column, half(constant(0))], {});
    const from = node.emit("lessEqual", [half(batch), column], {});
    return node.emit("and", [before, from], {});
  }
  const seen = node.emit("not", [node.emit("equal", [mask, node.splat(dtype, 0)], {})], {});
  if (shape.length === 2) return node.reshape(seen, [shape[0]!, one, one, shape[1]!]);
  if (shape.length === 3) return node.reshape(seen, [shape[0]!, one, shape[1]!, shape[2]!]);
  return node.refuse(`a mask of rank ${shape.length}`, "rank 1, 2 or 3");
}

export interface Heads {
  /** [b, heads, s, d] */
  readonly query: Operand;
  /** [b, heads, t, d], what was before included. */
  readonly key: Operand;
  readonly value: Operand;
}

interface Masks {
  readonly padding: Operand | undefined;
  readonly bias: Operand | undefined;
}

/** The layer behind both old forms: heads, an additive mask, and causality. */
function attend(node: NodeView, parts: Heads, { padding, bias }: Masks): Operand {
  const { attributes } = node;
  const { query, key, value } = parts;
  const filter = attributes.float("mask_filter_value") ?? -10000;
  const seen = padding && additive(node, paddingMask(node, padding, parts), query, filter);
  const mask = seen && bias ? node.emit("add", [seen, bias], {}) : (seen ?? bias);
  const causal = attributes.flag("unidirectional", false) ? ("end" as const) : ("none" as const);
  const attrs = { scale: scaleOf(node, query), causal, mask: mask !== undefined, softcap: 0 };
  return node.emit("attention", [query, key, value, ...(mask ? [mask] : [])], attrs);
}

/** Projections of one input in one product, then attention; the cache is [2, b, heads, t, d]. */
export function projectedAttention(node: NodeView): readonly Operand[] {
  const { attributes } = node;
  const heads = attributes.int("num_heads") ?? 0;
  if (attributes.flag("do_rotary", false)) attributes.refuse("do_rotary", 1, "0");
  if (node.inputs[6]) node.refuse("a shared cache", "a cache that grows");
  const [x, bias, past] = [node.input(0), node.optional(2), node.optional(4)];
  node.checkRank(x, 3, "an operand");
  const product = matMul(node, x, node.input(1));
  const projected = bias ? node.emit("add", [product, bias], {}) : product;
  const width = node.fixedExtent(projected.type.shape[2]!, "the hidden size");
  const sizes = attributes.ints("qkv_hidden_sizes") ?? [width / 3, width / 3, width / 3];
  const [query, newKey, newValue] = splitLast(node, projected, sizes).map((part) =>
    splitHeads(node, part, heads),
  ) as [Operand, Operand, Operand];
  const cached = (i: number): Operand | undefined => {
    if (!past) return undefined;
    node.checkRank(past, 5, "a cache");
    const at = sliceAxis(node, past, { axis: 0, start: constant(i), step: 1, size: one });
    return node.reshape(at, past.type.shape.slice(1));
  };
  const [key, value] = [behind(node, cached(0), newKey), behind(node, cached(1), newValue)];
  const y = attend(
    node,
    { query, key, value },
    { padding: node.optional(3), bias: node.optional(5) },
  );
  if (!node.wants(1)) return [joinHeads(node, y)];
  const stacked = [key, value].map((o) => node.reshape(o, [one, ...o.type.shape]));
  return [joinHeads(node, y), node.emit("concat", stacked, { axis: 0 })];
}

/** Query, key and value as [b, heads, s, d]: apart, or packed by head on an axis of their own. */
function readHeads(node: NodeView, heads: number): Heads {
  const first = node.input(0);
  const rank = first.type.shape.length;
  if (rank === 5) {
    const [query, key, value] = unpack(node, first, 3) as [Operand, Operand, Operand];
    return { query, key, value };
  }
  const query = splitHeads(node, biased(node, 0), heads);
  const second = node.input(1);
  if (second.type.shape.length === 5) {
    const [key, value] = unpack(node, second, 2) as [Operand, Operand];
    return { query, key, value };
  }
  const [key, value] = [1, 2].map((i) => splitHeads(node, biased(node, i), heads));
  return { query, key: key!, value: value! };
}

/** [b, s, heads, parts, d] to its parts as [b, heads, s, d]. */
function unpack(node: NodeView, x: Operand, parts: number): readonly Operand[] {
  if (node.inputs[3]) node.refuse("a bias of packed operands", "operands with their bias added");
  const [b, s, heads, , d] = x.type.shape;
  return Array.from({ length: parts }, (_, i) => {
    const part = sliceAxis(node, x, { axis: 3, start: constant(i), step: 1, size: one });
    return node.transpose(node.reshape(part, [b!, s!, heads!, d!]), [0, 2, 1, 3]);
  });
}

/** Operand `index` with its part of the bias; keys and values of rank 4 are ready. */
export function biased(node: NodeView, index: number): Operand {
  const x = node.input(index);
  const bias = node.optional(3);
  if (!bias || x.type.shape.length !== 3) return x;
  const before = [0, 1].slice(0, index).map((i) => node.input(i).type.shape[2]!);
  const start = before.reduce((sum, d) => sum + node.fixedExtent(d, "a width"), 0);
  const size = x.type.shape[2]!;
  const part = sliceAxis(node, bias, { axis: 0, start: constant(start), step: 1, size });
  return node.emit("add", [x, part], {});
}

function multiHeadAttention(node: NodeView): readonly Operand[] {
  const parts = readHeads(node, node.attributes.int("num_heads") ?? 0);
  if (node.inputs[8] || node.inputs[9]) node.refuse("a shared cache", "a cache that grows");
  const key = behind(node, node.optional(6), parts.key);
  const value = behind(node, node.optional(7), parts.value);
  const masks = { padding: node.optional(4), bias: node.optional(5) };
  return [joinHeads(node, attend(node, { ...parts, key, value }, masks)), key, value];
}

/** Positions are given each, or as one offset for all rows. */
function rotaryEmbedding(node: NodeView): Operand {
  const { attributes } = node;
  const [input, ids] = [node.input(0), node.input(1)];
  if ((attributes.float("scale") ?? 1) !== 1) attributes.refuse("scale", "not 1", "1");
  if (attributes.flag("is_packed_batching", false)) attributes.refuse("is_packed_batching", 1, "0");
  const rank = input.type.shape.length;
  if (rank !== 3 && rank !== 4) node.refuse(`an operand of rank ${rank}`, "rank 3 or 4");
  for (const i of [2, 3]) node.checkRank(node.input(i), 2, "a table of angles");
  const table = node.input(2).type.shape[1]!;
  const rotary = attributes.int("rotary_embedding_dim") ?? 0;
  const width = node.fixedExtent(input.type.shape.at(-1)!, "the hidden size");
  const size = 2 * node.fixedExtent(table, "the size of the table");
  const heads = rotary > 0 ? (attributes.int("num_heads") ?? 0) : width / size;
  if (rotary === 0) attributes.ignore("num_heads");
  const rows = input.type.shape[rank - 2]!;
  const [, row] = places(node, one, rows);
  const at = ids.type.shape.length === 1 ? node.emit("add", [row, node.cast(ids, "i64")], {}) : ids;
  const tables = [2, 3].map((i) => rotaryTable(node, node.input(i), at));
  const interleaved = attributes.flag("interleaved", false);
  return rotated(node, input, heads, { tables, interleaved, rotaryDims: rotary || size });
}

/** Query, new keys and new values of a grouped layer: apart, or behind each other in one operand. */
export function groupedParts(node: NodeView): readonly [Operand, Operand, Operand] {
  const { attributes } = node;
  const heads = attributes.int("num_heads") ?? 0;
  const groups = attributes.int("kv_num_heads") ?? 0;
  if (heads < 1 || groups < 1 || heads % groups !== 0)
    node.refuse(`${heads} query heads, ${groups} key heads`, "multiples");
  const first = node.input(0);
  node.checkRank(first, 3, "a query");
  const width = node.fixedExtent(first.type.shape[2]!, "the hidden size");
  const size = width / (heads + 2 * groups);
  const apart = node.inputs[1]
    ? [first, node.input(1), node.input(2)]
    : splitLast(node, first, [heads * size, groups * size, groups * size]);
  return apart.map((x, i) => splitHeads(node, x, i === 0 ? heads : groups)) as [
    Operand,
    Operand,
    Operand,
  ];
}

/**
 * Grouped query attention over a cache whose rows are filled to different lengths. Row b holds
 * `seqlens_k[b] + 1` keys after this step; what is new stands at the end of them. The model must say by
 * its shapes how long the longest row is (`total_sequence_length`), because results have that extent.
 */
function groupQueryAttention(node: NodeView): readonly Operand[] {
  const { attributes } = node;
  const window = attributes.flag("sliding_window_cache", false);
  if (window) attributes.refuse("sliding_window_cache", 1, "0: a cache of all keys");
  const quantized = ["k_quant_type", "v_quant_type"].map((name) =>
    attributes.choice(name, "NONE", "PER_TENSOR", "PER_CHANNEL"),
  );
  if (quantized.some((type) => type !== "NONE")) node.refuse("a quantised cache", "a float cache");
  attributes.ignore("kv_cache_bit_width", "qk_output");
  const [query, newKey, newValue] = groupedParts(node);
  const [batch, , rows] = query.type.shape;
  const total = node.indexList(6, "total_sequence_length")[0] ?? one;
  const filled = node.reshape(node.cast(node.input(5), "i64"), [batch!, one]);
  const before = node.emit("sub", [filled, node.indices([sub(rows!, one)], [])], {});
  const past = node.emit("max", [before, node.splat("i64", 0)], {});
  const [, row] = places(node, one, rows!);
  const at = node.emit("add", [row, past], {});
  const turn = rotation(node, at, { tables: [7, 8], positions: node.optional(9) });
  const key = appended(node, { past: node.optional(3), fresh: turn(newKey), at, total });
  const value = appended(node, { past: node.optional(4), fresh: newValue, at, total });
  const y = groupedScores(node, { query: turn(query), key, value }, at);
  return [joinHeads(node, y), key, value];
}

/** Where a node has the tables of its rotation, and positions of its own. */
interface RotationOperands {
  readonly tables: readonly [cosines: number, sines: number];
  readonly positions: Operand | undefined;
}

/** Rotates heads by the positions `at`, or by those that the model gives. */
export function rotation(
  node: NodeView,
  at: Operand,
  given: RotationOperands,
): (x: Operand) => Operand {
  const { attributes } = node;
  const interleaved = attributes.flag("rotary_interleaved", false);
  if (!attributes.flag("do_rotary", false)) return (x) => x;
  const ids = given.positions ?? at;
  const tables = given.tables.map((i) => rotaryTable(node, node.input(i), ids));
  const rotaryDims = 2 * node.fixedExtent(tables[0]!.type.shape[3]!, "the size of the table");
  return (x) => node.emit("rotaryEmbedding", [x, ...tables], { interleaved, rotaryDims });
}

interface Appended {
  readonly past: Operand | undefined;
  /** [b, groups, s, d] */
  readonly fresh: Operand;
  /** [b, s]: where each new row goes. */
  readonly at: Operand;
  readonly total: IndexExpr;
}

/** The cache with the new rows in their places; it is as long as the cache was, or the longest row. */
export function appended(node: NodeView, { past, fresh, at, total }: Appended): Operand {
  const { ranges } = node.emitter.assembly.symbols;
  const { dtype, shape } = fresh.type;
  const [b, groups, rows, d] = shape;
  const length = past?.type.shape[2] ?? constant(0);
  const extent = simplify(max(length, total), ranges);
  const missing = simplify(sub(extent, length), ranges);
  const zero = node.splat(dtype, 0);
  const low = shape.map(() => constant(0));
  const high = shape.map((_, axis) => (axis === 2 ? missing : constant(0)));
  const full = [b!, groups!, extent, d!];
  const empty = past
    ? node.emit("pad", [past, zero], { low, high, mode: "constant" })
    : node.emit("broadcast", [zero], { shape: full });
  const index = node.emit("broadcast", [node.reshape(at, [b!, one, rows!, one])], { shape });
  return node.emit("scatterElements", [empty, index, fresh], { axis: 2, reduction: "none" });
}

/** A query at position p sees the keys up to p, and no further back than the window. */
function groupedScores(node: NodeView, { query, key, value }: Heads, at: Operand): Operand {
  const { attributes } = node;
  const [batch, , rows] = query.type.shape;
  const [, column] = places(node, one, key.type.shape[2]!);
  const place = node.reshape(at, [batch!, one, rows!, one]);
  let allowed = node.emit("lessEqual", [column, place], {});
  const window = attributes.int("local_window_size") ?? -1;
  if (window > 0) {
    const oldest = node.emit("sub", [place, node.splat("i64", window)], {});
    allowed = node.emit("and", [allowed, node.emit("less", [oldest, column], {})], {});
  }
  const bias = node.optional(10);
  if (bias && !indexEquals(bias.type.shape[3]!, key.type.shape[2]!))
    node.refuse("a bias shorter than the cache", "one for every key");
  const { dtype } = query.type;
  const mask = bias
    ? node.emit("select", [allowed, bias, node.splat(dtype, -Infinity)], {})
    : allowed;
  const softcap = attributes.float("softcap") ?? 0;
  const attrs = { scale: scaleOf(node, query), causal: "none" as const, mask: true, softcap };
  const sink = headSink(node, query);
  const operands = sink
    ? withSink(node, { query, key, value }, { mask, sink })
    : [query, key, value, mask];
  return node.emit("attention", operands, attrs);
}

/** The score that each head gives to nothing, [1, h, 1, 1]: an operand, or 0 for all with smooth_softmax. */
function headSink(node: NodeView, query: Operand): Operand | undefined {
  const smooth = node.attributes.flag("smooth_softmax", false);
  const given = node.optional(11);
  const heads = query.type.shape[1]!;
  const shape = [one, heads, one, one];
  if (given) return node.reshape(given, shape);
  return smooth ? node.emit("broadcast", [node.splat(query.type.dtype, 0)], { shape }) : undefined;
}

/** The operands with one more key: all zeros, so that its score is the mask's and it adds no value. */
function withSink(
  node: NodeView,
  { query, key, value }: Heads,
  { mask, sink }: { readonly mask: Operand; readonly sink: Operand },
): readonly Operand[] {
  const { dtype } = query.type;
  const longer = (x: Operand) => {
    const [b, g, , d] = x.type.shape as [IndexExpr, IndexExpr, IndexExpr, IndexExpr];
    const zero = node.emit("broadcast", [node.splat(dtype, 0)], { shape: [b, g, one, d] });
    return node.emit("concat", [x, zero], { axis: 2 });
  };
  const scores =
    mask.type.dtype === "bool" ? additive(node, mask, query, Number.NEGATIVE_INFINITY) : mask;
  const [b, h, s] = query.type.shape as [IndexExpr, IndexExpr, IndexExpr];
  const full = [b, h, s, mask.type.shape[3]!];
  const parts = [
    node.emit("broadcast", [scores], { shape: full }),
    node.emit("broadcast", [sink], { shape: [b, h, s, one] }),
  ];
  return [query, longer(key), longer(value), node.emit("concat", parts, { axis: 3 })];
}

export const microsoftAttentionRows = {
  Attention: { since: [1], convert: projectedAttention },
  MultiHeadAttention: { since: [1], convert: multiHeadAttention },
  RotaryEmbedding: { since: [1], convert: rotaryEmbedding },
  GroupQueryAttention: { since: [1], convert: groupQueryAttention },
} satisfies OperatorTable;
