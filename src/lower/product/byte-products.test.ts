import { describe, expect, it } from "vitest";
import { productDifference } from "../../../campaign/ptx/product-difference.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import type { Graph } from "../../graph/graph.ts";
import { tensorType } from "../../graph/tensor-type.ts";
import { parseSchedule } from "../../schedule/directive-text.ts";
import { invariant } from "../../support/invariant.ts";
import { targets } from "../../target/index.ts";

const target = targets.get("h200")!;

type Byte = "u8" | "i8";

interface Shape {
  readonly size: readonly [rows: number, columns: number, depth: number];
  readonly types: readonly [Byte, Byte];
  /** Scaled, given a bias, rounded to bytes again: what stands behind a quantised product. */
  readonly isQuantised?: true;
}

function graphOf({ size: [m, n, k], types: [left, right], isQuantised }: Shape): Graph {
  const g = new GraphBuilder("product");
  const operands = [g.input("x", tensorType(left, m, k)), g.input("w", tensorType(right, n, k))];
  const bias = isQuantised && g.input("b", tensorType("f32", n));
  const labels = { lhs: ["i", "k"], rhs: ["j", "k"], output: ["i", "j"] };
  const sums = g.node("contract", operands, { ...labels, accumulator: "i32" });
  if (!bias) return g.finish([sums]);
  const real = g.applyNumber("mul", g.cast(sums, "f32"), 2 ** -6);
  const biased = g.add(real, bias);
  const rounded = g.apply("round", biased);
  return g.finish([g.node("cast", [rounded], { to: "i8", saturate: true })]);
}

function difference(shape: Shape, how: string): string | undefined {
  const schedule = parseSchedule(`schedule "S0" for "h200" { multiply S0 ${how} }`);
  invariant(schedule.ok, () => `no schedule: ${how}`);
  const measured = new Map([["S0", schedule.value]]);
  return productDifference({ graph: graphOf(shape), measured, target });
}

const pairs = [
  ["u8", "i8"],
  ["i8", "i8"],
  ["i8", "u8"],
  ["u8", "u8"],
] as const;

describe("products of bytes, equal to the oracle's integers", () => {
  it("by warps: every pair of signs, ragged, swizzled and padded, through registers", () => {
    for (const types of pairs) {
      const how = "by mma tile (16, 16, 64) warps (1, 1) stages 3 swizzle 64";
      expect(difference({ size: [17, 20, 80], types }, how)).toBeUndefined();
    }
    const padded = "by mma tile (32, 16, 32) warps (2, 1) stages 2 swizzle 0";
    expect(difference({ size: [24, 18, 35], types: ["u8", "i8"] }, padded)).toBeUndefined();
  });

  it("by warpgroups from a stream: every pair of signs, in turns, columns as rows", () => {
    const stream = "by wgmma tile (64, 32, 128) warps (4, 1) stages 2 swizzle 128";
    for (const types of pairs)
      expect(difference({ size: [40, 24, 144], types }, stream)).toBeUndefined();
    const types = ["u8", "i8"] as const;
    expect(
      difference({ size: [72, 56, 272], types }, `${stream} group 2 blocks 3`),
    ).toBeUndefined();
    expect(difference({ size: [9, 70, 144], types }, `${stream} swapped`)).toBeUndefined();
  });

  it("scales, a bias and rounding to bytes behind the sums", () => {
    const quantised = { size: [40, 24, 144], types: ["u8", "i8"], isQuantised: true } as const;
    const warps = "by mma tile (16, 16, 64) warps (1, 1) stages 2 swizzle 64";
    const stream = "by wgmma tile (64, 32, 128) warps (4, 1) stages 2 swizzle 128";
    for (const how of [warps, stream]) expect(difference(quantised, how)).toBeUndefined();
  });
});
