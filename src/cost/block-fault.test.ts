/** What a block is priced to ask for is what its code asks for, and decides alone whether there is code. */
import { describe, expect, it } from "vitest";
import { blockKernels } from "../commands/library/block-kernels.ts";
import { compileModel } from "../compile.ts";
import { GraphBuilder } from "../graph/builder.ts";
import { tensorType } from "../graph/tensor-type.ts";
import { noWeights } from "../interp/graph.ts";
import { parseSchedule } from "../schedule/directive-text.ts";
import { blockBytes } from "../schedule/products/block-bytes.ts";
import type { DType } from "../semantics/dtype.ts";
import { targets } from "../target/index.ts";
import { blockFault } from "./block-fault.ts";

interface Asked {
  readonly target: string;
  readonly how: string;
  readonly dtype?: DType;
  readonly labels?: string;
}

/** A product of two square inputs by a given tile. */
function compiled({ target: name, how, dtype = "bf16", labels = "i k, j k -> i j" }: Asked) {
  const target = targets.get(name)!;
  const g = new GraphBuilder("product");
  const [x, w] = ["x", "w"].map((n) => g.input(n, tensorType(dtype, 512, 512)));
  const graph = g.finish([g.cast(g.einsum(labels, x!, w!, "f32"), dtype)]);
  const schedule = parseSchedule(`schedule "S0" for "${name}" { multiply S0 ${how} }`);
  if (!schedule.ok) throw new Error(schedule.diagnostics[0]!.message);
  const measured = new Map([["S0", schedule.value]]);
  return { target, made: compileModel({ graph, weights: noWeights }, { target, measured }) };
}

describe("a block's shared memory", () => {
  const big = "by mma tile (128, 128, 64) warps (4, 2) stages 3 swizzle 128";

  it.each(["l4", "rtx-3090", "rtx-4090", "rtx-5090"])(
    "has no padding where rows are swizzled, so that three stages of 128 fit %s",
    (target) => {
      expect(compiled({ target, how: big }).made.ok).toBe(true);
    },
  );

  it.each<Asked>([
    { target: "l4", how: big },
    { target: "l4", how: big, labels: "k i, k j -> i j" },
    { target: "l4", how: "by mma tile (64, 64, 32) warps (2, 2) stages 3 swizzle 0" },
    {
      target: "l4",
      how: "by mma tile (64, 64, 32) warps (2, 2) stages 3 swizzle 0",
      labels: "k i, j k -> i j",
    },
    { target: "l4", how: "by fma tile (64, 64, 16) warps (2, 1) stages 3 swizzle 0", dtype: "f32" },
    {
      target: "l4",
      how: "by fma tile (64, 64, 16) warps (2, 1) stages 3 swizzle 0",
      dtype: "f32",
      labels: "k i, j k -> i j",
    },
    { target: "h200", how: "by wgmma tile (128, 128, 64) warps (8, 1) stages 4 swizzle 128" },
    {
      target: "h200",
      how: "by wgmma tile (128, 128, 64) warps (8, 1) stages 4 swizzle 128 results 2",
    },
    {
      target: "h200",
      how: "by wgmma tile (128, 64, 64) warps (8, 1) stages 4 swizzle 128 parts 2",
    },
  ])("is what its code asks for: $target $dtype $labels $how", (asked) => {
    const { made, target } = compiled(asked);
    if (!made.ok) throw new Error(made.diagnostics[0]!.message);
    const [region] = made.value.regions;
    const { schedule, products } = region!.scheduled;
    const { program } = made.value.plan;
    const kernels = blockKernels({ program, schedules: [schedule], target });
    if (!kernels.ok) throw new Error(kernels.diagnostics[0]!.message);
    const { form, directive } = products[0]!;
    const priced = blockBytes(directive, form);
    const { sharedBytes } = kernels.value[0]!;
    expect(priced).toBeGreaterThanOrEqual(sharedBytes);
    expect(priced - sharedBytes).toBeLessThanOrEqual(1024);
    expect(blockFault(region!.scheduled, target.blocks!)).toBeUndefined();
  });
});

describe("a schedule that has no code", () => {
  it.each([
    ["l4", "by mma tile (128, 128, 64) warps (4, 2) stages 4 swizzle 128", /shared memory/],
    ["l4", "by wgmma tile (128, 128, 64) warps (8, 1) stages 2 swizzle 128", /by wgmma/],
    ["h200", "by wgmma tile (128, 256, 64) warps (8, 1) stages 2 swizzle 128 blocks 4", undefined],
  ] as const)("is refused by what there is too little of: %s %s", (target, how, why) => {
    const { made } = compiled({ target, how });
    if (!why) return expect(made.ok).toBe(true);
    if (made.ok) throw new Error("there is code");
    expect(made.diagnostics[0]).toMatchObject({ code: "SCH046" });
    expect(made.diagnostics[0]!.message).toMatch(why);
    expect(made.diagnostics[0]!.help).not.toContain("inspect");
  });
});
