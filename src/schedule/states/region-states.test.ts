import { describe, expect, it } from "vitest";
import { coreFigures } from "../../cost/core-figures.ts";
import { tilePricer } from "../../cost/region-price.ts";
import { parseRegion } from "../../region/nest-reader.ts";
import { invariant } from "../../support/invariant.ts";
import { targets } from "../../target/index.ts";
import { regionStates } from "./region-states.ts";

/** The loops that states of a product of N rows deal out to two threads. */
function dealtLoops(targetName: string, range: string): ReadonlySet<string> {
  const parsed = parseRegion(`region R group R anchor S0 inlined () epilogue () {
    symbol N in ${range}
    input x : f32[N, 512] weight w : f32[512, 512] output y : f32[N, 512]
    statement S0 "" {i in N, j in 512, reduce k in 512} {
      y[i, j] = reduce<sum, f32, reassociates>(mul(x[i, k], w[k, j]))
    }
  }`);
  invariant(parsed.ok, () => JSON.stringify(parsed));
  const target = targets.get(targetName)!;
  const pricer = tilePricer(parsed.value, target, coreFigures(target));
  const { states, funnel } = regionStates(parsed.value, target, {
    threads: 2,
    pricer,
    refundNs: 0,
  });
  const { legal, roofline, symmetry, occupancy, kept } = funnel;
  expect(roofline + symmetry + occupancy + kept).toBe(legal);
  return new Set(states.map((s) => s.shares));
}

describe.each(["wasm", "x64-avx2"])("work that is dealt out on %s", (target) => {
  it("has parts for every thread where there may be one row", () => {
    const dealt = dealtLoops(target, "1..256");
    expect(dealt).toContain("j");
    expect(dealt).not.toContain("i");
  });

  it("is that of rows where there are always enough", () => {
    expect(dealtLoops(target, "128..256")).toContain("i");
  });
});
