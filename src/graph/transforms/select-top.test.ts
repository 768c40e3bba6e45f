import { describe, expect, it } from "vitest";
import { compileModel } from "../../compile.ts";
import { noWeights, runGraph } from "../../interp/graph.ts";
import { runNests } from "../../interp/nest.ts";
import { type RefTensor, refTensor } from "../../semantics/tensor.ts";
import { Rng } from "../../support/rng.ts";
import { targets } from "../../target/index.ts";
import { selectTop } from "./select-top.ts";
import { graphOf, type Top, take, valuesOf } from "./top-k.test-support.ts";

/** Few different values, so that most are equal to others; of floats also NaN, infinities and -0. */
function operand({ dtype, shape }: Top, seed: number): RefTensor {
  const rng = new Rng(seed);
  const isFloat = dtype === "f32" || dtype === "bf16" || dtype === "f64";
  const special = isFloat ? [Number.NaN, -Infinity, Infinity, -0] : [];
  const values = Array.from({ length: shape.reduce((n, e) => n * e, 1) }, () => {
    const at = rng.integer(0, isFloat ? 59 : 39);
    return special[at] ?? (at % 13) - (dtype === "u8" ? 0 : 6);
  });
  return refTensor(dtype, shape, values);
}

const cases: readonly Top[] = (["f32", "bf16", "i64", "u8", "i32"] as const).flatMap((dtype) =>
  [true, false].flatMap((largest) => [
    // Groups that divide the axis, groups of which the last is filled up, and another axis than the last.
    { dtype, largest, shape: [2, 2048], axis: 1, k: 5 },
    { dtype, largest, shape: [1031], axis: 0, k: 60 },
    { dtype, largest, shape: [1200, 3], axis: 0, k: 2 },
  ]),
);

describe("topK by groups", () => {
  it.each(cases)("is topK, equal values in their order: %o", (top) => {
    const graph = graphOf(top);
    const selected = selectTop(graph).graph;
    expect(selected.nodes.length).toBeGreaterThan(graph.nodes.length);
    const x = operand(top, 7);
    const [want, found] = [graph, selected].map((g) => take(runGraph(g, [x])).map(valuesOf));
    expect(found).toEqual(want);
  });

  it("cuts again what is long, and leaves what is short or wants most of the axis", () => {
    const pieces = (top: Top): readonly number[] =>
      selectTop(graphOf(top)).graph.nodes.flatMap((n) =>
        n.op === "topK" ? [n.attrs.k.constant] : [],
      );
    const long = { dtype: "f32", shape: [2 ** 20], axis: 0, k: 4, largest: true } as const;
    expect(pieces(long).length).toBeGreaterThan(4);
    for (const shape of [[1000], [1024 * 1024]]) {
      const k = shape[0]! > 1000 ? 2 ** 17 : 4;
      expect(pieces({ ...long, shape, k })).toEqual([k]);
    }
  });
});

describe("the first in order", () => {
  it.each(
    (["f32", "bf16", "i64", "u8"] as const).flatMap((dtype) =>
      [true, false].map((largest) => ({ dtype, largest, shape: [40, 6], axis: 1, k: 1 })),
    ),
  )("is one fold: %o", (top) => {
    const graph = graphOf(top);
    const model = { graph, weights: noWeights };
    const { nests } = take(compileModel(model, { target: targets.get("h200")! }));
    const x = operand(top, 3);
    const given = new Map([[nests.inputs[0]!, x]]);
    const found = take(runNests(nests, { given, symbols: new Map() })).map(valuesOf);
    expect(found).toEqual(take(runGraph(graph, [x])).map(valuesOf));
    expect(nests.items.filter((item) => item.kind !== "view")).toHaveLength(1);
  });

  it("of numbers that are all no numbers is the first one", () => {
    const top = { dtype: "f32", largest: false, shape: [3], axis: 0, k: 1 } as const;
    const { nests } = take(
      compileModel({ graph: graphOf(top), weights: noWeights }, { target: targets.get("h200")! }),
    );
    const given = new Map([[nests.inputs[0]!, refTensor("f32", [3], [NaN, NaN, NaN])]]);
    const found = take(runNests(nests, { given, symbols: new Map() })).map(valuesOf);
    expect(found).toEqual([[NaN], [0n]]);
  });
});
