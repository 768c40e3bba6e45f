import { describe, expect, it } from "vitest";
import type { Region } from "../region/nest.ts";
import { parseRegion } from "../region/nest-reader.ts";
import { applySchedule } from "../schedule/apply.ts";
import { enumerateBlockSchedules } from "../schedule/blocks/block-candidates.ts";
import { parseSchedule } from "../schedule/directive-text.ts";
import type { Result } from "../support/diagnostic.ts";
import { targets } from "../target/index.ts";
import { priceRegion, regionBoundNs } from "./region-price.ts";

function value<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics[0]!.message);
}

/** 128 x 768 sums over 3072 of a type. */
function sums(dtype: string, weight: string): Region {
  return value(
    parseRegion(`region r group r anchor S0 inlined () epilogue () {
      input x : ${dtype}[128, 3072] weight w : ${dtype}[3072, 768] weight t : ${dtype}[768, 3072]
      output y : ${dtype}[128, 768]
      statement S0 "" {i in 128, j in 768, reduce k in 3072} {
        y[i, j] = reduce<sum, f32, reassociates>(mul(x[i, k], ${weight}))
      } }`),
  );
}

/** Price of 128 x 768 sums over 3072, a weight read with its rows or its columns by neighbours. */
function priced(weight: string, directives: string): number {
  const region = sums("f32", weight);
  const schedule = value(parseSchedule(`schedule "r" for "h200" { ${directives} }`));
  return priceRegion(value(applySchedule(region, schedule)), targets.get("h200")!).estimateNs;
}

const shared = `split S0:k by 32 -> k_o k_t bind S0:k_t to threads
  split S0:j by 8 -> j_b j_g bind S0:j_g to groups
  reorder S0:(i, j_b, j_g, k_t, k_o) bind S0:i to blocks bind S0:j_b to blocks`;
const spread = `split S0:j by 256 -> j_b j_t bind S0:j_t to threads
  reorder S0:(i, j_b, j_t, k) bind S0:i to blocks bind S0:j_b to blocks`;

describe("prices of loops on blocks of threads", () => {
  it("count the lines that a warp touches: neighbours far apart take one each", () => {
    expect(priced("w[k, j]", shared)).toBeGreaterThan(4 * priced("t[j, k]", shared));
    expect(priced("t[j, k]", spread)).toBeGreaterThan(3 * priced("w[k, j]", spread));
  });

  it("count the elements of a sector together, however many rows a thread has", () => {
    // One row of products over a weight that the near cache holds: what limits are its sectors.
    const region = value(
      parseRegion(`region r group r anchor S0 inlined () epilogue () {
        input x : bf16[4096] weight w : bf16[4096, 4096] output y : bf16[4096]
        statement S0 "" {j in 4096, reduce k in 4096} {
          y[j] = reduce<sum, f32, reassociates>(mul(cast<f32>(x[k]), cast<f32>(w[j, k]))) finish (cast<bf16>(_0)) } }`),
    );
    const { nearBytesPerNs, launchNs } = targets.get("h200")!.blocks!;
    const floor = launchNs.value + 2 ** 25 / nearBytesPerNs.value;
    for (const rows of [1, 2, 4]) {
      const text = `split S0:j by ${rows} -> j_q j_r split S0:k by 8 -> k_v k_l split S0:k_v by 32 -> k_o k_t
        bind S0:k_t to threads vectorize S0:k_l unroll S0:j_r
        reorder S0:(j_q, k_t, k_o, j_r, k_l) bind S0:j_q to blocks`;
      const schedule = value(parseSchedule(`schedule "r" for "h200" { ${text} }`));
      const scheduled = value(applySchedule(region, schedule));
      const { estimateNs } = priceRegion(scheduled, targets.get("h200")!);
      expect(estimateNs, `${rows} rows`).toBeLessThan(2.5 * floor);
    }
  });
});

describe("prices of loaded places", () => {
  const onThreads = `split S0:i by 256 -> i_b i_t bind S0:i_t to threads
    reorder S0:(i_b, i_t) bind S0:i_b to blocks`;
  const pricedIn = (text: string, directives: string): number => {
    const region = value(
      parseRegion(`region r group r anchor S0 inlined () epilogue () {${text}}`),
    );
    const schedule = value(parseSchedule(`schedule "r" for "h200" { ${directives} }`));
    return priceRegion(value(applySchedule(region, schedule)), targets.get("h200")!).estimateNs;
  };

  it("count a line for each thread of a gather, which a place of the thread's own does not take", () => {
    const taken = (place: string): number =>
      pricedIn(
        `input x : f32[16777216] input at : i32[16777216] output y : f32[16777216]
        statement S0 "" {i in 16777216} {
          index r in 16777216 checked = at[i]
          y[i] = (x[${place}]) }`,
        onThreads,
      );
    expect(taken("r")).toBeGreaterThan(2 * taken("i"));
  });

  it("let each update of a line behind the others wait for where it goes", () => {
    const updated = (place: string): number =>
      pricedIn(
        `input u : f32[2048, 64] input at : i32[2048] output y : f32[2048, 64]
        statement S0 "" {scan s in 2048, i in 64} {
          index r in 2048 checked = at[s]
          y[${place}, i] by add = (u[s, i]) }`,
        "bind S0:i to threads reorder S0:(i, s)",
      );
    // Of updates at places of their own an assembler overlaps as little, but their lines are known.
    expect(updated("r")).toBeGreaterThan(2 * updated("s"));
  });
});

