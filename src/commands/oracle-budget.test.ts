import { expect, it } from "vitest";
import { parseGraph } from "../graph/graph-text.ts";
import { oracleSeconds, shapesWithin } from "./actions/oracle-budget.ts";

function product(rows: string, where = "") {
  const graph = parseGraph(`graph g(x: f32[${rows}, 1000], w: f32[1000, 1000]) -> (y) ${where} {
    y = contract(x, w) {lhs: "i k", rhs: "k j", output: "i j", accumulator: f32} : f32[${rows}, 1000]
  }`);
  if (!graph.ok) throw new Error(graph.diagnostics[0]!.message);
  return graph.value;
}

it("takes the largest shapes that fit the budget", () => {
  const graph = product("M", "where 1 <= M <= 4000");
  expect(oracleSeconds(graph, new Map([["M", 1000]]))).toBeCloseTo(2.02, 2);
  expect(shapesWithin(graph, 10, 1)?.get("M")).toBe(4000);
  const rows = shapesWithin(graph, 1, 1)!.get("M")!;
  expect(rows).toBeGreaterThan(100);
  expect(rows).toBeLessThan(500);
  expect(shapesWithin(graph, 1e-6, 1)).toBeUndefined();
});

it("has no choice where shapes are fixed", () => {
  expect(shapesWithin(product("1000"), 3, 1)).toEqual(new Map());
  expect(shapesWithin(product("1000"), 1, 1)).toBeUndefined();
});
