import { describe, expect, it } from "vitest";
import { ok, type Result } from "../../support/diagnostic.ts";
import { Rng } from "../../support/rng.ts";
import { constant } from "../index-expr.ts";
import { numbersOf, type RefTensor, randomRef, refTensor } from "../tensor.ts";
import { branch, loop, scan } from "./control-flow.ts";
import { dft } from "./fourier.ts";
import { dequantize, quantize } from "./quantization.ts";
import { randomNormal, randomUniform } from "./random.ts";
import { type ReferenceContext, runReference } from "./references.ts";

const noSubgraphs: ReferenceContext<never> = {
  runSubgraph: (body) => body,
  subgraphOutputTypes: (body) => body,
};
const values = (tensor: RefTensor | undefined) => [...tensor!.data].map(Number);

function expectNear(actual: RefTensor, expected: RefTensor): void {
  expect(actual.shape).toEqual(expected.shape);
  const judge = numbersOf(expected);
  for (const [i, value] of numbersOf(actual).entries()) {
    expect(Math.abs(value - judge[i]!)).toBeLessThan(1e-12);
  }
}

describe("dft", () => {
  const forward = { axis: 1, inverse: false, onesided: false };
  it("of an impulse is flat, of a constant an impulse", () => {
    const impulse = refTensor("f64", [1, 4, 1], [1, 0, 0, 0]);
    expect(values(dft({ ...forward, length: 4 }, [impulse], noSubgraphs)[0])).toEqual([
      1, 0, 1, 0, 1, 0, 1, 0,
    ]);
    const flat = refTensor("f64", [1, 4, 1], [1, 1, 1, 1]);
    const expected = refTensor("f64", [1, 4, 2], [4, 0, 0, 0, 0, 0, 0, 0]);
    expectNear(dft({ ...forward, length: 4 }, [flat], noSubgraphs)[0]!, expected);
  });

  it("has the sign of the exponent: e^(2 pi i n / N) is bin 1", () => {
    const wave = [1, 0, 0, 1, -1, 0, 0, -1];
    const [y] = dft({ ...forward, length: 4 }, [refTensor("f64", [1, 4, 2], wave)], noSubgraphs);
    expectNear(y!, refTensor("f64", [1, 4, 2], [0, 0, 4, 0, 0, 0, 0, 0]));
  });

  it.each([5, 6])("inverts itself, whole and onesided, for length %d", (length) => {
    const x = randomRef("f64", [2, length, 3, 1], new Rng(1));
    const whole = dft({ ...forward, length }, [x], noSubgraphs)[0]!;
    const back = dft({ ...forward, inverse: true, length }, [whole], noSubgraphs)[0]!;
    const pairs = numbersOf(x);
    const complex = refTensor(
      "f64",
      [2, length, 3, 2],
      [...pairs].flatMap((v) => [v, 0]),
    );
    expectNear(back, complex);
    const half = dft({ ...forward, onesided: true, length }, [x], noSubgraphs)[0]!;
    expect(half.shape).toEqual([2, Math.floor(length / 2) + 1, 3, 2]);
    const attrs = { ...forward, inverse: true, onesided: true, length };
    expectNear(dft(attrs, [half], noSubgraphs)[0]!, x);
  });

  it("pads and cuts to the length", () => {
    const x = refTensor("f64", [1, 2, 1], [1, 2]);
    const [long] = dft({ ...forward, length: 3 }, [x], noSubgraphs);
    expect(long!.shape).toEqual([1, 3, 2]);
    expect(values(long).slice(0, 2)).toEqual([3, 0]);
    const [short] = dft({ ...forward, length: 1 }, [x], noSubgraphs);
    expect(values(short)).toEqual([1, 0]);
  });
});

