import { expect, it } from "vitest";
import { parseGraph } from "./graph-text.ts";
import { positionInputs } from "./position-inputs.ts";

/** Of each input what its elements must be less than. */
function limitsOf(text: string): Readonly<Record<string, readonly string[]>> {
  const read = parseGraph(text);
  if (!read.ok) throw new Error(read.diagnostics.map((d) => d.message).join());
  const graph = read.value;
  const found = [...positionInputs(graph)].map(([v, extents]) => [
    graph.values[v]!.name,
    extents.map((e) => e.key),
  ]);
  return Object.fromEntries(found) as Record<string, string[]>;
}

it("follows positions back through what moves, converts and picks them", () => {
  const found = limitsOf(`graph "g" (ids: i32[2, 6], at: i64[1], x: f32[6]) -> (y, z) {
  table = constant f32[3, 2] (1, 2, 3, 4, 5, 6)
  flat = reshape(ids) {shape: [12]} : i32[12]
  wide = cast(flat) {to: i64, saturate: true} : i64[12]
  one = gather(wide, at) {axis: 0} : i64[1]
  y = gather(table, one) {axis: 0} : f32[1, 2]
  z = neg(x) : f32[6]
}
`);
  expect(found).toEqual({ ids: ["3"], at: ["12"] });
});

it("knows the axes of rows of positions, and what is no position", () => {
  const found = limitsOf(`graph "g" (rows: i64[5, 2], n: i64[5]) -> (y, m) {
  table = constant f32[3, 2] (1, 2, 3, 4, 5, 6)
  y = gatherNd(table, rows) {batchDims: 0} : f32[5]
  m = add(n, n) : i64[5]
}
`);
  expect(found).toEqual({ rows: ["3", "2"] });
});
