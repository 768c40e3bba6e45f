/** Rewriting as a pass of the compiler: what the search prices lower is kept, and it is the same program. */
import { describe, expect, it } from "vitest";
import { type CompiledModel, compileModel } from "./compile.ts";
import { isToldApart, isToldApartOnBlocks } from "./cost/told-apart.ts";
import { GraphBuilder } from "./graph/builder.ts";
import type { Graph, Model, ValueId } from "./graph/graph.ts";
import { printGraph } from "./graph/graph-text.ts";
import { tensorType } from "./graph/tensor-type.ts";
import { noWeights, runGraph } from "./interp/graph.ts";
import { firstMade } from "./rewrite/first-made.ts";
import { type RuleRow, row } from "./rewrite/rule-row.ts";
import { printSchedule } from "./schedule/directive-text.ts";
import { randomRef } from "./semantics/tensor.ts";
import { diagnostic, fail, formatDiagnostic, ok, type Result } from "./support/diagnostic.ts";
import { Rng } from "./support/rng.ts";
import { targets } from "./target/index.ts";
import { worstDifference } from "./verdict/tolerance.ts";

const target = targets.get("wasm")!;

function unwrap<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
}

function compiled(graph: Graph, rewrite: "on" | "off"): CompiledModel {
  const model: Model = { graph, weights: noWeights };
  return unwrap(compileModel(model, { target, rewrite }));
}

/** (x · y) · z, where the other order takes a sixteenth of the operations. */
function chain(): Graph {
  const b = new GraphBuilder("chain");
  const [x, y, z] = [
    [64, 4],
    [4, 64],
    [64, 4],
  ].map((shape, i) => b.input(`x${i}`, tensorType("f32", ...shape)));
  return b.finish([b.matMul(b.matMul(x!, y!), z!)]);
}

/** Nothing here can be had cheaper. */
function plain(): Graph {
  const b = new GraphBuilder("plain");
  const x = b.input("x", tensorType("f32", 8, 8));
  return b.finish([b.apply("tanh", x)]);
}

const endless = "(add (neg (neg ?x)) ?y)";

it("runs a convolution in lanes whose results are normed over the channels around", () => {
  const b = new GraphBuilder("normed");
  const x = b.input("x", tensorType("f32", 1, 16, 15, 15));
  const w = b.weight("w", tensorType("f32", 32, 16, 3, 3));
  const window = { strides: [1, 1], padLow: [1, 1], padHigh: [1, 1], dilations: [1, 1], groups: 1 };
  const maps = b.apply("relu", b.node("convolution", [x, w], window));
  const graph = b.finish([b.node("lrn", [maps], { size: 5, alpha: 1e-4, beta: 0.75, bias: 1 })]);
  const avx2 = targets.get("x64-avx2")!;
  const { regions } = unwrap(compileModel({ graph, weights: noWeights }, { target: avx2 }));
  const largest = regions.reduce((a, r) => (r.flops > a.flops ? r : a));
  expect(printSchedule(largest.scheduled.schedule)).toContain("vectorize");
});

describe("compiling with rewriting", () => {
  it("takes the rewritten graph where the search prices it lower", () => {
    const [on, off] = [compiled(chain(), "on"), compiled(chain(), "off")];
    expect(on.certificate.objectivePs).toBeLessThan(off.certificate.objectivePs);
    const rng = new Rng(3);
    const inputs = [
      [64, 4],
      [4, 64],
      [64, 4],
    ].map((shape) => randomRef("f32", shape, rng));
    const expected = unwrap(runGraph(off.model.graph, inputs, off.model.weights));
    const actual = unwrap(runGraph(on.model.graph, inputs, on.model.weights));
    expect(worstDifference(actual[0]!, expected[0]!).relative).toBeLessThanOrEqual(1e-4);
  });

  it("gives what compiling without it does where nothing is cheaper", () => {
    const [on, off] = [compiled(plain(), "on"), compiled(plain(), "off")];
    expect(on.certificate).toEqual(off.certificate);
    expect(on.regions.map((r) => r.name)).toEqual(off.regions.map((r) => r.name));
    expect(on.competitors).toHaveLength(1);
    expect(off.rewritten).toBe(undefined);
  });

  it("gives the search several graphs and the import, and keeps one that is not dearer", () => {
    const { competitors } = compiled(chain(), "on");
    expect(competitors.length).toBeGreaterThan(1);
    expect(competitors.at(-1)!.savedNs).toBe(0);
    const kept = competitors.filter((c) => c.isKept);
    expect(kept).toHaveLength(1);
    for (const other of competitors) {
      expect(kept[0]!.estimateNs!).toBeLessThanOrEqual(other.estimateNs!);
    }
  });

  it("holds what is saved against the price of the regions that change", () => {
    const region = (key: string, ns: number) => ({ key, ns });
    const before = [region("same", 900), region("same", 900), region("old", 200)];
    const after = [region("same", 900), region("same", 900), region("new", 190)];
    // A tenth of all changes, so that 0.1 % of all is 1 % of it; and never less than 0.2 % of all.
    expect(isToldApart(0.0021, before, after)).toBe(true);
    expect(isToldApart(0.0019, before, after)).toBe(false);
    const others = [region("other", 900), region("same", 900), region("new", 190)];
    expect(isToldApart(0.0054, before, others)).toBe(false);
    expect(isToldApart(0.0056, before, others)).toBe(true);
  });

  it("counts on grids of blocks neither launches that are saved nor those that cost little", () => {
    const launchNs = { value: 1000, origin: "predicted" as const, source: "test" };
    const before = { ns: 100_000, kernels: 20 };
    const isWorthIt = (ns: number, kernels: number): boolean =>
      isToldApartOnBlocks(before, { ns, kernels }, { launchNs });
    expect(isWorthIt(94_000, 20)).toBe(true);
    expect(isWorthIt(94_000, 18)).toBe(false);
    expect(isWorthIt(96_000, 22)).toBe(false);
    expect(isWorthIt(94_000, 22)).toBe(true);
  });

  it("leaves out a graph that is refused, with GRF016, and takes the next", () => {
    const refused = fail(diagnostic("MEM002", "too large"));
    const made = firstMade(["dear", "import"], (graph) =>
      graph === "import" ? ok(graph) : refused,
    );
    expect(made).toMatchObject({
      ok: true,
      value: "import",
      warnings: [
        { code: "GRF016", severity: "warning", notes: [expect.stringContaining("MEM002")] },
      ],
    });
    expect(firstMade(["import"], () => refused)).toEqual(refused);
  });
});

