/** Definitions of composites against direct formulas on plain arrays. */
import { describe, expect, it } from "vitest";
import { GraphBuilder } from "../../src/graph/builder.ts";
import type { CompositeAttrs, LstmAttrs } from "../../src/graph/composites.ts";
import { tensorType } from "../../src/graph/tensor-type.ts";
import { expandComposites } from "../../src/graph/transforms/expand-composites.ts";
import { verifyGraph } from "../../src/graph/verify.ts";
import { runGraph } from "../../src/interp/graph.ts";
import type { DType } from "../../src/semantics/dtype.ts";
import { constant } from "../../src/semantics/index-expr.ts";
import { type RefTensor, refTensor } from "../../src/semantics/tensor.ts";
import { Rng } from "../../src/support/rng.ts";

interface Operand {
  readonly dtype?: DType;
  readonly shape: readonly number[];
  readonly values: readonly number[];
}

/** Outputs of a composite through its definition. */
function evaluate<K extends keyof CompositeAttrs>(
  op: K,
  operands: readonly Operand[],
  attrs: CompositeAttrs[K],
): number[][] {
  const inputs = operands.map((o) => refTensor(o.dtype ?? "f64", o.shape, [...o.values]));
  const b = new GraphBuilder(op);
  const ids = inputs.map((t, i) => b.input(`x${i}`, tensorType(t.dtype, ...t.shape)));
  const graph = b.finish(b.nodes(op, ids, attrs as never));
  expect(verifyGraph(graph)).toEqual([]);
  const expanded = expandComposites(graph).graph;
  expect(verifyGraph(expanded)).toEqual([]);
  const result = runGraph(expanded, inputs);
  if (!result.ok) throw new Error(result.diagnostics.map((d) => d.message).join("\n"));
  return result.value.map((t: RefTensor) => Array.from(t.data, Number));
}

function expectClose(found: readonly number[], wanted: readonly number[]): void {
  expect(found.length).toBe(wanted.length);
  for (const [i, value] of found.entries()) expect(value).toBeCloseTo(wanted[i]!, 9);
}

const rng = new Rng(11);
function random(...shape: readonly number[]): Operand {
  const count = shape.reduce((a, b) => a * b, 1);
  return { shape, values: Array.from({ length: count }, () => rng.normal()) };
}

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));
const softplus = (x: number): number => Math.log(1 + Math.exp(x));
const sum = (list: readonly number[]): number => list.reduce((a, b) => a + b, 0);

describe("activations", () => {
  const points = [-30, -2, -1, -0.5, 0, 0.25, 1, 3, 30];
  const x = { shape: [points.length], values: points };
  const check = <K extends keyof CompositeAttrs>(
    op: K,
    attrs: CompositeAttrs[K],
    f: (x: number) => number,
  ) => it(op, () => expectClose(evaluate(op, [x], attrs)[0]!, points.map(f)));

  check("silu", {}, (v) => v * sigmoid(v));
  check("gelu", { approximate: "tanh" }, (v) => {
    return 0.5 * v * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (v + 0.044715 * v ** 3)));
  });
  check("hardSigmoid", { alpha: 0.2, beta: 0.5 }, (v) => Math.min(1, Math.max(0, 0.2 * v + 0.5)));
  check("hardSwish", {}, (v) => v * Math.min(1, Math.max(0, v / 6 + 0.5)));
  check("leakyRelu", { alpha: 0.1 }, (v) => (v < 0 ? 0.1 * v : v));
  check("elu", { alpha: 2 }, (v) => (v < 0 ? 2 * Math.expm1(v) : v));
  check("selu", { alpha: 1.6, gamma: 1.05 }, (v) => 1.05 * (v < 0 ? 1.6 * Math.expm1(v) : v));
  check("celu", { alpha: 2 }, (v) => Math.max(0, v) + Math.min(0, 2 * Math.expm1(v / 2)));
  check("softplus", {}, (v) => (v > 20 ? v : softplus(v)));
  check("softsign", {}, (v) => v / (1 + Math.abs(v)));
  check("mish", {}, (v) => v * Math.tanh(v > 20 ? v : softplus(v)));
  check("thresholdedRelu", { alpha: 0.5 }, (v) => (v > 0.5 ? v : 0));

  it("gelu by erf at a tabulated point", () => {
    const [found] = evaluate("gelu", [{ shape: [2], values: [1, -1] }], { approximate: "none" });
    expectClose(found!, [0.8413447460685429, -0.15865525393145707]);
  });

  it("clip and prelu", () => {
    const high = { shape: [], values: [1] };
    expectClose(
      evaluate("clip", [x, high], { low: false, high: true })[0]!,
      points.map((v) => Math.min(v, 1)),
    );
    const slope = { shape: [1], values: [0.5] };
    expectClose(
      evaluate("prelu", [x, slope], {})[0]!,
      points.map((v) => (v < 0 ? v / 2 : v)),
    );
  });
});

