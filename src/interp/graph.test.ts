import { describe, expect, it, vi } from "vitest";
import { GraphBuilder } from "../graph/builder.ts";
import type { Graph } from "../graph/graph.ts";
import { tensorType } from "../graph/tensor-type.ts";
import { add, constant, mul, variable } from "../semantics/index-expr.ts";
import { fromRef, numbersOf, type RefTensor, refTensor } from "../semantics/tensor.ts";
import { bindGraphSymbols, runGraph, runPlannedGraph } from "./graph.ts";
import { planGraph } from "./graph-plan.ts";

const f32 = (shape: readonly number[], ...values: readonly number[]): RefTensor =>
  refTensor("f32", shape, values);

function planFor(graph: Graph, ...inputs: readonly RefTensor[]) {
  const symbols = bindGraphSymbols(graph, inputs);
  if (!symbols.ok) throw new Error(symbols.diagnostics.map((d) => d.message).join("; "));
  return planGraph(graph, symbols.value);
}

/** Values of the outputs. */
function run(graph: Graph, ...inputs: readonly RefTensor[]): number[][] {
  const result = runGraph(graph, inputs);
  if (!result.ok) throw new Error(result.diagnostics.map((d) => d.message).join("; "));
  return result.value.map((t) => Array.from(t.data, Number));
}

describe("the oracle", () => {
  it("runs nodes in order and drops values after their last use", () => {
    const g = new GraphBuilder("g");
    const x = g.input("x", tensorType("f32", 2));
    const y = g.apply("mul", x, x);
    expect(run(g.finish([g.apply("add", y, y), x]), f32([2], 3, 4))).toEqual([
      [18, 32],
      [3, 4],
    ]);
  });

  it("runs composites by their definitions", () => {
    const g = new GraphBuilder("g");
    const x = g.input("x", tensorType("f32", 2));
    const [y] = run(g.finish([g.node("softmax", [x], { axis: 0 })]), f32([2], 1, 1));
    expect(y).toEqual([0.5, 0.5]);
  });

  it("binds symbols from extents and from results that data decide", () => {
    const g = new GraphBuilder("g");
    const n = g.symbol("N", 1, 9);
    const x = g.input("x", tensorType("f32", add(mul(n, 2), 1), n));
    const found = g.node("nonZero", [x], {});
    const graph = g.finish([g.node("dimSize", [found], { axis: 1 })]);
    const input = f32([5, 2], 1, 0, 0, 2, 0, 0, 0, 3, 0, 0);
    expect(run(graph, input)).toEqual([[3]]);
    const symbols = bindGraphSymbols(graph, [input]);
    expect(symbols.ok && symbols.value.get("N")).toBe(2);
  });

  it("reads stored weights and says which one is missing", () => {
    const g = new GraphBuilder("g");
    const w = g.weight("w", tensorType("f32", 1));
    const graph = g.finish([g.apply("neg", w)]);
    const store = { read: () => fromRef(f32([1], 7)) };
    const result = runGraph(graph, [], store);
    expect(result.ok && numbersOf(result.value[0]!)[0]).toBe(-7);
    expect(runGraph(graph, [])).toMatchObject({ diagnostics: [{ code: "INT001" }] });
  });
});

describe("subgraphs", () => {
  const scalar = tensorType("f32");

  it("if takes a branch", () => {
    const g = new GraphBuilder("g");
    const condition = g.input("c", tensorType("bool"));
    const x = g.input("x", scalar);
    const inputs = [{ name: "a", type: scalar }];
    const branch = (op: "neg" | "exp") => g.subgraph(op, inputs, (b, [a]) => [b.apply(op, a!)]);
    const attrs = Object.fromEntries([
      ["then", branch("neg")],
      ["else", branch("exp")],
    ]) as { then: Graph; else: Graph };
    const graph = g.finish(g.nodes("if", [condition, x], attrs));
    expect(run(graph, refTensor("bool", [], [1]), f32([], 2))).toEqual([[-2]]);
    expect(run(graph, refTensor("bool", [], [0]), f32([], 0))).toEqual([[1]]);
  });

  it("scan carries a state and collects", () => {
    const g = new GraphBuilder("g");
    const n = g.symbol("N", 1, 9);
    const start = g.input("s", scalar);
    const row = g.input("x", tensorType("f32", n));
    const inputs = ["a", "b"].map((name) => ({ name, type: scalar }));
    const body = g.subgraph("body", inputs, (b, [a, e]) => {
      const next = b.apply("add", a!, e!);
      return [next, b.apply("mul", next, next)];
    });
    const graph = g.finish(
      g.nodes("scan", [start, row], {
        body,
        carried: 1,
        sequences: 1,
        inputAxes: [0],
        inputReversed: [false],
        outputAxes: [0],
        outputReversed: [true],
      }),
    );
    expect(run(graph, f32([], 1), f32([3], 1, 2, 3))).toEqual([[7], [49, 16, 4]]);
  });
});