/** max(max(x, -200), -100), behind a sum. */
function bounded(): Graph {
  const b = new GraphBuilder("bounded");
  const x = b.input("x", tensorType("f32", 8, 8));
  const atLeast = (v: ValueId, low: number) => b.applyNumber("max", v, low);
  return b.finish([atLeast(atLeast(b.add(x, x), -200), -100)]);
}

describe("rules that a caller gives", () => {
  const compileWith = (graph: Graph, rules: readonly RuleRow[]) =>
    compileModel({ graph, weights: noWeights }, { target, rewrite: "on", rules });

  it.each<[string, Graph, RuleRow, string]>([
    ["a rule that is not well formed", chain(), row("odd", "exact", "(neg ?x", "?x"), "EGR001"],
    ["a variable that nothing binds", chain(), row("open", "exact", "(neg ?x)", "?y"), "EGR002"],
    // False of what no trial draws.
    [
      "facts that contradict each other",
      bounded(),
      row("rare", "reassociates", "(max ?x ?c)", "?x", "all(c, -100); whole(x); float(x)"),
      "EGR003",
    ],
    ["rules without end", bounded(), row("endless", "exact", "(add ?x ?y)", endless), "EGR004"],
    ["a rule that is not true", chain(), row("lie", "exact", "(relu ?x)", "?x"), "EGR006"],
  ])("%s end in a warning that names the rule, and the import", (_, graph, rule, code) => {
    const before = printGraph(graph);
    const result = compileWith(graph, [rule]);
    expect(result).toMatchObject({
      ok: true,
      warnings: [{ code, severity: "warning", at: `rule "${rule.name}"` }],
    });
    const off = compileModel({ graph, weights: noWeights }, { target, rewrite: "off" });
    expect(printGraph(unwrap(result).model.graph)).toBe(printGraph(unwrap(off).model.graph));
    expect(printGraph(graph)).toBe(before);
  });

  it("ends within a budget and keeps what it found until then (EGR004)", () => {
    const result = compileWith(chain(), [
      row("endless", "exact", "(contract[?a] ?x ?y)", "(contract[?a] (neg (neg ?x)) ?y)"),
    ]);
    expect(result).toMatchObject({ ok: true, warnings: [{ code: "EGR004" }] });
  });

  it("are used where they hold", () => {
    const rule = row("tanh-is-odd", "exact", "(neg (tanh (neg ?x)))", "(tanh ?x)");
    const b = new GraphBuilder("odd");
    const x = b.input("x", tensorType("f32", 8, 8));
    const graph = b.finish([b.apply("neg", b.apply("tanh", b.apply("neg", x)))]);
    const found = unwrap(compileWith(graph, [rule]));
    expect(found.model.graph.nodes.map((node) => node.op)).toEqual(["tanh"]);
  });
});

it("asks for bounds of what nobody bounded (CLI005)", () => {
  const b = new GraphBuilder("open");
  const x = b.input("x", tensorType("f32", b.symbol("N", 1), 4));
  const graph = b.finish([b.add(x, x)]);
  for (const name of ["wasm", "x64-avx2", "h200"]) {
    const made = compileModel({ graph, weights: noWeights }, { target: targets.get(name)! });
    expect(made.ok ? [] : made.diagnostics.map((d) => d.code)).toEqual(["CLI005"]);
  }
});
