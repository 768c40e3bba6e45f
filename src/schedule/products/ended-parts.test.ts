/** Products whose depth no number of parts divides: the last part ends early, by zeros, in every way to multiply. */
import { describe, expect, it } from "vitest";
import { runProgram } from "../../interp/program.ts";
import { lowerRegionProgram } from "../../lower/region-program.ts";
import { validateProgram } from "../../program/validate/validate.ts";
import type { Region } from "../../region/nest.ts";
import { parseRegion } from "../../region/nest-reader.ts";
import type { Result } from "../../support/diagnostic.ts";
import { Rng } from "../../support/rng.ts";
import { targets } from "../../target/index.ts";
import { applySchedule } from "../apply.ts";
import { enumerateBlockSchedules } from "../blocks/block-candidates.ts";
import type { MultiplyDirective, Schedule } from "../directive.ts";
import { printSchedule } from "../directive-text.ts";
import { decideSchedule } from "../legality/legality.ts";
import { splitProduct } from "./split-products.ts";

const gpu = targets.get("h200")!;

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(JSON.stringify(result.diagnostics));
  return result.value;
}

interface Case {
  readonly dtype: "f32" | "bf16";
  readonly sizes: readonly [rows: number, columns: number, depth: number];
  /** Whether the second operand lies along the columns. */
  readonly isTurned: boolean;
  /** How it is multiplied, but by loops. */
  readonly by: readonly MultiplyDirective["by"][];
}

function regionOf({ dtype, sizes: [m, n, k], isTurned }: Case): Region {
  const wide = (e: string): string => (dtype === "f32" ? e : `cast<f32>(${e})`);
  const [shape, at] = isTurned ? [`${k}, ${n}`, "k, j"] : [`${n}, ${k}`, "j, k"];
  return take(
    parseRegion(`region r group r anchor S0 inlined () epilogue () {
      input x : ${dtype}[${m}, ${k}] input w : ${dtype}[${shape}] output y : f32[${m}, ${n}]
      statement S0 "" {i in ${m}, j in ${n}, reduce k in ${k}} {
        y[i, j] = reduce<sum, f32, reassociates>(mul(${wide("x[i, k]")}, ${wide(`w[${at}]`)})) } }`),
  );
}

/** Small integers, whose sums are exact in any order. */
function draw(length: number, rng: Rng, dtype: Case["dtype"]) {
  const values = Float32Array.from({ length }, () => rng.integer(-4, 4));
  const halves = Uint16Array.from(new Uint32Array(values.buffer), (bits) => bits >>> 16);
  return { values, bytes: new Uint8Array(dtype === "f32" ? values.buffer : halves.buffer) };
}

/** A schedule of each way to multiply, and of loops. */
function waysOf(region: Region): readonly Schedule[] {
  const by = new Map<string, Schedule[]>();
  for (const s of enumerateBlockSchedules(region, gpu)) {
    const multiply = s.directives.find((d) => d.kind === "multiply");
    const way = multiply ? `${multiply.by} ${multiply.swapped ?? ""}` : "loops";
    by.set(way, [...(by.get(way) ?? []), s]);
  }
  return [...by.values()].map((all) => all[Math.floor(all.length / 2)]!);
}

describe("a product in parts of which the last ends early", () => {
  it.each([
    { dtype: "bf16", sizes: [19, 13, 331], isTurned: false, by: ["mma"] },
    { dtype: "bf16", sizes: [16, 24, 331], isTurned: true, by: ["mma"] },
    { dtype: "f32", sizes: [9, 7, 263], isTurned: true, by: ["fma"] },
    { dtype: "f32", sizes: [5, 3, 269], isTurned: false, by: [] },
  ] satisfies readonly Case[])("is proved, and is its sum: $dtype $sizes", (given) => {
    const region = regionOf(given);
    const [m, n, k] = given.sizes;
    const [pair] = splitProduct(region, 2, 132);
    const length = 64 * Math.ceil(k / 128);
    const [product] = pair!;
    expect(product.statements[0]!.loops.map((l) => l.extent.constant)).toEqual([2, m, n, length]);
    const rng = new Rng(5);
    const [x, w] = [draw(m * k, rng, given.dtype), draw(n * k, rng, given.dtype)];
    const want = Array.from({ length: 2 * m * n }, (_, at) => {
      const [part, i, j] = [Math.floor(at / (m * n)), Math.floor(at / n) % m, at % n];
      let sum = 0;
      for (let d = part * length; d < Math.min(k, (part + 1) * length); d++)
        sum += x.values[i * k + d]! * w.values[given.isTurned ? d * n + j : j * k + d]!;
      return sum;
    });
    const ways = waysOf(product);
    const by = ways.flatMap((s) =>
      s.directives.flatMap((d) => (d.kind === "multiply" ? [d.by] : [])),
    );
    expect(new Set(by)).toEqual(new Set(given.by));
    for (const schedule of ways) {
      const scheduled = take(decideSchedule(take(applySchedule(product, schedule))));
      const { program } = take(lowerRegionProgram(scheduled, gpu));
      take(validateProgram(program));
      const contents = new Map([
        ["x", x.bytes],
        ["w", w.bytes],
      ]);
      const run = runProgram(program, { parameters: {}, contents, threads: 1, seed: 1 });
      if (run.kind === "fault") throw new Error(JSON.stringify(run.fault));
      const out = run.contents.get(product.statements[0]!.writes[0]!.tensor)!;
      expect([...new Float32Array(out.slice().buffer)], printSchedule(schedule)).toEqual(want);
    }
  });
});
