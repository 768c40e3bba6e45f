import { expect, it } from "vitest";
import { parseRegion } from "../../region/nest-reader.ts";
import { add, constant, type IndexExpr, mul, variable } from "../../semantics/index-expr.ts";
import { applySchedule } from "../apply.ts";
import { parseSchedule } from "../directive-text.ts";
import { interleavedIn, interleavedOf } from "./interleaved.ts";

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

it("takes the accesses of a thread where nothing is lanes, unless they are three", () => {
  const sharedBy = (step: number, combine = ""): number => {
    const all = Array.from({ length: step }, (_, n) => `[${step} * i + ${n}]`);
    const region = parseRegion(`region r group r anchor S0 inlined () epilogue () {
      input x : f32[${64 * step}] output y : f32[${64 * step}]
      statement S0 "" {i in 64} {
        ${all.map((at) => `y${at}${combine}`).join(", ")} = (${all.map((at) => `x${at}`).join(", ")}) } }`);
    const schedule = parseSchedule(
      `schedule "r" for "h200" { split S0:i by 32 -> i_b i_t bind S0:i_t to threads
        reorder S0:(i_b, i_t) bind S0:i_b to blocks }`,
    );
    if (!region.ok || !schedule.ok) throw new Error("does not parse");
    const applied = applySchedule(region.value, schedule.value);
    if (!applied.ok) throw new Error(applied.diagnostics[0]!.message);
    return interleavedIn(applied.value.statements[0]!).size;
  };
  expect([2, 3, 4].map((step) => sharedBy(step))).toEqual([4, 0, 8]);
  expect(sharedBy(2, " by add")).toBe(0);
});
