import { expect, it } from "vitest";
import { add, constant, type IndexExpr, mul, variable } from "../../semantics/index-expr.ts";
import { interleavedOf } from "./interleaved.ts";

const pair = variable("i");
const at = (tensor: string, last: IndexExpr) => ({
  tensor,
  index: [variable("row"), last],
  guard: [],
});
const index = new Map([["i", add(mul(variable("q"), 4), variable("lane"))]]);

it("finds accesses that are one vector together", () => {
  const accesses = [
    at("x", add(mul(pair, 2), 1)),
    at("x", mul(pair, 2)),
    at("y", mul(pair, 2)),
    at("z", pair),
  ];
  const found = interleavedOf(accesses, index, "lane");
  expect([...found.keys()]).toEqual([accesses[1], accesses[0]]);
  expect(found.get(accesses[0]!)).toEqual({ first: accesses[1]!.index, step: 2, at: 1 });
});

it("takes no access under a guard, and none whose lanes are on another axis", () => {
  const guarded = [0, 1].map((n) => ({ ...at("x", add(mul(pair, 2), n)), guard: [{}] }));
  const outer = [0, 1].map((n) => ({ tensor: "x", index: [pair, constant(n)], guard: [] }));
  expect(interleavedOf(guarded, index, "lane").size).toBe(0);
  expect(interleavedOf(outer, index, "lane").size).toBe(0);
});
