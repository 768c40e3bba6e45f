import { describe, expect, it } from "vitest";
import { coreFigures } from "../../cost/core-figures.ts";
import { tilePricer } from "../../cost/region-price.ts";
import type { Region } from "../../region/nest.ts";
import { parseRegion } from "../../region/nest-reader.ts";
import { invariant } from "../../support/invariant.ts";
import { targets } from "../../target/index.ts";
import { printSchedule } from "../directive-text.ts";
import { KnownStates } from "./known-states.ts";
import { type RegionStates, regionStates } from "./region-states.ts";

const target = targets.get("wasm")!;
const core = coreFigures(target);

interface Names {
  readonly x: string;
  readonly w: string;
  readonly y: string;
  readonly role?: "weight" | "input";
  readonly most?: number;
}

function product({ x, w, y, role = "weight", most = 40 }: Names): Region {
  const parsed = parseRegion(`region R group R anchor S0 inlined () epilogue () {
    symbol N in 1..${most}
    input ${x} : f32[N, 64] ${role} ${w} : f32[64, 300] output ${y} : f32[N, 300]
    statement S0 "" {i_${y} in N, j_${y} in 300, reduce k in 64} {
      ${y}[i_${y}, j_${y}] = reduce<sum, f32, reassociates>(mul(${x}[i_${y}, k], ${w}[k, j_${y}]))
    }
  }`);
  invariant(parsed.ok, () => JSON.stringify(parsed));
  return parsed.value;
}

const spelled = ({ states }: RegionStates) =>
  states.map((s) => `${s.priceNs} ${s.shares} ${printSchedule(s.schedule())}`);

describe("KnownStates", () => {
  const first = product({ x: "x", w: "w", y: "y" });

  it.each<[string, Region, number]>([
    ["another layer of the shape", product({ x: "a", w: "b", y: "c" }), 1],
    ["an operand that is no constant", product({ x: "a", w: "b", y: "c", role: "input" }), 2],
    ["a symbol that goes further", product({ x: "a", w: "b", y: "c", most: 80 }), 2],
  ])("gives %s the states of its own narrowing", (_, other, narrowings) => {
    const known = new KnownStates();
    let asked = 0;
    const statesOf = (region: Region) =>
      known.statesOf(region, target, {
        threads: 2,
        refundNs: 0,
        pricer: () => {
          asked++;
          return tilePricer(region, target, core);
        },
      });
    statesOf(first);
    const pricer = tilePricer(other, target, core);
    const own = regionStates(other, target, { threads: 2, pricer, refundNs: 0 });
    expect(spelled(statesOf(other))).toEqual(spelled(own));
    expect(asked).toBe(narrowings);
  });
});
