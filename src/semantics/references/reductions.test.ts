import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Rng } from "../../support/rng.ts";
import { dtypes } from "../dtype.ts";
import { argMonoid } from "../monoids.ts";
import { type ScalarOp, scalarOps } from "../scalar-expr.ts";
import { evaluateScalar } from "../scalar-meaning.ts";
import { forEachIndex, offsetOf, rowMajorStrides } from "../shape.ts";
import {
  fromRef,
  type RefTensor,
  randomRef,
  refTensor,
  refTensorsEqual,
  toRef,
  zeroRef,
} from "../tensor.ts";
import { cast, elementwiseReferences, isInf } from "./elementwise.ts";
import { argReduce, cumulative, reduce } from "./reductions.ts";
import type { ReferenceContext } from "./reference.ts";

const context: ReferenceContext<never> = {
  runSubgraph: (body) => body,
  subgraphOutputTypes: (body) => body,
};

const values = (tensor: RefTensor | undefined) => [...tensor!.data].map(Number);

/** Operators that mean something on every integer dtype. */
const integerOps = new Set<ScalarOp>([
  "neg",
  "abs",
  "sign",
  "add",
  "sub",
  "mul",
  "div",
  "mod",
  "floorMod",
  "pow",
  "min",
  "max",
  "relu",
  "equal",
  "less",
  "lessEqual",
]);

describe("reduce", () => {
  it("is one accumulation per kept index, for any axes", () => {
    const shapes = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(shapes, fc.nat(500), fc.constantFrom("i32", "i64"), (shape, seed, dtype) => {
        const rng = new Rng(seed);
        const x = randomRef(dtype, shape, rng);
        const axes = shape.map((_, axis) => axis).filter(() => rng.integer(0, 1) === 1);
        const [y] = reduce({ kind: "sum", axes, keepDims: true }, [x], context);
        const expected = zeroRef(dtype, y!.shape);
        const strides = rowMajorStrides(y!.shape);
        forEachIndex(shape, (index, at) => {
          const to = offsetOf(
            index.map((i, axis) => (axes.includes(axis) ? 0 : i)),
            strides,
          );
          const sum = BigInt(expected.data[to]!) + BigInt(x.data[at]!);
          expected.data[to] = dtype === "i64" ? sum : Number(sum);
        });
        expect(y).toEqual(expected);
        const [flat] = reduce({ kind: "sum", axes, keepDims: false }, [x], context);
        expect(flat!.shape).toEqual(shape.filter((_, axis) => !axes.includes(axis)));
      }),
    );
  });

  const x = refTensor("f32", [2, 2], [1, -2, 3, 4]);
  it.each([
    ["sum", [4, 2]],
    ["prod", [3, -8]],
    ["max", [3, 4]],
    ["min", [1, -2]],
  ] as const)("%s over the outer axis", (kind, expected) => {
    expect(values(reduce({ kind, axes: [0], keepDims: false }, [x], context)[0])).toEqual(expected);
  });

  it("gives the identity over nothing and propagates NaN", () => {
    const empty = refTensor("f32", [0, 1], []);
    const over = (kind: "sum" | "max" | "min" | "prod", t: RefTensor) =>
      values(reduce({ kind, axes: [0], keepDims: false }, [t], context)[0])[0];
    expect(over("sum", empty)).toBe(0);
    expect(over("prod", empty)).toBe(1);
    expect(over("max", empty)).toBe(-Infinity);
    expect(over("max", refTensor("f32", [2], [Number.NaN, 1]))).toBeNaN();
    expect(over("min", refTensor("i8", [0, 1], []))).toBe(127);
  });

  it("wraps integers, keeps bool and rounds sums once", () => {
    const bytes = refTensor("u8", [3], [200, 100, 3]);
    const all = { axes: [0], keepDims: false } as const;
    expect(values(reduce({ kind: "sum", ...all }, [bytes], context)[0])).toEqual([47]);
    expect(values(reduce({ kind: "prod", ...all }, [bytes], context)[0])).toEqual([96]);
    const flags = refTensor("bool", [2], [1, 0]);
    expect(values(reduce({ kind: "and", ...all }, [flags], context)[0])).toEqual([0]);
    expect(values(reduce({ kind: "or", ...all }, [flags], context)[0])).toEqual([1]);
    const many = refTensor("bf16", [300], new Array(300).fill(1));
    expect(values(reduce({ kind: "sum", ...all }, [many], context)[0])).toEqual([300]);
  });
});

describe("argReduce", () => {
  const x = refTensor("f32", [2, 3], [1, 5, 5, Number.NaN, 7, Number.NaN]);
  it.each([
    ["max", false, [1, 0]],
    ["max", true, [2, 2]],
    ["min", false, [0, 0]],
    ["min", true, [0, 2]],
  ] as const)("%s, last of ties %s", (kind, selectLast, expected) => {
    const attrs = { kind, axis: 1, keepDims: true, selectLast } as const;
    expect(argReduce(attrs, [x], context)).toEqual([refTensor("i64", [2, 1], expected)]);
  });

  it("works along any axis and on 64-bit integers", () => {
    const big = refTensor("i64", [2, 2], [1, 9, 2, 8]);
    const attrs = { kind: "max", axis: 0, keepDims: false, selectLast: false } as const;
    expect(argReduce(attrs, [big], context)).toEqual([refTensor("i64", [2], [1, 0])]);
  });

  it("refuses an axis without elements", () => {
    const none = refTensor("f32", [0, 3], []);
    const attrs = { kind: "max", axis: 0, keepDims: false, selectLast: false } as const;
    expect(() => argReduce(attrs, [none], context)).toThrow("SHP004");
  });
});

