import { describe, expect, it } from "vitest";
import { GraphBuilder } from "../graph/builder.ts";
import { tensorType } from "../graph/tensor-type.ts";
import { buildNests } from "../region/builders/build-nests.ts";
import { regionsOf } from "../region/regions-of.ts";
import { applySchedule } from "../schedule/apply.ts";
import { parseSchedule } from "../schedule/directive-text.ts";
import { argMonoid, simpleMonoid } from "../semantics/monoids.ts";
import { apply, argument, cast } from "../semantics/scalar-expr.ts";
import type { Result } from "../support/diagnostic.ts";
import { targets } from "../target/index.ts";
import { foldIssue, issueOf, slotsOf } from "./issue-slots.ts";
import { priceRegion } from "./region-price.ts";

function value<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics[0]!.message);
}

const places = { kind: "max", indexDType: "i32", tie: "first" } as const;

describe("instructions of expressions on blocks of threads", () => {
  it("are those that ptxas 13.0 makes of a value with its place: predicates join the tests that they follow", () => {
    const { combine, inOrder } = argMonoid({ ...places, dtype: "f32" });
    // Five tests, two of NaN that are shared and joined twice, one join of two joins; two selections.
    expect(issueOf(combine, 4)).toEqual({ issued: 10, logic: 10 });
    // FSETP.NAN, FSETP.GTU.AND, and two SEL.
    expect(issueOf(inOrder!, 4)).toEqual({ issued: 4, logic: 4 });
    expect(issueOf(argMonoid({ ...places, dtype: "i32" }).inOrder!, 4).issued).toBe(3);
  });

  it("take a slot where floats are multiplied and added, two where they are compared, selected or counted", () => {
    const [a, b] = [argument(0, "f32"), argument(1, "f32")];
    expect(slotsOf(issueOf([apply("add", apply("mul", a, b), b)], 4))).toBe(2);
    expect(slotsOf(issueOf([apply("max", a, b)], 4))).toBe(2);
    const count = [cast(apply("lessEqual", a, b), "i32", false)];
    expect(slotsOf(foldIssue(count, simpleMonoid("sum", "i32"), 4))).toBe(6);
    // Beside as many multiply-adds they take none of their own.
    const both = [apply("max", apply("add", apply("mul", a, b), b), b)];
    expect(slotsOf(issueOf(both, 4))).toBe(3);
  });

  it("of a sum of products are one multiply-add", () => {
    const product = [apply("mul", argument(0, "f32"), argument(1, "f32"))];
    expect(foldIssue(product, simpleMonoid("sum", "f32"), 1).issued).toBe(1);
    expect(foldIssue([argument(0, "f32")], simpleMonoid("sum", "f32"), 1).issued).toBe(1);
  });
});

describe("the price of places of the largest", () => {
  // Measured on an H200: 107 us by loops, 63 us (1.025 of the copy rate) over rows.
  it("of bf16 is that of comparisons by loops, of memory over rows", () => {
    const g = new GraphBuilder("places");
    const x = g.input("x", tensorType("bf16", 16384, 8192));
    const attrs = { kind: "max", axis: 1, keepDims: false, selectLast: false } as const;
    const graph = g.finish([g.node("argReduce", [x], attrs)]);
    const [region] = regionsOf(value(buildNests(graph)), { forBlocks: true }).regions;
    const priced = (how: string): number => {
      const schedule = value(parseSchedule(`schedule "${region!.name}" for "h200" { ${how} }`));
      const scheduled = value(applySchedule(region!, schedule));
      return priceRegion(scheduled, targets.get("h200")!).estimateNs / 1000;
    };
    const loops = priced(
      `split S0:i1 by 8 -> v l split S0:v by 32 -> o t bind S0:t to threads vectorize S0:l
       reorder S0:(i0, t, o, l) bind S0:i0 to blocks`,
    );
    const rows = priced("rows S0 threads 128 lanes 8 together 1 keep registers");
    expect(loops).toBeGreaterThan(95);
    expect(loops).toBeLessThan(120);
    expect(rows).toBeGreaterThan(60);
    expect(rows).toBeLessThan(80);
  });
});
