import { describe, expect, it } from "vitest";
import { GraphBuilder } from "../graph/builder.ts";
import { tensorType } from "../graph/tensor-type.ts";
import { noWeights } from "../interp/graph.ts";
import { buildNests } from "../region/builders/build-nests.ts";
import type { Region } from "../region/nest.ts";
import { regionsOf } from "../region/regions-of.ts";
import { applySchedule } from "../schedule/apply.ts";
import { parseSchedule } from "../schedule/directive-text.ts";
import { prepareFor } from "../schedule/prepare-graph.ts";
import { joinRows } from "../schedule/rows/join-rows.ts";
import { enumerateRows } from "../schedule/rows/rows-candidates.ts";
import type { Result } from "../support/diagnostic.ts";
import { targets } from "../target/index.ts";
import { priceRegion } from "./region-price.ts";

const target = targets.get("h200")!;

function value<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics[0]!.message);
}

function scanOf(dtype: "f32" | "bf16" | "i64", length: number): Region {
  const g = new GraphBuilder("scan");
  const x = g.input("x", tensorType(dtype, 512, length));
  const attrs = { kind: "sum", axis: 1, exclusive: false, reverse: false } as const;
  const graph = g.finish([g.node("cumulative", [x], attrs)]);
  return regionsOf(value(buildNests(graph)), { forBlocks: true }).regions[0]!;
}

/** Rows of softmax, one region whatever it costs. */
function softmaxOf(
  dtype: "f32" | "bf16" | "f16",
  length: number,
  { rows, axis } = { rows: 3, axis: 1 },
): Region {
  const g = new GraphBuilder("softmax");
  const shape = axis === 1 ? [rows, length] : [length, rows];
  const x = g.input("x", tensorType(dtype, ...shape));
  const graph = g.finish([g.node("softmax", [x], { axis })]);
  const nests = value(buildNests(prepareFor({ graph, weights: noWeights }, target).graph));
  const layOut = joinRows(
    ({ statements }) => (statements.length > 1 ? 0 : 1),
    (regions) => ({ regions, tensors: new Map() }),
  );
  const joined = regionsOf(nests, { forBlocks: true, layOut });
  const [region, ...others] = joined.regions as [Region];
  if (others.length > 0) throw new Error(`${others.length + 1} regions`);
  return region;
}

function priced(region: Region, how: string): number {
  const last = region.statements.at(-1)!.name;
  const text = `schedule "${region.name}" for "h200" { rows ${last} ${how} together 1 }`;
  const inOrder = text.replace(/((?: parts \d+)? keep \w+) together 1/, " together 1$1");
  const schedule = value(parseSchedule(inOrder));
  return priceRegion(value(applySchedule(region, schedule)), target).estimateNs;
}

describe("scans by many threads", () => {
  // What ptxas 13.0 makes of each: bytes that it spills, of 64 registers a thread (128 for 512 threads).
  const assembled = [
    ["f32", 65_536, "threads 1024 lanes 4 keep registers", 32],
    ["f32", 65_536, "threads 1024 lanes 4 keep memory", 0],
    ["f32", 32_768, "threads 1024 lanes 4 keep registers", 12],
    ["f32", 8192, "threads 1024 lanes 4 keep registers", 8],
    ["f32", 8192, "threads 1024 lanes 4 keep memory", 8],
    ["f32", 8192, "threads 1024 lanes 1 keep registers", 8],
    ["f32", 32_768, "threads 512 lanes 4 keep registers", 4],
    ["f32", 8192, "threads 512 lanes 4 keep registers", 0],
    ["bf16", 32_768, "threads 1024 lanes 8 keep registers", 16],
    ["bf16", 32_768, "threads 1024 lanes 8 keep memory", 0],
    ["bf16", 8192, "threads 1024 lanes 8 keep registers", 0],
    ["bf16", 8192, "threads 1024 lanes 1 keep registers", 8],
    ["i64", 65_536, "threads 1024 lanes 2 keep memory", 184],
    ["i64", 8192, "threads 1024 lanes 1 keep registers", 920],
    ["i64", 65_536, "threads 512 lanes 2 keep memory", 0],
  ] as const;

  it.each(assembled)(
    "of %s, lines of %d, %s: refused where %d bytes are spilled",
    (dtype, length, how, spilled) => {
      expect(Number.isFinite(priced(scanOf(dtype, length), how))).toBe(spilled === 0);
    },
  );
});

describe("softmax by many threads", () => {
  // What ptxas 13.0 spills, as above. Narrow elements beside each other share a register, single ones do not.
  const assembled = [
    ["bf16", 50_257, "threads 1024 lanes 1 keep registers", 56],
    ["bf16", 50_257, "threads 1024 lanes 1 keep operands", 48],
    ["f16", 50_257, "threads 1024 lanes 1 keep registers", 80],
    ["f16", 32_001, "threads 1024 lanes 1 keep registers", 8],
    ["f16", 25_001, "threads 1024 lanes 1 keep registers", 0],
    ["f16", 32_001, "threads 512 lanes 1 keep registers", 0],
    ["bf16", 50_258, "threads 1024 lanes 2 keep registers", 0],
    ["f32", 25_001, "threads 1024 lanes 1 keep registers", 0],
  ] as const;

  it.each(assembled)(
    "of %s, lines of %d, %s: refused where %d bytes are spilled",
    (dtype, length, how, spilled) => {
      expect(Number.isFinite(priced(softmaxOf(dtype, length), how))).toBe(spilled === 0);
    },
  );
});

