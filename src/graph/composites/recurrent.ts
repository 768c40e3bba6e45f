/**
 * Recurrent layers. The products with the inputs of all steps are one contraction; what remains per
 * step is a cell function from (gate inputs, state) to state, run by a core scan, or unrolled when
 * the sequence is short and of known length. Formulas: the ONNX operator pages of LSTM, GRU and RNN.
 */
import { add as addIndex, constantValue, type IndexExpr } from "../../semantics/index-expr.ts";
import { boolean, choice, choices, integer, number, numbers, optional } from "../attr-schema.ts";
import type { GruAttrs, LstmAttrs, RecurrentAttrs } from "../composites.ts";
import type { ValueId } from "../graph.ts";
import type { OpWriter } from "../op-writer.ts";
import { tensorType } from "../tensor-type.ts";
import type { CompositeRows } from "./composite.ts";
import { activate } from "./recurrent-activations.ts";

/** Sequences up to this length are unrolled. */
const unrolledSteps = 4;

/** One step: gate inputs [b, gates·h] and the state give the next state; state 0 is the output. */
type Cell = (
  b: OpWriter,
  gates: ValueId,
  state: readonly ValueId[],
  captures: readonly ValueId[],
) => readonly ValueId[];

/** One direction, ready to run. */
interface Direction {
  /** Gate inputs of all steps, [s, b, gates·h]. */
  readonly gates: ValueId;
  readonly state: readonly ValueId[];
  readonly captures: readonly ValueId[];
  readonly lengths: ValueId | undefined;
  readonly reversed: boolean;
  readonly cell: Cell;
}

const schema = {
  hiddenSize: integer,
  direction: choice("forward", "reverse", "bidirectional"),
  activations: choices(
    ...(["sigmoid", "tanh", "relu", "softsign", "softplus", "hardSigmoid"] as const),
    ...(["affine", "leakyRelu", "thresholdedRelu", "scaledTanh", "elu"] as const),
  ),
  alpha: optional(numbers),
  beta: optional(numbers),
  bias: boolean,
  lengths: boolean,
  initialHidden: boolean,
  clip: optional(number),
} as const;

const lstmSchema = { ...schema, initialCell: boolean, peepholes: boolean, inputForget: boolean };

/** The k-th activation of a direction. */
type Activations = (b: OpWriter, k: number, x: ValueId) => ValueId;

function activationsOf(attrs: RecurrentAttrs, direction: number, perDirection: number) {
  const plain: Activations = (b, k, x) => activate(b, attrs, direction * perDirection + k, x);
  const { clip } = attrs;
  if (clip === undefined) return { plain, clipped: plain };
  const clipped: Activations = (b, k, x) =>
    plain(b, k, b.applyNumber("min", b.applyNumber("max", x, -clip), clip));
  return { plain, clipped };
}

/** Columns [i h, (i + n) h) of the last axis. */
function gateSlice(b: OpWriter, gates: ValueId, h: number, [i, n]: readonly [number, number]) {
  return b.sliceAxis(gates, b.rankOf(gates) - 1, i * h, n * h);
}

/** One entry of the leading axis, which goes. */
function pick(b: OpWriter, x: ValueId, at: number): ValueId {
  return b.reshape(b.sliceAxis(x, 0, at, 1), b.shapeOf(x).slice(1));
}

/** state · weightsᵀ for weights [n, h]. */
function recur(b: OpWriter, state: ValueId, weights: ValueId): ValueId {
  return b.einsum("b h, n h -> b n", state, weights);
}

/** Weights [n, k], whole numbers, and their scale, [] or [n]. */
type ByteWeights = readonly [values: ValueId, scale: ValueId];

/**
 * x · weights, where all of x is quantised to bytes first. The whole numbers are summed in f32, which is exact
 * below 2^24 and beyond it rounds as the conversion of an integer sum does.
 */
function byteProduct(b: OpWriter, x: ValueId, [values, scale]: ByteWeights): ValueId {
  const [bytes, step, start] = b.nodes("dynamicQuantizeLinear", [x], {});
  const whole = b.sub(b.cast(bytes!, "f32"), b.cast(start!, "f32"));
  const rows = b.rankOf(x) === 3 ? "s b" : "b";
  const sums = b.einsum(`${rows} k, n k -> ${rows} n`, whole, values);
  return b.mul(sums, b.mul(step!, scale));
}

