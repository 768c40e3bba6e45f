import { describe, expect, it } from "vitest";
import { productDifference } from "../../../campaign/ptx/product-difference.ts";
import { compileModel } from "../../compile.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import { tensorType } from "../../graph/tensor-type.ts";
import { noWeights } from "../../interp/graph.ts";
import { parseSchedule } from "../../schedule/directive-text.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { targets } from "../../target/index.ts";

const target = targets.get("h200")!;

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

interface Shape {
  readonly equation: string;
  readonly left: readonly number[];
  readonly right: readonly number[];
}

/** Compiled (and so proved) with the schedule, run thread by thread, compared with the oracle. */
function difference(
  { equation, left, right }: Shape,
  how: string,
  result: "bf16" | "f32" = "bf16",
): string | undefined {
  const g = new GraphBuilder("grouped");
  const [x, w] = [
    g.input("x", tensorType("bf16", ...left)),
    g.input("w", tensorType("bf16", ...right)),
  ];
  // Bytes of any value, of which the matrices' numbers are made.
  const which = g.input("which", tensorType("u8", left[0]!));
  const number = g.applyNumber("div", g.cast(which, "i32"), Math.ceil(256 / right[0]!));
  const own = g.node("gather", [w, number], { axis: 0 });
  const sums = g.einsum(equation, x, own, "f32");
  const graph = g.finish([result === "f32" ? sums : g.cast(sums, result)]);
  const { regions } = take(compileModel({ graph, weights: noWeights }, { target }));
  const picked = regions.find((r) => r.scheduled.region.statements[0]!.indirects.length > 0);
  const { name } = picked!;
  const text = `schedule "${name}" for "h200" { multiply ${name} ${how} }`;
  return productDifference({
    graph,
    measured: new Map([[name, take(parseSchedule(text))]]),
    target,
  });
}

const along = { equation: "g i k, g j k -> g i j", left: [3, 20, 128], right: [2, 24, 128] };

describe("products of a batch with matrices that data picks", () => {
  it("by warps, whichever way the matrices lie", () => {
    const how = "by mma tile (16, 16, 32) warps (1, 1) stages 3 swizzle 64";
    const across = { equation: "g i k, g k j -> g i j", left: [3, 20, 40], right: [3, 40, 24] };
    for (const shape of [across, along]) expect(difference(shape, how)).toBeUndefined();
  });

  it("by warpgroups: results stored, gathered, the depth in parts", () => {
    const tile = "by wgmma tile (64, 16, 64) warps (4, 1) stages 2 swizzle 128";
    for (const how of [tile, `${tile} results 1`]) expect(difference(along, how)).toBeUndefined();
    // In another order sums round to bf16 otherwise now and then.
    expect(difference(along, `${tile} parts 2`, "f32")).toBeUndefined();
  });

  it("by warpgroups, columns of the matrices as neighbours", () => {
    const tile = "by wgmma tile (64, 16, 64) warps (4, 1) stages 2 swizzle 128";
    const across = { equation: "g i k, g k j -> g i j", left: [3, 20, 72], right: [3, 72, 24] };
    expect(difference(across, tile, "f32")).toBeUndefined();
    const both = { equation: "g k i, g k j -> g i j", left: [3, 72, 24], right: [3, 72, 24] };
    expect(difference(both, `${tile} parts 2`, "f32")).toBeUndefined();
  });

  it("an index for each row, or for each term of the sum, stays a copy and a product", () => {
    const picksOf = (equation: string, x: readonly number[], which: readonly number[]) => {
      const g = new GraphBuilder("picked");
      const [a, w] = [
        g.input("x", tensorType("bf16", ...x)),
        g.input("w", tensorType("bf16", 6, 64, 64)),
      ];
      const own = g.node("gather", [w, g.input("which", tensorType("i32", ...which))], { axis: 0 });
      const graph = g.finish([g.einsum(equation, a, own, "f32")]);
      const { regions } = take(compileModel({ graph, weights: noWeights }, { target }));
      return regions.map((r) => r.scheduled.region.statements[0]!.indirects.length);
    };
    expect(picksOf("g i k, g k j -> g i j", [4, 32, 64], [4])).toEqual([1]);
    expect(picksOf("i k, i k j -> i j", [32, 64], [32])[1]).toBe(0);
    expect(picksOf("i d k, d k j -> i j", [32, 4, 64], [4])[1]).toBe(0);
  });
});
