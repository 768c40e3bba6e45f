import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Rng } from "../../support/rng.ts";
import type { ConcreteAttrs } from "../concrete-attrs.ts";
import { elementCount, forEachIndex, offsetOf, rowMajorStrides } from "../shape.ts";
import { numbersOf, type RefTensor, randomRef, refTensor } from "../tensor.ts";
import { contract } from "./contraction.ts";
import { convolution, transposedConvolution } from "./convolution.ts";
import { pool, poolIndices } from "./pooling.ts";
import type { ReferenceContext } from "./reference.ts";

const context: ReferenceContext<never> = {
  runSubgraph: (body) => body,
  subgraphOutputTypes: (body) => body,
};

/** The element at an index, 0 outside. */
function at(x: RefTensor, index: readonly number[]): number {
  if (index.some((i, axis) => i < 0 || i >= x.shape[axis]!)) return 0;
  return Number(x.data[offsetOf(index, rowMajorStrides(x.shape))]);
}

function expectClose(actual: RefTensor, expected: RefTensor): void {
  expect(actual.shape).toEqual(expected.shape);
  const [a, e] = [numbersOf(actual), numbersOf(expected)];
  for (let i = 0; i < a.length; i++) {
    if (!(Math.abs(a[i]! - e[i]!) <= 1e-12 * Math.max(1, Math.abs(e[i]!)))) {
      expect.fail(`element ${i}: ${a[i]} instead of ${e[i]}`);
    }
  }
}

type ConvolutionShape = ConcreteAttrs<"convolution"> & {
  readonly spatial: readonly number[];
  readonly window: readonly number[];
  readonly channels: number;
  readonly outputs: number;
};

/** Convolution from its definition: one sum per result element. */
function convolveByDefinition(x: RefTensor, w: RefTensor, attrs: ConvolutionShape): RefTensor {
  const result = attrs.spatial.map((extent, a) => {
    const span = attrs.dilations[a]! * (attrs.window[a]! - 1) + 1;
    return (
      Math.floor((extent + attrs.padLow[a]! + attrs.padHigh[a]! - span) / attrs.strides[a]!) + 1
    );
  });
  const shape = [x.shape[0]!, w.shape[0]!, ...result];
  const values = new Float64Array(elementCount(shape));
  const groupChannels = w.shape[1]!;
  forEachIndex(shape, ([n, o, ...position], offset) => {
    const group = Math.floor(o! / (w.shape[0]! / attrs.groups));
    forEachIndex([groupChannels, ...attrs.window], ([c, ...tap]) => {
      const source = position.map(
        (p, a) => p * attrs.strides[a]! + tap[a]! * attrs.dilations[a]! - attrs.padLow[a]!,
      );
      values[offset] =
        values[offset]! +
        at(x, [n!, group * groupChannels + c!, ...source]) * at(w, [o!, c!, ...tap]);
    });
  });
  return { dtype: "f64", shape, data: values };
}

const axis = fc.record({
  extent: fc.integer({ min: 1, max: 7 }),
  window: fc.integer({ min: 1, max: 3 }),
  stride: fc.integer({ min: 1, max: 3 }),
  dilation: fc.integer({ min: 1, max: 2 }),
  low: fc.integer({ min: 0, max: 2 }),
  high: fc.integer({ min: 0, max: 2 }),
});

const convolutionShapes = fc
  .record({
    axes: fc.array(axis, { minLength: 1, maxLength: 3 }),
    groups: fc.integer({ min: 1, max: 2 }),
    channels: fc.integer({ min: 1, max: 5 }),
    outputs: fc.integer({ min: 1, max: 3 }),
  })
  .filter(({ axes }) =>
    axes.every((a) => a.extent + a.low + a.high >= a.dilation * (a.window - 1) + 1),
  )
  .map(
    ({ axes, groups, channels, outputs }): ConvolutionShape => ({
      spatial: axes.map((a) => a.extent),
      window: axes.map((a) => a.window),
      strides: axes.map((a) => a.stride),
      dilations: axes.map((a) => a.dilation),
      padLow: axes.map((a) => a.low),
      padHigh: axes.map((a) => a.high),
      groups,
      channels: channels * groups,
      outputs: outputs * groups,
    }),
  );

