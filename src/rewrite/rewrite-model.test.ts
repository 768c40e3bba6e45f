/** Whole graphs through the rewriter: equal by the oracle, never dearer, the same every time. */
import { describe, expect, it } from "vitest";
import { GraphPricer } from "../cost/price-graph.ts";
import { GraphBuilder } from "../graph/builder.ts";
import type { Graph, Model, ValueId } from "../graph/graph.ts";
import { printGraph } from "../graph/graph-text.ts";
import { randomGraph } from "../graph/random-graph.ts";
import { tensorType } from "../graph/tensor-type.ts";
import { verifyGraph } from "../graph/verify.ts";
import { runGraph } from "../interp/graph.ts";
import { evaluate } from "../semantics/index-expr.ts";
import { fromRef, type RefTensor, randomRef, type Tensor } from "../semantics/tensor.ts";
import { diagnostic, fail, formatDiagnostic, type Result } from "../support/diagnostic.ts";
import { Rng } from "../support/rng.ts";
import { targets } from "../target/index.ts";
import { worstDifference } from "../verdict/tolerance.ts";
import { lowerToCore, type RewriteOptions, type Rewritten, rewriteModel } from "./rewrite-model.ts";
import { row } from "./rule-row.ts";

const target = targets.get("wasm")!;
const pricer = () => new GraphPricer(target);

function unwrap<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
}

function rewrite(model: Model, options: Partial<RewriteOptions> = {}): Rewritten {
  return unwrap(rewriteModel(model, { pricer: pricer(), ...options }));
}

/** A model of a graph, weights drawn by their names. */
function withWeights(graph: Graph): Model {
  const drawn = new Map<string, Tensor>();
  const read = (key: string): Tensor => {
    const known = drawn.get(key);
    if (known) return known;
    const weight = graph.weights.find((w) => w.source.kind === "stored" && w.source.key === key)!;
    const { dtype, shape } = graph.values[weight.value]!.type;
    const concrete = shape.map((d) => evaluate(d, new Map()));
    const tensor = fromRef(randomRef(dtype, concrete, new Rng(key.length * 7 + key.charCodeAt(0))));
    drawn.set(key, tensor);
    return tensor;
  };
  return { graph, weights: { read } };
}

function inputsOf(graph: Graph, seed: number): RefTensor[] {
  const rng = new Rng(seed);
  const symbols = new Map(graph.symbols.map((s) => [s.name, Math.min(s.max, Math.max(s.min, 3))]));
  return graph.inputs.map((id) => {
    const { dtype, shape } = graph.values[id]!.type;
    return randomRef(
      dtype,
      shape.map((d) => evaluate(d, symbols)),
      rng,
    );
  });
}

function expectEqual(model: Model, found: Model, tolerance: number): void {
  const inputs = inputsOf(model.graph, 5);
  const expected = unwrap(runGraph(model.graph, inputs, model.weights));
  const actual = unwrap(runGraph(found.graph, inputs, found.weights));
  for (const [i, value] of expected.entries()) {
    expect(worstDifference(actual[i]!, value).relative).toBeLessThanOrEqual(tolerance);
  }
}

/** x · wq, x · wk, x · wv with biases, scaled scores, softmax, values, a gate: a small layer. */
function layers(count: number): Graph {
  const b = new GraphBuilder("layers");
  const width = 16;
  let x = b.input("x", tensorType("f32", 5, width));
  for (let i = 0; i < count; i++) {
    const named = (name: string, make: () => ValueId) => b.withOrigin(`layer ${i} ${name}`, make);
    const linear = (name: string) => {
      const w = b.weight(`${name}${i}`, tensorType("f32", width, width));
      const bias = b.weight(`${name}${i}.bias`, tensorType("f32", width));
      return named(name, () => b.add(b.matMul(x, w), bias));
    };
    const [q, k, v] = [linear("q"), linear("k"), linear("v")];
    const scores = named("scores", () =>
      b.applyNumber("div", b.einsum("i k, j k -> i j", q, k), 4),
    );
    const mixed = named("mixed", () => b.matMul(b.node("softmax", [scores], { axis: 1 }), v));
    const gated = named("gate", () => b.node("silu", [linear("g")], {}));
    x = named("sum", () => b.add(x, b.mul(mixed, gated)));
  }
  return b.finish([x]);
}