it("of a tensor that is filled are those of its bytes, however many", () => {
  const target = targets.get("h200")!;
  const { memoryBytesPerNs } = target.blocks!;
  const region = value(
    parseRegion(`region r group r anchor S0 inlined () epilogue () {
      output y : f32[67108864]
      statement S0 "" {i in 67108864} { y[i] = (f32(0)) } }`),
  );
  const prices = enumerateBlockSchedules(region, target).map(
    (s) => priceRegion(value(applySchedule(region, s)), target).estimateNs,
  );
  const bytesNs = 2 ** 28 / memoryBytesPerNs.value;
  expect(Math.min(...prices)).toBeGreaterThan(bytesNs);
  expect(Math.min(...prices)).toBeLessThan(1.5 * bytesNs);
});

describe("prices of pairs that are vectors together", () => {
  const pairs = (dtype: string): Region =>
    value(
      parseRegion(`region r group r anchor S0 inlined () epilogue () {
        input x : ${dtype}[16384, 8192] input t : ${dtype}[16384, 64] output y : ${dtype}[16384, 8192]
        statement S0 "" {i in 16384, h in 64, j in 64} {
          y[i, 128 * h + 2 * j], y[i, 128 * h + 2 * j + 1] =
            (mul(x[i, 128 * h + 2 * j], t[i, j]), add(x[i, 128 * h + 2 * j + 1], t[i, j])) } }`),
    );

  it("count sectors that an instruction writes in half: one vector of 16 bytes costs less than two", () => {
    const target = targets.get("h200")!;
    for (const [dtype, whole] of [
      ["f32", 2],
      ["bf16", 4],
    ] as const) {
      const region = pairs(dtype);
      const found = new Map<number, number>();
      for (const schedule of enumerateBlockSchedules(region, target)) {
        const lane = schedule.directives.find((d) => d.kind === "split" && d.inner === "j_l");
        const lanes = lane?.kind === "split" ? lane.factor : 1;
        const price = priceRegion(value(applySchedule(region, schedule)), target).estimateNs;
        found.set(lanes, Math.min(found.get(lanes) ?? Infinity, price));
      }
      expect(found.get(whole)! * 1.15, dtype).toBeLessThan(found.get(2 * whole)!);
    }
  });
});

describe("the bound on blocks of threads", () => {
  const target = targets.get("h200")!;
  const { memoryBytesPerNs, nearBytes } = target.blocks!;

  it("is that of the whole device, and no candidate is priced below it", () => {
    for (const [dtype, weight] of [
      ["f32", "t[j, k]"],
      ["bf16", "t[j, k]"],
      ["f16", "w[k, j]"],
    ] as const) {
      const region = sums(dtype, weight);
      const boundNs = regionBoundNs(region, target);
      // 604 million operations at 67 TFLOP/s or at a thousand.
      expect(boundNs).toBeGreaterThan(100);
      expect(boundNs).toBeLessThan(dtype === "f32" ? 12_000 : 2000);
      const schedules = enumerateBlockSchedules(region, target);
      expect(schedules.length).toBeGreaterThan(10);
      for (const schedule of schedules) {
        const price = priceRegion(value(applySchedule(region, schedule)), target);
        expect(price.boundNs).toBe(boundNs);
        expect(price.estimateNs).toBeGreaterThanOrEqual(boundNs);
      }
    }
  });

  it("counts bytes that the shared cache cannot hold at the rate of memory", () => {
    const rows = 2 ** 18;
    const region = value(
      parseRegion(`region r group r anchor S0 inlined () epilogue () {
        input x : f32[${rows}, 1024] output y : f32[${rows}, 1024]
        statement S0 "" {i in ${rows}, j in 1024} { y[i, j] = (add(x[i, j], x[i, j])) } }`),
    );
    const bytes = 2 * rows * 1024 * 4;
    const boundNs = regionBoundNs(region, target);
    expect(boundNs).toBeCloseTo((bytes - nearBytes) / memoryBytesPerNs.value / 1.15, 0);
  });
});
