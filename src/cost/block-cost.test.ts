import { describe, expect, it } from "vitest";
import { parseRegion } from "../region/nest-reader.ts";
import { applySchedule } from "../schedule/apply.ts";
import { parseSchedule } from "../schedule/directive-text.ts";
import type { Result } from "../support/diagnostic.ts";
import { targets } from "../target/index.ts";
import { priceRegion } from "./region-price.ts";

function value<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics[0]!.message);
}

/** Price of 128 x 768 sums over 3072, a weight read with its rows or its columns by neighbours. */
function priced(weight: string, directives: string): number {
  const region = value(
    parseRegion(`region r group r anchor S0 inlined () epilogue () {
      input x : f32[128, 3072] weight w : f32[3072, 768] weight t : f32[768, 3072]
      output y : f32[128, 768]
      statement S0 "" {i in 128, j in 768, reduce k in 3072} {
        y[i, j] = reduce<sum, f32, reassociates>(mul(x[i, k], ${weight}))
      } }`),
  );
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
    expect(priced("t[j, k]", spread)).toBeGreaterThan(4 * priced("w[k, j]", spread));
  });
});
