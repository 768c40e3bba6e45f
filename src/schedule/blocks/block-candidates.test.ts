import { describe, expect, it } from "vitest";
import { differenceOnBlocks } from "../../../campaign/run-on-blocks.ts";
import { priceRegion } from "../../cost/region-price.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import { tensorType } from "../../graph/tensor-type.ts";
import { runProgram } from "../../interp/program.ts";
import { lowerRegion } from "../../lower/lower-region.ts";
import { lowerRegionProgram } from "../../lower/region-program.ts";
import { validateProgram } from "../../program/validate/validate.ts";
import type { Region } from "../../region/nest.ts";
import { parseRegion } from "../../region/nest-reader.ts";
import { refTensor } from "../../semantics/tensor.ts";
import type { Result } from "../../support/diagnostic.ts";
import { Rng } from "../../support/rng.ts";
import { targets } from "../../target/index.ts";
import { applySchedule } from "../apply.ts";
import { parseSchedule, printSchedule } from "../directive-text.ts";
import { checkSchedule } from "../legality/legality.ts";
import { enumerateBlockSchedules } from "./block-candidates.ts";

const gpu = targets.get("h200")!;

function value<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics[0]!.message);
}

function regionOf(statement: string, n = "3..9"): Region {
  return value(
    parseRegion(`region r group r anchor S0 inlined () epilogue () {
      symbol N in ${n} input x : f32[N, 64] weight w : f32[64, 96] output y : f32[N, 96]
      statement S0 "" ${statement} }`),
  );
}

const product =
  "{i in N, j in 96, reduce k in 64} { y[i, j] = reduce<sum, f32, reassociates>(mul(x[i, k], w[k, j])) }";
const scan =
  "{scan i in N, j in 96} { y[i, j] = (add((y[i - 1, j] if i - 1 >= 0 else 0), w[2, j])) }";

function codeOf(directives: string, target: string, statement = product): string {
  const region = regionOf(statement);
  const schedule = value(parseSchedule(`schedule "r" for "${target}" { ${directives} }`));
  const scheduled = value(applySchedule(region, schedule));
  const legal = checkSchedule(scheduled);
  if (!legal.ok) return legal.diagnostics[0]!.code;
  const lowered = lowerRegion(scheduled, targets.get(target)!);
  return lowered.ok ? "fits" : lowered.diagnostics[0]!.code;
}