/** Rows of the last axis. */
function rows(o: Operand): number[][] {
  const width = o.shape.at(-1)!;
  return Array.from({ length: o.values.length / width }, (_, r) =>
    o.values.slice(r * width, (r + 1) * width),
  );
}

function standardised(row: readonly number[], epsilon: number): number[] {
  const mean = sum(row) / row.length;
  const variance = sum(row.map((v) => (v - mean) ** 2)) / row.length;
  return row.map((v) => (v - mean) / Math.sqrt(variance + epsilon));
}

describe("norms and reductions", () => {
  const x = random(3, 5);

  it("softmax and logSoftmax", () => {
    const soft = rows(x).map((row) => {
      const total = sum(row.map(Math.exp));
      return row.map((v) => Math.exp(v) / total);
    });
    expectClose(evaluate("softmax", [x], { axis: 1 })[0]!, soft.flat());
    expectClose(evaluate("logSoftmax", [x], { axis: 1 })[0]!, soft.flat().map(Math.log));
  });

  it("layerNorm and rmsNorm", () => {
    const [scale, bias] = [random(5), random(5)];
    const normal = rows(x).flatMap((row) =>
      standardised(row, 1e-3).map((v, i) => v * scale.values[i]! + bias.values[i]!),
    );
    expectClose(evaluate("layerNorm", [x, scale, bias], { axis: 1, epsilon: 1e-3 })[0]!, normal);
    const rms = rows(x).flatMap((row) => {
      const size = Math.sqrt(sum(row.map((v) => v * v)) / row.length + 1e-3);
      return row.map((v, i) => (v / size) * scale.values[i]!);
    });
    expectClose(evaluate("rmsNorm", [x, scale], { axis: 1, epsilon: 1e-3 })[0]!, rms);
  });

  it("batchNorm, instanceNorm, groupNorm", () => {
    const picture = random(2, 4, 3);
    const [scale, bias, mean] = [random(4), random(4), random(4)];
    const variance = { shape: [4], values: [0.5, 1, 2, 3] };
    const perChannel = (f: (v: number, c: number) => number) =>
      picture.values.map((v, i) => f(v, Math.floor(i / 3) % 4));
    expectClose(
      evaluate("batchNorm", [picture, scale, bias, mean, variance], { epsilon: 0.1 })[0]!,
      perChannel((v, c) => {
        const normal = (v - mean.values[c]!) / Math.sqrt(variance.values[c]! + 0.1);
        return normal * scale.values[c]! + bias.values[c]!;
      }),
    );
    const scaled = (normal: readonly number[]) =>
      normal.map((v, i) => {
        const c = Math.floor(i / 3) % 4;
        return v * scale.values[c]! + bias.values[c]!;
      });
    const inGroups = (size: number) =>
      rows({ shape: [size], values: picture.values }).flatMap((row) => standardised(row, 0.1));
    expectClose(
      evaluate("instanceNorm", [picture, scale, bias], { epsilon: 0.1 })[0]!,
      scaled(inGroups(3)),
    );
    expectClose(
      evaluate("groupNorm", [picture, scale, bias], { epsilon: 0.1, groups: 2 })[0]!,
      scaled(inGroups(6)),
    );
  });

  it.each([0.75, 0.5, 0.6])("lrn to the power of %d", (beta) => {
    const picture = random(1, 5, 2);
    const at = (c: number, s: number): number => picture.values[c * 2 + s]!;
    const wanted = picture.values.map((v, i) => {
      const [c, s] = [Math.floor(i / 2), i % 2];
      const around = [c - 1, c, c + 1].filter((k) => k >= 0 && k < 5);
      return v / (1.5 + (0.2 / 3) * sum(around.map((k) => at(k, s) ** 2))) ** beta;
    });
    const attrs = { size: 3, alpha: 0.2, beta, bias: 1.5 };
    expectClose(evaluate("lrn", [picture], attrs)[0]!, wanted);
  });

  it("lpNormalization, meanVarianceNormalization", () => {
    const zero = { shape: [2, 2], values: [3, -4, 0, 0] };
    expectClose(evaluate("lpNormalization", [zero], { axis: 1, p: 2 })[0]!, [0.6, -0.8, 0, 0]);
    expectClose(evaluate("lpNormalization", [zero], { axis: 1, p: 1 })[0]!, [3 / 7, -4 / 7, 0, 0]);
    const found = evaluate("meanVarianceNormalization", [x], { axes: [1] })[0]!;
    const wanted = rows(x).flatMap((row) => standardised(row, 0));
    for (const [i, v] of found.entries()) expect(v).toBeCloseTo(wanted[i]!, 6);
  });

  it("reductions", () => {
    const forms: readonly (readonly [keyof CompositeAttrs, (row: readonly number[]) => number])[] =
      [
        ["logSumExp", (row) => Math.log(sum(row.map(Math.exp)))],
        ["reduceMean", (row) => sum(row) / row.length],
        ["reduceL1", (row) => sum(row.map(Math.abs))],
        ["reduceL2", (row) => Math.hypot(...row)],
        ["reduceSumSquare", (row) => sum(row.map((v) => v * v))],
      ];
    for (const [op, f] of forms) {
      expectClose(evaluate(op, [x], { axes: [1], keepDims: false })[0]!, rows(x).map(f));
    }
    const endless = { shape: [2], values: [-Infinity, -Infinity] };
    expect(evaluate("logSumExp", [endless], { axes: [0], keepDims: false })[0]).toEqual([
      -Infinity,
    ]);
    const huge = { shape: [2], values: [1000, 1000] };
    expectClose(evaluate("logSumExp", [huge], { axes: [0], keepDims: true })[0]!, [
      1000 + Math.LN2,
    ]);
    const positive = { shape: [2], values: [1, 2] };
    expectClose(evaluate("reduceLogSum", [positive], { axes: [0], keepDims: true })[0]!, [
      Math.log(3),
    ]);
    const picture = { shape: [1, 2, 2, 1], values: [1, 2, 5, 7] };
    expectClose(evaluate("globalAveragePool", [picture], {})[0]!, [1.5, 6]);
  });
});

