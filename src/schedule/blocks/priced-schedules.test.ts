import { describe, expect, it } from "vitest";
import { coreFigures } from "../../cost/core-figures.ts";
import { priceRegion } from "../../cost/region-price.ts";
import type { Region } from "../../region/nest.ts";
import { parseRegion } from "../../region/nest-reader.ts";
import { regionClass } from "../../region/region-hash.ts";
import { invariant } from "../../support/invariant.ts";
import { targets } from "../../target/index.ts";
import type { ScheduledRegion } from "../scheduled-region.ts";
import { type BlockPricing, cheapestNs, pricedSchedules } from "./priced-schedules.ts";

const target = targets.get("h200")!;
const core = coreFigures(target);

function pricing() {
  const asked = { times: 0 };
  const priceOf = (scheduled: ScheduledRegion): number => {
    asked.times++;
    return priceRegion(scheduled, target, core).estimateNs;
  };
  const options: BlockPricing = { target, priceOf, memory: { blocks: new Map() } };
  return { asked, options };
}

/** Tensors, a statement and the numbers of a layer: names whose order is not that of another layer. */
interface Layer {
  readonly names: readonly [x: string, w: string, y: string];
  readonly statement: string;
}
const layers: readonly Layer[] = [
  { names: ["x", "w", "y"], statement: "S9" },
  { names: ["c", "b", "a"], statement: "S10" },
];

const computations: Readonly<Record<string, (x: string, w: string, y: string) => string>> = {
  product: (x, w, y) =>
    `{i in 512, j in 768, reduce k in 256} { ${y}[i, j] = reduce<sum, f32, reassociates>(mul(${x}[i, k], ${w}[k, j])) }`,
  map: (x, w, y) => `{i in 512, j in 768} { ${y}[i, j] = (add(${x}[i, mod(j, 256)], ${w}[3, j])) }`,
};

function regionOf({ names, statement }: Layer, of: string): Region {
  const [x, w, y] = names;
  const parsed =
    parseRegion(`region R${statement} group R anchor ${statement} inlined () epilogue () {
    input ${x} : f32[512, 256] weight ${w} : f32[256, 768] output ${y} : f32[512, 768]
    statement ${statement} "" ${computations[of]!(x, w, y)} }`);
  invariant(parsed.ok, () => JSON.stringify(parsed));
  return parsed.value;
}

describe("schedules of blocks", () => {
  it.each(Object.keys(computations))(
    "of a %s have the prices of another layer of the shape",
    (of) => {
      const [first, other] = layers.map((layer) => regionOf(layer, of)) as [Region, Region];
      expect(regionClass(other).key).toBe(regionClass(first).key);
      const { asked, options } = pricing();
      pricedSchedules(first, options);
      const times = asked.times;
      expect(times).toBeGreaterThan(1);
      const known = pricedSchedules(other, options);
      expect(asked.times).toBe(times);
      expect(known).toEqual(pricedSchedules(other, pricing().options));
      expect(known.every(({ schedule }) => schedule.region === other.name)).toBe(true);
    },
  );

  it("have a cheapest one among those that are meant", () => {
    const region = regionOf(layers[0]!, "product");
    const { options } = pricing();
    const all = pricedSchedules(region, options).flatMap(({ price }) => price?.ns ?? []);
    const least = cheapestNs(region, () => true, options);
    expect(all).toContain(least);
    const dearer = cheapestNs(region, ({ ns }) => ns > least, options);
    expect(dearer).toBeGreaterThan(least);
    expect(cheapestNs(region, () => false, options)).toBe(Infinity);
  });
});