describe("candidates for blocks of threads", () => {
  it("are legal, within the limits of a block, and print so that they parse back", () => {
    const region = regionOf(product);
    const schedules = enumerateBlockSchedules(region, gpu);
    expect(schedules.length).toBeGreaterThan(20);
    for (const schedule of schedules) {
      expect(value(parseSchedule(printSchedule(schedule)))).toEqual(schedule);
      const scheduled = value(applySchedule(region, schedule));
      value(checkSchedule(scheduled));
      for (const { grid, roles } of value(lowerRegion(scheduled, gpu))) {
        const threads = roles[0]!.copies * roles[0]!.threads;
        expect(grid.unit).toBe("blocks");
        expect(grid.axes.length).toBeLessThanOrEqual(3);
        expect(threads).toBeLessThanOrEqual(gpu.blocks!.threadsPerBlock);
      }
    }
  });

  it("share a reduction out to warps; the program is proved, and computes it", () => {
    const region = value(
      parseRegion(`region r group r anchor S0 inlined () epilogue () {
        symbol N in 1..9 input x : f32[N, 40] weight w : f32[40, 4] output y : f32[N, 4]
        statement S0 "" {i in N, j in 4, reduce k in 40} {
          y[i, j] = reduce<sum, f32, reassociates>(mul(x[i, k], w[k, j])) } }`),
    );
    const shared = enumerateBlockSchedules(region, gpu).filter((s) =>
      s.directives.some((d) => d.kind === "bind" && d.loop === "k_t"),
    );
    expect(shared.length).toBeGreaterThan(10);
    for (const [i, schedule] of shared.entries()) {
      const scheduled = value(applySchedule(region, schedule));
      const { program } = value(lowerRegionProgram(scheduled, gpu));
      value(validateProgram(program));
      if (i % 12 > 0) continue;
      const x = Float32Array.from({ length: 40 }, (_, k) => k % 7);
      const w = Float32Array.from({ length: 40 * 4 }, (_, k) => k % 5);
      const contents = new Map([
        ["x", new Uint8Array(x.buffer)],
        ["w", new Uint8Array(w.buffer)],
      ]);
      const run = runProgram(program, { parameters: { N: 1 }, contents, threads: 1, seed: i });
      if (run.kind === "fault") throw new Error(JSON.stringify(run.fault));
      const y = new Float32Array(run.contents.get("y")!.buffer);
      const want = (j: number): number => x.reduce((n, v, k) => n + v * w[4 * k + j]!, 0);
      expect([...y]).toEqual(Array.from(y, (_, j) => want(j)));
    }
  });

  it("share a reduction of halves out to warps in vectors, with ragged ends", () => {
    for (const extent of [2048, 520]) {
      const region = value(
        parseRegion(`region r group r anchor S0 inlined () epilogue () {
          input x : f16[2, ${extent}] input w : f16[3, ${extent}] output y : f32[2, 3]
          statement S0 "" {i in 2, j in 3, reduce k in ${extent}} {
            y[i, j] = reduce<sum, f32, reassociates>(mul(cast<f32>(x[i, k]), cast<f32>(w[j, k]))) } }`),
      );
      const inVectors = enumerateBlockSchedules(region, gpu).filter((s) =>
        s.directives.some((d) => d.kind === "vectorize" && d.loop === "k_l"),
      );
      expect(inVectors.length).toBeGreaterThan(3);
      const schedule = inVectors[0]!;
      const { program } = value(lowerRegionProgram(value(applySchedule(region, schedule)), gpu));
      value(validateProgram(program));
      const one = 0x3c00;
      const x = Uint16Array.from({ length: 2 * extent }, (_, k) => (k % 3 === 0 ? one : 0));
      const w = Uint16Array.from({ length: 3 * extent }, (_, k) => (k % 2 === 0 ? one : 0));
      const contents = new Map([
        ["x", new Uint8Array(x.buffer)],
        ["w", new Uint8Array(w.buffer)],
      ]);
      const run = runProgram(program, { parameters: {}, contents, threads: 1, seed: 1 });
      if (run.kind === "fault") throw new Error(JSON.stringify(run.fault));
      const want = Array.from({ length: 6 }, (_, at) => {
        const [i, j] = [Math.floor(at / 3), at % 3];
        const both = (k: number): boolean => x[i * extent + k]! > 0 && w[j * extent + k]! > 0;
        return Array.from({ length: extent }, (_, k) => k).filter(both).length;
      });
      expect([...new Float32Array(run.contents.get("y")!.buffer)]).toEqual(want);
    }
  });

  it("leave the scan of one line on one thread", () => {
    const line = `{scan i in 64} { y[i] = (add((y[i - 1] if i - 1 >= 0 else 0), x[i])) }`;
    const region = value(
      parseRegion(`region r group r anchor S0 inlined () epilogue () {
        input x : f32[64] output y : f32[64] statement S0 "" ${line} }`),
    );
    const schedules = enumerateBlockSchedules(region, gpu);
    expect(schedules.map((s) => s.directives.length)).toEqual([0]);
  });

  it.each([
    ["rows", "{i in 5, scan j in 70}", "y[i, j - 1] if j - 1 >= 0", [5, 70]],
    ["columns", "{scan i in 5, j in 70}", "y[i - 1, j] if i - 1 >= 0", [5, 70]],
  ] as const)(
    "deal lines of a scan out to threads; proved, and computed: %s",
    (name, loops, before, [m, n]) => {
      const region = value(
        parseRegion(`region r group r anchor S0 inlined () epilogue () {
        input x : f32[${m}, ${n}] output y : f32[${m}, ${n}]
        statement S0 "" ${loops} { y[i, j] = (add((${before} else 0), x[i, j])) } }`),
      );
      const [plain, ...spread] = enumerateBlockSchedules(region, gpu);
      expect(plain!.directives).toEqual([]);
      expect(spread.length).toBeGreaterThan(0);
      const x = Float32Array.from({ length: m * n }, (_, k) => k % 7);
      const contents = new Map([["x", new Uint8Array(x.buffer)]]);
      const want = Float32Array.from(x);
      const step = name === "rows" ? 1 : n;
      want.forEach((v, k) => {
        const isFirst = name === "rows" ? k % n === 0 : k < n;
        if (!isFirst) want[k] = v + want[k - step]!;
      });
      for (const schedule of spread) {
        const scheduled = value(applySchedule(region, schedule));
        value(checkSchedule(scheduled));
        const { program } = value(lowerRegionProgram(scheduled, gpu));
        value(validateProgram(program));
        const run = runProgram(program, { parameters: {}, contents, threads: 1, seed: 1 });
        if (run.kind === "fault") throw new Error(JSON.stringify(run.fault));
        expect([...new Float32Array(run.contents.get("y")!.buffer)]).toEqual([...want]);
      }
    },
  );

  it("cost less when neighbours touch neighbours, and more for more work", () => {
    const price = (directives: string, n?: string): number => {
      const schedule = value(parseSchedule(`schedule "r" for "h200" { ${directives} }`));
      const scheduled = value(applySchedule(regionOf(product, n), schedule));
      return priceRegion(scheduled, gpu).estimateNs;
    };
    const near =
      "split S0:j by 32 -> jb jt bind S0:i to blocks bind S0:jb to blocks bind S0:jt to threads";
    const far =
      "split S0:i by 32 -> ib it bind S0:ib to blocks bind S0:it to threads bind S0:j to blocks reorder S0:(ib, j, it, k)";
    expect(price(near, "4096..4096")).toBeLessThan(price(far, "4096..4096"));
    expect(price(near, "4096..4096")).toBeLessThan(price(near, "65536..65536"));
    expect(price(near)).toBeLessThan(price(""));
  });
});

