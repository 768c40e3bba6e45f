/**
 * Attention of com.microsoft over a cache that is longer than what it holds: decoding one token for all
 * rows, and attention to blocks of keys that a table allows. Definitions: ONNX Runtime's ContribOperators
 * page.
 */
import {
  constant,
  constantValue,
  type IndexExpr,
  indexEquals,
  sub,
} from "../../../../semantics/index-expr.ts";
import { simplify } from "../../../../semantics/index-range.ts";
import { refTensor } from "../../../../semantics/tensor.ts";
import { type NodeView, one } from "../node-view.ts";
import { constantFromRef, type Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";
import { joinHeads, places, splitHeads } from "./attention.ts";
import {
  additive,
  appended,
  groupedParts,
  type Heads,
  rotation,
  scaleOf,
} from "./microsoft-attention.ts";
import { sliceAxis } from "./slicing.ts";

/** The part of the bias of packed projections that belongs to operand `index`. */
function withBias(node: NodeView, x: Operand, index: number): Operand {
  const bias = node.optional(10);
  if (!bias) return x;
  const width = x.type.shape[2]!;
  const start = constant(index * node.fixedExtent(width, "the hidden size"));
  const part = sliceAxis(node, bias, { axis: 0, start, step: 1, size: width });
  return node.emit("add", [x, part], {});
}

/** The last axis filled up with `fill` to the extent of the cache. */
function widened(node: NodeView, x: Operand, extent: IndexExpr, fill: number): Operand {
  const { dtype, shape } = x.type;
  const { ranges } = node.emitter.assembly.symbols;
  const missing = simplify(sub(extent, shape.at(-1)!), ranges);
  if (constantValue(missing) === 0) return x;
  const low = shape.map(() => constant(0));
  const high = shape.map((_, axis) => (axis === shape.length - 1 ? missing : constant(0)));
  return node.emit("pad", [x, node.splat(dtype, fill)], { low, high, mode: "constant" });
}

interface Cached extends Heads {
  /** Which keys are filled, [t]; absent: all. */
  readonly filled: Operand | undefined;
}

/** Self-attention: the cache with the new key and value at the position that past_sequence_length says. */
function ownKeys(node: NodeView, query: Operand, heads: number): Cached {
  if (!node.attributes.flag("past_present_share_buffer", false)) {
    const fresh = [1, 2].map((i) => splitHeads(node, withBias(node, node.input(i), i), heads));
    const [key, value] = fresh.map((x, i) => {
      const past = node.optional(5 + i);
      return past ? node.emit("concat", [past, x], { axis: 2 }) : x;
    }) as [Operand, Operand];
    return { query, key, value, filled: undefined };
  }
  const past = node.reshape(node.cast(node.input(7), "i64"), []);
  const batch = query.type.shape[0]!;
  const at = node.emit("broadcast", [past], { shape: [batch, one] });
  const [key, value] = [1, 2].map((i) => {
    const fresh = splitHeads(node, withBias(node, node.input(i), i), heads);
    const cache = node.input(4 + i);
    return appended(node, { past: cache, fresh, at, total: cache.type.shape[2]! });
  }) as [Operand, Operand];
  const [, column] = places(node, one, key.type.shape[2]!);
  const filled = node.emit("lessEqual", [column, past], {});
  return { query, key, value, filled };
}

/** Cross-attention: keys and values of an encoder as they are; a projection's bias concerns the query. */
function otherKeys(node: NodeView, query: Operand): Cached {
  return { query, key: node.input(1), value: node.input(2), filled: undefined };
}

/** One token of each row against its cache. */
function decoderMaskedAttention(node: NodeView): readonly (Operand | undefined)[] {
  const { attributes } = node;
  const heads = attributes.int("num_heads") ?? 0;
  attributes.ignore("output_qk");
  if (node.inputs[9]) node.refuse("rows that share keys (cache_indirection)", "a cache per row");
  if (node.wants(3)) node.refuse("scores as a result", "the first three results");
  if (!node.inputs[1]) node.refuse("packed query, key and value", "three operands");
  const query = splitHeads(node, withBias(node, node.input(0), 0), heads);
  if (constantValue(query.type.shape[2]!) !== 1) node.refuse("several new tokens", "one");
  const isCross = node.input(1).type.shape.length === 4;
  const parts = isCross ? otherKeys(node, query) : ownKeys(node, query, heads);
  const mask = decoderMask(node, parts);
  const attrs = {
    scale: scaleOf(node, query),
    causal: "none" as const,
    mask: mask !== undefined,
    softcap: 0,
  };
  const operands = [parts.query, parts.key, parts.value, ...(mask ? [mask] : [])];
  const y = joinHeads(node, node.emit("attention", operands, attrs));
  return isCross ? [y] : [y, parts.key, parts.value];
}

function decoderMask(node: NodeView, { query, key, filled }: Cached): Operand | undefined {
  const length = key.type.shape[2]!;
  const [padding, bias] = [node.optional(3), node.optional(4)];
  if (!padding && !bias) return filled;
  const filter = node.attributes.float("mask_filter_value") ?? -10000;
  const parts: Operand[] = [];
  if (padding) {
    node.checkRank(padding, 2, "a mask");
    const wide = widened(node, padding, length, 0);
    const seen = node.emit("not", [node.emit("equal", [wide, node.splat("i32", 0)], {})], {});
    const placed = node.reshape(seen, [wide.type.shape[0]!, one, one, length]);
    parts.push(additive(node, placed, query, filter));
  }
  if (bias) parts.push(widened(node, bias, length, 0));
  const sum = parts.length === 2 ? node.emit("add", parts, {}) : parts[0]!;
  if (!filled) return sum;
  return node.emit("select", [filled, sum, node.splat(query.type.dtype, -Infinity)], {});
}

interface BlockTable {
  readonly layouts: number;
  /** Blocks of queries, and as many of keys. */
  readonly blocks: number;
  /** [layouts, blocks, blocks] */
  readonly allowed: Operand;
}

/** The allowed blocks, given as compressed rows: ends of the rows, and their columns. */
function readBlocks(node: NodeView): BlockTable {
  const [ends, columns] = [5, 6].map((i) => {
    node.checkRank(node.input(i), 2, "a table of blocks");
    return { shape: node.input(i).type.shape, values: node.numbers(i, "a table of blocks") };
  }) as [Rows, Rows];
  const [layouts, width] = [ends.shape, columns.shape].map((shape, i) =>
    node.fixedExtent(shape[i]!, "an extent of the blocks"),
  ) as [number, number];
  const blocks = ends.values.length / layouts - 1;
  if (columns.values.length !== layouts * width || !Number.isInteger(blocks) || blocks < 1)
    node.refuse(`${layouts} layouts of ${blocks} blocks`, "as many of both, one block or more");
  node.checkTable(layouts * blocks ** 2, "a table of blocks");
  const allowed = new Array<number>(layouts * blocks * blocks).fill(0);
  for (let row = 0; row < layouts * blocks; row++) {
    const layout = Math.floor(row / blocks);
    const at = row + layout;
    const [from, to] = [ends.values[at]!, ends.values[at + 1]!];
    for (const column of columns.values.slice(layout * width + from, layout * width + to)) {
      if (column < 0 || column >= blocks) node.refuse(`block ${column}`, `0 to ${blocks - 1}`);
      allowed[row * blocks + column] = 1;
    }
  }
  const table = constantFromRef(refTensor("bool", [layouts, blocks, blocks], allowed));
  return { layouts, blocks, allowed: table };
}

interface Rows {
  readonly shape: readonly IndexExpr[];
  readonly values: readonly number[];
}

/** Which keys [t] a query at position `at` [b, s] may see, by head: [b, h, s, t]. */
function blockMask(node: NodeView, at: Operand, columns: IndexExpr, heads: number): Operand {
  const size = node.attributes.int("sparse_block_size") ?? 0;
  if (size < 1) node.attributes.refuse("sparse_block_size", size, "16, 32, 64, 128");
  const { layouts, blocks, allowed } = readBlocks(node);
  if (heads % layouts !== 0) node.refuse(`${heads} heads, ${layouts} layouts`, "a multiple");
  const block = (x: Operand) => {
    const whole = node.emit("div", [x, node.splat("i64", size)], {});
    return node.emit("min", [whole, node.splat("i64", blocks - 1)], {});
  };
  const column = node.emit("iota", [], { shape: [columns], axis: 0, dtype: "i64" });
  const rows = node.emit("gather", [allowed, block(at)], { axis: 1 });
  const places = node.emit("gather", [rows, block(column)], { axis: 3 });
  const [, b, s, t] = places.type.shape as [IndexExpr, IndexExpr, IndexExpr, IndexExpr];
  const byRow = node.reshape(node.transpose(places, [1, 0, 2, 3]), [
    b,
    one,
    constant(layouts),
    s,
    t,
  ]);
  const shape = [b, constant(heads / layouts), constant(layouts), s, t];
  return node.reshape(node.emit("broadcast", [byRow], { shape }), [b, constant(heads), s, t]);
}

/** Grouped attention to the blocks of keys that a table allows to each block of queries and head. */
function sparseAttention(node: NodeView): readonly Operand[] {
  const { attributes } = node;
  const heads = attributes.int("num_heads") ?? 0;
  const [query, newKey, newValue] = groupedParts(node);
  const [batch, , rows] = query.type.shape as [IndexExpr, IndexExpr, IndexExpr];
  const filled = node.reshape(node.cast(node.input(8), "i64"), [batch, one]);
  const before = node.emit("sub", [filled, node.indices([rows], [])], {});
  const past = node.emit("max", [before, node.splat("i64", 0)], {});
  const [, row] = places(node, one, rows);
  const at = node.emit("add", [row, past], {});
  const turn = rotation(node, at, { tables: [9, 10], positions: undefined });
  const cache = (i: number, fresh: Operand) => {
    const store = node.input(i);
    return appended(node, { past: store, fresh, at, total: store.type.shape[2]! });
  };
  const [key, value] = [cache(3, turn(newKey)), cache(4, newValue)];
  const length = key.type.shape[2]!;
  if (!indexEquals(length, value.type.shape[2]!)) node.refuse("caches of two lengths", "one");
  const [, column] = places(node, one, length);
  const place = node.reshape(at, [batch, one, rows, one]);
  const behind = node.emit("lessEqual", [column, place], {});
  const mask = node.emit("and", [behind, blockMask(node, at, length, heads)], {});
  const attrs = { scale: scaleOf(node, query), causal: "none" as const, mask: true, softcap: 0 };
  const y = node.emit("attention", [turn(query), key, value, mask], attrs);
  return [joinHeads(node, y), key, value];
}

export const microsoftCacheAttentionRows = {
  DecoderMaskedMultiHeadAttention: { since: [1], convert: decoderMaskedAttention },
  SparseAttention: { since: [1], convert: sparseAttention },
} satisfies OperatorTable;
