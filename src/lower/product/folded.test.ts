/** Products of which only a fold is wanted: the kernel folds tiles, and nothing else of the product is stored. */
import { describe, expect, it } from "vitest";
import { productDifference } from "../../../campaign/ptx/product-difference.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import type { Graph } from "../../graph/graph.ts";
import { runProgram } from "../../interp/program.ts";
import { validateProgram } from "../../program/validate/validate.ts";
import { buildNests } from "../../region/builders/build-nests.ts";
import { coalesceRegion } from "../../region/coalesce.ts";
import type { Region, Statement } from "../../region/nest.ts";
import { regionsOf } from "../../region/regions-of.ts";
import { applySchedule } from "../../schedule/apply.ts";
import { parseSchedule } from "../../schedule/directive-text.ts";
import { decideSchedule } from "../../schedule/legality/legality.ts";
import { foldedProducts } from "../../schedule/products/folded-results.ts";
import type { ReduceKind } from "../../semantics/core-ops.ts";
import { constant, constantValue } from "../../semantics/index-expr.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { Rng } from "../../support/rng.ts";
import { targets } from "../../target/index.ts";
import { lowerRegionProgram } from "../region-program.ts";

const target = targets.get("h200")!;

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

interface Given {
  readonly kind: ReduceKind;
  readonly axes: readonly number[];
  readonly dtype?: "f32" | "bf16";
  readonly batch?: number;
}

type Sizes = readonly [rows: number, columns: number, depth: number];

/** A quarter of a fold of relu(x w + b). */
function graphOf([m, n, k]: Sizes, { kind, axes, dtype = "bf16", batch = 1 }: Given): Graph {
  const g = new GraphBuilder("folded");
  const type = (...shape: readonly number[]) => ({ dtype, shape: shape.map((e) => constant(e)) });
  const x = g.input("x", type(batch, m, k));
  const w = g.input("w", type(k, n));
  const b = g.input("b", type(n));
  const sums = g.einsum("b i k, k j -> b i j", x, w, "f32");
  const made = g.apply("relu", g.add(sums, g.cast(b, "f32")));
  const folded = g.reduce(kind, made, axes, true);
  return g.finish([g.applyNumber("mul", folded, 0.25)]);
}

/** Compiled (and so proved) with the schedule, run thread by thread, compared with the oracle. */
function difference(graph: Graph, how: string): string | undefined {
  const measured = new Map([
    ["S4", take(parseSchedule(`schedule "S4" for "h200" { multiply S0 ${how} }`))],
  ]);
  return productDifference({ graph, measured, target });
}

/** Numbers of 8 bits of mantissa, as bf16 and as f32. */
function draw(length: number, rng: Rng, dtype: "f32" | "bf16") {
  const values = Float32Array.from({ length }, () => rng.integer(-96, 96) / 64);
  const halves = Uint16Array.from(new Uint32Array(values.buffer), (bits) => bits >>> 16);
  return { values, bytes: new Uint8Array(dtype === "f32" ? values.buffer : halves.buffer) };
}

