/** The scale of attention in narrow types: results are off by roundings, which have no direction, and by no factor. */
import { expect, it } from "vitest";
import { runGraph } from "../interp/graph.ts";
import { constant } from "../semantics/index-expr.ts";
import { refTensor } from "../semantics/tensor.ts";
import { Rng } from "../support/rng.ts";
import { GraphBuilder } from "./builder.ts";
import { expandComposites } from "./transforms/expand-composites.ts";

const rows = 200;

it.each([64, 80, 96, 112, 128])("attention in bf16 with heads of %i", (depth) => {
  const g = new GraphBuilder("attention");
  const input = (name: string, lines: number) =>
    g.input(name, { dtype: "bf16", shape: [1, 1, lines, depth].map((n) => constant(n)) });
  const operands = [input("q", rows), input("k", 2), input("v", 2)];
  const attrs = { scale: 1 / Math.sqrt(depth), causal: "none", softcap: 0, mask: false } as const;
  const graph = expandComposites(g.finish([g.node("attention", operands, attrs)])).graph;
  // One column has a score, the other one none and a large value: what comes out is its small weight.
  const rng = new Rng(depth);
  const query = Array.from({ length: rows * depth }, () => 1 + rng.integer(0, 127) / 128);
  const both = (first: number, second: number): number[] =>
    Array.from({ length: 2 * depth }, (_, i) => (i < depth ? first : second));
  const found = runGraph(graph, [
    refTensor("bf16", [1, 1, rows, depth], query),
    refTensor("bf16", [1, 1, 2, depth], both(1, 0)),
    refTensor("bf16", [1, 1, 2, depth], both(0, 1)),
  ]);
  if (!found.ok) throw new Error(found.diagnostics[0]!.message);
  const off = Array.from({ length: rows }, (_, row) => {
    const sum = query.slice(row * depth, (row + 1) * depth).reduce((a, b) => a + b, 0);
    const weight = Number(found.value[0]!.data[row * depth]);
    return (Math.log(1 / weight - 1) * Math.sqrt(depth)) / sum - 1;
  });
  expect(Math.abs(off.reduce((a, b) => a + b, 0) / rows)).toBeLessThan(6e-4);
});