/**
 * Lengths from 0 to `steps`; others are refused as an index out of range is, because they are looked up in a table
 * of themselves: as the unsigned numbers they are, since an index below zero would count from the table's end.
 */
function checkedLengths(b: OpWriter, lengths: ValueId, steps: IndexExpr): ValueId {
  const table = b.iota([addIndex(steps, 1)], 0, "i32");
  const unsigned = b.node("cast", [lengths], { to: "u32", saturate: false });
  return b.node("gather", [table, b.cast(unsigned, "i64")], { axis: 0 });
}

/** Zero for sequences of no elements, which have no last state. */
function zeroWhereEmpty(b: OpWriter, lengths: ValueId, state: ValueId): ValueId {
  const isRead = b.apply("less", b.scalarLike(0, lengths), lengths);
  return b.select(b.reshape(isRead, [-1, 1]), state, b.scalarLike(0, state));
}

/** Keeps the old state of sequences that have ended. */
function holdEnded(
  b: OpWriter,
  step: { readonly position: ValueId; readonly lengths: ValueId },
  before: readonly ValueId[],
  after: readonly ValueId[],
): { readonly state: readonly ValueId[]; readonly output: ValueId } {
  const running = b.reshape(b.apply("less", step.position, step.lengths), [-1, 1]);
  const state = after.map((value, i) => b.select(running, value, before[i]!));
  return { state, output: b.select(running, after[0]!, b.scalarLike(0, after[0]!)) };
}

function runStep(
  b: OpWriter,
  d: Direction,
  state: readonly ValueId[],
  step: {
    readonly gates: ValueId;
    readonly captures: readonly ValueId[];
    readonly ended: { readonly position: ValueId; readonly lengths: ValueId } | undefined;
  },
): { readonly state: readonly ValueId[]; readonly output: ValueId } {
  const next = d.cell(b, step.gates, state, step.captures);
  return step.ended ? holdEnded(b, step.ended, state, next) : { state: next, output: next[0]! };
}

interface DirectionResult {
  /** [s, b, h] */
  readonly outputs: ValueId;
  readonly state: readonly ValueId[];
}

function unroll(b: OpWriter, d: Direction, steps: number): DirectionResult {
  const outputs: ValueId[] = new Array<ValueId>(steps);
  let state = d.state;
  for (let i = 0; i < steps; i++) {
    const t = d.reversed ? steps - 1 - i : i;
    const lengths = d.lengths;
    const ended =
      lengths === undefined ? undefined : { position: b.scalarLike(t, lengths), lengths };
    const step = { gates: pick(b, d.gates, t), captures: d.captures, ended };
    const result = runStep(b, d, state, step);
    state = result.state;
    outputs[t] = b.reshape(result.output, [1, ...b.shapeOf(result.output)]);
  }
  return { outputs: b.concat(outputs, 0), state };
}

function scanSteps(b: OpWriter, d: Direction, steps: IndexExpr): DirectionResult {
  const timed = d.lengths === undefined ? [] : [b.iota([steps], 0, b.dtypeOf(d.lengths))];
  const sequences = [d.gates, ...timed];
  const captures = [...d.captures, ...(d.lengths === undefined ? [] : [d.lengths])];
  const declare = (prefix: string, types: readonly ReturnType<OpWriter["typeOf"]>[]) =>
    types.map((type, i) => ({ name: `${prefix}${i}`, type }));
  const elements = sequences.map((id) => {
    const type = b.typeOf(id);
    return tensorType(type.dtype, ...type.shape.slice(1));
  });
  const inputs = [
    ...declare(
      "state",
      d.state.map((id) => b.typeOf(id)),
    ),
    ...declare("element", elements),
    ...declare(
      "capture",
      captures.map((id) => b.typeOf(id)),
    ),
  ];
  const body = b.subgraph("step", inputs, (w, ids) => {
    const held = ids.slice(d.state.length + sequences.length);
    const ended =
      d.lengths === undefined
        ? undefined
        : { position: ids[d.state.length + 1]!, lengths: held.at(-1)! };
    const gates = ids[d.state.length]!;
    const result = runStep(w, d, ids.slice(0, d.state.length), {
      gates,
      captures: held.slice(0, d.captures.length),
      ended,
    });
    return [...result.state, result.output];
  });
  const results = b.nodes("scan", [...d.state, ...sequences, ...captures], {
    body,
    carried: d.state.length,
    sequences: sequences.length,
    inputAxes: sequences.map(() => 0),
    inputReversed: sequences.map(() => d.reversed),
    outputAxes: [0],
    outputReversed: [d.reversed],
  });
  return { outputs: results.at(-1)!, state: results.slice(0, -1) };
}