describe("what does not fit", () => {
  function graph(): Graph {
    const g = new GraphBuilder("g");
    const n = g.symbol("N", 1, 4);
    const m = g.symbol("M", 1, 4);
    const x = g.input("x", tensorType("f32", n, 3));
    const y = g.input("y", tensorType("f32", m, 3));
    return g.finish([g.apply("add", x, y)]);
  }
  const rows = (n: number) => f32([n, 3], ...new Array<number>(3 * n).fill(0));

  it.each([
    ["INT001", "count of inputs", [rows(1)]],
    ["INT001", "element type", [refTensor("i32", [1, 3], [0, 0, 0]), rows(1)]],
    ["INT001", "rank", [f32([3], 0, 0, 0), rows(1)]],
    ["INT001", "fixed extent", [f32([1, 2], 0, 0), rows(1)]],
    ["INT002", "range of a symbol", [rows(5), rows(5)]],
    ["INT003", "constraint", [rows(2), rows(3)]],
  ] as const)("%s: %s", (code, _, inputs) => {
    expect(runGraph(graph(), inputs)).toMatchObject({ ok: false, diagnostics: [{ code }] });
  });

  it("INT002: a symbol that no input decides", () => {
    const g = new GraphBuilder("g");
    const n = g.symbol("N", 1, 4);
    const m = g.symbol("M", 1, 4);
    const x = g.input("x", tensorType("f32", mul(n, m)));
    const result = runGraph(g.finish([g.apply("neg", x)]), [f32([4], 1, 2, 3, 4)]);
    expect(result).toMatchObject({ diagnostics: [{ code: "INT002" }] });
  });

  it("names the node whose data are wrong", () => {
    const g = new GraphBuilder("g");
    const x = g.input("x", tensorType("f32", 2));
    const at = g.input("i", tensorType("i64"));
    const y = g.nodes("gather", [x, at], { axis: 0 }, { origin: "pick (Gather)" });
    expect(runGraph(g.finish(y), [f32([2], 1, 2), refTensor("i64", [], [5])])).toMatchObject({
      diagnostics: [{ code: "SEM001", at: "pick (Gather)" }],
    });
  });
});

describe("a planned graph", () => {
  /** Elements that are not zero, times a weight twice: data decide how many there are. */
  function picked() {
    const g = new GraphBuilder("g");
    const n = g.symbol("N", 0, 9);
    const x = g.input("x", tensorType("f32", n));
    const w = g.weight("w", tensorType("f32", 1));
    const found = g.node("nonZero", [x], {});
    const places = g.node("transpose", [found], { permutation: [1, 0] });
    const taken = g.node("gatherNd", [x, places], { batchDims: 0 });
    return g.finish([g.apply("mul", g.apply("mul", taken, w), w), x]);
  }

  it("gives what the graph does, in run after run, for other data of the same shapes", () => {
    const graph = picked();
    const read = vi.fn(() => fromRef(f32([1], 3)));
    const first = f32([4], 0, 1, 2, 0);
    const plan = planFor(graph, first);
    for (const x of [first, f32([4], 0, 0, 0, 0), f32([4], 1, 2, 3, 4), first]) {
      const wanted = runGraph(graph, [x], { read });
      read.mockClear();
      expect(runPlannedGraph(plan, [x], { read })).toEqual(wanted);
      // Read once where it is used twice, and not for nothing.
      expect(read).toHaveBeenCalledTimes(x.data.some((v) => v !== 0) ? 1 : 0);
    }
  });

  it("checks in every run the constraints that data decide", () => {
    const graph = picked();
    const [count] = graph.symbols.filter((s) => s.name !== "N");
    const constraint = { left: variable(count!.name), right: constant(2), origin: "two of them" };
    const bounded = { ...graph, constraints: [...graph.constraints, constraint] };
    const two = f32([3], 1, 0, 2);
    const plan = planFor(bounded, two);
    const store = { read: () => fromRef(f32([1], 3)) };
    expect(runPlannedGraph(plan, [two], store)).toMatchObject({ ok: true });
    const one = runPlannedGraph(plan, [f32([3], 1, 0, 0)], store);
    expect(one).toMatchObject({ diagnostics: [{ code: "INT003", at: "two of them" }] });
    expect(runPlannedGraph(plan, [two], store)).toMatchObject({ ok: true });
  });
});

it("binds extents that are sums", () => {
  const g = new GraphBuilder("g");
  g.symbol("A", 1, 9);
  const x = g.input("x", tensorType("f32", add(variable("A"), 2), constant(1)));
  const symbols = bindGraphSymbols(g.finish([x]), [f32([5, 1], 0, 0, 0, 0, 0)]);
  expect(symbols.ok && symbols.value.get("A")).toBe(3);
});
