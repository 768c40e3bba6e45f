/**
 * Random well-formed graphs, for property tests and campaigns: small shapes (some symbolic), a
 * sequence of nodes drawn from steps that each know how to use a value they find. Same seed, same
 * graph.
 */
import { constant, variable } from "../semantics/index-expr.ts";
import { fromRef, refTensor } from "../semantics/tensor.ts";
import { Rng } from "../support/rng.ts";
import { GraphBuilder } from "./builder.ts";
import type { Graph, ValueId } from "./graph.ts";
import { tensorType } from "./tensor-type.ts";

export interface RandomGraphOptions {
  readonly seed: number;
  readonly nodes: number;
  /** Whether the graph may have symbolic dimensions. */
  readonly symbolic: boolean;
}

interface Step {
  readonly rng: Rng;
  readonly b: GraphBuilder;
  /** Float values to use; later ones are likelier. */
  readonly pool: ValueId[];
}

function pickValue({ rng, pool }: Step): ValueId {
  return pool[Math.floor(pool.length * Math.sqrt(rng.uniform()))]!;
}

/** A value of rank 1 or more, or undefined. */
function pickRanked(step: Step): ValueId | undefined {
  const value = pickValue(step);
  return step.b.rankOf(value) > 0 ? value : undefined;
}

const unary = ["neg", "abs", "tanh", "sigmoid", "exp", "relu", "sin", "floor"] as const;
const binary = ["add", "sub", "mul", "max", "min"] as const;
const activations = ["silu", "softplus", "softsign", "mish", "hardSwish"] as const;

type StepFunction = (step: Step) => readonly ValueId[];

/** Gives the results, or nothing when the drawn value does not suit. */
const steps: readonly StepFunction[] = [
  (s) => [s.b.apply(s.rng.pick(unary), pickValue(s))],
  (s) => {
    const x = pickValue(s);
    return [s.b.applyNumber(s.rng.pick(binary), x, s.rng.integer(-3, 3) / 2)];
  },
  (s) => {
    const x = pickValue(s);
    const op = s.rng.pick(binary);
    const partner = s.rng.uniform() < 0.5 ? s.b.apply("cos", x) : x;
    return [s.b.apply(op, x, partner)];
  },
  (s) => [s.b.node(s.rng.pick(activations), [pickValue(s)], {})],
  (s) => {
    const x = pickValue(s);
    return [s.b.select(s.b.apply("less", x, s.b.scalarLike(0, x)), s.b.apply("neg", x), x)];
  },
  onAxis((s, x, axis) => [
    s.b.reduce(s.rng.pick(["sum", "max", "min"] as const), x, [axis], s.rng.uniform() < 0.5),
  ]),
  onAxis((s, x, axis) => [s.b.node(s.rng.pick(["softmax", "logSoftmax"] as const), [x], { axis })]),
  onAxis((s, x, axis) => [s.b.node("reverse", [x], { axes: [axis] })]),
  onAxis((s, x, axis) => [s.b.concat([x, s.b.apply("neg", x)], axis)]),
  onAxis((s, x, axis) => {
    const attrs = { kind: "sum", axis, exclusive: s.rng.uniform() < 0.5, reverse: false } as const;
    return [s.b.node("cumulative", [x], attrs)];
  }),
  onAxis((s, x, axis) => {
    const low = s.b.shapeOf(x).map((_, i) => constant(i === axis ? s.rng.integer(0, 2) : 0));
    const attrs = { low, high: [...low].reverse(), mode: "constant" } as const;
    return [s.b.node("pad", [x, s.b.scalarLike(1, x)], attrs)];
  }),
  onAxis((s, x, axis) => {
    const last = s.b.rankOf(x) - 1;
    const order = s.b.shapeOf(x).map((_, i) => (i === axis ? last : i === last ? axis : i));
    return [s.b.transpose(x, order)];
  }),
  onAxis((s, x, axis) => {
    const index = s.b.integers([0, 0, -1].slice(0, s.rng.integer(1, 3)));
    return [s.b.node("gather", [x, index], { axis })];
  }),
  onAxis((s, x, axis) => {
    const k = { axis, k: constant(1), largest: s.rng.uniform() < 0.5, sorted: true };
    return [s.b.nodes("topK", [x], k)[0]!];
  }),
  (s) => {
    const x = pickRanked(s);
    return x === undefined ? [] : [s.b.reshape(x, [-1])];
  },
  (s) => {
    const x = pickRanked(s);
    if (x === undefined || s.b.rankOf(x) !== 2) return [];
    const square = s.b.einsum("i k, j k -> i j", x, s.b.apply("tanh", x));
    return [square, s.b.node("diagonal", [square], { axis: 0, other: 1 })];
  },
  (s) => {
    const x = pickValue(s);
    return [s.b.cast(s.b.cast(x, "f16"), "f32")];
  },
  branch,
  scanSum,
];