/** Runs every direction and stacks the results along the direction axis. */
function runDirections(b: OpWriter, directions: readonly Direction[]): readonly ValueId[] {
  const results = directions.map((d) => {
    const steps = b.shapeOf(d.gates)[0]!;
    const fixed = constantValue(steps);
    const ran =
      fixed !== undefined && fixed > 0 && fixed <= unrolledSteps
        ? unroll(b, d, fixed)
        : scanSteps(b, d, steps);
    const { lengths } = d;
    if (lengths === undefined) return ran;
    return { ...ran, state: ran.state.map((s) => zeroWhereEmpty(b, lengths, s)) };
  });
  const stack = (values: readonly ValueId[], axis: number) =>
    b.concat(
      values.map((v) => {
        const shape = b.shapeOf(v);
        return b.reshape(v, [...shape.slice(0, axis), 1, ...shape.slice(axis)]);
      }),
      axis,
    );
  const outputs = stack(
    results.map((r) => r.outputs),
    1,
  );
  const states = results[0]!.state.map((_, i) =>
    stack(
      results.map((r) => r.state[i]!),
      0,
    ),
  );
  return [outputs, ...states];
}

/** The operands by name; absent ones undefined. */
interface RecurrentInputs {
  readonly x: ValueId;
  readonly weights: ValueId;
  readonly recurrence: ValueId;
  readonly bias: ValueId | undefined;
  readonly lengths: ValueId | undefined;
  readonly initial: readonly (ValueId | undefined)[];
  readonly peepholes: ValueId | undefined;
}

function namedInputs(
  inputs: readonly ValueId[],
  attrs: RecurrentAttrs & Partial<LstmAttrs>,
): RecurrentInputs {
  let at = 3;
  const next = (present: boolean | undefined) => (present ? inputs[at++] : undefined);
  const bias = next(attrs.bias);
  const lengths = next(attrs.lengths);
  const hidden = next(attrs.initialHidden);
  const cell = next(attrs.initialCell);
  return {
    x: inputs[0]!,
    weights: inputs[1]!,
    recurrence: inputs[2]!,
    bias,
    lengths,
    initial: [hidden, cell],
    peepholes: next(attrs.peepholes),
  };
}

function directionCount(attrs: RecurrentAttrs): number {
  return attrs.direction === "bidirectional" ? 2 : 1;
}

/** Product + input bias (+ recurrent bias where the cell does not add it itself). */
function gateInputs(
  b: OpWriter,
  inputs: RecurrentInputs,
  product: ValueId,
  { d, recurrentGates }: { readonly d: number; readonly recurrentGates: number },
): ValueId {
  if (inputs.bias === undefined) return product;
  const bias = pick(b, inputs.bias, d);
  const count = constantValue(b.shapeOf(product)[2]!)!;
  const own = b.sliceAxis(bias, 0, 0, count);
  const recurrent = b.sliceAxis(bias, 0, count, recurrentGates);
  if (recurrentGates === count) return b.add(product, b.add(own, recurrent));
  const rest = b.sliceAxis(own, 0, recurrentGates, count - recurrentGates);
  const joined = b.add(b.sliceAxis(own, 0, 0, recurrentGates), recurrent);
  return b.add(product, b.concat([joined, rest], 0));
}

