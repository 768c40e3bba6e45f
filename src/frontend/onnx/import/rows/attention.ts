/** Attention with its masks and caches, rotary embeddings, gated and causal layers of sequence models. */
import {
  constant,
  constantValue,
  type IndexExpr,
  indexEquals,
  sub,
} from "../../../../semantics/index-expr.ts";
import { simplify } from "../../../../semantics/index-range.ts";
import { type NodeView, one } from "../node-view.ts";
import type { Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";
import { sliceAxis } from "./slicing.ts";

/** [b, s, heads * d] to [b, heads, s, d]; operands of rank 4 have that form already. */
export function splitHeads(node: NodeView, x: Operand, heads: number): Operand {
  if (x.type.shape.length === 4) return x;
  return node.transpose(headsApart(node, x, heads), [0, 2, 1, 3]);
}

/** [b, s, heads * d] to [b, s, heads, d]. */
function headsApart(node: NodeView, x: Operand, heads: number): Operand {
  const { shape } = x.type;
  if (shape.length !== 3 || heads < 1)
    node.refuse(`rank ${shape.length}, ${heads} heads`, "rank 3 or 4");
  const hidden = node.fixedExtent(shape[2]!, "the hidden size");
  if (hidden % heads !== 0) node.refuse(`${hidden} channels in ${heads} heads`, "a multiple");
  return node.reshape(x, [shape[0]!, shape[1]!, constant(heads), constant(hidden / heads)]);
}

export function joinHeads(node: NodeView, x: Operand): Operand {
  const [b, heads, s, d] = x.type.shape;
  const width = node.fixedExtent(heads!, "heads") * node.fixedExtent(d!, "the head size");
  return node.reshape(node.transpose(x, [0, 2, 1, 3]), [b!, s!, constant(width)]);
}

interface Parts {
  readonly query: Operand;
  readonly key: Operand;
  readonly value: Operand;
  /** Keys before the first query: the extent of the cache. */
  readonly past: IndexExpr | undefined;
}

function readParts(node: NodeView): Parts {
  const { attributes } = node;
  const queryHeads = attributes.int("q_num_heads") ?? 0;
  const keyHeads = attributes.int("kv_num_heads") ?? 0;
  const query = splitHeads(node, node.input(0), queryHeads);
  const [newKey, newValue] = [1, 2].map((i) => splitHeads(node, node.input(i), keyHeads));
  checkHeads(node, [query, newKey!, newValue!]);
  const [pastKey, pastValue] = [node.optional(4), node.optional(5)];
  if (pastKey) node.checkRank(pastKey, 4, "past_key");
  if (!pastKey || !pastValue) return { query, key: newKey!, value: newValue!, past: undefined };
  const key = node.emit("concat", [pastKey, newKey!], { axis: 2 });
  const value = node.emit("concat", [pastValue, newValue!], { axis: 2 });
  return { query, key, value, past: pastKey.type.shape[2]! };
}

/** No empty operands, and as many query heads as the key heads divide. */
function checkHeads(node: NodeView, operands: readonly Operand[]): void {
  const [heads, groups, others] = operands.map((x) => constantValue(x.type.shape[1]!));
  const empty = operands.some((x) => x.type.shape.some((d) => constantValue(d) === 0));
  if (empty || !heads || !groups || heads % groups !== 0 || others !== groups) {
    node.refuse(`${heads} query heads, ${groups} key heads`, "multiples, and no empty operands");
  }
}

/** Positions of queries and keys as [s, 1] and [1, t]. */
export function positions(
  node: NodeView,
  rows: IndexExpr,
  columns: IndexExpr,
): readonly [Operand, Operand] {
  const row = node.emit("iota", [], { shape: [rows, one], axis: 0, dtype: "i64" });
  return [row, node.emit("iota", [], { shape: [one, columns], axis: 1, dtype: "i64" })];
}

/** The same, where they are compared with lengths that are data: numbers of places, not constants that are read. */
export function places(
  node: NodeView,
  rows: IndexExpr,
  columns: IndexExpr,
): readonly [Operand, Operand] {
  const iota = (shape: readonly IndexExpr[], axis: number): Operand =>
    node.emitComputed("iota", [], { shape, axis, dtype: "i64" });
  return [iota([rows, one], 0), iota([one, columns], 1)];
}

function both(node: NodeView, a: Operand | undefined, b: Operand): Operand {
  return a ? node.emit("and", [a, b], {}) : b;
}

/** What caches, windows and causality forbid beyond the composite's own causal forms. */
function structuralMask(node: NodeView, { query, key, past }: Parts, causal: boolean) {
  const given = node.optional(3) !== undefined;
  const [rows, columns] = [query.type.shape[2]!, key.type.shape[2]!];
  const lengths = node.optional(6);
  const window = ["left_window_size", "right_window_size"].map((n) => node.attributes.int(n) ?? -1);
  const windowed = window.some((w) => w >= 0);
  if (!lengths && !windowed) {
    if (!causal) return { form: "none" as const, mask: undefined };
  }
  // With a mask of the model's own, causality joins it: a row may then have nothing to attend to.
  if (!lengths && !windowed && !given) {
    if (!past) return { form: "start" as const, mask: undefined };
    if (indexEquals(sub(columns, rows), past)) return { form: "end" as const, mask: undefined };
  }
  const [left, right] = window as [number, number];
  // What is ahead is forbidden already; a window behind the last one is the composite's own.
  if (!lengths && !given && causal && left >= 0 && !node.wants(3)) {
    if (!past) return { form: "start" as const, behind: left, mask: undefined };
    if (indexEquals(sub(columns, rows), past))
      return { form: "end" as const, behind: left, mask: undefined };
  }
  const [row, column] = (lengths ? places : positions)(node, rows, columns);
  const limit =
    lengths && node.reshape(node.cast(lengths, "i64"), [lengths.type.shape[0]!, one, one, one]);
  const offset = limit
    ? node.emit("sub", [limit, node.indices([rows], [])], {})
    : node.indices([past ?? constant(0)], []);
  const last = node.emit("add", [row, offset], {});
  let mask = limit && node.emit("less", [column, limit], {});
  if (causal) mask = both(node, mask, node.emit("lessEqual", [column, last], {}));
  const ahead = node.emit("sub", [column, last], {});
  if (left >= 0)
    mask = both(node, mask, node.emit("lessEqual", [node.splat("i64", -left), ahead], {}));
  if (right >= 0)
    mask = both(node, mask, node.emit("lessEqual", [ahead, node.splat("i64", right)], {}));
  if (!limit) return { form: "none" as const, mask };
  const meets = meetsAny(node, { limit, last, columns }, { causal, left, right });
  return { form: "none" as const, mask, meets };
}

interface Places {
  /** Keys of each problem, [b, 1, 1, 1]. */
  readonly limit: Operand;
  /** Where each query stands among them, [b, 1, s, 1]. */
  readonly last: Operand;
  readonly columns: IndexExpr;
}

/** Whether a query meets a key at all: the first that it may meet is not behind the last one. */
function meetsAny(
  node: NodeView,
  { limit, last, columns }: Places,
  {
    causal,
    left,
    right,
  }: { readonly causal: boolean; readonly left: number; readonly right: number },
): Operand {
  const plus = (x: Operand, n: number) => node.emit("add", [x, node.splat("i64", n)], {});
  const ends = [
    plus(limit, -1),
    ...(causal ? [last] : []),
    ...(right >= 0 ? [plus(last, right)] : []),
  ];
  const start = node.splat("i64", 0);
  const first = left >= 0 ? node.emit("max", [start, plus(last, -left)], {}) : start;
  const end = ends.reduce(
    (a, b) => node.emit("min", [a, b], {}),
    node.indices([sub(columns, one)], []),
  );
  return node.emit("lessEqual", [first, end], {});
}

/** A mask shorter than the keys forbids the rest. */
function padMask(node: NodeView, mask: Operand, columns: IndexExpr): Operand {
  const { dtype, shape } = mask.type;
  const last = shape.at(-1)!;
  const { ranges } = node.emitter.assembly.symbols;
  const missing = simplify(sub(columns, last), ranges);
  if (constantValue(missing) === 0 || constantValue(last) === 1) return mask;
  if (constantValue(missing) === undefined) return mask;
  const low = shape.map(() => constant(0));
  const high = shape.map((_, i) => (i === shape.length - 1 ? missing : constant(0)));
  const fill = node.splat(dtype, dtype === "bool" ? 0 : -Infinity);
  return node.emit("pad", [mask, fill], { low, high, mode: "constant" });
}

function combineMasks(node: NodeView, given: Operand | undefined, structural: Operand | undefined) {
  if (!given || !structural) return given ?? structural;
  if (given.type.dtype === "bool") return node.emit("and", [given, structural], {});
  return node.emit("select", [structural, given, node.splat(given.type.dtype, -Infinity)], {});
}

/** Where the mask forbids every key the result is 0, not the 0 / 0 of softmax. */
function zeroEmptyRows(
  node: NodeView,
  y: Operand,
  { mask, meets }: { readonly mask: Operand; readonly meets?: Operand },
): Operand {
  const { dtype, shape } = mask.type;
  const reduce = { axes: [shape.length - 1], keepDims: true };
  const allowed = meets
    ? meets
    : dtype === "bool"
      ? node.emit("reduce", [mask], { kind: "or", ...reduce })
      : node.emit(
          "less",
          [node.splat(dtype, -Infinity), node.emit("reduce", [mask], { kind: "max", ...reduce })],
          {},
        );
  return node.emit("select", [allowed, y, node.splat(y.type.dtype, 0)], {});
}

function attention(node: NodeView): readonly (Operand | undefined)[] {
  const { attributes } = node;
  const parts = readParts(node);
  const { query, key, value } = parts;
  attributes.ignore("softmax_precision");
  const depth = node.fixedExtent(query.type.shape[3]!, "the head size");
  const scale = attributes.float("scale") ?? 1 / Math.sqrt(depth);
  const softcap = attributes.float("softcap") ?? 0;
  const found = structuralMask(node, parts, attributes.flag("is_causal", false));
  const { form, mask: structural } = found;
  const given = node.optional(3);
  const padded = given && padMask(node, given, key.type.shape[2]!);
  const mask = combineMasks(node, padded, structural);
  const operands = [query, key, value, ...(mask ? [mask] : [])];
  const behind = "behind" in found ? { behind: found.behind } : {};
  const attrs = { scale, causal: form, ...behind, mask: mask !== undefined, softcap };
  const raw = node.emit("attention", operands, attrs);
  const meets = given ? undefined : found.meets;
  const y = mask ? zeroEmptyRows(node, raw, { mask, ...(meets && { meets }) }) : raw;
  const joined = node.input(0).type.shape.length === 3 ? joinHeads(node, y) : y;
  const mode = attributes.int("qk_matmul_output_mode") ?? 0;
  if (!node.wants(3)) return [joined, key, value];
  return [joined, key, value, scores(node, parts, { scale, softcap, mode, mask, causal: form })];
}

interface ScoreForm {
  readonly scale: number;
  readonly softcap: number;
  readonly mode: number;
  readonly mask: Operand | undefined;
  readonly causal: "none" | "start" | "end";
}

/** The fourth output: scores as they are (0), capped (1), masked (2), or after softmax (3). */
function scores(node: NodeView, { query, key, past }: Parts, form: ScoreForm): Operand {
  const { dtype } = query.type;
  const [heads, groups] = [query, key].map((x) => node.fixedExtent(x.type.shape[1]!, "heads"));
  const [b, , rows] = query.type.shape;
  const [, , columns, depth] = key.type.shape;
  const repeated = [b!, constant(groups!), constant(heads! / groups!), columns!, depth!];
  const spread = node.reshape(key, [b!, constant(groups!), one, columns!, depth!]);
  const wide =
    heads === groups
      ? key
      : node.reshape(node.emit("broadcast", [spread], { shape: repeated }), [
          b!,
          constant(heads!),
          columns!,
          depth!,
        ]);
  const scaled = node.emit("mul", [query, node.splat(dtype, form.scale)], {});
  const labels = {
    lhs: ["b", "h", "s", "d"],
    rhs: ["b", "h", "t", "d"],
    output: ["b", "h", "s", "t"],
  };
  let score = node.emit("contract", [scaled, wide], { ...labels, accumulator: dtype });
  if (form.mode === 0) return score;
  if (form.softcap > 0) {
    const cap = node.splat(dtype, form.softcap);
    const small = node.emit("tanh", [node.emit("div", [score, cap], {})], {});
    score = node.emit("mul", [small, cap], {});
  }
  if (form.mode === 1) return score;
  if (form.causal !== "none") {
    const [row, column] = positions(node, rows!, columns!);
    const last = node.emit("add", [row, node.indices([past ?? constant(0)], [])], {});
    score = masked(node, score, node.emit("lessEqual", [column, last], {}));
  }
  if (form.mask) score = masked(node, score, form.mask);
  if (form.mode === 2) return score;
  const weights = node.emit("softmax", [score], { axis: 3 });
  return form.mask ? zeroEmptyRows(node, weights, { mask: form.mask }) : weights;
}

function masked(node: NodeView, score: Operand, mask: Operand): Operand {
  if (mask.type.dtype !== "bool") return node.emit("add", [score, mask], {});
  return node.emit("select", [mask, score, node.splat(score.type.dtype, -Infinity)], {});
}

/** Rows of a table of cosines or sines as [b, 1, s, half]: those of `ids`, or the table itself. */
export function rotaryTable(node: NodeView, table: Operand, ids: Operand | undefined): Operand {
  const picked = ids ? node.emit("gather", [table, ids], { axis: 0 }) : table;
  node.checkRank(picked, 3, "a cache of cosines or sines");
  const [b, s, half] = picked.type.shape;
  return node.reshape(picked, [b!, one, s!, half!]);
}

/** Operand [b, heads, s, d], or [b, s, heads * d], rotated by tables of [b, s, half]; it keeps its form. */
export function rotated(
  node: NodeView,
  x: Operand,
  heads: number,
  turn: {
    readonly tables: readonly Operand[];
    readonly interleaved: boolean;
    /** 0: all of a head. */
    readonly rotaryDims: number;
  },
): Operand {
  const isFlat = x.type.shape.length !== 4;
  // Heads stay beside each other where they are: nothing but names of places changes.
  const apart = isFlat ? headsApart(node, x, heads) : x;
  const depth = node.fixedExtent(apart.type.shape[3]!, "the head size");
  const tables = isFlat
    ? turn.tables.map((t) => {
        const [b, , s, half] = t.type.shape;
        return node.reshape(t, [b!, s!, one, half!]);
      })
    : turn.tables;
  const { interleaved, rotaryDims } = turn;
  const attrs = { interleaved, rotaryDims: rotaryDims || depth };
  const y = node.emit("rotaryEmbedding", [apart, ...tables], attrs);
  return isFlat ? node.reshape(y, x.type.shape) : y;
}

function rotaryEmbedding(node: NodeView): Operand {
  const { attributes } = node;
  const input = node.input(0);
  const heads = attributes.int("num_heads") ?? 0;
  const rotaryDims = attributes.int("rotary_embedding_dim") ?? 0;
  const ids = node.optional(3);
  const tables = [1, 2].map((i) => rotaryTable(node, node.input(i), ids));
  const interleaved = attributes.flag("interleaved", false);
  return rotated(node, input, heads, { tables, interleaved, rotaryDims });
}

/** a * sigmoid(alpha a) * b */
function swiGlu(node: NodeView): Operand {
  const [a, b] = [node.input(0), node.input(1)];
  const alpha = node.attributes.float("alpha") ?? 1;
  if (alpha === 1) return node.emit("mul", [node.emit("silu", [a], {}), b], {});
  const gate = node.emit(
    "sigmoid",
    [node.emit("mul", [a, node.splat(a.type.dtype, alpha)], {})],
    {},
  );
  return node.emit("mul", [node.emit("mul", [a, gate], {}), b], {});
}

/**
 * A depthwise convolution of [b, c, t] that looks back only; its state is the inputs that the next step
 * looks back to, (k - 1) * dilation of them.
 */
export function causalConvolution(node: NodeView, dilation: number): readonly Operand[] {
  const [x, weights, bias, past] = [
    node.input(0),
    node.input(1),
    node.optional(2),
    node.optional(3),
  ];
  node.checkRank(x, 3, "an operand");
  node.checkRank(weights, 3, "weights");
  if (bias) node.checkRank(bias, 1, "a bias");
  const [batch, channels] = x.type.shape;
  const back = (node.fixedExtent(weights.type.shape[2]!, "the window") - 1) * dilation;
  const groups = node.fixedExtent(channels!, "the number of channels");
  const shape = [batch!, channels!, constant(back)];
  const before = past ?? node.emit("broadcast", [node.splat(x.type.dtype, 0)], { shape });
  const padded = back === 0 ? x : node.emit("concat", [before, x], { axis: 2 });
  const window = { strides: [1], dilations: [dilation], padLow: [0], padHigh: [0] };
  const raw = node.emit("convolution", [padded, weights], { ...window, groups });
  const biased = bias
    ? node.emit("add", [raw, node.reshape(bias, [bias.type.shape[0]!, one])], {})
    : raw;
  const activation = node.attributes.choice("activation", "none", "silu", "swish");
  const y = activation === "none" ? biased : node.emit("silu", [biased], {});
  const start = sub(padded.type.shape[2]!, back);
  const present = sliceAxis(node, padded, { axis: 2, start, step: 1, size: constant(back) });
  return [y, present];
}

/** Writes the update into the cache at a position per batch. */
function tensorScatter(node: NodeView): Operand {
  const [cache, update, given] = [node.input(0), node.input(1), node.optional(2)];
  const rank = cache.type.shape.length;
  const axis = node.axis(node.attributes.int("axis") ?? -2, rank);
  const circular = node.attributes.choice("mode", "linear", "circular") === "circular";
  const { shape } = update.type;
  const line = shape.map((d, i) => (i === axis ? d : one));
  const counted = node.emit("iota", [], { shape: line, axis, dtype: "i64" });
  const along = shape.map((d, i) => (i === 0 ? d : one));
  const start = given && node.reshape(node.cast(given, "i64"), along);
  const moved = start ? node.emit("add", [counted, start], {}) : counted;
  const limit = node.indices([cache.type.shape[axis]!], []);
  const place = circular ? node.emit("floorMod", [moved, limit], {}) : moved;
  const index = node.emit("broadcast", [place], { shape });
  return node.emit("scatterElements", [cache, index, update], { axis, reduction: "none" });
}

export const attentionRows = {
  Attention: { since: [23, 24, 25, 26], convert: attention },
  RotaryEmbedding: { since: [23], convert: rotaryEmbedding },
  SwiGLU: { since: [28], convert: swiGlu },
  CausalConvWithState: { since: [27], convert: (node) => causalConvolution(node, 1) },
  TensorScatter: { since: [24], convert: tensorScatter },
} satisfies OperatorTable;
