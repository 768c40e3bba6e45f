import { describe, expect, it } from "vitest";
import { compileModel } from "../../compile.ts";
import { noWeights, runGraph } from "../../interp/graph.ts";
import { numbersOf, refTensor } from "../../semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { Rng } from "../../support/rng.ts";
import { targets } from "../../target/index.ts";
import { GraphBuilder } from "../builder.ts";
import type { Graph } from "../graph.ts";
import { tensorType } from "../tensor-type.ts";
import { lateFactors } from "./late-factors.ts";

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

/** (x / 8) transposed, times y; what is scaled is given out as well where `isShown`. */
function scaledProduct(isShown: boolean): Graph {
  const g = new GraphBuilder("scaled");
  const x = g.input("x", tensorType("f32", 6, 4));
  const y = g.input("y", tensorType("f32", 6, 5));
  const scaled = g.applyNumber("mul", x, 0.125);
  const product = g.matMul(g.transpose(scaled, [1, 0]), y);
  return g.finish(isShown ? [product, scaled] : [product]);
}

const nodesBefore = ({ nodes }: Graph): readonly string[] => {
  const at = nodes.findIndex((n) => n.op === "contract");
  return nodes.slice(0, at).map((n) => n.op);
};

describe("factors of operands in f32", () => {
  it("are behind the sums, through what only moves elements", () => {
    const graph = scaledProduct(false);
    const made = lateFactors(graph).graph;
    expect(made.nodes.at(-1)!.op).toBe("mul");
    const rng = new Rng(2);
    const inputs = [24, 30].map((count, i) => {
      const data = Array.from({ length: count }, () => Math.fround(rng.normal()));
      return refTensor("f32", [6, i === 0 ? 4 : 5], data);
    });
    const [want] = take(runGraph(graph, inputs));
    const [found] = take(runGraph(made, inputs));
    numbersOf(found!).forEach((v, i) => {
      expect(v).toBeCloseTo(numbersOf(want!)[i]!, 6);
    });
  });

  it("stay where what they scale is read elsewhere", () => {
    expect(nodesBefore(lateFactors(scaledProduct(true)).graph)).toContain("mul");
  });

  it("leave attention in f32 three kernels on blocks", () => {
    const g = new GraphBuilder("attention");
    const parts = ["q", "k", "v"].map((name) => g.input(name, tensorType("f32", 1, 4, 96, 64)));
    const attrs = { scale: 0.125, causal: "start", mask: false, softcap: 0 } as const;
    const graph = g.finish([g.node("attention", parts, attrs)]);
    const model = { graph, weights: noWeights };
    const { plan } = take(compileModel(model, { target: targets.get("h200")! }));
    expect(plan.program.kernels).toHaveLength(3);
  });
});
