/** Which long products of an H100 are made by pairs of blocks that bring tiles together, and in which tiles. */
import { describe, expect, it } from "vitest";
import { compileModel } from "../../compile.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import { tensorType } from "../../graph/tensor-type.ts";
import { noWeights } from "../../interp/graph.ts";
import { targets } from "../../target/index.ts";
import { parseSchedule } from "../directive-text.ts";

const target = targets.get("h100")!;

/** The product y = x w^T of bf16, as the prices choose or as `how` says. */
function product([m, n, k]: readonly [number, number, number], how?: string) {
  const g = new GraphBuilder("product");
  const [x, w] = [g.input("x", tensorType("bf16", m, k)), g.input("w", tensorType("bf16", n, k))];
  const graph = g.finish([g.cast(g.einsum("i k, j k -> i j", x, w, "f32"), "bf16")]);
  const text = `schedule "S0" for "h100" { multiply S0 by wgmma tile ${how} }`;
  const given = how === undefined ? undefined : parseSchedule(text);
  if (given?.ok === false) throw new Error(given.diagnostics[0]?.message);
  const measured = given && { measured: new Map([["S0", given.value]]) };
  const made = compileModel({ graph, weights: noWeights }, { target, ...measured });
  if (!made.ok) throw new Error(made.diagnostics[0]?.message);
  const [{ price, scheduled }] = made.value.regions as [(typeof made.value.regions)[number]];
  const multiply = scheduled.schedule.directives.find((d) => d.kind === "multiply");
  return { ns: price.estimateNs, cluster: multiply?.cluster, tile: multiply?.tile };
}

describe("pairs of blocks", () => {
  it.each([
    ["the lines of all tiles at once leave the near cache", [16384, 16384, 16384], 2],
    ["they stay in it", [2048, 28672, 4096], 1],
    ["there are few rows", [64, 28672, 4096], 1],
  ] as const)("where %s: %j, %d", (_, sizes, blocks) => {
    expect(product(sizes).cluster).toBe(blocks);
  });
});

describe("long products", () => {
  const square = [16384, 16384, 16384] as const;
  const rest = "warps (8, 1) stages 4 swizzle 128 group 8 results 2";

  it("cost more in tiles whose copies and reads fill the rate of shared memory (measured: 1.35)", () => {
    const [narrow, wide] = ["(256, 96, 64)", "(128, 256, 64)"].map(
      (tile) => product(square, `${tile} ${rest}`).ns,
    );
    expect(narrow! / wide!).toBeGreaterThan(1.05);
  });

  it("cost less by pairs (measured: 0.88)", () => {
    const alone = product(square, `(128, 256, 64) ${rest}`).ns;
    expect(product(square, `(128, 256, 64) ${rest} cluster 2`).ns).toBeLessThan(alone);
  });
});