describe("data movement", () => {
  it("oneHot counts negative indices from the end and ignores those outside", () => {
    const indices: Operand = { dtype: "i64", shape: [3], values: [0, -1, 7] };
    const values: Operand = { shape: [2], values: [9, 5] };
    const rowsFirst = evaluate("oneHot", [indices, values], { axis: 1, depth: constant(3) })[0];
    expect(rowsFirst).toEqual([5, 9, 9, 9, 9, 5, 9, 9, 9]);
    const columns = evaluate("oneHot", [indices, values], { axis: 0, depth: constant(3) })[0];
    expect(columns).toEqual([5, 9, 9, 9, 9, 9, 9, 5, 9]);
  });

  it("depthToSpace and spaceToDepth", () => {
    const x = { shape: [1, 8, 1, 1], values: [0, 1, 2, 3, 4, 5, 6, 7] };
    const dcr = evaluate("depthToSpace", [x], { blockSize: 2, mode: "dcr" })[0]!;
    expect(dcr).toEqual([0, 2, 4, 6, 1, 3, 5, 7]);
    const crd = evaluate("depthToSpace", [x], { blockSize: 2, mode: "crd" })[0]!;
    expect(crd).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    const back = { shape: [1, 2, 2, 2], values: dcr };
    expect(evaluate("spaceToDepth", [back], { blockSize: 2 })[0]).toEqual(x.values);
  });

  it("trilu", () => {
    const x = { shape: [2, 3], values: [1, 2, 3, 4, 5, 6] };
    const upper = evaluate("trilu", [x], { upper: true, diagonal: 1 })[0];
    expect(upper).toEqual([0, 2, 3, 0, 0, 6]);
    const lower = evaluate("trilu", [x], { upper: false, diagonal: 0 })[0];
    expect(lower).toEqual([1, 0, 0, 4, 5, 0]);
  });
});

