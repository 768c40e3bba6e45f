/** SCH035: each cause has a cure of its own, which leads to a tile that is taken. */
import { describe, expect, it } from "vitest";
import { compileModel } from "../../compile.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import { tensorType } from "../../graph/tensor-type.ts";
import { noWeights } from "../../interp/graph.ts";
import type { Region } from "../../region/nest.ts";
import { targets } from "../../target/index.ts";
import { applySchedule } from "../apply.ts";
import { parseSchedule } from "../directive-text.ts";

const regions = new Map<string, Region>();

/** A product of 128 rows by 256 columns and a depth of 256. */
function regionOf(dtype: "bf16" | "f32", right: string): Region {
  const key = `${dtype} ${right}`;
  const known = regions.get(key);
  if (known) return known;
  const g = new GraphBuilder("product");
  const [x, w] = [
    g.input("x", tensorType(dtype, 128, 256)),
    g.input("w", tensorType(dtype, 256, 256)),
  ];
  const sums = g.einsum(`i k, ${right} -> i j`, x, w, "f32");
  const graph = g.finish([dtype === "f32" ? sums : g.cast(sums, dtype)]);
  const made = compileModel({ graph, weights: noWeights }, { target: targets.get("h200")! });
  if (!made.ok) throw new Error(made.diagnostics[0]!.message);
  const { region } = made.value.regions[0]!.scheduled;
  regions.set(key, region);
  return region;
}

function refused(how: string, dtype: "bf16" | "f32", right = "j k") {
  const schedule = parseSchedule(`schedule "S0" for "h200" { multiply S0 ${how} }`);
  if (!schedule.ok) throw new Error(schedule.diagnostics[0]!.message);
  const applied = applySchedule(regionOf(dtype, right), schedule.value);
  return applied.ok ? undefined : applied.diagnostics[0];
}

const mma = "by mma tile (64, 64, 32) warps (2, 2) stages 3 swizzle 64";
const wgmma = "by wgmma tile (64, 64, 64) warps (4, 1) stages 3 swizzle 128";
const fma = "by fma tile (32, 64, 8) warps (1, 1) stages 2 swizzle 0";

/** What fits, what of it is changed to what, the cure, and of which elements. */
type Case = readonly [fits: string, from: string, to: string, cure: string, dtype?: "bf16" | "f32"];

describe("SCH035", () => {
  it.each([
    [mma, "64, 64, 32", "48, 64, 32", "multiple of 32 rows"],
    [mma, "64, 64, 32", "64, 48, 32", "multiple of 32 columns"],
    [mma, "64, 64, 32", "64, 64, 24", "depth that is a multiple of 16"],
    [mma, "stages 3", "stages 1", "2 stages or more"],
    [mma, "mma", "fma", "multiply by mma or wgmma"],
    [mma, "swizzle 64", "swizzle 64 results 2", "leave `results` out"],
    [mma, "swizzle 64", "swizzle 64 parts 2", "leave `parts` out"],
    [mma, "swizzle 64", "swizzle 64 cluster 2", "leave `cluster` out"],
    [mma, "swizzle 64", "swizzle 64 blocks 2", "leave `blocks` out"],
    [mma, "swizzle 64", "swizzle 64 teams 2", "say teams 1"],
    [mma, "swizzle 64", "swizzle 64 swapped", "leave `swapped` out"],
    [mma, "64, 64, 32) warps (2, 2)", "256, 128, 32) warps (2, 2)", "more warps"],
    [fma, "swizzle 0", "swizzle 64", "say swizzle 0", "f32"],
    [wgmma, "(4, 1)", "(2, 2)", "(4, 1), (8, 1) or (12, 1)"],
    [wgmma, "swizzle 128", "swizzle 64", "depth 64, swizzle 128"],
    [wgmma, "64, 64, 64", "64, 264, 64", "at most 256 rows and 256 columns"],
    [wgmma, "swizzle 128", "swizzle 128 ahead", "leave `ahead` out"],
    [wgmma, "swizzle 128", "swizzle 128 blocks 99", "say at most 8"],
    [wgmma, "swizzle 128", "swizzle 128 parts 3", "parts that divide 4"],
    [wgmma, "swizzle 128", "swizzle 128 cluster 3", "divides 4"],
    [wgmma, "swizzle 128", "swizzle 128 blocks 8 parts 2", "leave `parts` out"],
  ])("%s: %s -> %s", (...given) => {
    const [fits, from, to, cure, dtype = "bf16"] = given as unknown as Case;
    expect(refused(fits, dtype)).toBeUndefined();
    const fault = refused(fits.replace(from, to), dtype);
    expect(fault).toMatchObject({ code: "SCH035", help: expect.stringContaining(cure) });
  });

  it.each([
    // As ptxas 13.0 takes them, and as it spills or refuses them.
    ["by wgmma tile (192, C, 64) warps (12, 1) stages 2 swizzle 128", [192], [208, 256], "bf16"],
    ["by wgmma tile (192, C, 64) warps (12, 1) stages 2 swizzle 128 parts 2", [144], [160], "bf16"],
    ["by wgmma tile (128, C, 64) warps (8, 1) stages 2 swizzle 128 parts 2", [256], [], "bf16"],
    ["by wgmma tile (64, C, 64) warps (4, 1) stages 2 swizzle 128 blocks 1 teams 3", [192], [208]],
    ["by mma tile (256, C, 32) warps (4, 4) stages 2 swizzle 64", [128], [256], "bf16"],
    ["by mma tile (128, C, 32) warps (4, 8) stages 2 swizzle 64", [256], [512], "bf16"],
    ["by fma tile (C, 128, 8) warps (1, 4) stages 2 swizzle 0", [96], [128], "f32"],
    ["by fma tile (C, 128, 8) warps (4, 1) stages 2 swizzle 0", [128], [], "f32"],
    ["by fma tile (C, 128, 8) warps (4, 4) stages 2 swizzle 0", [128], [256], "f32"],
  ] as const)("%s holds its sums in registers", (how, fit, crowded, dtype = "bf16") => {
    for (const n of fit) expect(refused(how.replace("C", `${n}`), dtype)).toBeUndefined();
    for (const n of crowded) {
      const fault = refused(how.replace("C", `${n}`), dtype);
      expect(fault).toMatchObject({
        code: "SCH035",
        help: expect.stringContaining("choose fewer"),
      });
    }
  });

  it("says of operands that no tensor copy brings what multiplies them", () => {
    const fault = refused(wgmma.replace("64, 64, 64", "64, 24, 64"), "bf16", "k j");
    expect(fault).toMatchObject({ code: "SCH035", help: "choose a multiple of 16 columns" });
  });
});
