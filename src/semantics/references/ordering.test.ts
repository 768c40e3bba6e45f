import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type RefTensor, refTensor } from "../tensor.ts";
import { nonMaxSuppression, nonZero, topK, unique } from "./ordering.ts";
import type { ReferenceContext } from "./reference.ts";

const context: ReferenceContext<never> = {
  runSubgraph: (body) => body,
  subgraphOutputTypes: (body) => body,
};
const values = (tensor: RefTensor | undefined) => [...tensor!.data].map(Number);

describe("topK", () => {
  const x = refTensor("f32", [2, 4], [3, 1, 3, 2, 0, Number.NaN, 5, -1]);
  it("orders values with the first of equals first and NaN greatest", () => {
    const [top, at] = topK({ axis: 1, k: 3, largest: true, sorted: true }, [x], context);
    expect(values(top)).toEqual([3, 3, 2, Number.NaN, 5, 0]);
    expect(at).toEqual(refTensor("i64", [2, 3], [0, 2, 3, 1, 2, 0]));
    const [low] = topK({ axis: 1, k: 2, largest: false, sorted: true }, [x], context);
    expect(values(low)).toEqual([1, 2, -1, 0]);
  });

  it("works along an outer axis", () => {
    const [top, at] = topK({ axis: 0, k: 1, largest: true, sorted: true }, [x], context);
    expect(top!.shape).toEqual([1, 4]);
    expect(values(top)).toEqual([3, Number.NaN, 5, 2]);
    expect(values(at)).toEqual([0, 1, 1, 0]);
  });

  it("with k the whole extent sorts", () => {
    fc.assert(
      fc.property(fc.array(fc.integer(), { minLength: 1 }), (list) => {
        const tensor = refTensor("i32", [list.length], list);
        const attrs = { axis: 0, k: list.length, largest: false, sorted: true };
        expect(values(topK(attrs, [tensor], context)[0])).toEqual([...list].sort((a, b) => a - b));
      }),
    );
  });
});

describe("nonZero", () => {
  it("lists positions axis by axis", () => {
    const x = refTensor("f32", [2, 3], [0, 1, 0, Number.NaN, 0, -2]);
    expect(nonZero({}, [x], context)).toEqual([refTensor("i64", [2, 3], [0, 1, 1, 1, 0, 2])]);
    const big = refTensor("i64", [2], [0, 5]);
    expect(nonZero({}, [big], context)).toEqual([refTensor("i64", [1, 1], [1])]);
    const scalar = refTensor("bool", [], [1]);
    expect(nonZero({}, [scalar], context)).toEqual([refTensor("i64", [0, 1], [])]);
  });
});

describe("unique", () => {
  const x = refTensor("f32", [6], [2, 1, 1, 3, 4, 3]);
  it.each([
    [true, [1, 2, 3, 4], [1, 0, 3, 4], [1, 0, 0, 2, 3, 2], [2, 1, 2, 1]],
    [false, [2, 1, 3, 4], [0, 1, 3, 4], [0, 1, 1, 2, 3, 2], [1, 2, 2, 1]],
  ])("sorted %s over the flat tensor", (sorted, ...expected) => {
    expect(unique({ sorted }, [x], context).map(values)).toEqual(expected);
  });

  it("compares whole slices along an axis", () => {
    const rows = refTensor("i64", [3, 2], [1, 0, 0, 9, 1, 0]);
    const [kept, firsts, inverse, counts] = unique({ sorted: true, axis: 0 }, [rows], context);
    expect(kept).toEqual(refTensor("i64", [2, 2], [0, 9, 1, 0]));
    expect([values(firsts), values(inverse), values(counts)]).toEqual([
      [1, 0],
      [1, 0, 1],
      [1, 2],
    ]);
    const [columns] = unique({ sorted: true, axis: 1 }, [rows], context);
    expect(columns).toEqual(refTensor("i64", [3, 2], [0, 1, 9, 0, 0, 1]));
  });

  it("rebuilds the operand from values and inverse", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 1 }),
        fc.boolean(),
        (list, sorted) => {
          const tensor = refTensor("i32", [list.length], list);
          const [kept, firsts, inverse, counts] = unique({ sorted }, [tensor], context);
          expect(values(inverse).map((i) => values(kept)[i])).toEqual(list);
          expect(values(firsts).map((i) => list[i])).toEqual(values(kept));
          expect(values(counts).reduce((a, b) => a + b, 0)).toBe(list.length);
        },
      ),
    );
  });
});

describe("nonMaxSuppression", () => {
  const corner = [0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, 10, 1, 11, 1, 11, 0, 10.1];
  const center = [0.5, 0.5, 1, 1, 0.6, 0.5, 1, 1, 10.5, 0.5, 1, 1, 10.55, 0.5, 0.9, 1];
  const scores = refTensor("f32", [1, 1, 4], [0.5, 0.75, 0.25, 0.875]);
  const plain = { maxPerClass: 10, iouThreshold: 0.5, scoreThreshold: -Infinity };
  it.each([
    [false, corner],
    [true, center],
  ])("keeps the best of overlapping boxes (center point %s)", (centerPoint, list) => {
    const boxes = refTensor("f64", [1, 4, 4], list);
    const run = (extra: object) =>
      values(nonMaxSuppression({ centerPoint, ...plain, ...extra }, [boxes, scores], context)[0]);
    expect(run({})).toEqual([0, 0, 3, 0, 0, 1]);
    expect(run({ maxPerClass: 1 })).toEqual([0, 0, 3]);
    expect(run({ maxPerClass: 0 })).toEqual([]);
    expect(run({ scoreThreshold: 0.8 })).toEqual([0, 0, 3]);
    expect(run({ iouThreshold: 1 })).toEqual([0, 0, 3, 0, 0, 1, 0, 0, 0, 0, 0, 2]);
  });
});
