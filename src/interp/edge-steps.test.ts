import { describe, expect, it } from "vitest";
import { GraphBuilder } from "../graph/builder.ts";
import { tensorType } from "../graph/tensor-type.ts";
import { type RefTensor, randomRef, refTensor } from "../semantics/tensor.ts";
import { Rng } from "../support/rng.ts";
import { errorsOf, isQuantised, moveTolerances, worstDifference } from "../verdict/tolerance.ts";
import { noWeights, runGraph, runNearEdges } from "./graph.ts";

const [depth, width] = [64, 32];

/**
 * Two layers of bytes as they are quantised when they run; of the first one the values are lowered by so many steps
 * before, as a program would that rounds in another direction.
 */
function layers(lowered = 0) {
  const g = new GraphBuilder("layers");
  let x = g.input("x", tensorType("f32", 16, depth));
  const weights = [depth, width].map((rows, i) => g.input(`w${i}`, tensorType("f32", rows, width)));
  for (const [i, weight] of weights.entries()) {
    const [, scale, zero] = g.nodes("dynamicQuantizeLinear", [x], {});
    const shift = g.mul(scale!, g.scalar(i === 0 ? lowered : 0, "f32"));
    const all = { to: "u8", saturate: true } as const;
    const bytes = g.node("quantize", [g.sub(x, shift), scale!, zero!], all);
    const real = g.node("dequantize", [bytes, scale!, zero!], { to: "f32" });
    x = g.einsum("i k, k j -> i j", real, weight, "f32");
  }
  return g.finish([x]);
}

function outputs(found: ReturnType<typeof runGraph>): readonly RefTensor[] {
  if (!found.ok) throw new Error(found.diagnostics[0]!.message);
  return found.value;
}

describe("the other side of steps", () => {
  it("moves what lies within its error of an edge by one step, and nothing else", () => {
    const g = new GraphBuilder("g");
    const x = g.input("x", tensorType("f32", 6));
    const y = g.nodes("dynamicQuantizeLinear", [g.mul(x, g.scalar(0.5, "f32"))], {})[0]!;
    const graph = g.finish([y]);
    expect(isQuantised(graph)).toBe(true);
    // A scale of 1: 2.5 - 1e-6, 2.5 + 1e-6 and 2.5 lie at an edge, 2.6 and the ends do not.
    const values = [0, 510, 5 - 2e-6, 5 + 2e-6, 5, 5.2].map(Math.fround);
    const inputs = [refTensor("f32", [6], values)];
    const near = outputs(runNearEdges(graph, inputs, noWeights, errorsOf))[0]!;
    expect([...outputs(runGraph(graph, inputs))[0]!.data]).toEqual([0, 255, 2, 3, 2, 3]);
    expect([...near.data]).toEqual([0, 255, 3, 2, 3, 3]);
  });

  it("is the tolerance of what follows, which another rounding is beyond", () => {
    const graph = layers();
    const shapes = [
      [16, depth],
      [depth, width],
      [width, width],
    ];
    const inputs = shapes.map((shape, i) => randomRef("f32", shape, new Rng(i)));
    const expected = outputs(runGraph(graph, inputs));
    // More error than f32 has, so that some of the few values lie near an edge.
    const errors = (of: typeof graph) =>
      new Map([...errorsOf(of)].map(([value, error]) => [value, 10 * error] as const));
    const near = outputs(runNearEdges(graph, inputs, noWeights, errors));
    const [tolerance] = moveTolerances(near, expected);
    const [none] = moveTolerances(
      outputs(runNearEdges(graph, inputs, noWeights, () => new Map())),
      expected,
    );
    expect(none).toBe(0);
    expect(tolerance).toBeGreaterThan(1e-4);
    const down = outputs(runGraph(layers(0.5), inputs));
    expect(worstDifference(down[0]!, expected[0]!).relative).toBeGreaterThan(tolerance!);
  });
});
