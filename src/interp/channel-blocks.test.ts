import { describe, expect, it } from "vitest";
import { GraphBuilder } from "../graph/builder.ts";
import type { Graph, ValueId } from "../graph/graph.ts";
import { tensorType } from "../graph/tensor-type.ts";
import { analyseProgram, applyGroups, formRegion } from "../region/form-region.ts";
import { defaultGroupOptions, planGroups } from "../region/groups.ts";
import type { NestProgram, Region } from "../region/nest.ts";
import { blockedForm, chooseLayouts } from "../schedule/choice/choose-layouts.ts";
import { Rng } from "../support/rng.ts";
import { checkNests } from "./check-nests.ts";

const block = 4;
const extents = { N: 2, H: 5, W: 4 };
type PriceOf = (region: Region) => number;

const isBlocked = (region: Region): boolean =>
  [...region.tensors.keys()].some((name) => name.endsWith(`.c${block}`));
const isConversion = (region: Region): boolean => /^(un)?pack\./.test(region.name);

/** The program with its feature maps stored as the prices say, and its regions. */
function layOut(program: NestProgram, priceOf: PriceOf) {
  const analysed = analyseProgram(program);
  const { groups } = planGroups(analysed, defaultGroupOptions);
  const formed = groups.map((g) => formRegion(analysed, g));
  const grouped = applyGroups(analysed, groups);
  const form = blockedForm(block);
  const { regions, tensors } = chooseLayouts(formed, grouped, { form, priceOf });
  // Who asks how dear a form is up to a limit is told the limit from there on: the choice is the same.
  const limited = chooseLayouts(formed, grouped, {
    form,
    priceOf: (region, limitNs = Infinity) => Math.min(priceOf(region), limitNs),
  });
  const forms = (of: readonly Region[]) => of.map((r) => `${r.name} ${isBlocked(r)}`);
  expect(forms(limited.regions)).toEqual(forms(regions));
  const statements = regions.flatMap((r) => r.statements);
  const made: NestProgram = {
    ...grouped,
    tensors: new Map([...grouped.tensors, ...tensors]),
    items: statements.map((statement) => ({ kind: "statement", statement })),
  };
  return { plain: formed, regions, program: made };
}

/** Laid-out nests compute what the oracle computes; gives the regions. */
function check(graph: Graph, priceOf: PriceOf, seed = 7): readonly Region[] {
  let regions: readonly Region[] = [];
  const transform = (program: NestProgram): NestProgram => {
    const made = layOut(program, priceOf);
    regions = made.regions;
    const total = (of: readonly Region[]): number => of.reduce((n, r) => n + priceOf(r), 0);
    expect(total(made.regions)).toBeLessThanOrEqual(total(made.plain) + 1e-6);
    return made.program;
  };
  checkNests(graph, { rng: new Rng(seed), extents, transform });
  return regions;
}

const onlyBlocks: PriceOf = (region) => (isBlocked(region) ? 1 : 1000);

/** Prices that say nothing: any mixture of layouts must compute the same. */
function anyPrices(seed: number): PriceOf {
  const rng = new Rng(seed);
  const known = new Map<string, number>();
  return (region) => {
    const key = `${region.name} ${isBlocked(region)}`;
    const price = known.get(key) ?? rng.uniform() * (isConversion(region) ? 30 : 100);
    known.set(key, price);
    return price;
  };
}

const unpadded = { strides: [1, 1], dilations: [1, 1], padLow: [0, 0], padHigh: [0, 0] };
const same = { ...unpadded, padLow: [1, 1], padHigh: [1, 1] };

class Net {
  readonly g = new GraphBuilder("net");
  readonly n = this.g.symbol("N", 1, 4);
  readonly h = this.g.symbol("H", 3, 99);
  readonly w = this.g.symbol("W", 3, 99);
  #weights = 0;

  image(channels: number): ValueId {
    return this.g.input("x", tensorType("f32", this.n, channels, this.h, this.w));
  }

  weight(...shape: readonly number[]): ValueId {
    return this.g.weight(`w${this.#weights++}`, tensorType("f32", ...shape));
  }

  channels(x: ValueId): number {
    return this.g.typeOf(x).shape[1]!.constant;
  }

  conv(x: ValueId, to: number, size: 1 | 3 = 3, groups = 1): ValueId {
    const weights = this.weight(to, this.channels(x) / groups, size, size);
    const attrs = { ...(size === 3 ? same : unpadded), groups };
    return this.g.node("convolution", [x, weights], attrs);
  }

