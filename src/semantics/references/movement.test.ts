import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Rng } from "../../support/rng.ts";
import type { ConcreteAttrs } from "../concrete-attrs.ts";
import type { CoreOpKind } from "../core-ops.ts";
import { constant, evaluate, variable } from "../index-expr.ts";
import { forEachIndex, offsetOf, rowMajorStrides } from "../shape.ts";
import { type RefTensor, randomRef, refTensor, refTensorsEqual } from "../tensor.ts";
import { type Reference, type ReferenceContext, references, runReference } from "./references.ts";

const noSubgraphs: ReferenceContext<never> = {
  runSubgraph: (body) => body,
  subgraphOutputTypes: (body) => body,
};

function run<K extends CoreOpKind>(
  kind: K,
  attrs: ConcreteAttrs<K, never>,
  ...inputs: RefTensor[]
): readonly RefTensor[] {
  return (references[kind] as Reference<K>)(attrs, inputs, noSubgraphs);
}

function counting(...shape: number[]): RefTensor {
  const count = shape.reduce((a, b) => a * b, 1);
  return refTensor(
    "f32",
    shape,
    Array.from({ length: count }, (_, i) => i),
  );
}

const values = (tensor: RefTensor | undefined) => [...tensor!.data].map(Number);

describe("iota and dimSize", () => {
  it("count along one axis", () => {
    const [t] = run("iota", { shape: [2, 3], axis: 1, dtype: "i64" });
    expect(t).toEqual(refTensor("i64", [2, 3], [0, 1, 2, 0, 1, 2]));
    expect(values(run("iota", { shape: [2, 3], axis: 0, dtype: "f32" })[0])).toEqual([
      0, 0, 0, 1, 1, 1,
    ]);
    expect(run("dimSize", { axis: 1 }, counting(2, 3))).toEqual([refTensor("i64", [], [3])]);
  });
});

describe("diagonal", () => {
  it("takes the elements with equal positions, either axis first", () => {
    const x = counting(2, 3, 2);
    const outer = run("diagonal", { axis: 0, other: 2 }, x)[0]!;
    expect([outer.shape, values(outer)]).toEqual([
      [2, 3],
      [0, 2, 4, 7, 9, 11],
    ]);
    const inner = run("diagonal", { axis: 2, other: 0 }, x)[0]!;
    expect([inner.shape, values(inner)]).toEqual([
      [3, 2],
      [0, 7, 2, 9, 4, 11],
    ]);
  });
});

describe("transpose, reverse, slice", () => {
  it("move each element where the definition says", () => {
    const x = counting(2, 3, 4);
    const strides = rowMajorStrides(x.shape);
    const [t] = run("transpose", { permutation: [2, 0, 1] }, x);
    expect(t!.shape).toEqual([4, 2, 3]);
    forEachIndex(t!.shape, ([c, a, b], at) => {
      expect(t!.data[at]).toBe(offsetOf([a!, b!, c!], strides));
    });
    const [r] = run("reverse", { axes: [0, 2] }, x);
    const [s] = run("slice", { starts: [1, 0, 1], steps: [1, 2, 1], sizes: [1, 2, 2] }, x);
    expect(values(r).slice(0, 4)).toEqual([15, 14, 13, 12]);
    expect(values(s)).toEqual([13, 14, 21, 22]);
    expect(s!.shape).toEqual([1, 2, 2]);
  });

  it("undo themselves", () => {
    fc.assert(
      fc.property(
        fc.nat(1000),
        fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 4 }),
        (seed, shape) => {
          const x = randomRef("f16", shape, new Rng(seed));
          const permutation = shape.map((_, i) => (i + 1) % shape.length);
          const back = permutation.map((_, i) => permutation.indexOf(i));
          const moved = run("transpose", { permutation }, x)[0]!;
          expect(refTensorsEqual(run("transpose", { permutation: back }, moved)[0]!, x)).toBe(true);
          const axes = shape.map((_, i) => i);
          const reversed = run("reverse", { axes }, x)[0]!;
          expect(refTensorsEqual(run("reverse", { axes }, reversed)[0]!, x)).toBe(true);
        },
      ),
    );
  });

  it("give empty results for empty sizes", () => {
    const [s] = run("slice", { starts: [3], steps: [1], sizes: [0] }, counting(3));
    expect(s).toEqual(refTensor("f32", [0], []));
  });
});

describe("broadcast, reshape, concat", () => {
  it("repeat, relabel and join", () => {
    expect(values(run("broadcast", { shape: [2, 3, 2] }, counting(3, 1))[0])).toEqual([
      0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2,
    ]);
    expect(run("reshape", { shape: [3, 2] }, counting(2, 3))[0]!.shape).toEqual([3, 2]);
    const joined = run("concat", { axis: 1 }, counting(2, 1), counting(2, 0), counting(2, 2))[0]!;
    expect(joined).toEqual(refTensor("f32", [2, 3], [0, 0, 1, 1, 2, 3]));
    const big = refTensor("i64", [1], [2 ** 40]);
    expect(run("concat", { axis: 0 }, big, big)[0]).toEqual(
      refTensor("i64", [2], [2 ** 40, 2 ** 40]),
    );
  });
});

