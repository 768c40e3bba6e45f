import { describe, expect, it } from "vitest";
import { differenceOnBlocks } from "../../../campaign/run-on-blocks.ts";
import { compileModel } from "../../compile.ts";
import { noWeights, runGraph } from "../../interp/graph.ts";
import { Rng } from "../../support/rng.ts";
import { targets } from "../../target/index.ts";
import { selectTop } from "./select-top.ts";
import { mostSteps } from "./step-select.ts";
import { graphOf, operand, type Top, take, valuesOf } from "./top-k.test-support.ts";

const types = ["f32", "bf16", "f16", "f8e5m2", "i8", "u8", "i16", "u16", "i32"] as const;

describe("topK in steps", () => {
  it.each(types)("is topK, equal values in their order: %s", (dtype) => {
    const rng = new Rng(23);
    const lines = [
      { shape: [2, 128], axis: 1 },
      { shape: [131], axis: 0 },
      { shape: [150, 2], axis: 0 },
      // Cut in groups first; of the second the last group is filled up, the third is several lines.
      { shape: [1024], axis: 0 },
      { shape: [1, 1031], axis: 1 },
      { shape: [2, 3, 1500], axis: 2 },
    ];
    for (const { shape, axis } of lines) {
      for (const k of [2, rng.integer(3, mostSteps - 1), mostSteps]) {
        const top = { dtype, shape, axis, k, largest: rng.uniform() < 0.5 };
        const graph = graphOf(top);
        const { graph: selected } = selectTop(graph, { byDigits: true });
        expect(selected.nodes.some((n) => n.op === "topK" || n.op === "cumulative")).toBe(false);
        const x = operand(top, rng, [1, 3, 100][rng.integer(0, 2)]!);
        const [want, found] = [graph, selected].map((g) => take(runGraph(g, [x])).map(valuesOf));
        expect({ top, found }).toEqual({ top, found: want });
      }
    }
  });

  it("is a fold for each that threads do over the elements they keep, in one kernel", () => {
    const target = targets.get("h200")!;
    const top = { dtype: "f32", shape: [512, 131_072], axis: 1, k: 8, largest: true } as const;
    const { regions } = take(compileModel({ graph: graphOf(top), weights: noWeights }, { target }));
    const folds = regions.map((r) => r.scheduled.statements.length);
    expect(folds.filter((n) => n === 8)).toHaveLength(2);
    expect(regions.length).toBeLessThanOrEqual(8);
  });

  const small: readonly (Top & { readonly distinct: number })[] = [
    { dtype: "f32", shape: [2, 140], axis: 1, k: 7, largest: true, distinct: 9 },
    { dtype: "bf16", shape: [1, 1031], axis: 1, k: 3, largest: false, distinct: 3 },
    { dtype: "i32", shape: [130, 2], axis: 0, k: 2, largest: true, distinct: 100 },
  ];

  it.each(small)("as a program, proved and run: %o", (top) => {
    const x = operand(top, new Rng(9), top.distinct);
    expect(differenceOnBlocks(graphOf(top), [x])).toBeUndefined();
  });
});