describe("attention", () => {
  const [heads, groups, s, t, d] = [4, 2, 2, 3, 2];
  const [q, k, v] = [random(1, heads, s, d), random(1, groups, t, d), random(1, groups, t, d)];
  const mask = random(s, t);

  /** Row i of head h by the textbook formula; positions where `allowed` is false get no weight. */
  function textbook(allowed: (i: number, j: number) => boolean, cap: number): number[] {
    const result: number[] = [];
    for (let h = 0; h < heads; h++) {
      const g = Math.floor(h / (heads / groups));
      for (let i = 0; i < s; i++) {
        const weights = Array.from({ length: t }, (_, j) => {
          const products = Array.from({ length: d }, (_, c) => {
            return q.values[(h * s + i) * d + c]! * k.values[(g * t + j) * d + c]!;
          });
          const raw = 0.5 * sum(products);
          const score = (cap === 0 ? raw : cap * Math.tanh(raw / cap)) + mask.values[i * t + j]!;
          return allowed(i, j) ? Math.exp(score) : 0;
        });
        for (let c = 0; c < d; c++) {
          const mixed = weights.map((w, j) => w * v.values[(g * t + j) * d + c]!);
          result.push(sum(mixed) / sum(weights));
        }
      }
    }
    return result;
  }

  it.each([
    ["none", 0, () => true],
    ["start", 0, (i: number, j: number) => j <= i],
    ["end", 2, (i: number, j: number) => j <= i + t - s],
  ] as const)("causal %s, softcap %d", (causal, softcap, allowed) => {
    const attrs = { scale: 0.5, causal, mask: true, softcap };
    expectClose(evaluate("attention", [q, k, v, mask], attrs)[0]!, textbook(allowed, softcap));
  });

  it("rotary embedding turns pairs and leaves the rest", () => {
    const x = { shape: [1, 5], values: [1, 2, 3, 4, 5] };
    const [cos, sin] = [
      { shape: [2], values: [Math.cos(0.3), Math.cos(0.7)] },
      { shape: [2], values: [Math.sin(0.3), Math.sin(0.7)] },
    ];
    const turn = (a: number, b: number, angle: number) => [
      a * Math.cos(angle) - b * Math.sin(angle),
      a * Math.sin(angle) + b * Math.cos(angle),
    ];
    const pairs = [turn(1, 2, 0.3), turn(3, 4, 0.7)];
    const interleaved = { interleaved: true, rotaryDims: 4 };
    expectClose(evaluate("rotaryEmbedding", [x, cos, sin], interleaved)[0]!, [...pairs.flat(), 5]);
    const [p, r] = [turn(1, 3, 0.3), turn(2, 4, 0.7)];
    const halves = { interleaved: false, rotaryDims: 4 };
    expectClose(evaluate("rotaryEmbedding", [x, cos, sin], halves)[0]!, [
      p[0]!,
      r[0]!,
      p[1]!,
      r[1]!,
      5,
    ]);
  });
});