describe("rewriting", () => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8])("random graph %i stays what it computes", (seed) => {
    const graph = randomGraph({ seed, nodes: 14, symbolic: seed % 2 === 0 });
    const model = withWeights(graph);
    const found = rewrite(model, { wholes: 2 });
    expect(found.best.savedNs).toBeGreaterThanOrEqual(0);
    for (const { model: candidate } of found.candidates) {
      const lowered = lowerToCore(candidate);
      expect(verifyGraph(lowered.graph)).toEqual([]);
      expectEqual(model, lowered, 1e-4);
    }
  });

  it("merges the products of an attention layer and lowers its price", () => {
    const model = withWeights(layers(1));
    const found = rewrite(model);
    expect(found.best.savedNs).toBeGreaterThan(0);
    expectEqual(model, found.best.model, 1e-5);
  });

  it("saturates equal layers once and gives the same text every time", () => {
    const found = rewrite(withWeights(layers(12)));
    const repeated = found.parts.find((p) => p.segments.length > 1)!;
    expect(repeated.segments.length).toBeGreaterThanOrEqual(9);
    const again = rewrite(withWeights(layers(12)));
    expect(printGraph(again.best.model.graph)).toBe(printGraph(found.best.model.graph));
  });

  it("says of every node which one of the model it comes from", () => {
    const found = rewrite(withWeights(layers(6))).best.model.graph;
    const of = (origin: string) => found.nodes.filter((n) => n.origin === origin).length;
    for (let i = 1; i < 5; i++) {
      for (const name of ["scores", "gate", "sum"]) {
        expect(of(`layer ${i} ${name}`), `layer ${i} ${name}`).toBe(of(`layer 2 ${name}`));
        expect(of(`layer ${i} ${name}`), `layer ${i} ${name}`).toBeGreaterThan(0);
      }
    }
    expect(found.nodes.filter((n) => !n.origin?.startsWith("layer"))).toEqual([]);
  });

  it("takes at most 1.3 times the saturation of 2 layers for 24", () => {
    const size = (count: number) =>
      rewrite(withWeights(layers(count))).parts.reduce((sum, p) => sum + p.eNodes, 0);
    expect(size(24)).toBeLessThanOrEqual(1.3 * size(2));
  });

  it("names a false rule and gives the import back (EGR003)", () => {
    const model = withWeights(layers(2));
    const lie = row("lie", "exact", "(contract[?a] ?x ?w)", "?x");
    const phases = [{ name: "lies", rules: [{ ...lie, right: () => 1 }], iterations: 2 }];
    const result = rewriteModel(model, { pricer: pricer(), phases });
    expect(result.ok).toBe(true);
    if (!result.ok) return;
    expect(result.warnings.map((d) => [d.code, d.severity, d.at])).toContainEqual([
      "EGR003",
      "warning",
      'rule "lie"',
    ]);
    expect(result.warnings[0]?.notes).toContain("rules that had changed something: lie");
    expect(result.value.best.model).toBe(model);
  });

  it("names a rule with an unknown condition and gives the import back (EGR001)", () => {
    const rules = [row("odd", "exact", "(neg ?x)", "?x", "everlasting(x)")];
    const phases = [{ name: "odd", rules, iterations: 1 }];
    const model = withWeights(layers(1));
    const result = rewriteModel(model, { pricer: pricer(), phases });
    expect(result).toMatchObject({
      ok: true,
      warnings: [{ code: "EGR001", severity: "warning", at: 'rule "odd"' }],
    });
    expect(unwrap(result).best.model).toBe(model);
    expect(unwrap(result).candidates).toHaveLength(1);
  });

  it("leaves a candidate out that cannot be priced, and says why", () => {
    const model = withWeights(layers(1));
    const priced = pricer();
    let graphs = 0;
    const refusing: RewriteOptions["pricer"] = {
      op: (call, ranges) => priced.op(call, ranges),
      region: (name) => priced.region(name),
      // Of a part first the import is priced, then what was found.
      regions: (graph) =>
        graphs++ === 0 ? priced.regions(graph) : fail(diagnostic("GRF016", "no price")),
    };
    const result = rewriteModel(model, { pricer: refusing, wholePrices: false });
    expect(result).toMatchObject({ ok: true, warnings: [{ code: "GRF016", severity: "warning" }] });
    expect(unwrap(result).best.model).toBe(model);
  });

  it("keeps within a budget that the rules exhaust, and says which one did (EGR004)", () => {
    const model = withWeights(layers(1));
    const options = { pricer: pricer(), budget: { nodes: 60, work: 2000 } };
    const result = rewriteModel(model, options);
    expect(result.ok).toBe(true);
    if (!result.ok) return;
    const { parts, best } = result.value;
    expect(parts.every((p) => p.eNodes <= 70 || p.nodes > 60)).toBe(true);
    expect(best.savedNs).toBeGreaterThanOrEqual(0);
    const [warning] = result.warnings;
    expect(warning).toMatchObject({ code: "EGR004", severity: "warning" });
    expect(warning!.at).toMatch(/^rule "/);
    expectEqual(model, lowerToCore(best.model), 1e-5);
  });

  it("ends a rule that never ends by the budget, names it, and gives the import back", () => {
    const endless = row("endless", "exact", "(add ?x ?y)", "(add (neg (neg ?x)) ?y)");
    const phases = [{ name: "endless", rules: [endless], iterations: 1_000_000 }];
    const model = withWeights(layers(2));
    const before = printGraph(model.graph);
    const budget = { nodes: 500, work: 100_000 };
    const result = rewriteModel(model, { pricer: pricer(), phases, budget });
    expect(result.ok).toBe(true);
    if (!result.ok) return;
    expect(result.warnings.map((d) => [d.code, d.at])).toEqual([["EGR004", 'rule "endless"']]);
    expect(result.value.best.model).toBe(model);
    expect(printGraph(model.graph)).toBe(before);
  });
});

describe("explaining", () => {
  it("names the rules that lead to each candidate, and the same graph comes out", () => {
    const model = withWeights(layers(2));
    const plain = rewrite(model);
    const explained = rewrite(model, { explain: true });
    expect(printGraph(explained.best.model.graph)).toBe(printGraph(plain.best.model.graph));
    const chains = explained.parts.flatMap((p) => p.chains.flat());
    expect(chains.map((c) => c.rule)).toContain("div-power-of-two");
    expect(chains.every((c) => c.uses > 0)).toBe(true);
  });
});
