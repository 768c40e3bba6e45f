/**
 * Small layers of com.microsoft that exporters of newer decoders write: gated norms and sums, rotations by
 * three positions (Qwen-VL), streams that are mixed (hyper-connections), routers of experts by groups, and
 * Gated DeltaNet over tokens behind each other. Definitions: ONNX Runtime's operator schemas.
 */
import { constant, floorDiv, type IndexExpr, mul } from "../../../../semantics/index-expr.ts";
import { type NodeView, one } from "../node-view.ts";
import type { Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";
import { rotaryTable, rotated } from "./attention.ts";
import { matMul } from "./linear.ts";
import { recurrence, repeated } from "./linear-attention.ts";
import { sliceAxis } from "./slicing.ts";

/** A part of the last axis. */
function lastPart(node: NodeView, x: Operand, start: number, size: number): Operand {
  const axis = x.type.shape.length - 1;
  return sliceAxis(node, x, { axis, start: constant(start), step: 1, size: constant(size) });
}

function lastExtent(node: NodeView, x: Operand): number {
  const last = x.type.shape.at(-1) ?? node.refuse("a scalar", "a tensor with axes");
  return node.fixedExtent(last, "the last extent");
}

/** The root mean square norm over groups of the last axis that are as long as the scale, times a gate. */
function gatedRmsNorm(node: NodeView): Operand {
  const [x, scale, gate] = [0, 1, 2].map((i) => node.input(i)) as [Operand, Operand, Operand];
  const { dtype, shape } = x.type;
  const [width, size] = [lastExtent(node, x), lastExtent(node, scale)];
  if (width % size !== 0) node.refuse(`${width} channels, a scale of ${size}`, "a multiple");
  const groups = [...shape.slice(0, -1), constant(width / size), constant(size)];
  const operands = [node.reshape(node.cast(x, "f32"), groups), node.cast(scale, "f32")];
  const epsilon = node.attributes.float("epsilon") ?? 1e-5;
  const y = node.emit("rmsNorm", operands, { axis: shape.length, epsilon });
  const kind = node.attributes.choice("activation", "silu", "swish", "sigmoid");
  const opened = node.emit(kind === "sigmoid" ? "sigmoid" : "silu", [node.cast(gate, "f32")], {});
  const product = node.emit("mul", [node.reshape(y, shape), opened], {});
  return node.cast(product, dtype);
}

/** x + y * gate, where a gate of several numbers is the sigmoid of their sum by weight. */
function gatedAdd(node: NodeView): Operand {
  const [x, y] = [node.input(0), node.input(1)];
  const weight = node.optional(3);
  const gate = weight
    ? node.emit("sigmoid", [matMul(node, node.input(2), weight)], {})
    : node.input(2);
  return node.emit("add", [x, node.emit("mul", [y, gate], {})], {});
}

/** [..., c, h] of an operand that may have both in one axis. */
function inBranches(node: NodeView, x: Operand): Operand {
  const count = node.attributes.int("num_branches") ?? 0;
  const { shape } = x.type;
  if (shape.length < (count === 0 ? 2 : 1))
    node.refuse(`rank ${shape.length}`, "branches on an axis of their own, or num_branches");
  if (count === 0) return x;
  const width = lastExtent(node, x);
  if (width % count !== 0) node.refuse(`${width} channels in ${count} branches`, "a multiple");
  return node.reshape(x, [...shape.slice(0, -1), constant(count), constant(width / count)]);
}

function branchwiseRmsNorm(node: NodeView): Operand {
  const given = node.input(0);
  const x = node.cast(inBranches(node, given), "f32");
  const { shape } = x.type;
  const epsilon = node.attributes.float("epsilon") ?? 1e-5;
  const ones = node.splat("f32", 1, [lastExtent(node, x)]);
  const y = node.emit("rmsNorm", [x, ones], { axis: shape.length - 1, epsilon });
  const scale = node.optional(1);
  const isWhole = scale?.type.shape.length === 1 && lastExtent(node, scale) !== lastExtent(node, x);
  const wide = scale && isWhole ? node.reshape(scale, shape.slice(-2)) : scale;
  const scaled = wide ? node.emit("mul", [y, node.cast(wide, "f32")], {}) : y;
  return node.cast(node.reshape(scaled, given.type.shape), given.type.dtype);
}

/** silu(scale * x) */
function scaledSilu(node: NodeView): Operand {
  const x = node.input(0);
  const { dtype } = x.type;
  const given = node.optional(1);
  const alpha = node.attributes.float("alpha") ?? 1;
  const scale = given ? node.reshape(node.cast(given, "f32"), []) : node.splat("f32", alpha);
  const wide = node.emit("mul", [node.cast(x, "f32"), scale], {});
  return node.emit("silu", [node.cast(wide, dtype)], {});
}

/** g sigmoid(alpha g) (l + beta) of two halves that are limited first. */
function swiGlu(node: NodeView): Operand {
  const { attributes } = node;
  attributes.ignore("round_activation");
  const both = node.input(0);
  const { dtype } = both.type;
  const half = lastExtent(node, both) / 2;
  const up = node.optional(1) ?? lastPart(node, both, Math.floor(half), Math.floor(half));
  if (!node.inputs[1] && !Number.isInteger(half)) node.refuse(`${2 * half} channels`, "two halves");
  const gate = node.inputs[1] ? both : lastPart(node, both, 0, half);
  const limit = attributes.float("limit") ?? 0;
  const number = (value: number) => node.splat("f32", value);
  const most = (x: Operand) => (limit > 0 ? node.emit("min", [x, number(limit)], {}) : x);
  const least = (x: Operand) => (limit > 0 ? node.emit("max", [x, number(-limit)], {}) : x);
  const g = most(node.cast(gate, "f32"));
  const l = least(most(node.cast(up, "f32")));
  const alpha = number(attributes.float("activation_alpha") ?? 1);
  const open = node.emit("sigmoid", [node.emit("mul", [g, alpha], {})], {});
  const raised = node.emit("add", [l, number(attributes.float("activation_beta") ?? 0)], {});
  const product = node.emit("mul", [node.emit("mul", [g, open], {}), raised], {});
  return node.cast(product, dtype);
}

/** Which of the positions in time, height and width each angle of the table is for. */
function sectionOf(node: NodeView, half: number): readonly number[] {
  const { attributes } = node;
  node.checkTable(half, "a table of angles");
  const sections = attributes.ints("mrope_section") ?? [];
  const sum = sections.reduce((a, b) => a + b, 0);
  if (sections.length !== 3 || sections.some((n) => n < 0) || sum !== half)
    attributes.refuse("mrope_section", `[${sections}]`, `three numbers that sum to ${half}`);
  const layout = attributes.int("mrope_layout") ?? 0;
  if (layout !== 0 && layout !== 1) attributes.refuse("mrope_layout", layout, "0, 1");
  const [time, height, width] = sections as [number, number, number];
  return Array.from({ length: half }, (_, i) => {
    if (layout === 0) return i < time ? 0 : i < time + height ? 1 : 2;
    const kind = i % 3;
    return kind > 0 && i < 3 * (kind === 1 ? height : width) ? kind : 0;
  });
}

/** A rotation whose angles follow one of three positions of a token. */
function threePositionRotation(node: NodeView): Operand {
  const { attributes } = node;
  if ((attributes.float("scale") ?? 1) !== 1) attributes.refuse("scale", "not 1", "1");
  if (attributes.flag("is_packed_batching", false)) attributes.refuse("is_packed_batching", 1, "0");
  const [input, ids] = [node.input(0), node.input(1)];
  node.checkRank(ids, 3, "positions");
  const rank = input.type.shape.length;
  if (rank !== 3 && rank !== 4) node.refuse(`an operand of rank ${rank}`, "rank 3 or 4");
  for (const i of [2, 3]) node.checkRank(node.input(i), 2, "a table of angles");
  const half = lastExtent(node, node.input(2));
  const rotary = attributes.int("rotary_embedding_dim") ?? 0;
  const heads =
    rotary > 0 ? (attributes.int("num_heads") ?? 0) : lastExtent(node, input) / (2 * half);
  if (rotary === 0) attributes.ignore("num_heads");
  const section = sectionOf(node, half);
  const at = [0, 1, 2].map((i) =>
    node.reshape(
      sliceAxis(node, ids, { axis: 0, start: constant(i), step: 1, size: one }),
      ids.type.shape.slice(1),
    ),
  );
  const tables = [2, 3].map((i) => {
    const rows = at.map((place) => rotaryTable(node, node.input(i), place));
    return rows.reduce((table, row, kind) => {
      const own = node.cast(node.indices(section.map((s) => Number(s === kind))), "bool");
      return node.emit("select", [own, row, table], {});
    });
  });
  const interleaved = attributes.flag("interleaved", false);
  return rotated(node, input, heads, { tables, interleaved, rotaryDims: 2 * half });
}

/** Queries and keys turned by angles; the turned halves are given. */
function gemmaRotation(node: NodeView): readonly Operand[] {
  const angles = node.input(0);
  node.checkRank(angles, 3, "angles");
  const [b, s, d] = angles.type.shape as [IndexExpr, IndexExpr, IndexExpr];
  const { dtype } = node.input(1).type;
  const [sine, cosine] = (["sin", "cos"] as const).map((op) =>
    node.reshape(node.cast(node.emit(op, [angles], {}), dtype), [b, one, s, d]),
  ) as [Operand, Operand];
  return [1, 3].map((i) => {
    const straight = node.emit("mul", [node.input(i), cosine], {});
    return node.emit("add", [straight, node.emit("mul", [node.input(i + 1), sine], {})], {});
  });
}

/** Gates of branches [..., c], [..., c, 1], [..., c, h] or [..., c h] as f32 beside [..., c, h]. */
function gatesLike(node: NodeView, gates: Operand, streams: Operand): Operand {
  const { shape } = streams.type;
  const own = gates.type.shape;
  const wide = node.cast(gates, "f32");
  if (own.length === shape.length) return wide;
  if (own.length !== shape.length - 1)
    return node.refuse(`gates of rank ${own.length}`, "a branch each");
  const isFlat = lastExtent(node, gates) !== node.fixedExtent(shape.at(-2)!, "the branches");
  return node.reshape(wide, isFlat ? shape : [...own, one]);
}

/** The sum of gated streams. */
function preMix(node: NodeView): Operand {
  const { dtype } = node.input(0).type;
  const streams = node.cast(inBranches(node, node.input(0)), "f32");
  const product = node.emit("mul", [streams, gatesLike(node, node.input(1), streams)], {});
  const axes = [streams.type.shape.length - 2];
  const sum = node.emit("reduce", [product], { kind: "sum", axes, keepDims: false });
  const scale = node.splat("f32", node.attributes.float("reduction_scale") ?? 1);
  return node.cast(node.emit("mul", [sum, scale], {}), dtype);
}

/** Streams mixed with each other, and what a block gave added to each by its gate. */
function postMix(node: NodeView): Operand {
  const given = node.input(0);
  const streams = node.cast(inBranches(node, given), "f32");
  const { shape } = streams.type;
  const block = node.cast(node.input(1), "f32");
  const gates = gatesLike(node, node.input(2), streams);
  const single = node.reshape(block, [...shape.slice(0, -2), one, shape.at(-1)!]);
  const added = node.emit("mul", [gates, single], {});
  const mix = node.optional(3);
  const swap = shape.map((_, i) => i);
  swap.push(...swap.splice(-2).reverse());
  const mixed = mix ? matMul(node, node.transpose(node.cast(mix, "f32"), swap), streams) : streams;
  return node.cast(
    node.reshape(node.emit("add", [mixed, added], {}), given.type.shape),
    given.type.dtype,
  );
}

/** Experts of the best groups: the logarithm of their sigmoid, elsewhere the sentinel. */
function groupRouter(node: NodeView): readonly (Operand | undefined)[] {
  const { attributes } = node;
  const given = node.cast(node.input(0), "f32");
  const logits = node.inputs[2]
    ? matMul(node, given, node.transpose(node.cast(node.input(2), "f32"), [1, 0]))
    : given;
  const experts = lastExtent(node, logits);
  const rows = logits.type.shape.slice(0, -1);
  const flat = node.reshape(logits, [mul(...rows), constant(experts)]);
  const weights = node.emit("sigmoid", [flat], {});
  const scores = node.emit("add", [weights, node.input(1)], {});
  if (!node.wants(0)) return [undefined, scores, weights];
  const groups = attributes.int("n_group") ?? 1;
  if (experts % groups !== 0) node.refuse(`${experts} experts in ${groups} groups`, "a multiple");
  const eligible = bestGroups(node, scores, { groups, size: experts / groups });
  const chosen = largest(node, eligible, attributes.int("top_k") ?? 0);
  const least = node.emit("max", [weights, node.splat("f32", 1e-20)], {});
  const sentinel = node.splat("f32", attributes.float("router_sentinel") ?? -10000);
  const routed = node.emit("select", [chosen, node.emit("log", [least], {}), sentinel], {});
  return [node.cast(routed, node.input(0).type.dtype), scores, weights];
}

/** Scores [t, e] with those outside of the groups with the largest sums at -Infinity. */
function bestGroups(
  node: NodeView,
  scores: Operand,
  { groups, size }: { readonly groups: number; readonly size: number },
): Operand {
  const { attributes } = node;
  const kept = attributes.int("topk_group") ?? 1;
  const summed = Math.min(attributes.int("group_topk") ?? 2, size);
  if (groups === 1) return scores;
  const shape = [scores.type.shape[0]!, constant(groups), constant(size)];
  const apart = node.reshape(scores, shape);
  const [best] = node.emitAll("topK", [apart], {
    k: constant(summed),
    axis: 2,
    largest: true,
    sorted: true,
  });
  const sums = node.emit("reduce", [best!], { kind: "sum", axes: [2], keepDims: false });
  const within = node.reshape(largest(node, sums, kept), [shape[0]!, shape[1]!, one]);
  const masked = node.emit("select", [within, apart, node.splat("f32", -Infinity)], {});
  return node.reshape(masked, scores.type.shape);
}

/** Which elements of rows [t, n] are among the k largest; the first of equal ones. */
function largest(node: NodeView, x: Operand, k: number): Operand {
  const { shape } = x.type;
  const [, places] = node.emitAll("topK", [x], {
    k: constant(k),
    axis: 1,
    largest: true,
    sorted: true,
  });
  const none = node.emit("broadcast", [node.splat("i64", 0)], { shape });
  const ones = node.emit("broadcast", [node.splat("i64", 1)], { shape: [shape[0]!, constant(k)] });
  const marked = node.emit("scatterElements", [none, places!, ones], {
    axis: 1,
    reduction: "none",
  });
  return node.cast(marked, "bool");
}

/** Tokens are behind each other [t, …], equally many of each row of a batch, or apart [b, s, …]. */
interface TokenRows {
  readonly batch: IndexExpr;
  readonly apart: boolean;
}

/** As f32 [s, b, …]. */
function overTime(node: NodeView, x: Operand, { batch, apart }: TokenRows): Operand {
  const { shape } = x.type;
  const rows = [batch, floorDiv(shape[0]!, batch), ...shape.slice(1)];
  const split = apart ? x : node.reshape(x, rows);
  const order = split.type.shape.map((_, i) => i);
  return node.cast(node.transpose(split, [1, 0, ...order.slice(2)]), "f32");
}

function unit(node: NodeView, x: Operand): Operand {
  const squares = node.emit("mul", [x, x], {});
  const axes = [x.type.shape.length - 1];
  const sum = node.emit("reduce", [squares], { kind: "sum", axes, keepDims: true });
  const raised = node.emit("add", [sum, node.splat("f32", 1e-6)], {});
  return node.emit("div", [x, node.emit("sqrt", [raised], {})], {});
}

/** Decay per step as a logarithm, and the rate at which states are corrected. */
function deltaGates(node: NodeView, heads: number, rows: TokenRows) {
  const { attributes } = node;
  const columns = (x: Operand): Operand => {
    const y = overTime(node, x, rows);
    const { shape } = y.type;
    return shape.length === 3 ? node.reshape(y, [...shape, one]) : y;
  };
  const rule = attributes.choice("update_rule", "gated_delta", "linear", "gated", "delta");
  const gated = rule.startsWith("gated") ? columns(node.input(4)) : undefined;
  const beta = rule.endsWith("delta") ? columns(node.input(5)) : undefined;
  const kind = attributes.choice("gate_activation", "none", "softplus", "qwen", "sigmoid", "kda");
  const rate = attributes.choice("beta_activation", "none", "sigmoid");
  const bound = attributes.float("gate_lower_bound") ?? -5;
  const corrected = beta && rate === "sigmoid" ? node.emit("sigmoid", [beta], {}) : beta;
  if (!gated || kind === "none") return { decay: gated, beta: corrected };
  const perHead = (x: Operand) => {
    const each = x.type.shape.length === 1 && lastExtent(node, x) === heads;
    const width = each ? one : gated.type.shape[3]!;
    return node.reshape(x, [constant(heads), width]);
  };
  const bias = node.optional(8);
  const raised = bias ? node.emit("add", [gated, perHead(bias)], {}) : gated;
  const factor = node.emit("exp", [perHead(node.input(7))], {});
  if (kind === "sigmoid" || kind === "kda") {
    const open = node.emit("sigmoid", [node.emit("mul", [factor, raised], {})], {});
    return { decay: node.emit("mul", [open, node.splat("f32", bound)], {}), beta: corrected };
  }
  const soft = node.emit("softplus", [raised], {});
  const decay = node.emit("neg", [node.emit("mul", [factor, soft], {})], {});
  return { decay, beta: corrected };
}

/** Queries, keys and values apart; packed ones are told apart by the state [b, heads, m, d]. */
function deltaOperands(node: NodeView, state: Operand | undefined): readonly Operand[] {
  if (node.inputs[1]) return [0, 1, 2].map((i) => node.input(i));
  if (!state) return node.refuse("packed operands without a state", "an initial state");
  node.checkRank(state, 4, "a state");
  const [heads, width, depth] = state.type.shape
    .slice(1)
    .map((d) => node.fixedExtent(d, "a state"));
  const packed = node.input(0);
  const rows = packed.type.shape.slice(0, -1);
  const keys = (lastExtent(node, packed) - heads! * width!) / 2;
  const take = (start: number, count: number, size: number) =>
    node.reshape(lastPart(node, packed, start, count * size), [
      ...rows,
      constant(count),
      constant(size),
    ]);
  const count = keys / depth!;
  if (!Number.isInteger(count) || count < 1)
    node.refuse(`${keys} channels of keys`, `${depth} a head`);
  return [take(0, count, depth!), take(keys, count, depth!), take(2 * keys, heads!, width!)];
}

function gatedDeltaNet(node: NodeView): readonly Operand[] {
  const { attributes } = node;
  attributes.ignore("chunk_size", "state_update_capacity");
  if (node.inputs[3]) node.refuse("rows of several lengths (cu_seqlens)", "rows of one length");
  if (node.wants(2)) node.refuse("state updates of several steps", "the last state alone");
  const past = node.optional(6);
  const [query, key, value] = deltaOperands(node, past) as [Operand, Operand, Operand];
  const rank = query.type.shape.length;
  if (rank !== 3 && rank !== 4) node.refuse(`queries of rank ${rank}`, "rank 3 or 4");
  for (const x of [key, value]) node.checkRank(x, rank, "an operand");
  if (past) node.checkRank(past, 4, "a state");
  const batch = past?.type.shape[0] ?? (rank === 4 ? query.type.shape[0]! : undefined);
  if (!batch) return node.refuse("tokens of unknown rows", "an initial state, or a batch axis");
  const heads = node.fixedExtent(value.type.shape.at(-2)!, "the heads of values");
  const rows = { batch, apart: rank === 4 };
  const over = [query, key, value].map((x) => overTime(node, x, rows));
  const normal = attributes.flag("qk_l2_norm", false);
  const [q, k] = over.slice(0, 2).map((x) => repeated(node, normal ? unit(node, x) : x, heads));
  const gates = deltaGates(node, heads, rows);
  const turn = (x: Operand) => node.transpose(x, [0, 1, 3, 2]);
  const scale = attributes.float("scale") ?? 0;
  const [state, outputs] = recurrence(
    node,
    { query: q!, key: k!, value: over[2]!, ...gates },
    { heads, states: heads, scale, past: past && turn(past) },
  );
  const y = node.cast(outputs, query.type.dtype);
  return [node.reshape(y, value.type.shape), turn(state)];
}

export const microsoftDecoderRows = {
  GatedRMSNorm: { since: [1], convert: gatedRmsNorm },
  GatedAdd: { since: [1], convert: gatedAdd },
  BranchwiseRMSNorm: { since: [1], convert: branchwiseRmsNorm },
  ScaledSiLU: { since: [1], convert: scaledSilu },
  SwiGLU: { since: [1], convert: swiGlu },
  MRotaryEmbedding: { since: [1], convert: threePositionRotation },
  GemmaRotaryEmbedding: { since: [1], convert: gemmaRotation },
  HyperConnectionPreMix: { since: [1], convert: preMix },
  HyperConnectionPostMix: { since: [1], convert: postMix },
  MoEGroupRouter: { since: [1], convert: groupRouter },
  GatedDeltaNet: { since: [1], convert: gatedDeltaNet },
} satisfies OperatorTable;
