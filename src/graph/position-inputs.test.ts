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

/** Positions p of rows of a table of five, made of x by these lines. */
const fromTable = (lines: string): Readonly<Record<string, readonly string[]>> =>
  limitsOf(`graph "g" (x: i32[6]) -> (y) {
  table = weight "table" : f32[5, 2]
  n = constant i32[] (5)
  zero = constant i32[] (0)
  ${lines}
  y = gather(table, p) {axis: 0} : f32[6, 2]
}
`);

const idioms: Readonly<Record<string, string>> = {
  "x * !(x < 0) + (x < 0) * (x + n), tested as floats": `
  more = add(x, n) : i32[6]
  f = cast(x) {to: f32, saturate: true} : f32[6]
  fzero = constant f32[] (0)
  less = less(f, fzero) : bool[6]
  not = not(less) : bool[6]
  in = cast(not) {to: i32, saturate: false} : i32[6]
  own = mul(x, in) : i32[6]
  out = cast(less) {to: i32, saturate: false} : i32[6]
  wrapped = mul(out, more) : i32[6]
  p = add(wrapped, own) : i32[6]`,
  "x + n * (x < 0)": `
  less = less(x, zero) : bool[6]
  out = cast(less) {to: i32, saturate: false} : i32[6]
  by = mul(n, out) : i32[6]
  p = add(x, by) : i32[6]`,
  "where(x < 0, x + n, x)": `
  less = less(x, zero) : bool[6]
  more = add(x, n) : i32[6]
  p = select(less, more, x) : i32[6]`,
  "where(x >= 0, x, x + n)": `
  is = lessEqual(zero, x) : bool[6]
  more = add(x, n) : i32[6]
  p = select(is, x, more) : i32[6]`,
  "clip(x, 0, 4)": `
  last = constant i32[] (4)
  p = clip(x, zero, last) {low: true, high: true} : i32[6]`,
  "max(min(x, 4), 0)": `
  last = constant i32[] (4)
  less = min(x, last) : i32[6]
  p = max(less, zero) : i32[6]`,
  "x mod 5": "p = mod(x, n) : i32[6]",
};

it.each(Object.entries(idioms))("follows positions through %s", (_, lines) => {
  expect(fromTable(lines)).toEqual({ x: ["5"] });
});

it("knows how far an offset may lead", () => {
  expect(fromTable("two = constant i32[] (2)\n  p = add(x, two) : i32[6]")).toEqual({ x: ["3"] });
});

it("does not take what is multiplied for a position", () => {
  expect(fromTable("p = mul(x, n) : i32[6]")).toEqual({});
});
