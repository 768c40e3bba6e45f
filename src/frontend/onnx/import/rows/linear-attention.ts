/**
 * LinearAttention: a state matrix per head, decayed, corrected and written at each step, read by the
 * query (ONNX, "LinearAttention"). It becomes a core scan over time in f32. Queries, keys and states may
 * differ in their number of heads: whichever has fewer serves several of the others, in order.
 */
import { GraphBuilder } from "../../../../graph/builder.ts";
import type { Graph, TensorType, ValueId } from "../../../../graph/graph.ts";
import { SymbolScope } from "../../../../graph/symbol-scope.ts";
import { constant, constantValue, type IndexExpr } from "../../../../semantics/index-expr.ts";
import { type NodeView, one } from "../node-view.ts";
import type { Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";

/** [b, t, heads * d] as f32 [t, b, heads, d]. */
function overTime(node: NodeView, x: Operand, heads: number): Operand {
  node.checkRank(x, 3, "a sequence");
  const [b, t, hidden] = x.type.shape;
  const depth = node.fixedExtent(hidden ?? one, "the hidden size") / heads;
  if (!Number.isInteger(depth)) node.refuse(`${heads} heads of ${hidden?.key}`, "a divisor");
  const split = node.reshape(x, [b!, t!, constant(heads), constant(depth)]);
  return node.cast(node.transpose(split, [1, 0, 2, 3]), "f32");
}

/** [t, b, n, d] with each of the n heads repeated until there are `heads`. */
export function repeated(node: NodeView, x: Operand, heads: number): Operand {
  const [t, b, own, depth] = x.type.shape as [IndexExpr, IndexExpr, IndexExpr, IndexExpr];
  const count = node.fixedExtent(own, "the number of heads");
  if (count === heads) return x;
  if (heads % count !== 0) node.refuse(`${count} heads that serve ${heads}`, "a divisor");
  const single = node.reshape(x, [t, b, own, one, depth]);
  const shape = [t, b, own, constant(heads / count), depth];
  const wide = node.emit("broadcast", [single], { shape });
  return node.reshape(wide, [t, b, constant(heads), depth]);
}

/** f32 [t, b, heads, d], of decay and beta also [t, b, heads, 1]. */
export interface Sequences {
  readonly query: Operand;
  readonly key: Operand;
  readonly value: Operand;
  readonly decay: Operand | undefined;
  readonly beta: Operand | undefined;
}

function readSequences(node: NodeView, queryHeads: number, heads: number): Sequences {
  const rule = node.attributes.string("update_rule") ?? "gated_delta";
  const [gated, delta] = [rule.startsWith("gated"), rule.endsWith("delta")];
  if (!["linear", "gated", "delta", "gated_delta"].includes(rule)) {
    node.attributes.refuse("update_rule", rule, "linear, gated, delta, gated_delta");
  }
  for (const i of [0, 1, 2]) node.checkRank(node.input(i), 3, "a sequence");
  const beta = delta ? node.input(5) : undefined;
  const betaHeads = beta && constantValue(beta.type.shape[2] ?? one) === 1 ? 1 : heads;
  const query = overTime(node, node.input(0), queryHeads);
  const depth = node.fixedExtent(query.type.shape[3]!, "the key size");
  const keyWidth = node.fixedExtent(node.input(1).type.shape[2]!, "the hidden size");
  const key = overTime(node, node.input(1), keyWidth / depth);
  return {
    query: repeated(node, query, Math.max(queryHeads, heads)),
    key: repeated(node, key, heads),
    value: overTime(node, node.input(2), heads),
    decay: gated ? overTime(node, node.input(4), heads) : undefined,
    beta: beta && overTime(node, beta, betaHeads),
  };
}

/** The element type of one step: without the time axis. */
const stepType = (x: Operand): TensorType => ({
  dtype: x.type.dtype,
  shape: x.type.shape.slice(1),
});

/** state, q, k, v, decay?, beta? -> state, output */
function buildStep(
  node: NodeView,
  state: TensorType,
  parts: Sequences,
  { scale, group }: { readonly scale: number; readonly group: number },
): Graph {
  const scope = new SymbolScope(node.emitter.assembly.symbols);
  const b = new GraphBuilder("linear_attention_step", scope);
  const input = (name: string, x: Operand | undefined) => x && b.input(name, stepType(x));
  const before = b.input("state", state);
  const [q, k, v] = [input("q", parts.query)!, input("k", parts.key)!, input("v", parts.value)!];
  const [decay, beta] = [input("decay", parts.decay), input("beta", parts.beta)];
  const wide = (x: ValueId) => b.reshape(x, [...b.shapeOf(x), 1]);
  const kept = decay === undefined ? before : b.mul(before, wide(b.apply("exp", decay)));
  const written =
    beta === undefined ? v : b.mul(beta, b.sub(v, b.einsum("b h d m, b h d -> b h m", kept, k)));
  const next = b.add(kept, b.einsum("b h d, b h m -> b h d m", k, written));
  const [batch, heads, depth] = b.shapeOf(q) as [IndexExpr, IndexExpr, IndexExpr];
  const groups = b.shapeOf(next)[1]!;
  const grouped = b.reshape(q, [batch, groups, group, depth]);
  const read = b.einsum("b h r d, b h d m -> b h r m", grouped, next);
  const output = b.reshape(b.applyNumber("mul", read, scale), [batch, heads, b.shapeOf(read)[3]!]);
  return b.finish([next, output]);
}

export function linearAttention(node: NodeView): readonly Operand[] {
  const { attributes } = node;
  attributes.ignore("chunk_size");
  const [queryHeads, heads] = [
    attributes.int("q_num_heads") ?? 0,
    attributes.int("kv_num_heads") ?? 0,
  ];
  const most = Math.max(queryHeads, heads);
  if (heads < 1 || queryHeads < 1 || most % heads !== 0 || most % queryHeads !== 0) {
    attributes.refuse("q_num_heads", queryHeads, `a multiple or a divisor of ${heads}`);
  }
  const parts = readSequences(node, queryHeads, heads);
  const [state, outputs] = recurrence(node, parts, {
    heads: most,
    states: heads,
    scale: attributes.float("scale") ?? 0,
    past: node.optional(3),
  });
  const { dtype } = node.input(0).type;
  const [b, t, , width] = outputs.type.shape;
  const channels = most * node.fixedExtent(width!, "the value size");
  const flat = node.reshape(outputs, [b!, t!, constant(channels)]);
  return [node.cast(flat, dtype), node.cast(state, node.optional(3)?.type.dtype ?? dtype)];
}

interface Recurrence {
  /** Of results, and of states: one of them may serve several results. */
  readonly heads: number;
  readonly states: number;
  /** 0: one over the root of the key size. */
  readonly scale: number;
  /** [b, states, d, m]; absent: zeros. */
  readonly past: Operand | undefined;
}

/** The last state [b, states, d, m] and what queries read of it at each step [b, t, heads, m], in f32. */
export function recurrence(
  node: NodeView,
  parts: Sequences,
  { heads, states, scale: given, past }: Recurrence,
): readonly [state: Operand, outputs: Operand] {
  const [depth, width] = [parts.key, parts.value].map((x) => x.type.shape[3]!);
  const scale = given === 0 ? 1 / Math.sqrt(node.fixedExtent(depth!, "the key size")) : given;
  const shape = [parts.value.type.shape[1]!, constant(states), depth!, width!];
  const start = past
    ? node.cast(past, "f32")
    : node.emit("broadcast", [node.splat("f32", 0)], { shape });
  const sequences = [parts.query, parts.key, parts.value, parts.decay, parts.beta].filter(
    (x) => x !== undefined,
  );
  const body = buildStep(node, { dtype: "f32", shape }, parts, {
    scale,
    group: heads / states,
  });
  const zeros = sequences.map(() => 0);
  const [state, outputs] = node.emitAll("scan", [start, ...sequences], {
    body,
    carried: 1,
    sequences: sequences.length,
    inputAxes: zeros,
    inputReversed: zeros.map(() => false),
    outputAxes: [0],
    outputReversed: [false],
  });
  return [state!, node.transpose(outputs!, [1, 0, 2, 3])];
}

export const linearAttentionRows = {
  LinearAttention: { since: [27], convert: linearAttention },
} satisfies OperatorTable;