describe("recurrent layers", () => {
  const [batch, size, h] = [2, 3, 2];

  interface Layer {
    readonly w: Operand;
    readonly r: Operand;
    readonly bias: Operand;
  }

  function layer(gates: number, directions: number): Layer {
    return {
      w: random(directions, gates * h, size),
      r: random(directions, gates * h, h),
      bias: random(directions, 2 * gates * h),
    };
  }

  /** Gate k of row `at` without activation: w x + r h + both biases. */
  function gate(l: Layer, x: readonly number[], state: readonly number[], index: number): number {
    const input = sum(x.map((v, i) => v * l.w.values[index * size + i]!));
    const recurrent = sum(state.map((v, i) => v * l.r.values[index * h + i]!));
    const gates = l.bias.values.length / 2;
    return input + recurrent + l.bias.values[index]! + l.bias.values[gates + index]!;
  }

  function lstm(l: Layer, x: Operand, lengths: readonly number[], reversed: boolean): number[] {
    const steps = x.shape[0]!;
    const out = new Array<number>(steps * batch * h).fill(0);
    for (let b = 0; b < batch; b++) {
      let [state, cell] = [new Array<number>(h).fill(0), new Array<number>(h).fill(0)];
      for (let n = 0; n < lengths[b]!; n++) {
        const time = reversed ? lengths[b]! - 1 - n : n;
        const row = x.values.slice((time * batch + b) * size, (time * batch + b + 1) * size);
        const g = (k: number, c: number) => gate(l, row, state, k * h + c);
        cell = cell.map((old, c) => {
          return sigmoid(g(2, c)) * old + sigmoid(g(0, c)) * Math.tanh(g(3, c));
        });
        state = cell.map((v, c) => sigmoid(g(1, c)) * Math.tanh(v));
        for (const [c, v] of state.entries()) out[(time * batch + b) * h + c] = v;
      }
    }
    return out;
  }

  const attrs: LstmAttrs = {
    hiddenSize: h,
    direction: "forward",
    activations: ["sigmoid", "tanh", "tanh"],
    bias: true,
    lengths: false,
    initialHidden: false,
    initialCell: false,
    peepholes: false,
    inputForget: false,
  };

  it.each([3, 7])("lstm over %d steps, forwards and backwards", (steps) => {
    const l = layer(4, 1);
    const x = random(steps, batch, size);
    const full = [steps, steps];
    const forward = evaluate("lstm", [x, l.w, l.r, l.bias], attrs);
    expectClose(forward[0]!, lstm(l, x, full, false));
    expectClose(forward[1]!, forward[0]!.slice(-batch * h));
    const reversed = { ...attrs, direction: "reverse" as const };
    const backward = evaluate("lstm", [x, l.w, l.r, l.bias], reversed);
    expectClose(backward[0]!, lstm(l, x, full, true));
    expectClose(backward[1]!, backward[0]!.slice(0, batch * h));
  });

  it.each([4, 6])("lstm over %d steps in both directions with lengths", (steps) => {
    const l = layer(4, 2);
    const x = random(steps, batch, size);
    const lengths: Operand = { dtype: "i32", shape: [batch], values: [steps - 2, steps] };
    const both = {
      ...attrs,
      direction: "bidirectional" as const,
      activations: [...attrs.activations, ...attrs.activations],
      lengths: true,
    };
    const [found] = evaluate("lstm", [x, l.w, l.r, l.bias, lengths], both);
    const half = (d: number): Layer => {
      const part = (o: Operand) => {
        const n = o.values.length / 2;
        return { shape: o.shape.slice(1), values: o.values.slice(d * n, (d + 1) * n) };
      };
      return { w: part(l.w), r: part(l.r), bias: part(l.bias) };
    };
    const sides = [0, 1].map((d) => lstm(half(d), x, lengths.values, d === 1));
    const wanted: number[] = [];
    for (let time = 0; time < steps; time++) {
      for (const side of sides)
        wanted.push(...side.slice(time * batch * h, (time + 1) * batch * h));
    }
    expectClose(found!, wanted);
  });

  it.each([
    [false, 3],
    [true, 6],
  ])("gru, linear before reset %s, over %d steps", (linearBeforeReset, steps) => {
    const l = layer(3, 1);
    const x = random(steps, batch, size);
    const wanted: number[] = [];
    const states = Array.from({ length: batch }, () => new Array<number>(h).fill(0));
    for (let time = 0; time < steps; time++) {
      for (let b = 0; b < batch; b++) {
        const row = x.values.slice((time * batch + b) * size, (time * batch + b + 1) * size);
        const state = states[b]!;
        const none = new Array<number>(size).fill(0);
        const z = state.map((_, c) => sigmoid(gate(l, row, state, c)));
        const r = state.map((_, c) => sigmoid(gate(l, row, state, h + c)));
        const candidate = state.map((_, c) => {
          const index = 2 * h + c;
          const scaled = state.map((v, i) => v * r[i]!);
          if (!linearBeforeReset) return Math.tanh(gate(l, row, scaled, index));
          const ownBias = l.bias.values[index]!;
          const history = gate(l, none, state, index) - ownBias;
          const input = gate(l, row, new Array<number>(h).fill(0), index);
          return Math.tanh(input - l.bias.values[3 * h + index]! + r[c]! * history);
        });
        states[b] = state.map((v, c) => (1 - z[c]!) * candidate[c]! + z[c]! * v);
        wanted.push(...states[b]!);
      }
    }
    const { initialCell: _c, peepholes: _p, inputForget: _f, ...common } = attrs;
    const gru = { ...common, activations: ["sigmoid", "tanh"] as const, linearBeforeReset };
    expectClose(evaluate("gru", [x, l.w, l.r, l.bias], gru)[0]!, wanted);
  });

  it("rnn with an initial state and clipping", () => {
    const l = layer(1, 1);
    const x = random(2, batch, size);
    const initial = random(1, batch, h);
    const { initialCell: _c, peepholes: _p, inputForget: _f, ...common } = attrs;
    const rnn = { ...common, activations: ["relu"] as const, initialHidden: true, clip: 0.5 };
    const states = rows({ shape: [batch, h], values: initial.values });
    const wanted: number[] = [];
    for (const [n, row] of rows({ shape: [size], values: x.values }).entries()) {
      const state = states[n % batch]!;
      states[n % batch] = state.map((_, c) => Math.min(0.5, Math.max(0, gate(l, row, state, c))));
      wanted.push(...states[n % batch]!);
    }
    expectClose(evaluate("rnn", [x, l.w, l.r, l.bias, initial], rnn)[0]!, wanted);
  });

  it("lstm with peepholes reads the cell", () => {
    const l = layer(4, 1);
    const x = random(1, batch, size);
    const [hidden, cell, peepholes] = [random(1, batch, h), random(1, batch, h), random(1, 3 * h)];
    const full = { ...attrs, initialHidden: true, initialCell: true, peepholes: true };
    const operands = [x, l.w, l.r, l.bias, hidden, cell, peepholes];
    const wanted = Array.from({ length: batch * h }, (_, n) => {
      const [b, c] = [Math.floor(n / h), n % h];
      const row = x.values.slice(b * size, (b + 1) * size);
      const state = hidden.values.slice(b * h, (b + 1) * h);
      const old = cell.values[n]!;
      const g = (k: number) => gate(l, row, state, k * h + c);
      const peep = (k: number, v: number) => peepholes.values[k * h + c]! * v;
      const kept = sigmoid(g(2) + peep(2, old)) * old;
      const next = kept + sigmoid(g(0) + peep(0, old)) * Math.tanh(g(3));
      return sigmoid(g(1) + peep(1, next)) * Math.tanh(next);
    });
    expectClose(evaluate("lstm", operands, full)[0]!, wanted);
  });
});

