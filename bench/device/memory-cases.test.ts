import { describe, expect, it } from "vitest";
import { GraphBuilder } from "../../src/graph/builder.ts";
import { runGraph } from "../../src/interp/graph.ts";
import { constant } from "../../src/semantics/index-expr.ts";
import { randomRef } from "../../src/semantics/tensor.ts";
import { Rng } from "../../src/support/rng.ts";
import { type MemoryCase, memoryCases } from "./memory-cases.ts";

/** The largest difference of sampled lines from what the oracle makes of the whole graph. */
function worst(c: MemoryCase): number {
  const g = new GraphBuilder("case");
  const operands = c.shapes.map((shape, i) =>
    g.input(`x${i}`, { dtype: c.dtype, shape: shape.map((n) => constant(n)) }),
  );
  const graph = g.finish([c.build(g, operands)]);
  const rng = new Rng(7);
  const inputs = c.shapes.map((shape) => randomRef(c.dtype, shape, rng));
  const made = runGraph(graph, inputs);
  if (!made.ok) throw new Error(made.diagnostics[0]!.message);
  const all = Array.from(made.value[0]!.data as ArrayLike<number | bigint>, Number);
  expect(all).toHaveLength(c.results.count);
  const differences = [0, c.lines >> 1, c.lines - 1].flatMap((line) => {
    const parts = c
      .madeOf(line)
      .map(({ start, step, count }, i) =>
        Float64Array.from({ length: count }, (_, n) => Number(inputs[i]!.data[start + n * step])),
      );
    const want = c.line(parts, line);
    const { start, step, count } = c.placesOf(line);
    expect(want).toHaveLength(count);
    return Array.from(want, (v, n) => Math.abs(v - all[start + n * step]!));
  });
  return differences.reduce((a, b) => Math.max(a, b));
}

/** Results of f32, of a size of up to some tens, or of bf16. */
const allowed = ({ results }: MemoryCase): number => (results.dtype === "bf16" ? 0.02 : 1e-4);

describe("memory cases", () => {
  it("lines are what the graphs make of them", () => {
    const small = memoryCases(128, 2 ** 14).filter(
      ({ dtype, shapes }) => dtype === "f32" && shapes[0]!.reduce((a, b) => a * b, 1) < 2 ** 20,
    );
    expect(small.length).toBeGreaterThan(15);
    for (const c of small) expect([c.name, worst(c) < allowed(c)]).toEqual([c.name, true]);
  });
});
