/** Graph transforms against the oracle: a transformed graph gives what the graph gave. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { GraphBuilder } from "../../src/graph/builder.ts";
import type { Graph, ValueId, WeightStore } from "../../src/graph/graph.ts";
import { parseGraph, printGraph } from "../../src/graph/graph-text.ts";
import { randomGraph } from "../../src/graph/random-graph.ts";
import { semanticHash } from "../../src/graph/semantic-hash.ts";
import { tensorType } from "../../src/graph/tensor-type.ts";
import { bindSymbols } from "../../src/graph/transforms/bind-symbols.ts";
import {
  eliminateCommonSubexpressions,
  eliminateDeadCode,
} from "../../src/graph/transforms/clean.ts";
import { expandComposites } from "../../src/graph/transforms/expand-composites.ts";
import { foldBatchNorm } from "../../src/graph/transforms/fold-batch-norm.ts";
import { foldConstants } from "../../src/graph/transforms/fold-constants.ts";
import { verifyGraph } from "../../src/graph/verify.ts";
import { runGraph } from "../../src/interp/graph.ts";
import { constant, constantValue } from "../../src/semantics/index-expr.ts";
import { fromRef, type RefTensor, refTensor, type Tensor } from "../../src/semantics/tensor.ts";
import { Rng } from "../../src/support/rng.ts";

const limits = { elements: 4096, flops: 100_000 };

function randomInputs(graph: Graph, extent: number): RefTensor[] {
  const rng = new Rng(extent);
  return graph.inputs.map((id) => {
    const { dtype, shape } = graph.values[id]!.type;
    const concrete = shape.map((d) => constantValue(d) ?? extent);
    const count = concrete.reduce((a, b) => a * b, 1);
    const values = Array.from({ length: count }, () => Math.fround(rng.normal()));
    return refTensor(dtype, concrete, values);
  });
}

function run(graph: Graph, inputs: readonly RefTensor[], stored?: WeightStore) {
  const result = runGraph(expandComposites(graph).graph, inputs, stored);
  if (!result.ok) throw new Error(result.diagnostics.map((d) => d.message).join("\n"));
  return result.value;
}

/** The transform keeps names, types and results of random graphs. */
function checkPreserves(transform: (graph: Graph) => Graph, symbolic: boolean): void {
  fc.assert(
    fc.property(fc.nat(), fc.nat({ max: 20 }), (seed, nodes) => {
      const graph = randomGraph({ seed, nodes, symbolic });
      const after = transform(graph);
      expect(verifyGraph(after)).toEqual([]);
      const names = (g: Graph) => g.outputs.map((id) => g.values[id]!.name);
      expect(names(after)).toEqual(names(graph));
      const inputs = randomInputs(graph, 1 + (seed % 7));
      expect(run(after, inputs)).toEqual(run(graph, inputs));
    }),
    { numRuns: 60 },
  );
}

describe("transforms of random graphs give equal results", () => {
  it("expandComposites", () => checkPreserves((g) => expandComposites(g).graph, true));
  it("eliminateDeadCode", () => checkPreserves(eliminateDeadCode, true));
  it("eliminateCommonSubexpressions", () =>
    checkPreserves((g) => eliminateDeadCode(eliminateCommonSubexpressions(g).graph), true));
  it("foldConstants", () =>
    checkPreserves((g) => eliminateDeadCode(foldConstants(g, limits).graph), true));
  it("all together, twice", () => {
    const all = (g: Graph) =>
      eliminateDeadCode(
        foldConstants(eliminateCommonSubexpressions(expandComposites(g).graph).graph, limits).graph,
      );
    checkPreserves((g) => all(all(g)), true);
  });
});

it("foldConstants reads stored weights behind nodes that change nothing", () => {
  const b = new GraphBuilder("stored");
  const x = b.input("x", tensorType("f32", 4));
  const w = b.weight("w", tensorType("f32", 1, 6, 4));
  const matrix = b.reshape(b.sliceAxis(w, 0, 0, 1), [6, 4].map(constant));
  const graph = b.finish([b.add(x, b.sliceAxis(matrix, 0, 2, 3))]);
  const data = Float32Array.from({ length: 24 }, (_, i) => i / 4);
  const weights = { read: (): Tensor => ({ dtype: "f32", shape: [1, 6, 4], data }) };
  const folded = foldConstants(graph, { ...limits, weights });
  const after = eliminateDeadCode(folded.graph);
  expect(after.nodes.map((n) => n.op)).toEqual(["add"]);
  const inputs = randomInputs(graph, 1);
  const store = { read: (key: string) => folded.constants.get(key) ?? weights.read() };
  expect(run(after, inputs, store)).toEqual(run(graph, inputs, weights));
});

