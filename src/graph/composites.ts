/**
 * Composite ops: operators that a model names as one and that a pass may treat as one (online softmax,
 * fused attention, a norm), each defined by core ops. Here are their attributes, which is what a
 * frontend needs; the definitions stand in composites/, joined by composite-table.ts. Operands that
 * may be absent in the middle of the list have a flag each; the operands present follow in the order
 * given here.
 */
import type { GroupedWindowAttrs, NoAttrs } from "../semantics/core-ops.ts";
import type { IndexExpr } from "../semantics/index-expr.ts";

export interface AxisAttrs {
  readonly axis: number;
}

export interface AlphaAttrs {
  readonly alpha: number;
}

export interface EpsilonAttrs {
  readonly epsilon: number;
}

/** Normalises over `axis` and all axes after it. */
export interface NormAttrs extends EpsilonAttrs {
  readonly axis: number;
}

export interface ReduceFormAttrs {
  /** Sorted, distinct. */
  readonly axes: readonly number[];
  readonly keepDims: boolean;
}

/**
 * inputs: query [b, h, s, d], key [b, g, t, d], value [b, g, t, e] (g divides h), mask? that broadcasts
 * to [b, h, s, t] and is bool (true: attend) or added to the scores. output: [b, h, s, e].
 */
export interface AttentionAttrs {
  readonly scale: number;
  /** Position i attends to j <= i (start) or to j <= i + t - s (end, as with a cache of past keys). */
  readonly causal: "none" | "start" | "end";
  /** Of these to the last one and so many before it; absent: to all. */
  readonly behind?: number;
  readonly mask: boolean;
  /** Scores become softcap * tanh(score / softcap); 0: off. */
  readonly softcap: number;
}

/** inputs: x […, s, d], cos and sin that broadcast to […, s, rotaryDims / 2]. */
export interface RotaryEmbeddingAttrs {
  /** Pairs are (0, 1), (2, 3), …; else the first half with the second. */
  readonly interleaved: boolean;
  /** The leading part of the last axis that is rotated. */
  readonly rotaryDims: number;
}

/**
 * Recurrent layers with the weight layout of ONNX (gate order i o f c for lstm, z r h for gru).
 * inputs: x [s, b, i], w [d, gates·h, i], r [d, gates·h, h], bias? [d, 2·gates·h], lengths? i32 [b],
 * initialHidden? [d, b, h]; d is 2 for bidirectional. Lengths are from 0 to s.
 * outputs: all hidden states [s, d, b, h], zero from a sequence's length on; the last [d, b, h], zero where the
 * length is 0.
 */
export interface RecurrentAttrs {
  readonly hiddenSize: number;
  readonly direction: "forward" | "reverse" | "bidirectional";
  /** Per direction, in ONNX order. */
  readonly activations: readonly RecurrentActivation[];
  /** One number for each activation, whatever stands for those that take none; absent where none takes one. */
  readonly alpha?: readonly number[];
  readonly beta?: readonly number[];
  readonly bias: boolean;
  readonly lengths: boolean;
  readonly initialHidden: boolean;
  /**
   * Inputs of the gates' activations (all but the one that the cell of an LSTM goes through on its way out) are
   * clamped to [-clip, clip]; absent: not.
   */
  readonly clip?: number;
}

export type RecurrentActivation =
  | "sigmoid"
  | "tanh"
  | "relu"
  | "softsign"
  | "softplus"
  /** max(0, min(1, alpha x + beta)) */
  | "hardSigmoid"
  /** alpha x + beta */
  | "affine"
  | "leakyRelu"
  | "thresholdedRelu"
  /** alpha tanh(beta x) */
  | "scaledTanh"
  | "elu";

/** Further inputs at the end: initialCell? [d, b, h], peepholes? [d, 3·h]; a third output: last cell. */
export interface LstmAttrs extends RecurrentAttrs {
  readonly initialCell: boolean;
  readonly peepholes: boolean;
  /** Couples the forget gate: f = 1 - i. */
  readonly inputForget: boolean;
}

export interface GruAttrs extends RecurrentAttrs {
  /** The reset gate applies after the recurrent product (cuDNN's form). */
  readonly linearBeforeReset: boolean;
}

