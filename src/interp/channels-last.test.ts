import { describe, expect, it } from "vitest";
import { GraphBuilder } from "../graph/builder.ts";
import type { Graph, ValueId } from "../graph/graph.ts";
import { tensorType } from "../graph/tensor-type.ts";
import { analyseProgram, applyGroups, formRegion } from "../region/form-region.ts";
import { defaultGroupOptions, planGroups } from "../region/groups.ts";
import type { NestProgram, Region } from "../region/nest.ts";
import { channelsLast } from "../schedule/choice/choose-layouts.ts";
import { Rng } from "../support/rng.ts";
import { checkNests } from "./check-nests.ts";

const isTurned = (region: Region): boolean =>
  [...region.tensors.keys()].some((name) => name.endsWith(".last"));
const isConversion = (region: Region): boolean => /^(un)?pack\./.test(region.name);

/** Nests with the channels last where prices say so compute what the oracle computes; gives the regions. */
function check(graph: Graph, priceOf: (region: Region) => number, seed = 7): readonly Region[] {
  let made: readonly Region[] = [];
  const transform = (program: NestProgram): NestProgram => {
    const analysed = analyseProgram(program);
    const { groups } = planGroups(analysed, defaultGroupOptions);
    const formed = groups.map((g) => formRegion(analysed, g));
    const grouped = applyGroups(analysed, groups);
    const { regions, tensors } = channelsLast(priceOf)(formed, grouped);
    made = regions;
    const statements = regions.flatMap((r) => r.statements);
    return {
      ...grouped,
      tensors: new Map([...grouped.tensors, ...tensors]),
      items: statements.map((statement) => ({ kind: "statement", statement })),
    };
  };
  checkNests(graph, { rng: new Rng(seed), extents: {}, transform });
  return made;
}

const onlyTurned = (region: Region): number => (isTurned(region) ? 1 : 1000);

class Net {
  readonly g = new GraphBuilder("net");
  #weights = 0;

  image(channels: number): ValueId {
    return this.g.input("x", tensorType("f32", 2, channels, 6, 5));
  }

  weight(...shape: readonly number[]): ValueId {
    return this.g.weight(`w${this.#weights++}`, tensorType("f32", ...shape));
  }

  conv(x: ValueId, to: number, size: 1 | 3 = 3, stride = 1, groups = 1): ValueId {
    const from = this.g.typeOf(x).shape[1]!.constant;
    const [pad, steps] = [size === 3 ? [1, 1] : [0, 0], [stride, stride]];
    const attrs = { strides: steps, dilations: [1, 1], padLow: pad, padHigh: pad, groups };
    return this.g.node("convolution", [x, this.weight(to, from / groups, size, size)], attrs);
  }

  pool(x: ValueId): ValueId {
    const edges = { strides: [1, 1], dilations: [1, 1], padLow: [1, 1], padHigh: [1, 1] };
    const attrs = { ...edges, window: [3, 3], ceil: false, countPadding: false, exponent: 2 };
    return this.g.node("pool", [x], { ...attrs, kind: "max" });
  }
}

describe("feature maps with their channels last", () => {
  it.each([
    [8, 16],
    [3, 8],
    [5, 7],
    [1, 4],
  ])("convolve %i channels to %i; few are filled up with zeros", (from, to) => {
    const net = new Net();
    const wide = net.g.node("relu", [net.conv(net.image(from), to, 3, 2)], {});
    const regions = check(net.g.finish([net.conv(wide, to, 1)]), onlyTurned);
    expect(regions.some(isTurned)).toBe(true);
    const maps = regions.flatMap((r) => [...r.tensors.values()]);
    const given = maps.find((t) => t.name === "x.last");
    const filled = from < 4 ? 4 : Math.max(from, 8);
    if (from > 1) expect(given?.shape.at(-1)?.constant).toBe(filled);
  });

  it("fold lines of weights that are stored in the order of the loops", () => {
    const net = new Net();
    const regions = check(net.g.finish([net.conv(net.image(8), 16)]), onlyTurned);
    const stored = regions.flatMap((r) => [...r.tensors.values()].filter((t) => t.stored));
    expect(stored.map((t) => t.shape.map((e) => e.constant))).toEqual([[16, 3, 3, 8]]);
  });

  it("compute the same in any mixture with plain ones", () => {
    for (let seed = 0; seed < 20; seed++) {
      const rng = new Rng(seed);
      const net = new Net();
      const made = [net.image(rng.pick([3, 4, 6, 9]))];
      const layers: readonly ((x: ValueId) => ValueId)[] = [
        (x) => net.g.node("relu", [net.conv(x, rng.pick([2, 5, 8]))], {}),
        (x) => net.conv(x, rng.pick([3, 8]), 1, rng.pick([1, 2])),
        (x) =>
          net.conv(x, net.g.typeOf(x).shape[1]!.constant, 3, 1, net.g.typeOf(x).shape[1]!.constant),
        (x) => net.pool(x),
        (x) => net.g.node("sigmoid", [x], {}),
      ];
      for (let i = 0; i < 4; i++) made.push(rng.pick(layers)(made.at(-1)!));
      const known = new Map<string, number>();
      const anyPrice = (region: Region): number => {
        const key = `${region.name} ${isTurned(region)}`;
        const price = known.get(key) ?? rng.uniform() * (isConversion(region) ? 30 : 100);
        known.set(key, price);
        return price;
      };
      check(net.g.finish([made.at(-1)!]), anyPrice, seed);
    }
  });
});