describe("bindSymbols", () => {
  it("gives what the general graph gives at that size", () => {
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 1, max: 16 }), (seed, n) => {
        const graph = randomGraph({ seed, nodes: 12, symbolic: true });
        const bound = bindSymbols(graph, { N: n });
        if (!bound.ok) throw new Error(bound.diagnostics[0]!.message);
        expect(verifyGraph(bound.value)).toEqual([]);
        expect(bound.value.symbols).toEqual([]);
        const inputs = randomInputs(graph, n);
        expect(run(bound.value, inputs)).toEqual(run(graph, inputs));
      }),
      { numRuns: 60 },
    );
  });

  it("refuses names, values and constraints that do not fit", () => {
    const parsed = parseGraph(
      'graph g (x: f32[M], y: f32[N]) -> (z, n) where 1 <= M <= 8, 1 <= N <= 8, 0 <= K <= 8, M == N from "add" { z = add(x, y) : f32[M] n = nonZero(x) : i64[1, K] }',
    );
    if (!parsed.ok) throw new Error(parsed.diagnostics[0]!.message);
    const code = (values: Record<string, number>) => {
      const result = bindSymbols(parsed.value, values);
      return result.ok ? "ok" : result.diagnostics[0]!.code;
    };
    expect(code({ Q: 3 })).toBe("GRF013");
    expect(code({ M: 9 })).toBe("GRF013");
    expect(code({ M: 2.5 })).toBe("GRF013");
    expect(code({ M: 3, N: 4 })).toBe("GRF013");
    expect(code({ K: 3 })).toBe("GRF013");
    expect(code({ M: 3 })).toBe("ok");
    const bound = bindSymbols(parsed.value, { M: 3, N: 3 });
    expect(bound.ok && printGraph(bound.value)).toContain("n = nonZero(x) : i64[1, K]");
  });
});

describe("eliminateCommonSubexpressions", () => {
  it("merges equal nodes, commuted operands and data-dependent extents", () => {
    const b = new GraphBuilder("cse");
    const x = b.input("x", tensorType("f32", 4));
    const y = b.input("y", tensorType("f32", 4));
    const first = b.node("nonZero", [b.add(x, y)], {});
    const second = b.node("nonZero", [b.add(y, x)], {});
    const graph = b.finish([b.concat([first, second], 0)]);
    const after = eliminateCommonSubexpressions(graph).graph;
    expect(after.nodes.map((n) => n.op)).toEqual(["add", "nonZero", "concat"]);
    expect(after.symbols.map((s) => s.name)).toEqual(["nonZero"]);
    expect(verifyGraph(after)).toEqual([]);
  });
});

describe("what may not be merged", () => {
  it("two draws of a random node are two", () => {
    const b = new GraphBuilder("draws");
    const attrs = { dtype: "f32", shape: [constant(4)], a: 0, b: 1, seed: 1 } as const;
    const draw = () => b.node("randomUniform", [], attrs);
    const graph = b.finish([b.add(draw(), draw())]);
    const after = eliminateCommonSubexpressions(graph).graph;
    expect(after.nodes.map((n) => n.op)).toEqual(["randomUniform", "randomUniform", "add"]);
  });

  it("operands keep their sides unless the op commutes", () => {
    const b = new GraphBuilder("sides");
    const [x, y] = [b.input("x", tensorType("f32", 4)), b.input("y", tensorType("f32", 4))];
    const graph = b.finish([b.mul(b.sub(x, y), b.sub(y, x))]);
    const after = eliminateCommonSubexpressions(graph).graph;
    expect(after.nodes.map((n) => n.op)).toEqual(["sub", "sub", "mul"]);
  });
});