export interface CompositeAttrs {
  // Activations.
  /** x * sigmoid(x) */
  silu: NoAttrs;
  gelu: { readonly approximate: "none" | "tanh" };
  /** max(0, min(1, alpha * x + beta)) */
  hardSigmoid: { readonly alpha: number; readonly beta: number };
  /** x * hardSigmoid(x) with alpha 1/6 and beta 1/2 */
  hardSwish: NoAttrs;
  leakyRelu: AlphaAttrs;
  /** inputs: x, slope (broadcasts to x). */
  prelu: NoAttrs;
  elu: AlphaAttrs;
  selu: { readonly alpha: number; readonly gamma: number };
  celu: AlphaAttrs;
  softplus: NoAttrs;
  softsign: NoAttrs;
  mish: NoAttrs;
  thresholdedRelu: AlphaAttrs;
  /** inputs: x, low?, high? (scalars). */
  clip: { readonly low: boolean; readonly high: boolean };
  // Softmax and norms. Norms compute in f32 when the operand is narrower.
  softmax: AxisAttrs;
  logSoftmax: AxisAttrs;
  /** inputs: x, scale, bias?; scale and bias broadcast to the normalised axes. */
  layerNorm: NormAttrs;
  /** inputs: x, scale. */
  rmsNorm: NormAttrs;
  /** inputs: x [n, c, …], scale [c], bias [c], mean [c], variance [c]. */
  batchNorm: EpsilonAttrs;
  /** inputs: x [n, c, …], scale [c], bias [c]. */
  instanceNorm: EpsilonAttrs;
  /** inputs: x [n, c, …], scale [c], bias [c]. */
  groupNorm: EpsilonAttrs & { readonly groups: number };
  lrn: {
    readonly size: number;
    readonly alpha: number;
    readonly beta: number;
    readonly bias: number;
  };
  /** x / ‖x‖ₚ along the axis, 0 where the norm is 0. */
  lpNormalization: AxisAttrs & { readonly p: number };
  meanVarianceNormalization: { readonly axes: readonly number[] };
  // Reductions.
  logSumExp: ReduceFormAttrs;
  reduceMean: ReduceFormAttrs;
  reduceL1: ReduceFormAttrs;
  reduceL2: ReduceFormAttrs;
  reduceSumSquare: ReduceFormAttrs;
  reduceLogSum: ReduceFormAttrs;
  /** [n, c, …] -> [n, c, 1, …] */
  globalAveragePool: NoAttrs;
  // Data movement.
  /** inputs: indices (negative: from the end), values [2] = (off, on); a new axis of extent `depth`. */
  oneHot: AxisAttrs & { readonly depth: IndexExpr };
  depthToSpace: { readonly blockSize: number; readonly mode: "dcr" | "crd" };
  spaceToDepth: { readonly blockSize: number };
  /** Keeps the triangle of the last two axes at and above (upper) or below `diagonal`; zero elsewhere. */
  trilu: { readonly upper: boolean; readonly diagonal: number };
  // Layers.
  attention: AttentionAttrs;
  /**
   * Attention of tokens of b sequences behind each other, each within its own. inputs: query [t, h, d],
   * key [t, h, d], value [t, h, e], the places of tokens in a batch that is padded [b, s] (those of tokens
   * first), sums of their counts from 0 on [b + 1], integers; the last two say the same. output: [t, h, e].
   */
  packedAttention: { readonly scale: number };
  rotaryEmbedding: RotaryEmbeddingAttrs;
  lstm: LstmAttrs;
  /**
   * An LSTM by bytes: weights and recurrence are whole numbers, and at the end stand the scales of both, [d] or
   * [d, 4·h]. All steps of x together, and in each step the hidden states of all rows together, are quantised as
   * dynamicQuantizeLinear does.
   */
  quantizedLstm: LstmAttrs;
  gru: GruAttrs;
  rnn: RecurrentAttrs;
  /** Any number of operands; labels as in contract, repeated within an operand: its diagonal. */
  einsum: {
    readonly operands: readonly (readonly string[])[];
    readonly output: readonly string[];
  };
  // Quantised layers; zero points are scalars or, for weights, one per output channel.
  /** outputs: u8 values, f32 scale, u8 zero point. */
  dynamicQuantizeLinear: NoAttrs;
  /** inputs: a, b, aZero?, bZero?; numpy matrix product in i32. */
  matMulInteger: { readonly aZero: boolean; readonly bZero: boolean };
  /** inputs: x, w, xZero?, wZero?; output in i32. */
  convInteger: GroupedWindowAttrs & { readonly xZero: boolean; readonly wZero: boolean };
}