describe("the argmax monoid", () => {
  it("folds to what argReduce gives, NaN and ties included", () => {
    const item = fc.oneof(fc.integer({ min: -2, max: 2 }), fc.constant(Number.NaN));
    fc.assert(
      fc.property(
        fc.array(item, { minLength: 1 }),
        fc.constantFrom("max", "min"),
        fc.boolean(),
        (list, kind, selectLast) => {
          const tie = selectLast ? "last" : "first";
          const monoid = argMonoid({ kind, dtype: "f32", indexDType: "i64", tie });
          let state = monoid.identity.map((e) => evaluateScalar(e, []));
          for (const [i, value] of list.entries()) {
            const both = [...state, value, BigInt(i)];
            state = monoid.combine.map((e) => evaluateScalar(e, both));
          }
          const attrs = { kind, axis: 0, keepDims: false, selectLast };
          const [index] = argReduce(attrs, [refTensor("f32", [list.length], list)], context);
          expect(evaluateScalar(monoid.finish[0]!, state)).toBe(index!.data[0]);
        },
      ),
    );
  });
});

describe("cumulative", () => {
  const x = refTensor("f32", [2, 3], [1, 2, 3, 4, 5, 6]);
  it.each([
    ["sum", 1, false, false, [1, 3, 6, 4, 9, 15]],
    ["sum", 1, true, false, [0, 1, 3, 0, 4, 9]],
    ["sum", 1, false, true, [6, 5, 3, 15, 11, 6]],
    ["sum", 1, true, true, [5, 3, 0, 11, 6, 0]],
    ["sum", 0, false, false, [1, 2, 3, 5, 7, 9]],
    ["prod", 1, false, false, [1, 2, 6, 4, 20, 120]],
    ["max", 1, false, true, [3, 3, 3, 6, 6, 6]],
  ] as const)(
    "%s along %d, exclusive %s, reverse %s",
    (kind, axis, exclusive, reverse, expected) => {
      const attrs = { kind, axis, exclusive, reverse };
      expect(values(cumulative(attrs, [x], context)[0])).toEqual(expected);
      const big = refTensor("i64", x.shape, values(x));
      expect(values(cumulative(attrs, [big], context)[0])).toEqual(expected);
    },
  );
});

describe("elementwise", () => {
  it.each(["f16", "bf16", "f8e4m3fnuz", "f4e2m1", "i8", "u4", "u32", "i64", "bool"] as const)(
    "leaves every result on the grid of %s",
    (dtype) => {
      const kind = dtypes[dtype].kind;
      const x = randomRef(dtype, [64], new Rng(1), { distribution: "normal", scale: 3 });
      for (const op of Object.keys(scalarOps) as ScalarOp[]) {
        const isBitwise = op.startsWith("bit") || op.startsWith("shift");
        const isLogical = op === "and" || op === "or" || op === "xor" || op === "not";
        if (op === "select" || isLogical !== (kind === "bool")) continue;
        if (kind === "float" ? isBitwise : !isBitwise && !integerOps.has(op)) continue;
        const operands = new Array<RefTensor>(scalarOps[op].arity).fill(x);
        const [y] = elementwiseReferences[op]({}, operands, context);
        expect(refTensorsEqual(toRef(fromRef(y!)), y!), op).toBe(true);
      }
    },
  );

  it("broadcasts as numpy and rounds to the dtype", () => {
    const column = refTensor("f16", [2, 1], [2048, 1]);
    const row = refTensor("f16", [3], [1, 2, 3]);
    const [sum] = elementwiseReferences.add({}, [column, row], context);
    expect(sum).toEqual(refTensor("f16", [2, 3], [2048, 2050, 2052, 2, 3, 4]));
  });

  it("gives bool from comparisons and selects by broadcasting", () => {
    const a = refTensor("i64", [2], [1, 2]);
    const [below] = elementwiseReferences.less({}, [a, refTensor("i64", [], [2])], context);
    expect(below).toEqual(refTensor("bool", [2], [1, 0]));
    const [picked] = elementwiseReferences.select(
      {},
      [below!, a, refTensor("i64", [], [9])],
      context,
    );
    expect(picked).toEqual(refTensor("i64", [2], [1, 9]));
  });

  it("wraps 64-bit integers", () => {
    const top = refTensor("i64", [1], [(1n << 63n) - 1n]);
    const [next] = elementwiseReferences.add({}, [top, refTensor("i64", [1], [1])], context);
    expect(next!.data[0]).toBe(-(1n << 63n));
  });

  it("casts and finds infinities", () => {
    const x = refTensor("f32", [4], [-Infinity, Infinity, Number.NaN, 500]);
    const only = (detectNegative: boolean, detectPositive: boolean) =>
      values(isInf({ detectNegative, detectPositive }, [x], context)[0]);
    expect(only(true, false)).toEqual([1, 0, 0, 0]);
    expect(only(false, true)).toEqual([0, 1, 0, 0]);
    const [small] = cast({ to: "f8e4m3fn", saturate: true }, [x], context);
    expect(values(small)).toEqual([-448, 448, Number.NaN, 448]);
    const [wide] = cast({ to: "i64", saturate: true }, [x], context);
    expect(wide!.data[3]).toBe(500n);
    expect(wide!.data[2]).toBe(0n);
  });
});