describe("foldBatchNorm", () => {
  const channels = 3;
  const rng = new Rng(5);
  const tensor = (shape: readonly number[], positive = false): Tensor => {
    const count = shape.reduce((a, b) => a * b, 1);
    const draw = () => Math.fround(positive ? 0.5 + rng.uniform() : rng.normal());
    return fromRef(refTensor("f32", shape, Array.from({ length: count }, draw)));
  };

  function model(
    linear: "convolution" | "transposedConvolution" | "contract",
    bias: boolean,
  ): Graph {
    const b = new GraphBuilder(linear);
    const flat = linear === "contract";
    const x = b.input("x", tensorType("f32", 2, 4, ...(flat ? [] : [5])));
    const shapes = {
      convolution: [channels, 4, 2],
      transposedConvolution: [4, channels, 2],
      contract: [4, channels],
    };
    const w = b.constant(tensor(shapes[linear]));
    const window = { strides: [1], dilations: [1], padLow: [0], padHigh: [0], groups: 1 };
    const product =
      linear === "contract"
        ? b.matMul(x, w)
        : linear === "convolution"
          ? b.node(linear, [x, w], window)
          : b.node(linear, [x, w], { ...window, outputPadding: [0] });
    const shape = flat ? [channels] : [channels, 1];
    const sum = bias ? b.add(product, b.constant(tensor(shape))) : product;
    const parameters = [0, 1, 2, 3].map((i) => b.constant(tensor([channels], i === 3)));
    return b.finish([b.node("batchNorm", [sum, ...parameters], { epsilon: 1e-5 })]);
  }

  it.each([
    ["convolution", false],
    ["convolution", true],
    ["transposedConvolution", true],
    ["contract", true],
  ] as const)("into %s, bias %s", (linear, bias) => {
    const graph = model(linear, bias);
    const folded = foldConstants(foldBatchNorm(graph).graph, limits).graph;
    const after = eliminateDeadCode(folded);
    expect(after.nodes.map((n) => n.op)).toEqual([
      linear,
      ...(linear === "contract" && !bias ? [] : ["add"]),
    ]);
    const inputs = randomInputs(graph, 1);
    const [before, now] = [run(graph, inputs)[0]!, run(after, inputs)[0]!];
    for (const [i, value] of (now.data as Float64Array).entries()) {
      expect(value).toBeCloseTo(before.data[i] as number, 5);
    }
  });
});

describe("foldBatchNorm leaves weights alone", () => {
  const window = { strides: [1], dilations: [1], padLow: [0], padHigh: [0], groups: 1 };

  /** The ops after folding a batch norm of 3 channels over `sum`; `also` is read by others. */
  function opsAfter(make: (b: GraphBuilder) => { sum: ValueId; also?: ValueId }): string[] {
    const b = new GraphBuilder("kept");
    const { sum, also } = make(b);
    const vector = () => b.constant(fromRef(refTensor("f32", [3], [1, 2, 4])));
    const y = b.node("batchNorm", [sum, vector(), vector(), vector(), vector()], { epsilon: 1e-5 });
    const graph = b.finish(also === undefined ? [y] : [y, also]);
    const after = eliminateDeadCode(foldConstants(foldBatchNorm(graph).graph, limits).graph);
    const inputs = randomInputs(graph, 1);
    const [before, now] = [run(graph, inputs)[0]!, run(after, inputs)[0]!];
    for (const [i, value] of (now.data as Float64Array).entries()) {
      expect(value).toBeCloseTo(before.data[i] as number, 4);
    }
    return after.nodes.map((n) => n.op);
  }

  const conv = (b: GraphBuilder): ValueId => {
    const x = b.input("x", tensorType("f32", 1, 2, 5));
    const w = b.constant(fromRef(refTensor("f32", [3, 2, 1], [1, -1, 2, 0.5, 3, -2])));
    return b.node("convolution", [x, w], window);
  };

  it("a product, or its sum with a bias, that others read too", () => {
    const bias = (b: GraphBuilder) => b.constant(fromRef(refTensor("f32", [3, 1], [1, 2, 3])));
    expect(opsAfter((b) => ({ sum: conv(b) }))).toEqual(["convolution", "add"]);
    expect(
      opsAfter((b) => {
        const product = conv(b);
        return { sum: product, also: b.apply("relu", product) };
      }),
    ).toEqual(["convolution", "relu", "mul", "add"]);
    expect(
      opsAfter((b) => {
        const product = conv(b);
        return { sum: b.add(product, bias(b)), also: b.apply("relu", product) };
      }),
    ).toEqual(["convolution", "add", "relu", "mul", "add"]);
  });

  it("a contraction whose channels are not its weights' own", () => {
    const ops = opsAfter((b) => {
      const x = b.input("x", tensorType("f32", 2, 3, 4));
      const w = b.constant(
        fromRef(
          refTensor(
            "f32",
            [4, 3],
            Array.from({ length: 12 }, (_, i) => i),
          ),
        ),
      );
      return { sum: b.einsum("n c k, k j -> n c j", x, w) };
    });
    expect(ops).toEqual(["contract", "mul", "add"]);
  });
});

