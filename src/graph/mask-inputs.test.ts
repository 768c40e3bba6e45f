import { expect, it } from "vitest";
import { parseGraph } from "./graph-text.ts";
import { maskInputs } from "./mask-inputs.ts";

function masksOf(text: string): readonly string[] {
  const read = parseGraph(text);
  if (!read.ok) throw new Error(read.diagnostics.map((d) => d.message).join());
  const graph = read.value;
  return [...maskInputs(graph)].map((v) => graph.values[v]!.name);
}

it("finds what (1 - mask) times a very negative number is added for", () => {
  const text = (low: string) => `graph "g" (s: f32[2, 3, 3], m: i64[2, 3], k: i64[2, 3]) -> (y, z) {
  rows = reshape(m) {shape: [2, 1, 3]} : i64[2, 1, 3]
  f = cast(rows) {to: f32, saturate: true} : f32[2, 1, 3]
  one = constant f32[] (1)
  out = sub(one, f) : f32[2, 1, 3]
  low = constant f32[] (${low})
  by = mul(out, low) : f32[2, 1, 3]
  y = add(s, by) : f32[2, 3, 3]
  z = add(k, k) : i64[2, 3]
}
`;
  for (const low of ["-10000", "-3.4028234663852886e+38", "-inf"]) {
    expect(masksOf(text(low))).toEqual(["m"]);
  }
  expect(masksOf(text("-8"))).toEqual([]);
});

it("finds what is tested before a very negative number is chosen", () => {
  const found = masksOf(`graph "g" (s: f32[2, 3], m: i64[2, 3], b: bool[2, 3]) -> (y) {
  zero = constant i64[] (0)
  out = equal(m, zero) : bool[2, 3]
  both = or(out, b) : bool[2, 3]
  low = constant f32[] (-1e9)
  y = select(both, low, s) : f32[2, 3]
}
`);
  expect(found).toEqual(["m", "b"]);
});

it("takes neither positions nor places that are compared for masks", () => {
  const found = masksOf(`graph "g" (ids: i64[3], q: i64[3], k: i64[3]) -> (y) {
  table = constant f32[4] (1, 2, 3, 4)
  s = gather(table, ids) {axis: 0} : f32[3]
  zero = constant i64[] (0)
  padding = equal(ids, zero) : bool[3]
  later = less(q, k) : bool[3]
  out = or(padding, later) : bool[3]
  low = constant f32[] (-1e9)
  y = select(out, low, s) : f32[3]
}
`);
  expect(found).toEqual([]);
});
