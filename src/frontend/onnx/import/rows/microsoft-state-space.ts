/**
 * Layers of com.microsoft that carry a state of fixed size from step to step, as hybrid decoders (Mamba,
 * Gated DeltaNet) use them beside attention. Definitions: ONNX Runtime's ContribOperators page.
 */
import { type IndexExpr, mul } from "../../../../semantics/index-expr.ts";
import type { NodeView } from "../node-view.ts";
import type { Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";
import { causalConvolution } from "./attention.ts";
import { linearAttention } from "./linear-attention.ts";

/** States of several steps, for those who take steps back, are not kept. */
function refuseWindow(node: NodeView): void {
  const window = node.attributes.int("state_window") ?? 0;
  if (window !== 0) node.attributes.refuse("state_window", window, "0: the last state alone");
}

function gatedState(node: NodeView): readonly Operand[] {
  refuseWindow(node);
  return linearAttention(node);
}

/** [b, t, d1, …, dn] to [b, d1 · … · dn, t]. */
function channelsFirst(node: NodeView, x: Operand): Operand {
  const [b, t, ...channels] = x.type.shape as [IndexExpr, IndexExpr, ...IndexExpr[]];
  return node.transpose(node.reshape(x, [b, t, mul(...channels)]), [0, 2, 1]);
}

/** Back again. */
function channelsLast(node: NodeView, y: Operand, channels: readonly IndexExpr[]): Operand {
  const [b, , t] = y.type.shape as [IndexExpr, IndexExpr, IndexExpr];
  return node.reshape(node.transpose(y, [0, 2, 1]), [b, t, ...channels]);
}

function causalConvWithState(node: NodeView): readonly Operand[] {
  const { attributes } = node;
  refuseWindow(node);
  const ndim = attributes.int("ndim") ?? 1;
  if (ndim !== 1) attributes.refuse("ndim", ndim, "1");
  const dilation = attributes.int("dilation") ?? 1;
  if (dilation < 1) attributes.refuse("dilation", dilation, "1 or more");
  if (!attributes.flag("channels_last", false)) return causalConvolution(node, dilation);
  const x = node.input(0);
  if (x.type.shape.length < 3) node.refuse(`rank ${x.type.shape.length}`, "rank 3 or more");
  const past = node.optional(3);
  const turned = node.withInputs([
    channelsFirst(node, x),
    node.input(1),
    node.inputs[2],
    past && channelsFirst(node, past),
  ]);
  const channels = x.type.shape.slice(2);
  return causalConvolution(turned, dilation).map((y) => channelsLast(node, y, channels));
}

/** scale * softplus(a + bias) in f32, and sigmoid(b). */
function linearAttentionGate(node: NodeView): readonly (Operand | undefined)[] {
  const a = node.input(0);
  const raised = node.emit("add", [node.cast(a, "f32"), node.input(1)], {});
  const soft = node.emit("softplus", [raised], {});
  const decay = node.cast(node.emit("mul", [soft, node.input(2)], {}), a.type.dtype);
  const b = node.optional(3);
  return [decay, b && node.emit("sigmoid", [b], {})];
}

export const microsoftStateSpaceRows = {
  LinearAttention: { since: [1], convert: gatedState },
  LinearAttentionGate: { since: [1], convert: linearAttentionGate },
  CausalConvWithState: { since: [1], convert: causalConvWithState },
} satisfies OperatorTable;