/** An initial state [d, b, h], or zeros. */
function initialState(
  b: OpWriter,
  given: ValueId | undefined,
  d: number,
  { x, hiddenSize }: { readonly x: ValueId; readonly hiddenSize: number },
): ValueId {
  if (given !== undefined) return pick(b, given, d);
  const shape = tensorType("f32", b.shapeOf(x)[1]!, hiddenSize).shape;
  return b.node("broadcast", [b.scalarLike(0, x)], { shape });
}

/** What the hidden state adds to the gates, and the peepholes, of what a cell captures. */
type LstmProduct = (
  b: OpWriter,
  hidden: ValueId,
  captures: readonly ValueId[],
) => readonly [product: ValueId, peepholes: ValueId | undefined];

const realProduct: LstmProduct = (b, hidden, [recurrence, peepholes]) => [
  recur(b, hidden, recurrence!),
  peepholes,
];

const quantizedProduct: LstmProduct = (b, hidden, [values, scale, peepholes]) => [
  byteProduct(b, hidden, [values!, scale!]),
  peepholes,
];

function lstmCell(attrs: LstmAttrs, direction: number, product: LstmProduct): Cell {
  const { plain, clipped: act } = activationsOf(attrs, direction, 3);
  const h = attrs.hiddenSize;
  return (b, gates, [hidden, cell], captures) => {
    const [recurrent, peepholes] = product(b, hidden!, captures);
    const sums = b.add(gates, recurrent);
    const peep = (x: ValueId, state: ValueId, k: number) =>
      peepholes === undefined ? x : b.add(x, b.mul(b.sliceAxis(peepholes, 0, k * h, h), state));
    const gate = (k: number) => gateSlice(b, sums, h, [k, 1]);
    const input = act(b, 0, peep(gate(0), cell!, 0));
    const forget = attrs.inputForget
      ? b.sub(b.scalarLike(1, input), input)
      : act(b, 0, peep(gate(2), cell!, 2));
    const candidate = act(b, 1, gate(3));
    const next = b.add(b.mul(forget, cell!), b.mul(input, candidate));
    const output = act(b, 0, peep(gate(1), next, 1));
    // The clip bounds gates alone, in onnxruntime: the cell goes out as it is.
    return [b.mul(output, plain(b, 2, next)), next];
  };
}

function gruCell(attrs: GruAttrs, direction: number): Cell {
  const { clipped: act } = activationsOf(attrs, direction, 2);
  const h = attrs.hiddenSize;
  return (b, gates, [hidden], [gateRecurrence, recurrence, bias]) => {
    const both = b.add(gateSlice(b, gates, h, [0, 2]), recur(b, hidden!, gateRecurrence!));
    const update = act(b, 0, gateSlice(b, both, h, [0, 1]));
    const reset = act(b, 0, gateSlice(b, both, h, [1, 1]));
    const product = attrs.linearBeforeReset
      ? recur(b, hidden!, recurrence!)
      : recur(b, b.mul(reset, hidden!), recurrence!);
    const biased = bias === undefined ? product : b.add(product, bias);
    const history = attrs.linearBeforeReset ? b.mul(reset, biased) : biased;
    const candidate = act(b, 1, b.add(gateSlice(b, gates, h, [2, 1]), history));
    const fresh = b.mul(b.sub(b.scalarLike(1, update), update), candidate);
    return [b.add(fresh, b.mul(update, hidden!))];
  };
}

function rnnCell(attrs: RecurrentAttrs, direction: number): Cell {
  const { clipped: act } = activationsOf(attrs, direction, 1);
  return (b, gates, [hidden], [recurrence]) => [
    act(b, 0, b.add(gates, recur(b, hidden!, recurrence!))),
  ];
}

