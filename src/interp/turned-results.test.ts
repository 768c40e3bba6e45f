/** Folds whose results are turned behind them compute what the oracle computes, whichever loop their lanes run along. */
import { describe, expect, it } from "vitest";
import { GraphBuilder } from "../graph/builder.ts";
import type { Graph, ValueId } from "../graph/graph.ts";
import { tensorType } from "../graph/tensor-type.ts";
import { analyseProgram, applyGroups, formRegion } from "../region/form-region.ts";
import { defaultGroupOptions, planGroups } from "../region/groups.ts";
import type { NestProgram, Region } from "../region/nest.ts";
import { blockedForm, chooseLayouts } from "../schedule/choice/choose-layouts.ts";
import { chooseTurns, waysToTurn } from "../schedule/choice/choose-turns.ts";
import { Rng } from "../support/rng.ts";
import { checkNests } from "./check-nests.ts";

const extents = { N: 3 };

const isTurn = (region: Region): boolean => region.name.startsWith("turn.");

/** Of the ways that there are, those that the numbers say, and then feature maps in blocks or not. */
function check(graph: Graph, rng: Rng, seed = 7): readonly Region[] {
  let regions: readonly Region[] = [];
  const transform = (program: NestProgram): NestProgram => {
    const analysed = analyseProgram(program);
    const { groups } = planGroups(analysed, defaultGroupOptions);
    const formed = groups.map((g) => formRegion(analysed, g));
    const grouped = applyGroups(analysed, groups);
    const asItIs = new Set<Region>(formed);
    const turned = chooseTurns(formed, grouped, {
      lanes: 1,
      priceOf: ([first]) => (asItIs.has(first!) ? 1000 : rng.integer(0, 999)),
    });
    const form = blockedForm(4);
    const laidOut = chooseLayouts(turned.regions, grouped, { form, priceOf: () => rng.uniform() });
    regions = laidOut.regions;
    const items = regions.flatMap((r) =>
      r.statements.map((statement) => ({ kind: "statement", statement }) as const),
    );
    const views = grouped.items.filter((i) => i.kind === "view");
    const tensors = new Map([...grouped.tensors, ...turned.tensors, ...laidOut.tensors]);
    return { ...grouped, tensors, items: [...items, ...views] };
  };
  checkNests(graph, { rng: new Rng(seed), extents, transform });
  return regions;
}

class Net {
  readonly g = new GraphBuilder("net");
  readonly n = this.g.symbol("N", 1, 4);

  /** Rows of x by columns of w. */
  product(rows: number, columns: number, labels: string): ValueId {
    const x = this.g.input("x", tensorType("f32", rows, 6));
    const w = this.g.weight("w", tensorType("f32", 6, columns));
    const attrs = {
      lhs: ["i", "k"],
      rhs: ["k", "j"],
      output: [...labels],
      accumulator: "f32",
    } as const;
    return this.g.node("contract", [x, w], attrs);
  }

  turned(x: ValueId, ...permutation: readonly number[]): ValueId {
    return this.g.nodes("transpose", [x], { permutation })[0]!;
  }

  pixel(): ValueId {
    const x = this.g.input("x", tensorType("f32", this.n, 6, 1, 1));
    const w = this.g.weight("w", tensorType("f32", 8, 6, 1, 1));
    const alone = { strides: [1, 1], dilations: [1, 1], padLow: [0, 0], padHigh: [0, 0] };
    return this.g.node("convolution", [x, w], { ...alone, groups: 1 });
  }

  convolution(step = 1): ValueId {
    const x = this.g.input("x", tensorType("f32", this.n, 3, 5, 6));
    const w = this.g.weight("w", tensorType("f32", 8, 3, 3, 3));
    const same = { strides: [step, step], dilations: [1, 1], padLow: [1, 1], padHigh: [1, 1] };
    return this.g.node("convolution", [x, w], { ...same, groups: 1 });
  }
}

const of: Readonly<Record<string, (net: Net) => readonly ValueId[]>> = {
  "a product": (net) => [net.turned(net.product(5, 7, "ij"), 1, 0)],
  "a product that says so itself": (net) => [net.product(5, 7, "ji")],
  "both orders of a product": (net) => {
    const y = net.g.node("relu", [net.product(5, 7, "ij")], {});
    return [y, net.turned(y, 1, 0)];
  },
  "a product beside another value of it": (net) => {
    const y = net.product(5, 7, "ij");
    return [y, net.g.node("exp", [net.turned(net.g.node("relu", [y], {}), 1, 0)], {})];
  },
  "a product with a bias of its turned rows": (net) => {
    const b = net.g.input("b", tensorType("f32", 7, 5));
    return [net.g.node("add", [net.turned(net.product(5, 7, "ij"), 1, 0), b], {})];
  },
  "a product and itself turned": (net) => {
    const y = net.product(6, 6, "ij");
    return [net.g.node("add", [y, net.turned(y, 1, 0)], {})];
  },
  "parts of one result": (net) => {
    const y = net.turned(net.product(5, 7, "ij"), 1, 0);
    return [net.g.node("concat", [net.g.node("relu", [y], {}), y], { axis: 0 })];
  },
  "a convolution": (net) => [net.turned(net.convolution(), 0, 3, 1, 2)],
  "both orders of a convolution": (net) => {
    const y = net.g.node("relu", [net.convolution()], {});
    return [y, net.turned(y, 0, 3, 1, 2)];
  },
};

describe("results that are turned behind a fold", () => {
  it.each(Object.keys(of))("%s", (name) => {
    for (let seed = 0; seed < 8; seed++) {
      const net = new Net();
      const regions = check(net.g.finish([...of[name]!(net)]), new Rng(seed), seed);
      expect(regions.some(isTurn)).toBe(true);
    }
  });

  it.each<[string, number, (net: Net) => ValueId]>([
    ["a product", 1, (net) => net.product(5, 7, "ij")],
    ["a product of rows that are no whole vectors", 16, (net) => net.product(5, 7, "ij")],
    ["a convolution of a map that is no whole vectors", 8, (net) => net.convolution()],
    ["a convolution of one pixel", 2, (net) => net.pixel()],
    ["a convolution by steps of two", 2, (net) => net.convolution(2)],
  ])("are none of %s in its own order, with %i lanes", (_, lanes, made) => {
    const net = new Net();
    const ways: (readonly Region[])[] = [];
    const transform = (nests: NestProgram): NestProgram => {
      const analysed = analyseProgram(nests);
      const { groups } = planGroups(analysed, defaultGroupOptions);
      for (const g of groups) ways.push(...waysToTurn(formRegion(analysed, g), lanes));
      return nests;
    };
    checkNests(net.g.finish([made(net)]), { rng: new Rng(1), extents, transform });
    expect(ways).toEqual([]);
  });
});
