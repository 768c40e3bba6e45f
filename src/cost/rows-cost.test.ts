import { describe, expect, it } from "vitest";
import { GraphBuilder } from "../graph/builder.ts";
import { tensorType } from "../graph/tensor-type.ts";
import { buildNests } from "../region/builders/build-nests.ts";
import type { Region } from "../region/nest.ts";
import { regionsOf } from "../region/regions-of.ts";
import { applySchedule } from "../schedule/apply.ts";
import { parseSchedule } from "../schedule/directive-text.ts";
import type { Result } from "../support/diagnostic.ts";
import { targets } from "../target/index.ts";
import { priceRegion } from "./region-price.ts";

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

function priced(region: Region, how: string): number {
  const text = `schedule "${region.name}" for "h200" { rows S0 ${how} together 1 }`;
  const schedule = value(parseSchedule(text.replace(/ (keep \w+) together 1/, " together 1 $1")));
  return priceRegion(value(applySchedule(region, schedule)), targets.get("h200")!).estimateNs;
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