/** Directions of a layer with `states` state tensors; `captures` gives what its cell captures. */
function makeDirections(
  b: OpWriter,
  inputs: RecurrentInputs,
  attrs: RecurrentAttrs,
  layer: {
    readonly states: number;
    /** Bias entries of the recurrence that the gate inputs take over. */
    readonly foldedBias: number;
    readonly cell: (direction: number) => Cell;
    readonly captures: (direction: number) => readonly ValueId[];
    /** x · weights, all steps; default: of real numbers. */
    readonly inputProduct?: (direction: number) => ValueId;
  },
): readonly Direction[] {
  const start = { x: inputs.x, hiddenSize: attrs.hiddenSize };
  const lengths = inputs.lengths && checkedLengths(b, inputs.lengths, b.shapeOf(inputs.x)[0]!);
  const realInputs = (d: number): ValueId =>
    b.einsum("s b i, n i -> s b n", inputs.x, pick(b, inputs.weights, d));
  const { inputProduct = realInputs, foldedBias: recurrentGates } = layer;
  return Array.from({ length: directionCount(attrs) }, (_, d) => ({
    gates: gateInputs(b, inputs, inputProduct(d), { d, recurrentGates }),
    state: Array.from({ length: layer.states }, (_, i) =>
      initialState(b, inputs.initial[i], d, start),
    ),
    captures: layer.captures(d),
    lengths,
    reversed: attrs.direction === "reverse" || d === 1,
    cell: layer.cell(d),
  }));
}

/** Rows of a batch are quantised together; those that have ended, with the states they ended with. */
function quantizedLstm(b: OpWriter, ids: readonly ValueId[], attrs: LstmAttrs): readonly ValueId[] {
  const inputs = namedInputs(ids.slice(0, -2), attrs);
  const [wScale, rScale] = ids.slice(-2) as [ValueId, ValueId];
  const layer = {
    states: 2,
    foldedBias: 4 * attrs.hiddenSize,
    cell: (d: number) => lstmCell(attrs, d, quantizedProduct),
    captures: (d: number) => [
      pick(b, inputs.recurrence, d),
      pick(b, rScale, d),
      ...(inputs.peepholes === undefined ? [] : [pick(b, inputs.peepholes, d)]),
    ],
    inputProduct: (d: number) =>
      byteProduct(b, inputs.x, [pick(b, inputs.weights, d), pick(b, wScale, d)]),
  };
  return runDirections(b, makeDirections(b, inputs, attrs, layer));
}

export const recurrentForms = {
  lstm: {
    arity: [3, 8],
    schema: lstmSchema,
    definition: (b, ids, attrs) => {
      const inputs = namedInputs(ids, attrs);
      const layer = {
        states: 2,
        foldedBias: 4 * attrs.hiddenSize,
        cell: (d: number) => lstmCell(attrs, d, realProduct),
        captures: (d: number) => [
          pick(b, inputs.recurrence, d),
          ...(inputs.peepholes === undefined ? [] : [pick(b, inputs.peepholes, d)]),
        ],
      };
      return runDirections(b, makeDirections(b, inputs, attrs, layer));
    },
  },
  quantizedLstm: {
    arity: [5, 10],
    schema: lstmSchema,
    definition: quantizedLstm,
  },
  gru: {
    arity: [3, 6],
    schema: { ...schema, linearBeforeReset: boolean },
    definition: (b, ids, attrs) => {
      const inputs = namedInputs(ids, attrs);
      const h = attrs.hiddenSize;
      const layer = {
        states: 1,
        foldedBias: attrs.linearBeforeReset ? 2 * h : 3 * h,
        cell: (d: number) => gruCell(attrs, d),
        captures: (d: number) => {
          const recurrence = pick(b, inputs.recurrence, d);
          const parts = [
            b.sliceAxis(recurrence, 0, 0, 2 * h),
            b.sliceAxis(recurrence, 0, 2 * h, h),
          ];
          const late = attrs.linearBeforeReset ? inputs.bias : undefined;
          if (late === undefined) return parts;
          return [...parts, b.sliceAxis(pick(b, late, d), 0, 5 * h, h)];
        },
      };
      return runDirections(b, makeDirections(b, inputs, attrs, layer));
    },
  },
  rnn: {
    arity: [3, 6],
    schema,
    definition: (b, ids, attrs) => {
      const inputs = namedInputs(ids, attrs);
      const layer = {
        states: 1,
        foldedBias: attrs.hiddenSize,
        cell: (d: number) => rnnCell(attrs, d),
        captures: (d: number) => [pick(b, inputs.recurrence, d)],
      };
      return runDirections(b, makeDirections(b, inputs, attrs, layer));
    },
  },
} satisfies CompositeRows<"lstm" | "quantizedLstm" | "gru" | "rnn">;
