import { describe, expect, it } from "vitest";
import { GraphBuilder } from "../graph/builder.ts";
import { tensorType } from "../graph/tensor-type.ts";
import { randomRef, refTensor } from "../semantics/tensor.ts";
import { Rng } from "../support/rng.ts";
import { worstDifference } from "../verdict/tolerance.ts";
import { noWeights, runGraph, runNudged } from "./graph.ts";
import { nudged } from "./nudged.ts";

describe("values of another rounding", () => {
  it("are neighbours, on both sides, and the same for the same place", () => {
    const x = randomRef("f32", [1000], new Rng(1));
    const y = nudged(x, 3);
    const steps = Array.from(x.data as Float64Array, (v, i) => {
      const [bits] = new Int32Array(Float32Array.of(v).buffer);
      const [other] = new Int32Array(Float32Array.of(Number(y.data[i])).buffer);
      return other! - bits!;
    });
    expect(steps.every((s) => s === 1 || s === -1)).toBe(true);
    expect(Math.abs(steps.reduce((a, b) => a + b, 0))).toBeLessThan(150);
    expect(nudged(x, 3)).toEqual(y);
    expect(nudged(x, 4)).not.toEqual(y);
  });

  it("leave whole numbers, infinities and the largest value", () => {
    const largest = Math.fround(3.4028234663852886e38);
    const x = refTensor("f32", [5], [0, 7, -3, Infinity, largest]);
    expect([...nudged(x, 1).data]).toEqual([0, 7, -3, Infinity, largest]);
  });

  it("say how much a graph hangs on last bits: a difference of near values, and one of far ones", () => {
    const differenceOf = (by: number) => {
      const g = new GraphBuilder("g");
      const x = g.input("x", tensorType("f32", 64));
      const near = g.mul(x, g.scalar(1.1, "f32"));
      const graph = g.finish([g.sub(g.mul(x, g.scalar(by, "f32")), near)]);
      const inputs = [randomRef("f32", [64], new Rng(2))];
      const [a, b] = [runGraph(graph, inputs), runNudged(graph, inputs, noWeights)];
      if (!a.ok || !b.ok) throw new Error("does not run");
      return worstDifference(b.value[0]!, a.value[0]!).relative;
    };
    expect(differenceOf(1.1001)).toBeGreaterThan(1e-4);
    expect(differenceOf(2.3)).toBeLessThan(1e-6);
  });
});