function onAxis(
  body: (s: Step, x: ValueId, axis: number) => readonly ValueId[],
): (s: Step) => readonly ValueId[] {
  return (s) => {
    const x = pickRanked(s);
    return x === undefined ? [] : body(s, x, s.rng.integer(0, s.b.rankOf(x) - 1));
  };
}

/** if any element is positive then -x else 2 x */
function branch(s: Step): readonly ValueId[] {
  const x = pickValue(s);
  const type = s.b.typeOf(x);
  const axes = type.shape.map((_, axis) => axis);
  const positive = s.b.apply("less", s.b.scalarLike(0, x), s.b.reduce("max", x, axes, false));
  const inputs = [{ name: "x", type }];
  const attrs = {
    then: s.b.subgraph("negated", inputs, (w, [v]) => [w.apply("neg", v!)]),
    else: s.b.subgraph("doubled", inputs, (w, [v]) => [w.add(v!, v!)]),
  };
  return [s.b.node("if", [positive, x], attrs)];
}

/** Running sums along the first axis by scan. */
function scanSum(s: Step): readonly ValueId[] {
  const x = pickRanked(s);
  if (x === undefined) return [];
  const [, ...rest] = s.b.shapeOf(x);
  const type = tensorType(s.b.dtypeOf(x), ...rest);
  const inputs = ["sum", "element"].map((name) => ({ name, type }));
  const body = s.b.subgraph("step", inputs, (w, [sum, element]) => {
    const next = w.add(sum!, element!);
    return [next, next];
  });
  const start = s.b.node("broadcast", [s.b.scalarLike(0, x)], { shape: rest });
  return s.b.nodes("scan", [start, x], {
    body,
    carried: 1,
    sequences: 1,
    inputAxes: [0],
    inputReversed: [s.rng.uniform() < 0.5],
    outputAxes: [0],
    outputReversed: [false],
  });
}

export function randomGraph({ seed, nodes, symbolic }: RandomGraphOptions): Graph {
  const rng = new Rng(seed);
  const b = new GraphBuilder(`random ${seed}`);
  if (symbolic) b.symbol("N", 1, 16);
  const extents = [1, 2, 3, 5, ...(symbolic ? [variable("N")] : [])];
  const pool: ValueId[] = [];
  for (let i = 0; i < 2; i++) {
    const shape = Array.from({ length: rng.integer(0, 3) }, () => rng.pick(extents));
    pool.push(b.input(`x${i}`, tensorType("f32", ...shape)));
  }
  const values = Array.from({ length: 6 }, () => Math.fround(rng.normal()));
  pool.push(b.constant(fromRef(refTensor("f32", [2, 3], values)), "table"));
  const step: Step = { rng, b, pool };
  for (let i = 0; i < nodes; i++) {
    const results = b.withOrigin(`step ${i}`, () => rng.pick(steps)(step));
    pool.push(...results);
  }
  return b.finish(pool.slice(-2));
}
