/** LSTM, GRU and RNN. */

import { takesParameter } from "../../../../graph/composites/recurrent-activations.ts";
import type { RecurrentActivation, RecurrentAttrs } from "../../../../graph/composites.ts";
import { constantValue, type IndexExpr } from "../../../../semantics/index-expr.ts";
import { type NodeView, one } from "../node-view.ts";
import type { Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";

/** An activation of the specification and the defaults of its parameters, where one is agreed on. */
interface Activation {
  readonly kind: RecurrentActivation;
  readonly alpha?: number;
  readonly beta?: number;
}

/**
 * Affine and ScaledTanh are no operators of the specification, and onnxruntime's default for ThresholdedRelu (0)
 * is not that of the operator (1): these have no default here.
 */
const activations: ReadonlyMap<string, Activation> = new Map(
  Object.entries({
    Sigmoid: { kind: "sigmoid" },
    Tanh: { kind: "tanh" },
    Relu: { kind: "relu" },
    Softsign: { kind: "softsign" },
    Softplus: { kind: "softplus" },
    HardSigmoid: { kind: "hardSigmoid", alpha: 0.2, beta: 0.5 },
    Affine: { kind: "affine" },
    LeakyRelu: { kind: "leakyRelu", alpha: 0.01 },
    ThresholdedRelu: { kind: "thresholdedRelu" },
    ScaledTanh: { kind: "scaledTanh" },
    Elu: { kind: "elu", alpha: 1 },
  } satisfies Readonly<Record<string, Activation>>),
);

const activationsByName = new Map([...activations].map(([name, a]) => [name.toLowerCase(), a]));

const directions = ["forward", "reverse", "bidirectional"] as const;

interface Cell {
  readonly activations: readonly RecurrentActivation[];
}

const lstmCell: Cell = { activations: ["sigmoid", "tanh", "tanh"] };
const gruCell: Cell = { activations: ["sigmoid", "tanh"] };
const rnnCell: Cell = { activations: ["tanh"] };

/** Batch-major layout (layout = 1) is brought to the sequence-major one of the composites. */
function isBatchMajor(node: NodeView): boolean {
  return node.version >= 14 && node.attributes.flag("layout", false);
}

function readActivations(node: NodeView, cell: Cell, count: number): readonly Activation[] {
  const { attributes } = node;
  const given = attributes.strings("activations");
  if (!given) {
    const kinds = Array.from({ length: count }, () => cell.activations).flat();
    return kinds.map((kind) => ({ kind }));
  }
  const known = given.flatMap((name) => activationsByName.get(name.toLowerCase()) ?? []);
  const wanted = count * cell.activations.length;
  if (known.length !== given.length || known.length !== wanted) {
    attributes.refuse(
      "activations",
      given.join(", ") || "empty",
      `${wanted} of ${[...activations.keys()].join(", ")}`,
    );
  }
  return known;
}

/**
 * One number for each activation. Those that take the parameter take the next of the list, in order, and, where
 * that has ended, their default; numbers that none takes are left over, as in onnxruntime.
 */
function readParameter(
  node: NodeView,
  among: readonly Activation[],
  parameter: "alpha" | "beta",
): readonly number[] | undefined {
  const name = `activation_${parameter}`;
  const given = node.attributes.floats(name) ?? [];
  if (!among.some((a) => takesParameter(a.kind, parameter))) return undefined;
  let next = 0;
  return among.map((a) => {
    if (!takesParameter(a.kind, parameter)) return 0;
    return (
      given[next++] ??
      a[parameter] ??
      node.attributes.refuse(name, `[${given}]`, `a number for ${a.kind}, which has no default`)
    );
  });
}

function activationAttrs(node: NodeView, cell: Cell, count: number) {
  const among = readActivations(node, cell, count);
  const [alpha, beta] = [readParameter(node, among, "alpha"), readParameter(node, among, "beta")];
  return {
    activations: among.map((a) => a.kind),
    ...(alpha && { alpha }),
    ...(beta && { beta }),
  };
}

interface Recurrent {
  readonly attrs: RecurrentAttrs;
  readonly inputs: readonly Operand[];
  readonly batchMajor: boolean;
}

function readRecurrent(node: NodeView, cell: Cell): Recurrent {
  const { attributes } = node;
  const direction = attributes.choice("direction", ...directions);
  const count = direction === "bidirectional" ? 2 : 1;
  const batchMajor = isBatchMajor(node);
  const recurrence = node.input(2);
  const hidden = node.fixedExtent(
    recurrence.type.shape[2] ?? node.refuse("R without rank 3", "rank 3"),
    "the hidden size",
  );
  const stated = attributes.int("hidden_size");
  if (stated !== undefined && stated !== hidden)
    attributes.refuse("hidden_size", stated, `R's ${hidden}`);
  const clip = attributes.float("clip");
  const x = node.input(0);
  checkLengths(node, batchMajor ? 1 : 0);
  const [bias, lengths, initial] = [node.optional(3), node.optional(4), node.optional(5)];
  const attrs: RecurrentAttrs = {
    hiddenSize: hidden,
    direction,
    ...activationAttrs(node, cell, count),
    bias: bias !== undefined,
    lengths: lengths !== undefined,
    initialHidden: initial !== undefined,
    ...(clip !== undefined && { clip }),
  };
  const state = initial && stateIn(node, initial, batchMajor);
  const inputs = [
    batchMajor ? node.transpose(x, [1, 0, 2]) : x,
    node.input(1),
    recurrence,
    bias,
    lengths,
    state,
  ];
  return { attrs, inputs: inputs.filter((o) => o !== undefined), batchMajor };
}

/** Constant lengths are refused here, those of a run where they are out of range then. */
function checkLengths(node: NodeView, stepAxis: number): void {
  if (node.optional(4)?.kind !== "constant") return;
  const steps = constantValue(node.input(0).type.shape[stepAxis]!) ?? Number.POSITIVE_INFINITY;
  const wrong = node.numbers(4, "sequence_lens").find((n) => n < 0 || n > steps);
  if (wrong === undefined) return;
  node.refuse(`a sequence length of ${wrong}`, `lengths from 0 to the ${steps} steps of the input`);
}

function stateIn(node: NodeView, state: Operand, batchMajor: boolean): Operand {
  return batchMajor ? node.transpose(state, [1, 0, 2]) : state;
}

/** Y [s, d, b, h] becomes [b, s, d, h], states [d, b, h] become [b, d, h]. */
function results(
  node: NodeView,
  outputs: readonly Operand[],
  batchMajor: boolean,
): readonly Operand[] {
  if (!batchMajor) return outputs;
  return outputs.map((y, i) => node.transpose(y, i === 0 ? [2, 0, 1, 3] : [1, 0, 2]));
}

/** @param scales of the weights, where they are whole numbers */
function lstmWith(node: NodeView, scales: readonly Operand[]): readonly Operand[] {
  const { attrs, inputs, batchMajor } = readRecurrent(node, lstmCell);
  const [cell, peepholes] = [node.optional(6), node.optional(7)];
  const further = [cell && stateIn(node, cell, batchMajor), peepholes].filter(
    (o) => o !== undefined,
  );
  const op = scales.length > 0 ? "quantizedLstm" : "lstm";
  const outputs = node.emitAll(op, [...inputs, ...further, ...scales], {
    ...attrs,
    initialCell: cell !== undefined,
    peepholes: peepholes !== undefined,
    inputForget: node.attributes.flag("input_forget", false),
  });
  return results(node, outputs, batchMajor);
}

const lstm = (node: NodeView): readonly Operand[] => lstmWith(node, []);

/** Of com.microsoft: weights [directions, in, 4 h] are bytes; scales and zero points begin with operand 8. */
export function quantizedLstm(node: NodeView): readonly Operand[] {
  const whole = (values: number, zero: number): Operand => {
    const w = node.input(values);
    node.checkRank(w, 3, "weights");
    const point = node.cast(node.input(zero), "f32");
    const [d, , gates] = w.type.shape as [IndexExpr, IndexExpr, IndexExpr];
    const wide = node.reshape(point, [d, one, point.type.shape.length === 2 ? gates : one]);
    const moved = node.emit("sub", [node.cast(w, "f32"), wide], {});
    return node.transpose(moved, [0, 2, 1]);
  };
  const rest = [3, 4, 5, 6, 7].map((i) => node.inputs[i]);
  const inputs = [node.input(0), whole(1, 9), whole(2, 11), ...rest];
  return lstmWith(node.withInputs(inputs), [node.input(8), node.input(10)]);
}

function gru(node: NodeView): readonly Operand[] {
  const { attrs, inputs, batchMajor } = readRecurrent(node, gruCell);
  const linearBeforeReset = node.attributes.flag("linear_before_reset", false);
  return results(node, node.emitAll("gru", inputs, { ...attrs, linearBeforeReset }), batchMajor);
}

function rnn(node: NodeView): readonly Operand[] {
  const { attrs, inputs, batchMajor } = readRecurrent(node, rnnCell);
  return results(node, node.emitAll("rnn", inputs, attrs), batchMajor);
}

export const recurrentRows = {
  LSTM: { since: [7, 14, 22], convert: lstm },
  GRU: { since: [7, 14, 22], convert: gru },
  RNN: { since: [7, 14, 22], convert: rnn },
} satisfies OperatorTable;