describe("convolution", () => {
  it("is its definition", () => {
    fc.assert(
      fc.property(convolutionShapes, fc.nat(99), (attrs, seed) => {
        const rng = new Rng(seed);
        const x = randomRef("f64", [2, attrs.channels, ...attrs.spatial], rng);
        const weights = [attrs.outputs, attrs.channels / attrs.groups, ...attrs.window];
        const w = randomRef("f64", weights, rng);
        const [y] = convolution(attrs, [x, w], context);
        expectClose(y!, convolveByDefinition(x, w, attrs));
      }),
    );
  });

  it("wraps integers and rounds floats once", () => {
    const one = { strides: [1], dilations: [1], padLow: [0], padHigh: [0], groups: 1 };
    const x = refTensor("i8", [1, 1, 2], [100, 100]);
    const w = refTensor("i8", [1, 1, 2], [1, 1]);
    expect(convolution(one, [x, w], context)[0]).toEqual(refTensor("i8", [1, 1, 1], [-56]));
    const half = refTensor("bf16", [1, 1, 3], [256, 1, 1]);
    const ones = refTensor("bf16", [1, 1, 3], [1, 1, 1]);
    expect(convolution(one, [half, ones], context)[0]!.data[0]).toBe(258);
  });
});

describe("transposedConvolution", () => {
  it("is the adjoint of convolution: <conv(x), y> = <x, convT(y)>", () => {
    fc.assert(
      fc.property(convolutionShapes, fc.nat(99), (attrs, seed) => {
        const rng = new Rng(seed);
        const x = randomRef("f64", [1, attrs.channels, ...attrs.spatial], rng);
        const weights = [attrs.outputs, attrs.channels / attrs.groups, ...attrs.window];
        const w = randomRef("f64", weights, rng);
        const [image] = convolution(attrs, [x, w], context);
        const y = randomRef("f64", image!.shape, rng);
        const outputPadding = attrs.spatial.map((extent, a) => {
          const span = attrs.dilations[a]! * (attrs.window[a]! - 1) + 1;
          const padding = attrs.padLow[a]! + attrs.padHigh[a]!;
          return (extent + padding - span) % attrs.strides[a]!;
        });
        const [back] = transposedConvolution({ ...attrs, outputPadding }, [y, w], context);
        expect(back!.shape).toEqual(x.shape);
        const dot = (a: RefTensor, b: RefTensor) =>
          numbersOf(a).reduce((sum, v, i) => sum + v * numbersOf(b)[i]!, 0);
        expect(Math.abs(dot(image!, y) - dot(x, back!))).toBeLessThan(1e-10);
      }),
    );
  });
});

describe("contract", () => {
  const labels = ["a", "b", "c", "d"];
  const extents: Record<string, number> = { a: 2, b: 3, c: 5, d: 1 };

  /** Every combination of labels, one product each. */
  function contractByDefinition(attrs: ConcreteAttrs<"contract">, x: RefTensor, y: RefTensor) {
    const all = [...new Set([...attrs.lhs, ...attrs.rhs])];
    const shape = attrs.output.map((l) => extents[l]!);
    const values = new Float64Array(elementCount(shape));
    const strides = rowMajorStrides(shape);
    forEachIndex(
      all.map((l) => extents[l]!),
      (index) => {
        const of = (list: readonly string[]) => list.map((l) => index[all.indexOf(l)]!);
        const to = offsetOf(of(attrs.output), strides);
        values[to] = values[to]! + at(x, of(attrs.lhs)) * at(y, of(attrs.rhs));
      },
    );
    return { dtype: "f64", shape, data: values } as const;
  }

  it("is its definition for any labels, diagonals and one-sided sums included", () => {
    const side = fc.array(fc.constantFrom(...labels), { maxLength: 4 });
    fc.assert(
      fc.property(side, side, fc.nat(1000), (lhs, rhs, seed) => {
        const rng = new Rng(seed);
        const present = [...new Set([...lhs, ...rhs])];
        const output = present.filter(() => rng.integer(0, 1) === 1).reverse();
        const attrs = { lhs, rhs, output, accumulator: "f64" } as const;
        const make = (list: readonly string[]) =>
          randomRef(
            "f64",
            list.map((l) => extents[l]!),
            rng,
          );
        const [x, y] = [make(lhs), make(rhs)];
        expectClose(contract(attrs, [x, y], context)[0]!, contractByDefinition(attrs, x, y));
      }),
    );
  });

  it("is exact on 64-bit integers and takes mixed operands", () => {
    const x = refTensor("i64", [1, 2], [2 ** 40, 1]);
    const y = refTensor("i64", [2, 1], [2 ** 20, 1]);
    const product = { lhs: ["i", "k"], rhs: ["k", "j"], output: ["i", "j"] };
    const [wide] = contract({ ...product, accumulator: "i64" }, [x, y], context);
    expect(wide!.data[0]).toBe(2n ** 60n + 1n);
    const [mixed] = contract(
      { ...product, accumulator: "i32" },
      [refTensor("u8", [1, 2], [255, 255]), refTensor("i8", [2, 1], [-128, 127])],
      context,
    );
    expect(mixed).toEqual(refTensor("i32", [1, 1], [-255]));
  });

  it("wraps 32-bit products beyond 2^53 exactly", () => {
    const x = refTensor("i32", [2], [2 ** 31 - 1, 3]);
    const attrs = { lhs: ["k"], rhs: ["k"], output: [], accumulator: "i32" } as const;
    const [y] = contract(attrs, [x, x], context);
    expect(y!.data[0]).toBe(Number(BigInt.asIntN(32, (2n ** 31n - 1n) ** 2n + 9n)));
  });

  it("of an empty sum is zero", () => {
    const attrs = { lhs: ["i", "k"], rhs: ["k"], output: ["i"], accumulator: "f32" } as const;
    const [y] = contract(attrs, [refTensor("f32", [2, 0], []), refTensor("f32", [0], [])], context);
    expect(y).toEqual(refTensor("f32", [2], [0, 0]));
  });
});

