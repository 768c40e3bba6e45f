import { describe, expect, it } from "vitest";
import { productDifference } from "../../../campaign/ptx/product-difference.ts";
import { compileModel } from "../../compile.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import type { Graph } from "../../graph/graph.ts";
import { tensorType } from "../../graph/tensor-type.ts";
import { noWeights } from "../../interp/graph.ts";
import { parseSchedule } from "../../schedule/directive-text.ts";
import { isByTf32 } from "../../schedule/products/tf32.ts";
import { invariant } from "../../support/invariant.ts";
import { allowing } from "../../target/allowing.ts";
import { targets } from "../../target/index.ts";

const target = targets.get("h200")!;

function graphOf(m: number, n: number, k: number): Graph {
  const g = new GraphBuilder("product");
  const [x, w, b] = [tensorType("f32", m, k), tensorType("f32", n, k), tensorType("f32", n)].map(
    (type, i) => g.input(`x${i}`, type),
  );
  return g.finish([g.apply("relu", g.add(g.einsum("i k, j k -> i j", x!, w!, "f32"), b!))]);
}

function measuredAs(how: string) {
  const schedule = parseSchedule(`schedule "S0" for "h200" { multiply S0 ${how} }`);
  invariant(schedule.ok, () => `no schedule: ${how}`);
  return new Map([["S0", schedule.value]]);
}

describe("products of f32 by matrix instructions", () => {
  const hows = [
    ["by mma tile (16, 16, 16) warps (1, 1) stages 3 swizzle 64", [17, 20, 36]],
    ["by mma tile (32, 16, 8) warps (2, 1) stages 2 swizzle 0", [24, 18, 13]],
    ["by wgmma tile (64, 24, 32) warps (4, 1) stages 2 swizzle 128", [40, 20, 68]],
    ["by wgmma tile (64, 32, 32) warps (4, 1) stages 2 swizzle 128 group 2 blocks 3", [72, 56, 64]],
    ["by wgmma tile (64, 16, 32) warps (4, 1) stages 2 swizzle 128 swapped", [9, 70, 36]],
  ] as const;

  it("by warps and by warpgroups, ragged, with an epilogue", () => {
    const allowed = allowing(target, ["tf32"]);
    for (const [how, [m, n, k]] of hows) {
      const measured = measuredAs(how);
      const given = { graph: graphOf(m, n, k), measured, target: allowed };
      expect(productDifference(given)).toBeUndefined();
    }
  });

  it("only where they are allowed, with a bound", () => {
    const model = { graph: graphOf(512, 512, 512), weights: noWeights };
    const made = (options: object) => {
      const compiled = compileModel(model, { target, ...options });
      invariant(compiled.ok, () => "it does not compile");
      const { regions, errorBound } = compiled.value;
      return [regions.filter((r) => r.scheduled.products.some(isByTf32)).length, errorBound];
    };
    expect(made({})).toEqual([0, 0]);
    const given = compileModel(model, { target, measured: measuredAs(hows[2][0]) });
    expect(given).toMatchObject({ ok: false, diagnostics: [{ code: "SCH046" }] });
    expect(made({ allow: ["tf32"] })).toEqual([1, 2 ** -9]);
  });
});
