/** LSTM, GRU and RNN. */
import type { RecurrentActivation, RecurrentAttrs } from "../../../../graph/composites.ts";
import type { IndexExpr } from "../../../../semantics/index-expr.ts";
import { type NodeView, one } from "../node-view.ts";
import type { Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";

const activations: Readonly<Record<string, RecurrentActivation>> = {
  sigmoid: "sigmoid",
  tanh: "tanh",
  relu: "relu",
  softsign: "softsign",
  softplus: "softplus",
  hardsigmoid: "hardSigmoid",
};

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

function readActivations(
  node: NodeView,
  cell: Cell,
  count: number,
): readonly RecurrentActivation[] {
  const { attributes } = node;
  for (const name of ["activation_alpha", "activation_beta"]) {
    const values = attributes.floats(name) ?? [];
    if (values.length > 0)
      attributes.refuse(name, `[${values}]`, "the defaults of the activations");
  }
  const given = attributes.strings("activations");
  if (!given) return Array.from({ length: count }, () => cell.activations).flat();
  const known = given.map((name) => activations[name.toLowerCase()]);
  if (known.includes(undefined) || known.length !== count * cell.activations.length) {
    attributes.refuse("activations", given.join(", "), `${Object.keys(activations).join(", ")}`);
  }
  return known as RecurrentActivation[];
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
  const [bias, lengths, initial] = [node.optional(3), node.optional(4), node.optional(5)];
  const attrs: RecurrentAttrs = {
    hiddenSize: hidden,
    direction,
    activations: readActivations(node, cell, count),
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