  depthwise(x: ValueId): ValueId {
    const groups = this.channels(x);
    return this.g.node("convolution", [x, this.weight(groups, 1, 3, 3)], { ...same, groups });
  }

  finish(x: ValueId): ValueId {
    const biased = this.g.node("add", [x, this.weight(1, this.channels(x), 1, 1)], {});
    return this.g.node("relu", [biased], {});
  }

  pool(x: ValueId): ValueId {
    const attrs = { ...same, window: [3, 3], ceil: false, countPadding: false, exponent: 2 };
    return this.g.node("pool", [x], { ...attrs, kind: "max" });
  }
}

describe("feature maps in blocks of channels", () => {
  it.each([
    [4, 8],
    [5, 7],
    [3, 12],
    [6, 2],
  ])("convolve %i channels to %i, also where the last block is not full", (from, to) => {
    const net = new Net();
    const wide = net.finish(net.conv(net.image(from), to));
    const regions = check(net.g.finish([net.conv(wide, to, 1)]), onlyBlocks);
    expect(regions.some(isBlocked)).toBe(true);
  });

  it.each([
    { from: 8, to: 16, groups: 2, blocked: 2 },
    { from: 12, to: 24, groups: 3, blocked: 2 },
    { from: 6, to: 8, groups: 2, blocked: 1 },
    { from: 16, to: 8, groups: 4, blocked: 0 },
    { from: 8, to: 6, groups: 2, blocked: 0 },
  ])("convolve $from channels to $to in $groups groups, where groups are whole blocks", (row) => {
    const { from, to, groups, blocked } = row;
    const net = new Net();
    const wide = net.finish(net.conv(net.image(from), from));
    const regions = check(net.g.finish([net.conv(wide, to, 3, groups)]), onlyBlocks);
    const grouped = regions.filter((region) => !isConversion(region)).at(-1)!;
    const maps = [...grouped.tensors.keys()].filter((name) => name.endsWith(`.c${block}`));
    expect(maps).toHaveLength(blocked);
  });

  it("pass through depthwise convolutions, pools, shortcuts and concatenations", () => {
    const net = new Net();
    const first = net.finish(net.conv(net.image(3), 6));
    const deep = net.finish(net.depthwise(first));
    const sum = net.g.node("add", [deep, first], {});
    const both = net.g.node("concat", [net.pool(sum), net.conv(sum, 4, 1)], { axis: 1 });
    const regions = check(net.g.finish([net.conv(both, 5, 1)]), onlyBlocks);
    expect(regions.filter(isBlocked).length).toBeGreaterThan(3);
  });

  it("are converted where a neighbour reads them otherwise", () => {
    const net = new Net();
    const map = net.finish(net.conv(net.image(4), 8));
    const turned = net.g.node("transpose", [map], { permutation: [0, 2, 3, 1] });
    const sums = net.g.node("reduce", [turned], { kind: "sum", axes: [1], keepDims: true });
    const prices: PriceOf = (r) => (isBlocked(r) || isConversion(r) ? 1 : 1000);
    const names = check(net.g.finish([sums, net.conv(map, 8)]), prices).map((r) => r.name);
    expect(names.filter((n) => n.startsWith("unpack."))).not.toEqual([]);
  });

  it("stay as they are where conversions cost more than blocks save", () => {
    const net = new Net();
    const map = net.conv(net.image(4), 8);
    const prices: PriceOf = (r) => (isConversion(r) ? 1000 : isBlocked(r) ? 1 : 10);
    expect(check(net.g.finish([map]), prices).filter(isBlocked)).toEqual([]);
  });

  it("compute the same in any mixture with plain ones", () => {
    for (let seed = 0; seed < 20; seed++) {
      const rng = new Rng(seed);
      const net = new Net();
      const made = [net.image(rng.pick([3, 4, 6, 9]))];
      const layers: readonly ((x: ValueId) => ValueId)[] = [
        (x) => net.finish(net.conv(x, rng.pick([2, 4, 5, 8]))),
        (x) => net.conv(x, rng.pick([3, 6, 8]), 1),
        (x) => net.conv(x, rng.pick([2, 4]) * net.channels(x), 3, net.channels(x) % 2 ? 1 : 2),
        (x) => net.finish(net.depthwise(x)),
        (x) => net.pool(x),
        (x) => net.g.node("concat", [x, rng.pick(made)], { axis: 1 }),
        (x) => net.g.node("sigmoid", [x], {}),
      ];
      for (let i = 0; i < 4; i++) made.push(rng.pick(layers)(made.at(-1)!));
      check(net.g.finish([made.at(-1)!]), anyPrices(seed), seed);
    }
  });
});