describe("quantize and dequantize", () => {
  it("round ties to even and saturate", () => {
    const x = refTensor("f32", [6], [0, 2, 3, 1000, -254, -1000]);
    const scale = refTensor("f32", [], [2]);
    const zero = refTensor("u8", [], [128]);
    const [q] = quantize({ to: "u8", saturate: true }, [x, scale, zero], noSubgraphs);
    expect(q).toEqual(refTensor("u8", [6], [128, 129, 130, 255, 1, 0]));
    const [back] = dequantize({ to: "f32" }, [q!, scale, zero], noSubgraphs);
    expect(values(back)).toEqual([0, 2, 4, 254, -254, -256]);
  });

  it("take a scale per position of an axis", () => {
    const x = refTensor("f32", [2, 2], [4, 4, 4, 4]);
    const scale = refTensor("f32", [2], [1, 2]);
    const over = (axis: number) =>
      values(quantize({ to: "i8", saturate: true, axis }, [x, scale], noSubgraphs)[0]);
    expect(over(0)).toEqual([4, 4, 2, 2]);
    expect(over(1)).toEqual([4, 2, 4, 2]);
  });

  it("take a scale per block, the last one partial", () => {
    const x = refTensor("i4", [2, 3], [1, 1, 1, 1, 1, 1]);
    const scale = refTensor("f16", [2, 2], [1, 2, 3, 4]);
    const attrs = { to: "f16", axis: 1, blockSize: 2 } as const;
    expect(values(dequantize(attrs, [x, scale], noSubgraphs)[0])).toEqual([1, 1, 2, 3, 3, 4]);
    const rows = { to: "f16", axis: 0, blockSize: 1 } as const;
    const wide = refTensor("f16", [2, 3], [1, 2, 3, 4, 5, 6]);
    expect(values(dequantize(rows, [x, wide], noSubgraphs)[0])).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it("to a float format rounds once", () => {
    const x = refTensor("f32", [2], [1.0625, 1e9]);
    const scale = refTensor("f32", [], [1]);
    const [q] = quantize({ to: "f8e4m3fn", saturate: true }, [x, scale], noSubgraphs);
    expect(values(q)).toEqual([1, 448]);
  });
});

describe("random", () => {
  it("gives the same numbers for the same seed, in range", () => {
    const attrs = { shape: [1000], dtype: "f32", a: 2, b: 3, seed: 9 } as const;
    const [u] = randomUniform(attrs, [], noSubgraphs);
    expect(randomUniform(attrs, [], noSubgraphs)[0]).toEqual(u);
    expect(Math.min(...values(u))).toBeGreaterThanOrEqual(2);
    expect(Math.max(...values(u))).toBeLessThanOrEqual(3);
    const normal = values(randomNormal(attrs, [], noSubgraphs)[0]);
    const mean = normal.reduce((a, b) => a + b, 0) / 1000;
    expect(Math.abs(mean - 2)).toBeLessThan(0.4);
  });
});

type Body = (inputs: readonly RefTensor[]) => RefTensor[];
const calls: ReferenceContext<Body> = {
  runSubgraph: (body, inputs): Result<readonly RefTensor[]> => ok(body(inputs)),
  subgraphOutputTypes: (body, inputs) => body(inputs),
};
const int = (value: number) => refTensor("i64", [], [value]);
const bool = (value: number) => refTensor("bool", [], [value]);

describe("control flow", () => {
  it("if takes one branch with the captures", () => {
    const attrs = {
      then: (x: readonly RefTensor[]) => [x[0]!],
      else: (x: readonly RefTensor[]) => [x[1]!],
    };
    expect(branch(attrs, [bool(1), int(4), int(5)], calls)).toEqual([int(4)]);
    expect(branch(attrs, [bool(0), int(4), int(5)], calls)).toEqual([int(5)]);
  });

  const body: Body = ([iteration, , total, step]) => {
    const next = Number(total!.data[0]) + Number(step!.data[0]);
    return [
      bool(next < 10 ? 1 : 0),
      int(next),
      refTensor("i64", [1], [Number(iteration!.data[0])]),
    ];
  };
  const maxTrips = 100;
  it.each([
    [100, 1, 12, [0, 1, 2]],
    [2, 1, 8, [0, 1]],
    [0, 1, 0, []],
    [5, 0, 0, []],
  ])("loop of at most %d trips, condition %d", (trips, condition, total, iterations) => {
    const inputs = [int(trips), bool(condition), int(0), int(4)];
    const [sum, seen] = loop({ body, carried: 1, maxTrips }, inputs, calls);
    expect(sum).toEqual(int(total));
    expect(seen).toEqual(refTensor("i64", [iterations.length, 1], iterations));
  });

  const cell: Body = ([state, element, bias]) => {
    const next = Number(state!.data[0]) + Number(element!.data[0]) + Number(bias!.data[0]);
    return [int(next), refTensor("i64", [1], [next])];
  };
  const plain = { body: cell, carried: 1, sequences: 1, inputAxes: [0], outputAxes: [0] };
  it("scan runs forward, backward, along any axis, with captures", () => {
    const row = refTensor("i64", [3], [1, 2, 3]);
    const run = (inputReversed: boolean, outputReversed: boolean, axis: number) => {
      const flags = { inputReversed: [inputReversed], outputReversed: [outputReversed] };
      return scan({ ...plain, ...flags, outputAxes: [axis] }, [int(0), row, int(10)], calls);
    };
    expect(run(false, false, 0)).toEqual([int(36), refTensor("i64", [3, 1], [11, 23, 36])]);
    expect(run(true, false, 0)[1]).toEqual(refTensor("i64", [3, 1], [13, 25, 36]));
    expect(run(false, true, 1)[1]).toEqual(refTensor("i64", [1, 3], [36, 23, 11]));
  });

  it("scan over nothing keeps the state and collects nothing", () => {
    const empty: Body = ([state]) => [state!, refTensor("i64", [2], [0, 0])];
    const attrs = { ...plain, body: empty, inputReversed: [false], outputReversed: [false] };
    const result = scan(attrs, [int(7), refTensor("i64", [0], []), int(1)], calls);
    expect(result).toEqual([int(7), refTensor("i64", [0, 2], [])]);
  });

  it("hands on the diagnostics of a body", () => {
    const failing: ReferenceContext<Body> = {
      ...calls,
      runSubgraph: (inner, inputs) =>
        runReference(
          {
            kind: "gather",
            attrs: { axis: 0 },
            inputs: [refTensor("i64", [1], [0]), inner(inputs)[1]!],
            evaluate: () => 0,
          },
          calls,
        ),
    };
    const attrs = { body, carried: 1, maxTrips: constant(9) };
    const inputs = [int(9), bool(1), int(0), int(4)];
    const result = runReference({ kind: "loop", attrs, inputs, evaluate: () => 9 }, failing);
    expect(result).toMatchObject({ ok: false, diagnostics: [{ code: "SEM001" }] });
  });
});