/** The kernel of a product and the fold of its tiles, proved, run thread by thread, against sums in f64. */
function tileDifference(
  [m, n, k]: Sizes,
  { dtype = "bf16", columns, how }: Pick<Given, "dtype"> & { columns: number; how: string },
): string | undefined {
  const graph = graphOf([m, n, k], { kind: "max", axes: [2], dtype });
  const { regions } = regionsOf(take(buildNests(graph)), { forBlocks: true });
  const [product, fold] = regions.slice(-2) as [Region, Region];
  const ways = foldedProducts(product, fold);
  const { folded } = ways.find(({ folded: f }) => widthOf(f) === columns)!;
  const { region } = coalesceRegion(folded, true);
  const [made] = region.statements as readonly [Statement];
  const text = `schedule "${region.name}" for "h200" { multiply ${made.name} ${how} }`;
  const scheduled = take(applySchedule(region, take(parseSchedule(text))));
  const { program } = take(lowerRegionProgram(take(decideSchedule(scheduled)), target));
  take(validateProgram(program));
  const rng = new Rng(3);
  const [x, w, b] = [m * k, k * n, n].map((length) => draw(length, rng, dtype));
  const names = [...made.reads, ...made.finishReads].map((a) => a.tensor);
  const contents = new Map([x, w, b].map((d, i) => [names[i]!, d!.bytes] as const));
  const ran = runProgram(program, { parameters: {}, contents, threads: 1, seed: 1 });
  if (ran.kind === "fault") return JSON.stringify(ran.fault);
  const out = program.buffers.find((o) => o.kind === "output")!;
  const found = new Float32Array(ran.contents.get(out.name)!.slice().buffer);
  const scale = columns === n ? 0.25 : 1;
  for (let i = 0; i < m; i++) {
    for (let tile = 0; tile < n / columns; tile++) {
      let most = 0;
      for (let j = tile * columns; j < (tile + 1) * columns; j++) {
        let sum = b!.values[j]!;
        for (let d = 0; d < k; d++) sum += x!.values[i * k + d]! * w!.values[d * n + j]!;
        most = Math.max(most, sum);
      }
      const got = found[tile * m + i]!;
      if (Math.abs(got - scale * most) > 1e-4) return `${got} for ${scale * most} at ${tile}, ${i}`;
    }
  }
  return undefined;
}

/** Columns that a fold takes together. */
function widthOf({ statements: [, fold] }: Region): number | undefined {
  return constantValue(fold!.loops.find((l) => l.kind === "reduce")!.extent);
}

describe("the kernel of a product and a fold of its tiles", () => {
  const stream = "by wgmma tile (64, 32, 64) warps (4, 1) stages 2 swizzle 128";

  it.each([
    ["warpgroups, several tiles in turns, ragged rows", [72, 64, 72], 32, `${stream} blocks 3`],
    ["warpgroups, a tile a block", [40, 64, 72], 32, stream],
    [
      "warps, ragged rows",
      [40, 64, 40],
      32,
      "by mma tile (32, 32, 32) warps (2, 1) stages 2 swizzle 64",
    ],
  ] as const)("by %s", (_, sizes, columns, how) => {
    expect(tileDifference(sizes, { columns, how })).toBeUndefined();
  });

  it("by threads, whole rows in a tile", () => {
    const how = "by fma tile (32, 64, 8) warps (2, 1) stages 2 swizzle 0";
    expect(tileDifference([20, 64, 16], { dtype: "f32", columns: 64, how })).toBeUndefined();
  });

  it("is no tile of other columns, nor warps beside each other", () => {
    const other = "by wgmma tile (64, 64, 64) warps (4, 1) stages 2 swizzle 128";
    expect(() => tileDifference([40, 64, 72], { columns: 32, how: other })).toThrow(
      /32 columns are folded together/,
    );
    const wide = "by mma tile (32, 32, 32) warps (1, 2) stages 2 swizzle 64";
    expect(() => tileDifference([40, 64, 40], { columns: 32, how: wide })).toThrow(
      /beside each other/,
    );
  });
});

describe("products of which only a fold is wanted", () => {
  it.each([
    [
      "the sum of all, of several problems",
      { kind: "sum", axes: [0, 1, 2], batch: 2 },
      "by wgmma tile (64, 16, 64) warps (4, 1) stages 2 swizzle 128",
    ],
    [
      "the sum of each column, turned to be rows",
      { kind: "sum", axes: [1] },
      "by mma tile (32, 32, 32) warps (2, 1) stages 2 swizzle 64",
    ],
  ] as const)("%s", (_, given, how) => {
    const sizes = given.axes.length > 1 ? ([40, 64, 64] as const) : ([32, 24, 40] as const);
    expect(difference(graphOf(sizes, given), how)).toBeUndefined();
  });
});