describe("pool", () => {
  const plain = {
    kind: "max",
    window: [2],
    strides: [2],
    dilations: [1],
    padLow: [0],
    padHigh: [0],
    ceil: false,
    countPadding: false,
    exponent: 2,
  } as const;
  const x = refTensor("f32", [1, 1, 5], [1, -4, 3, 2, 5]);
  const run = (attrs: Partial<ConcreteAttrs<"pool">>, input = x) => [
    ...pool({ ...plain, ...attrs }, [input], context)[0]!.data,
  ];

  it("takes each kind over each window", () => {
    expect(run({})).toEqual([1, 3]);
    expect(run({ kind: "sum" })).toEqual([-3, 5]);
    expect(run({ kind: "average" })).toEqual([-1.5, 2.5]);
    expect(run({ kind: "lp" })).toEqual([Math.fround(Math.sqrt(17)), Math.fround(Math.sqrt(13))]);
    expect(run({ dilations: [2], strides: [1] })).toEqual([3, 2, 5]);
  });

  it("keeps a partial last window when ceil, unless it starts in the high padding", () => {
    expect(run({ ceil: true })).toEqual([1, 3, 5]);
    expect(run({ ceil: true, kind: "average" })).toEqual([-1.5, 2.5, 5]);
    // Positions beyond the padded operand do not count even with countPadding.
    expect(run({ ceil: true, kind: "average", countPadding: true })).toEqual([-1.5, 2.5, 5]);
    expect(run({ ceil: true, padHigh: [1], window: [1], strides: [3] })).toEqual([1, 2]);
  });

  it("does not let padding win a maximum or count in an average", () => {
    const negative = refTensor("f32", [1, 1, 2], [-3, -4]);
    expect(run({ padLow: [1], padHigh: [1] }, negative)).toEqual([-3, -4]);
    expect(run({ kind: "average", padLow: [1], padHigh: [1] }, negative)).toEqual([-3, -4]);
    expect(
      run({ kind: "average", padLow: [1], padHigh: [1], countPadding: true }, negative),
    ).toEqual([-1.5, -2]);
  });

  it("propagates NaN", () => {
    expect(run({}, refTensor("f32", [1, 1, 2], [Number.NaN, 1]))[0]).toBeNaN();
  });

  it("poolIndices points at the maxima, in both orders", () => {
    const image = refTensor("f32", [1, 2, 2, 2], [1, 2, 3, 0, 5, 6, 7, 9]);
    const square = { ...plain, window: [2, 2], strides: [2, 2], dilations: [1, 1] };
    const padding = { padLow: [0, 0], padHigh: [0, 0] };
    const indices = (columnMajor: boolean) =>
      [...poolIndices({ ...square, ...padding, columnMajor }, [image], context)[0]!.data].map(
        Number,
      );
    expect(indices(false)).toEqual([2, 7]);
    expect(indices(true)).toEqual([1, 7]);
    const line = refTensor("f32", [1, 1, 2], [1, Number.NaN]);
    expect(poolIndices({ ...plain, columnMajor: false }, [line], context)[0]!.data[0]).toBe(1n);
  });
});
