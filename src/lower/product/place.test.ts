/** Where a product's sums lie: the tree's warp is the lowering's, and a block's sums are all held once. */
import { describe, expect, it } from "vitest";
import { parseRegion } from "../../region/nest-reader.ts";
import { applySchedule } from "../../schedule/apply.ts";
import { parseSchedule } from "../../schedule/directive-text.ts";
import { checkSchedule } from "../../schedule/legality/legality.ts";
import type { ScheduledRegion } from "../../schedule/scheduled-region.ts";
import { placeOf } from "../../schedule/tree/place.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { threadInProduct } from "./place.ts";

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

function product(dtype: string, right: string, how: string): ScheduledRegion {
  const shape = right === "k, j" ? "256, 192" : "192, 256";
  const cast = (e: string): string => (dtype === "f32" ? e : `cast<f32>(${e})`);
  const region = take(
    parseRegion(`region R group R anchor S0 inlined () epilogue () {
      input x : ${dtype}[256, 256] input w : ${dtype}[${shape}] output y : f32[256, 192]
      statement S0 "" {i in 256, j in 192, reduce k in 256} {
        y[i, j] = reduce<sum, f32, reassociates>(mul(${cast("x[i, k]")}, ${cast(`w[${right}]`)}))
      } }`),
  );
  const schedule = take(parseSchedule(`schedule "R" for "h200" { multiply S0 ${how} }`));
  return take(checkSchedule(take(applySchedule(region, schedule))));
}

describe("the place of a product's iteration", () => {
  it.each([
    ["f32", "k, j", "by fma tile (64, 64, 8) warps (2, 2) stages 2 swizzle 0", 128],
    ["f32", "j, k", "by fma tile (64, 64, 8) warps (4, 1) stages 2 swizzle 0", 128],
    ["bf16", "k, j", "by mma tile (64, 64, 32) warps (2, 2) stages 3 swizzle 64", 128],
    ["bf16", "j, k", "by mma tile (32, 64, 32) warps (1, 2) stages 3 swizzle 64 group 4", 64],
    ["bf16", "j, k", "by wgmma tile (128, 64, 64) warps (8, 1) stages 2 swizzle 128", 256],
  ])("%s [%s] %s", (dtype, right, how, threads) => {
    const region = product(dtype, right, how);
    const [rows, columns, depth] = region.products[0]!.directive.tile;
    const held = new Map<number, number>();
    for (let i = 0; i < rows; i += 13) {
      for (let j = 0; j < columns; j += 7) {
        const point = { i: rows + i, j: columns + j, k: depth };
        const { group, block, loops } = take(placeOf(region, "S0", point));
        const { warp, thread } = threadInProduct(region, "S0", point)!;
        expect(group).toEqual([warp]);
        expect(loops.find((l) => l.name === "step")!.value).toBe(1);
        expect(block.length).toBeGreaterThan(1);
        const number = 32 * warp + thread;
        held.set(number, (held.get(number) ?? 0) + 1);
      }
    }
    expect(Math.max(...held.keys())).toBeLessThan(threads);
    expect(new Set([...held.keys()].map((n) => Math.floor(n / 32))).size).toBe(threads / 32);
  });

  it("is of no product where there is none", () => {
    const region = product(
      "f32",
      "k, j",
      "by fma tile (64, 64, 8) warps (2, 2) stages 2 swizzle 0",
    );
    expect(threadInProduct(region, "S1", {})).toBeUndefined();
  });
});