describe("bind", () => {
  it.each([
    ["bind S0:i to blocks", "h200", "fits"],
    ["bind S0:i to blocks", "wasm", "SCH030"],
    ["split S0:k by 8 -> ko ki bind S0:ki to threads", "h200", "SCH031"],
    ["split S0:k by 8 -> ko ki bind S0:ki to blocks", "h200", "SCH016"],
    ["split S0:k by 32 -> ko ki reorder S0:(i, j, ki, ko) bind S0:ki to threads", "h200", "fits"],
  ])("%s on %s: %s", (directives, target, code) => {
    expect(codeOf(directives, target)).toBe(code);
  });

  it("keeps what needs each other off different threads", () => {
    expect(codeOf("bind S0:i to blocks", "h200", scan)).toBe("SCH016");
    expect(codeOf("bind S0:j to blocks", "h200", scan)).toBe("fits");
    const strict = product.replace("reassociates", "approximates");
    const spread = "split S0:k by 32 -> ko ki bind S0:ki to threads";
    expect(codeOf(spread, "h200", strict)).toBe("SCH016");
  });
});

describe("short reductions of neighbours", () => {
  const firsts = (dtype: string, at = "x[i, j, k]"): Region =>
    value(
      parseRegion(`region r group r anchor S0 inlined () epilogue () {
        input x : ${dtype}[4096, 512, 16] output y : ${dtype}[4096, 512]
        statement S0 "" {i in 4096, j in 512, reduce k in 16} {
          y[i, j] = reduce<max, f32, exact>(cast<f32>(${at})) finish (cast<${dtype}>(_0)) } }`),
    );

  it("are folded by vectors of one thread, where that asks for whole lines less often", () => {
    const region = firsts("bf16");
    const priced = enumerateBlockSchedules(region, gpu).map((schedule) => {
      const ns = priceRegion(value(applySchedule(region, schedule)), gpu).estimateNs;
      return { text: printSchedule(schedule), ns };
    });
    priced.sort((a, b) => a.ns - b.ns);
    expect(priced[0]!.text).toContain("vectorize S0:k_l");
    const far = enumerateBlockSchedules(firsts("bf16", "x[i, k, j]"), gpu).map(printSchedule);
    expect(far.filter((text) => text.includes("vectorize S0:k_l"))).toEqual([]);
  });

  it.each(["f32", "bf16", "i8"] as const)("are proved and the oracle's: %s", (dtype) => {
    const g = new GraphBuilder("firsts");
    const x = g.input("x", tensorType(dtype, 5, 40, 16));
    const graph = g.finish([g.reduce("max", x, [2], false)]);
    const rng = new Rng(4);
    const values = Array.from({ length: 3200 }, () => rng.integer(-99, 99));
    const lanes = { f32: 4, bf16: 8, i8: 16 }[dtype];
    const schedule = value(
      parseSchedule(`schedule "S0" for "h200" {
        split S0:i0 by 64 -> b t split S0:i2 by ${lanes} -> v l bind S0:t to threads vectorize S0:l
        reorder S0:(b, t, v, l) bind S0:b to blocks }`),
    );
    const given = new Map([["S0", schedule]]);
    expect(
      differenceOnBlocks(graph, [refTensor(dtype, [5, 40, 16], values)], given),
    ).toBeUndefined();
  });
});