describe("foldBatchNorm takes what follows along", () => {
  const limits = { elements: 1 << 12, flops: 1 << 16 };

  /** A batch norm of 3 channels over an input, with what `behind` does to it; before and after. */
  function folded(
    behind: (b: GraphBuilder, norm: ValueId, x: ValueId) => ValueId,
    dtype: "f32" | "f16" = "f32",
  ): string[] {
    const b = new GraphBuilder("scaled");
    const x = b.input("x", tensorType(dtype, 2, 3, 4));
    const vector = (...values: number[]) => b.constant(fromRef(refTensor(dtype, [3], values)));
    const parameters = [vector(2, -1, 0.5), vector(1, 2, 3), vector(-1, 4, 2), vector(0.25, 1, 9)];
    const norm = b.node("batchNorm", [x, ...parameters], { epsilon: 1e-3 });
    const graph = b.finish([behind(b, norm, x)]);
    const after = eliminateDeadCode(foldConstants(foldBatchNorm(graph).graph, limits).graph);
    const inputs = randomInputs(graph, 1);
    const [before, now] = [run(graph, inputs)[0]!, run(after, inputs)[0]!];
    expect(now.shape).toEqual(before.shape);
    for (const [i, value] of (now.data as Float64Array).entries()) {
      expect(value).toBeCloseTo(before.data[i] as number, 4);
    }
    return after.nodes.map((n) => n.op);
  }

  const of = (b: GraphBuilder, shape: number[], values: number[]): ValueId =>
    b.constant(fromRef(refTensor("f32", shape, values)));

  it("factors and shifts of channels, in any order and either side", () => {
    expect(folded((_, norm) => norm)).toEqual(["mul", "add"]);
    const scaled = folded((b, norm) =>
      b.add(b.mul(norm, of(b, [3, 1], [2, 3, -4])), of(b, [1, 3, 1], [1, -1, 5])),
    );
    expect(scaled).toEqual(["mul", "add"]);
    const turned = folded((b, norm) =>
      b.mul(of(b, [1], [3]), b.add(of(b, [3, 1], [1, 2, 3]), norm)),
    );
    expect(turned).toEqual(["mul", "add"]);
  });

  it("but nothing along another axis, of more axes, or that others read in between", () => {
    const along = folded((b, norm) => b.mul(norm, of(b, [4], [1, 2, 3, 4])));
    expect(along).toEqual(["mul", "add", "mul"]);
    const wider = folded((b, norm) => b.mul(norm, of(b, [1, 1, 3, 1], [1, 2, 3])));
    expect(wider).toEqual(["mul", "add", "mul"]);
    const shared = folded((b, norm) => b.add(b.mul(norm, of(b, [3, 1], [2, 3, 4])), norm));
    expect(shared).toEqual(["mul", "add", "mul", "add"]);
    expect(folded((b, norm, x) => b.mul(norm, x))).toEqual(["mul", "add", "mul"]);
  });

  it("and nothing of narrow floats, whose steps are rounded", () => {
    expect(folded((_, norm) => norm, "f16")).toEqual(["batchNorm"]);
  });
});

describe("semanticHash", () => {
  it("ignores names, numbering, order of independent nodes and dead nodes", () => {
    const build = (names: readonly [string, string], swap: boolean, dead: boolean) => {
      const b = new GraphBuilder(names[0]);
      const N = b.symbol(names[1], 1, 8);
      const x = b.input(`${names[0]}x`, tensorType("f32", N));
      if (dead) b.apply("cos", x);
      const pair = swap ? [b.apply("tanh", x), b.apply("sin", x)].reverse() : [];
      const [s, t] = swap ? pair : [b.apply("sin", x), b.apply("tanh", x)];
      return semanticHash(b.finish([b.sub(s!, t!)]));
    };
    const hash = build(["a", "N"], false, false);
    expect(hash).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(build(["b", "K"], true, true)).toBe(hash);
  });

  it("survives the text form and differs when an attribute does", () => {
    const graph = randomGraph({ seed: 3, nodes: 20, symbolic: true });
    const again = parseGraph(printGraph(graph));
    expect(again.ok && semanticHash(again.value)).toBe(semanticHash(graph));
    const softmax = (axis: number) => {
      const b = new GraphBuilder("softmax");
      return semanticHash(
        b.finish([b.node("softmax", [b.input("x", tensorType("f32", 3, 3))], { axis })]),
      );
    };
    expect(softmax(0)).not.toBe(softmax(1));
  });
});
