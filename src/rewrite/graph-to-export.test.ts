/** What is written for other runtimes: branches stay, each rewritten, and no path is dearer than it was. */
import { expect, test } from "vitest";
import { OperatorPricer } from "../cost/price-operators.ts";
import { GraphBuilder } from "../graph/builder.ts";
import type { Graph, Model, ValueId } from "../graph/graph.ts";
import { subgraphsOf } from "../graph/op-table.ts";
import type { OpWriter } from "../graph/op-writer.ts";
import { tensorType } from "../graph/tensor-type.ts";
import { runGraph } from "../interp/graph.ts";
import { randomRef, refTensor } from "../semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../support/diagnostic.ts";
import { Rng } from "../support/rng.ts";
import { targets } from "../target/index.ts";
import { worstDifference } from "../verdict/tolerance.ts";
import { chooseExport, type GraphToExport } from "./graph-to-export.ts";

const width = 64;

function unwrap<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
}

function exported(model: Model): GraphToExport {
  const pricer = new OperatorPricer(targets.get("wasm")!);
  return unwrap(chooseExport(model, { pricer, rules: [] }));
}

function finished(b: GraphBuilder, outputs: readonly ValueId[]): Model {
  const graph = b.finish(outputs);
  return { graph, weights: { read: (key) => b.storedConstants.get(key)! } };
}

function opsOf(graph: Graph): readonly string[] {
  return graph.nodes.flatMap((node) => [node.op, ...subgraphsOf(node).flatMap(opsOf)]);
}

function weight(w: OpWriter, seed: number): ValueId {
  const { data } = randomRef("f32", [width, width], new Rng(seed));
  const scaled = Float32Array.from(data as ArrayLike<number>, (v) => v / Math.sqrt(width));
  return w.constant({ dtype: "f32", shape: [width, width], data: scaled });
}

function times(w: OpWriter, x: ValueId, seed: number): ValueId {
  const labels = { lhs: ["i", "k"], rhs: ["k", "j"], output: ["i", "j"] };
  return w.node("contract", [x, weight(w, seed)], { ...labels, accumulator: "f32" });
}

/** Two products of one operand, which are one. */
function two(w: OpWriter, x: ValueId): ValueId {
  return w.add(times(w, x, 1), times(w, x, 2));
}

/** A branch that the data choose: `heavy`, or the values as they are. */
function branching(heavy: (w: OpWriter, x: ValueId) => ValueId): Model {
  const b = new GraphBuilder("branching");
  const [go, x] = [b.input("go", tensorType("bool")), b.input("x", tensorType("f32", 1, width))];
  const inputs = [{ name: "x0", type: b.typeOf(x) }];
  const before = two(b, x);
  return finished(
    b,
    b.nodes("if", [go, before], {
      then: b.subgraph("yes", inputs, (w, [v]) => [heavy(w, v!)]),
      else: b.subgraph("no", inputs, (_, [v]) => [v!]),
    }),
  );
}

test("a branch that the data choose stays one, and both it and what stands around it are rewritten", () => {
  const source = branching(two);
  const { graph } = source;
  const { model, importNs, exportNs } = exported(source);
  expect(opsOf(graph).filter((op) => op === "contract")).toHaveLength(4);
  expect(opsOf(model.graph).filter((op) => op === "contract")).toHaveLength(2);
  expect(opsOf(model.graph)).toContain("if");
  expect(opsOf(model.graph)).not.toContain("select");
  expect(exportNs).toBeLessThan(importNs);
  for (const go of [0, 1]) {
    const inputs = [refTensor("bool", [], [go]), randomRef("f32", [1, width], new Rng(go))];
    const [want] = unwrap(runGraph(graph, inputs, source.weights));
    const [found] = unwrap(runGraph(model.graph, inputs, model.weights));
    expect(worstDifference(found!, want!).relative).toBeLessThan(1e-5);
  }
});

test("a norm that runtimes recognise is no reason to write another graph", () => {
  const b = new GraphBuilder("norm");
  const x = b.input("x", tensorType("f32", 8, width));
  const mean = (v: ValueId) => b.applyNumber("div", b.reduce("sum", v, [1], true), width);
  const low = b.sub(x, mean(x));
  const square = b.node("pow", [low, b.scalar(2, "f32")], {});
  const deviation = b.apply("sqrt", b.applyNumber("add", mean(square), 1e-5));
  const scale = b.constant({ dtype: "f32", shape: [width], data: new Float32Array(width).fill(2) });
  const source = finished(b, [b.mul(b.div(low, deviation), scale)]);
  const { model, importNs, exportNs } = exported(source);
  expect(model).toBe(source);
  expect(exportNs).toBe(importNs);
});