describe("pad", () => {
  const x = refTensor("i32", [3], [1, 2, 3]);
  it.each([
    ["constant", 2, 2, [9, 9, 1, 2, 3, 9, 9]],
    ["reflect", 2, 2, [3, 2, 1, 2, 3, 2, 1]],
    ["reflect", 5, 0, [2, 1, 2, 3, 2, 1, 2, 3]],
    ["edge", 2, 1, [1, 1, 1, 2, 3, 3]],
    ["wrap", 4, 1, [3, 1, 2, 3, 1, 2, 3, 1]],
    ["constant", -1, 1, [2, 3, 9]],
    ["edge", 1, -2, [1, 1]],
  ] as const)("%s low %d high %d", (mode, low, high, expected) => {
    const fill = refTensor("i32", [], [9]);
    const [padded] = run("pad", { low: [low], high: [high], mode }, x, fill);
    expect(values(padded)).toEqual(expected);
  });

  it("fills corners and keeps 64-bit values", () => {
    const big = refTensor("i64", [1, 1], [7]);
    const fill = refTensor("i64", [], [-1]);
    const [padded] = run("pad", { low: [1, 0], high: [0, 1], mode: "constant" }, big, fill);
    expect(values(padded)).toEqual([-1, -1, 7, -1]);
  });
});

describe("gather and scatter", () => {
  const x = counting(3, 4);
  const indices = (...list: number[]) => refTensor("i64", [list.length], list);

  it("gather takes slices, negative indices from the end", () => {
    expect(values(run("gather", { axis: 0 }, x, indices(-1, 0))[0])).toEqual([
      8, 9, 10, 11, 0, 1, 2, 3,
    ]);
    const [columns] = run("gather", { axis: 1 }, x, refTensor("i32", [1, 2], [3, 1]));
    expect(columns!.shape).toEqual([3, 1, 2]);
    expect(values(columns)).toEqual([3, 1, 7, 5, 11, 9]);
    expect(run("gather", { axis: 0 }, x, refTensor("i64", [], [1]))[0]!.shape).toEqual([4]);
  });

  it("gatherElements and scatterElements are inverse on a permutation of rows", () => {
    const order = refTensor("i64", [3, 4], [2, 0, 1, 1, 0, 1, 2, 0, 1, 2, 0, 2]);
    const [taken] = run("gatherElements", { axis: 0 }, x, order);
    expect(values(taken).slice(0, 4)).toEqual([8, 1, 6, 7]);
    const blank = refTensor("f32", [3, 4], new Array(12).fill(-1));
    const [back] = run("scatterElements", { axis: 0, reduction: "none" }, blank, order, taken!);
    expect(back).toEqual(x);
  });

  it("gatherElements allows fewer indices than data on other axes", () => {
    const [taken] = run("gatherElements", { axis: 1 }, x, refTensor("i64", [2, 1], [3, -4]));
    expect(values(taken)).toEqual([3, 4]);
  });

  it("gatherNd reads tuples, with and without batch axes", () => {
    const data = counting(2, 2, 2);
    const [a] = run("gatherNd", { batchDims: 0 }, data, refTensor("i64", [2, 2], [0, 1, 1, 0]));
    expect(a).toEqual(refTensor("f32", [2, 2], [2, 3, 4, 5]));
    const [b] = run("gatherNd", { batchDims: 1 }, data, refTensor("i64", [2, 1], [1, 0]));
    expect(b).toEqual(refTensor("f32", [2, 2], [2, 3, 4, 5]));
  });

  it.each([
    ["none", [5, 1, 2]],
    ["add", [9, 1, 2]],
    ["mul", [0, 1, 2]],
    ["max", [5, 1, 2]],
    ["min", [0, 1, 2]],
  ] as const)("scatter with reduction %s, duplicates in order", (reduction, expected) => {
    const updates = refTensor("f32", [2], [4, 5]);
    const at = indices(0, -3);
    const [elements] = run("scatterElements", { axis: 0, reduction }, counting(3), at, updates);
    expect(values(elements)).toEqual(expected);
    const [nd] = run(
      "scatterNd",
      { reduction },
      counting(3),
      refTensor("i64", [2, 1], [0, 0]),
      updates,
    );
    expect(values(nd)).toEqual(expected);
  });

  it("scatterNd writes slices", () => {
    const updates = refTensor("f32", [1, 4], [9, 8, 7, 6]);
    const [result] = run(
      "scatterNd",
      { reduction: "none" },
      x,
      refTensor("i64", [1, 1], [1]),
      updates,
    );
    expect(values(result)).toEqual([0, 1, 2, 3, 9, 8, 7, 6, 8, 9, 10, 11]);
  });

  it("rejects an index out of range with SEM001", () => {
    const result = runReference(
      { kind: "gather", attrs: { axis: 0 }, inputs: [x, indices(3)], evaluate: () => 0 },
      noSubgraphs,
    );
    expect(result).toMatchObject({
      ok: false,
      diagnostics: [{ code: "SEM001", message: "index 3 is outside axis 0 of extent 3" }],
    });
  });
});

describe("runReference", () => {
  it("evaluates index expressions in attributes", () => {
    const result = runReference(
      {
        kind: "broadcast",
        attrs: { shape: [variable("n"), constant(2)] },
        inputs: [refTensor("f32", [1], [5])],
        evaluate: (expr) => evaluate(expr, new Map([["n", 3]])),
      },
      noSubgraphs,
    );
    expect(result).toMatchObject({ ok: true, value: [{ shape: [3, 2] }] });
  });
});
