/** Concatenations in concatenations: equal results, and which of them are nested. */
import { expect, it } from "vitest";
import { runGraph } from "../../interp/graph.ts";
import { randomRef } from "../../semantics/tensor.ts";
import { Rng } from "../../support/rng.ts";
import type { Graph } from "../graph.ts";
import { parseGraph, printGraph } from "../graph-text.ts";
import { eliminateDeadCode } from "./clean.ts";
import { nestConcats } from "./nested-concats.ts";

function graphOf(lines: string, outputs: string): Graph {
  const graph = parseGraph(`graph "g" (a: f32[2, 1], b: f32[2, 2], c: f32[2, 3]) -> (${outputs}) {
${lines}}
`);
  if (!graph.ok) throw new Error(graph.diagnostics[0]!.message);
  return graph.value;
}

/** Operands of each concatenation, after the pass; results stay. */
function nested(lines: string, outputs: string): readonly string[] {
  const graph = graphOf(lines, outputs);
  const after = eliminateDeadCode(nestConcats(graph).graph);
  const rng = new Rng(3);
  const inputs = [1, 2, 3].map((n) => randomRef("f32", [2, n], rng));
  const [want, found] = [graph, after].map((g) => runGraph(g, inputs));
  expect(found).toEqual(want);
  return [...printGraph(after).matchAll(/concat\(([^)]*)\)/g)].map((m) => m[1]!);
}

const pair = "  p = concat(a, b) {axis: 1} : f32[2, 3]\n";
const wide = (operands: string, count: number): string =>
  `  q = concat(${operands}) {axis: 1} : f32[2, ${count}]\n`;

it("takes what an earlier one joins, at the begin or at the end, and the most of it", () => {
  expect(nested(pair + wide("a, b, c", 6), "p, q")).toEqual(["a, b", "p, c"]);
  expect(nested(pair + wide("c, a, b", 6), "p, q")).toEqual(["a, b", "c, p"]);
  const three = `${pair}  t = concat(a, b, c) {axis: 1} : f32[2, 6]\n`;
  expect(nested(three + wide("a, b, c, b, a", 9), "p, t, q")).toEqual(["a, b", "p, c", "t, b, a"]);
});

it("leaves others alone: in between, along another axis, in another order, or later ones", () => {
  expect(nested(pair + wide("c, a, b, c", 9), "p, q")).toEqual(["a, b", "c, a, b, c"]);
  expect(nested(pair + wide("b, a, c", 6), "p, q")).toEqual(["a, b", "b, a, c"]);
  expect(nested(wide("a, b, c", 6) + pair, "p, q")).toEqual(["a, b, c", "a, b"]);
  const down = "  p = concat(a, a) {axis: 0} : f32[4, 1]\n";
  expect(nested(down + wide("a, a, b", 4), "p, q")).toEqual(["a, a", "a, a, b"]);
  expect(nested(pair + wide("a, b", 3), "p, q")).toEqual(["a, b", "a, b"]);
});
