import { describe, expect, it } from "vitest";
import { productDifference } from "../../../campaign/ptx/product-difference.ts";
import { compileModel } from "../../compile.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import type { Graph } from "../../graph/graph.ts";
import { tensorType } from "../../graph/tensor-type.ts";
import { noWeights } from "../../interp/graph.ts";
import { parseSchedule } from "../../schedule/directive-text.ts";
import { invariant } from "../../support/invariant.ts";
import { targets } from "../../target/index.ts";

type ByteFloat = "f8e4m3fn" | "f8e5m2";

type Size = readonly [rows: number, columns: number, depth: number];

function graphOf([m, n, k]: Size, [left, right]: readonly [ByteFloat, ByteFloat]): Graph {
  const g = new GraphBuilder("product");
  const operands = [g.input("x", tensorType(left, m, k)), g.input("w", tensorType(right, n, k))];
  const labels = { lhs: ["i", "k"], rhs: ["j", "k"], output: ["i", "j"] };
  return g.finish([g.node("contract", operands, { ...labels, accumulator: "f32" })]);
}

function difference(graph: Graph, how: string, name = "h200"): string | undefined {
  const schedule = parseSchedule(`schedule "S0" for "${name}" { multiply S0 ${how} }`);
  invariant(schedule.ok, () => `no schedule: ${how}`);
  const measured = new Map([["S0", schedule.value]]);
  return productDifference({ graph, measured, target: targets.get(name)! });
}

const pairs = [
  ["f8e4m3fn", "f8e4m3fn"],
  ["f8e4m3fn", "f8e5m2"],
  ["f8e5m2", "f8e4m3fn"],
  ["f8e5m2", "f8e5m2"],
] as const;

describe("products of 8-bit floats by matrix units", () => {
  it("by warps: every pair of types, ragged, over several steps", () => {
    for (const types of pairs) {
      const how = "by mma tile (16, 16, 64) warps (1, 1) stages 3 swizzle 64";
      expect(difference(graphOf([9, 12, 80], types), how, "l40s")).toBeUndefined();
    }
  });

  it("by warps: the right side held, the left one, padded rows through registers", () => {
    const types = ["f8e4m3fn", "f8e4m3fn"] as const;
    const right = "by mma tile (32, 32, 64) warps (1, 1) stages 2 swizzle 64";
    const left = "by mma tile (16, 48, 128) warps (1, 1) stages 2 swizzle 128";
    const padded = "by mma tile (32, 16, 32) warps (2, 1) stages 2 swizzle 0";
    for (const how of [right, left])
      expect(difference(graphOf([20, 28, 144], types), how)).toBeUndefined();
    expect(difference(graphOf([20, 10, 35], types), padded)).toBeUndefined();
  });

  it("by warpgroups: two types", () => {
    const stream = "by wgmma tile (64, 32, 128) warps (4, 1) stages 2 swizzle 128";
    const graph = graphOf([8, 24, 144], ["f8e4m3fn", "f8e5m2"]);
    expect(difference(graph, stream)).toBeUndefined();
  });

  it("by warps: sums of at most 128 products, of tiles whose fragments registers hold", () => {
    const graph = graphOf([64, 128, 512], pairs[0]);
    for (const how of [
      "by mma tile (64, 64, 64) warps (1, 1) stages 2 swizzle 64",
      "by mma tile (16, 16, 256) warps (1, 1) stages 2 swizzle 128",
    ]) {
      const schedule = parseSchedule(`schedule "S0" for "l40s" { multiply S0 ${how} }`);
      invariant(schedule.ok, () => how);
      const measured = new Map([["S0", schedule.value]]);
      const made = compileModel(
        { graph, weights: noWeights },
        { target: targets.get("l40s")!, measured },
      );
      const products = made.ok ? made.value.regions.flatMap((r) => r.scheduled.products) : [];
      const tile = /tile \((.*?)\)/.exec(how)![1]!.replaceAll(" ", "");
      expect(products.map((p) => p.directive.tile.join())).not.toContain(tile);
    }
  });

  it("are chosen where the machine has them: by warps on Ada, not on Ampere", () => {
    const graph = graphOf([256, 512, 1024], pairs[1]);
    const chosen = ["l40s", "rtx-5090", "h200", "a100-40gb"].map((name) => {
      const made = compileModel({ graph, weights: noWeights }, { target: targets.get(name)! });
      invariant(made.ok, () => name);
      return made.value.regions.flatMap((r) => r.scheduled.products.map((p) => p.directive.by));
    });
    expect(chosen).toEqual([["mma"], ["mma"], ["wgmma"], []]);
  });
});