describe("norms of groups of channels by many threads", () => {
  const regionOf = (
    dtype: "f32" | "bf16" | "f16",
    shape: readonly [batch: number, channels: number, ...spatial: number[]],
    groups: number,
  ): Region => {
    const g = new GraphBuilder("norm");
    const [x, s, b] = [shape, [shape[1]], [shape[1]]].map((dims, i) =>
      g.input("xsb"[i]!, tensorType(dtype, ...dims)),
    );
    const graph = g.finish([g.node("groupNorm", [x!, s!, b!], { groups, epsilon: 1e-5 })]);
    const nests = value(buildNests(prepareFor({ graph, weights: noWeights }, target).graph));
    const layOut = joinRows(
      ({ statements }) => (statements.length > 1 ? 0 : 1),
      (regions) => ({ regions, tensors: new Map() }),
    );
    const { regions } = regionsOf(nests, { forBlocks: true, layOut });
    return regions.find((r) => r.statements.length > 1)!;
  };

  // What ptxas 13.0 spills, as above. The scale of each element is at its channel, a quotient of its number.
  const assembled = [
    ["f16", [2, 96, 33, 35], 8, "threads 512 lanes 4 keep registers", 0],
    ["f16", [2, 96, 33, 35], 8, "threads 1024 lanes 4 keep operands", 0],
    ["bf16", [7, 64, 67, 31], 8, "threads 512 lanes 8 keep registers", 0],
    ["f32", [1, 384, 127, 16, 5], 32, "threads 1024 lanes 4 parts 2 keep operands", 88],
  ] as const;

  it.each(assembled)("of %s %j in %d, %s: refused where %d bytes are spilled", (...given) => {
    const [dtype, shape, groups, how, spilled] = given;
    const region = regionOf(dtype, shape, groups);
    expect(Number.isFinite(priced(region, how))).toBe(spilled === 0);
  });
});

describe("softmax of columns by many threads", () => {
  const priceOf = (dtype: "f32" | "bf16", length: number, how: string): number => {
    const region = softmaxOf(dtype, length, { rows: 8192, axis: 0 });
    const last = region.statements.at(-1)!.name;
    const text = `schedule "${region.name}" for "h200" { rows ${last} ${how} }`;
    const applied = value(applySchedule(region, value(parseSchedule(text))));
    return priceRegion(applied, target).estimateNs;
  };

  // What ptxas 13.0 spills of 128 registers a thread, and of 255.
  const assembled = [
    ["bf16", 16_384, "threads 128 lanes 8 together 4 across parts 8 keep operands shared 12", 68],
    ["bf16", 16_384, "threads 128 lanes 8 together 4 across parts 8 keep registers", 44],
    ["bf16", 16_384, "threads 128 lanes 8 together 2 across parts 8 keep registers", 0],
    ["f32", 8192, "threads 64 lanes 4 together 8 across parts 8 keep operands shared 12", 0],
  ] as const;

  it.each(assembled)(
    "of %s, columns of %d, %s: refused where %d bytes are spilled",
    (dtype, length, how, spilled) => {
      expect(Number.isFinite(priceOf(dtype, length, how))).toBe(spilled === 0);
    },
  );

  it("is cheaper where shared memory keeps what fewer blocks would have registers for", () => {
    const how = "threads 64 lanes 4 together 4 across parts 8 keep operands";
    expect(priceOf("f32", 8192, `${how} shared 12`)).toBeLessThan(priceOf("f32", 8192, how));
    // More than the shared memory of a multiprocessor.
    const all = "threads 64 lanes 4 together 16 across parts 8 keep operands shared 16";
    expect(priceOf("f32", 8192, all)).toBe(Infinity);
  });
});

describe("rows that are read again", () => {
  it("cost the turns whose loads wait for each other: those of known length are on the way together", () => {
    const how = "threads 256 lanes 1 keep memory";
    const [short, long] = [8192, 32_768].map((length) => priced(softmaxOf("f32", length), how));
    // Three passes of 32 turns, 28 and fewer together; each waits a microsecond. One by one they would wait 96 times.
    expect(short!).toBeLessThan(25_000);
    expect(long! / short!).toBeGreaterThan(2);
  });
});

describe("vectors of rows", () => {
  it.each([
    [50_264, [8, 1]],
    [50_260, [4, 1]],
    [50_258, [2, 1]],
    [50_257, [1]],
  ] as const)(
    "of %d elements of 16 bits: the widest that make whole rows, and single ones",
    (length, lanes) => {
      const found = enumerateRows(softmaxOf("bf16", length), target.blocks!, true);
      expect([...new Set(found.map((d) => d.lanes))]).toEqual(lanes);
    },
  );
});