describe("products", () => {
  it("einsum of three operands, a diagonal, a transpose and a sum", () => {
    const [a, b, c] = [random(2, 3), random(3, 2), random(2)];
    const wanted: number[] = [];
    for (let j = 0; j < 2; j++) {
      let total = 0;
      for (let i = 0; i < 2; i++) {
        for (let k = 0; k < 3; k++) {
          total += a.values[i * 3 + k]! * b.values[k * 2 + j]! * c.values[i]!;
        }
      }
      wanted.push(total);
    }
    const operands = [["i", "k"], ["k", "j"], ["i"]];
    expectClose(evaluate("einsum", [a, b, c], { operands, output: ["j"] })[0]!, wanted);
    const square = { shape: [2, 2], values: [1, 2, 3, 4] };
    const trace = { operands: [["i", "i"]], output: [] };
    expect(evaluate("einsum", [square], trace)[0]).toEqual([5]);
    const flip = { operands: [["i", "j"]], output: ["j", "i"] };
    expect(evaluate("einsum", [square], flip)[0]).toEqual([1, 3, 2, 4]);
    const columns = { operands: [["i", "j"]], output: ["j"] };
    expect(evaluate("einsum", [square], columns)[0]).toEqual([4, 6]);
  });

  it("integer products with zero points per row, column and output channel", () => {
    const a: Operand = { dtype: "u8", shape: [2, 2], values: [1, 2, 3, 250] };
    const b: Operand = { dtype: "i8", shape: [2, 2], values: [-1, 2, 3, -4] };
    const aZero: Operand = { dtype: "u8", shape: [2], values: [1, 3] };
    const bZero: Operand = { dtype: "i8", shape: [], values: [1] };
    const found = evaluate("matMulInteger", [a, b, aZero, bZero], { aZero: true, bZero: true })[0];
    expect(found).toEqual([2, -5, 247 * 2, 247 * -5]);
    const x: Operand = { dtype: "u8", shape: [1, 1, 3], values: [10, 20, 30] };
    const w: Operand = { dtype: "u8", shape: [2, 1, 1], values: [3, 5] };
    const wZero: Operand = { dtype: "u8", shape: [2], values: [1, 2] };
    const attrs = {
      strides: [1],
      dilations: [1],
      padLow: [1],
      padHigh: [0],
      groups: 1,
      xZero: false,
      wZero: true,
    };
    expect(evaluate("convInteger", [x, w, wZero], attrs)[0]).toEqual([
      0, 20, 40, 60, 0, 30, 60, 90,
    ]);
  });

  it("dynamicQuantizeLinear covers the range and survives zeros", () => {
    const x: Operand = { dtype: "f32", shape: [3], values: [-1, 0, 3] };
    const [values, scale, zero] = evaluate("dynamicQuantizeLinear", [x], {});
    expect(values).toEqual([0, 64, 255]);
    expect(scale![0]).toBeCloseTo(4 / 255, 7);
    expect(zero).toEqual([64]);
    const none: Operand = { dtype: "f32", shape: [2], values: [0, 0] };
    expect(evaluate("dynamicQuantizeLinear", [none], {})).toEqual([[0, 0], [1], [0]]);
  });
});
