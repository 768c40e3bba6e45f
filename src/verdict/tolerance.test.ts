import { describe, expect, it } from "vitest";
import { exitCodeOf } from "../commands/exit-codes.ts";
import { GraphBuilder } from "../graph/builder.ts";
import type { Graph, ValueId } from "../graph/graph.ts";
import { parseGraph } from "../graph/graph-text.ts";
import type { OpWriter } from "../graph/op-writer.ts";
import { tensorType } from "../graph/tensor-type.ts";
import { constant } from "../semantics/index-expr.ts";
import { refTensor } from "../semantics/tensor.ts";
import {
  compareTensors,
  hasRanks,
  hasSteps,
  isMovable,
  leastOfHalves,
  tolerancesOf,
  worstDifference,
} from "./tolerance.ts";

/** A scan over rows of eight elements, whose state and output is what `next` makes of the state and a row. */
function scanOf(
  dtype: "f16" | "f32",
  steps: number,
  next: (w: OpWriter, state: ValueId, element: ValueId) => ValueId,
): Graph {
  const b = new GraphBuilder("g");
  const row = tensorType(dtype, 1, 8);
  const start = b.input("start", row);
  const rows = b.input("rows", tensorType(dtype, steps, 1, 8));
  const declared = [start, rows].map((_, i) => ({ name: `i${i}`, type: row }));
  const body = b.subgraph("step", declared, (w, [state, element]) => {
    const made = next(w, state!, element!);
    return [made, made];
  });
  const axes = { inputAxes: [0], outputAxes: [0] };
  const orders = { inputReversed: [false], outputReversed: [false] };
  const attrs = { body, carried: 1, sequences: 1, ...axes, ...orders };
  return b.finish(b.nodes("scan", [start, rows], attrs));
}

describe("tolerancesOf", () => {
  it("grows with the length of sums along a path", () => {
    const graph = parseGraph(`graph g(x: f32[4, 256], w: f32[256, 8]) -> (y, x) {
      y = contract(x, w) {lhs: "i k", rhs: "k j", output: "i j", accumulator: f32} : f32[4, 8]
    }`);
    if (!graph.ok) throw new Error(graph.diagnostics[0]!.message);
    expect(tolerancesOf(graph.value)).toEqual([2 ** -23 * 16, 0]);
    const longer = parseGraph(`graph g(x: f32[4, 256], w: f32[256, 8], v: f32[4, 8]) -> (z, v) {
      y = contract(x, w) {lhs: "i k", rhs: "k j", output: "i j", accumulator: f32} : f32[4, 8]
      s = add(y, v) : f32[4, 8]
      z = relu(s) : f32[4, 8]
    }`);
    if (!longer.ok) throw new Error(longer.diagnostics[0]!.message);
    expect(tolerancesOf(longer.value)).toEqual([2 ** -23 * (16 + 2 + 2), 0]);
  });
});

describe("tolerancesOf values of 16 bits", () => {
  const graph = parseGraph(`graph g(x: f32[4]) -> (z, h) {
    y = cast(x) {to: bf16, saturate: true} : bf16[4]
    h = relu(y) : bf16[4]
    z = cast(h) {to: f32, saturate: true} : f32[4]
  }`);
  if (!graph.ok) throw new Error(graph.diagnostics[0]!.message);
  const { value } = graph;

  it("are those of each rounding to them, and of what follows in f32", () => {
    const [f32, bf16] = [2 * 2 ** -23, 2 * 2 ** -7];
    expect(tolerancesOf(value)).toEqual([3 * f32 + 2 * bf16, 2 * f32 + 2 * bf16]);
  });

  it("leave them out where they are measured, but for the output's own", () => {
    const [f32, bf16] = [2 * 2 ** -23, 2 * 2 ** -7];
    expect(tolerancesOf(value, { isMoved: true })).toEqual([3 * f32, 2 * f32 + bf16]);
    expect(isMovable(value)).toBe(true);
  });
});

describe("what is granted of roundings to 16 bits in any case", () => {
  const scanned = (steps: number) =>
    leastOfHalves(scanOf("f16", steps, (w, state, element) => w.add(state, element)));

  it("is the coarsest once, and those of bodies for each trip as they add up", () => {
    const f16 = 2 * 2 ** -10;
    expect(scanned(1)).toBeCloseTo(f16 + f16, 12);
    expect(scanned(100)).toBeCloseTo(f16 + 10 * f16, 12);
    const g = new GraphBuilder("g");
    const half = g.cast(g.cast(g.input("x", tensorType("f32", 4)), "f16"), "bf16");
    expect(leastOfHalves(g.finish([g.cast(half, "f32")]))).toBe(2 * 2 ** -7);
  });
});

describe("tolerancesOf a scan", () => {
  /** A state that is added to each element, read as bytes or as it is; 16 steps. */
  const scanned = (quantised: boolean) =>
    tolerancesOf(
      scanOf("f32", 16, (w, state, element) => {
        const [bytes] = quantised ? w.nodes("dynamicQuantizeLinear", [state], {}) : [state];
        return w.add(w.cast(bytes!, "f32"), element);
      }),
    );
  it("allows for a step of what the body quantises, for each of its steps", () => {
    const [plain] = scanned(false);
    const [fed] = scanned(true);
    expect(plain).toBeLessThan(1e-5);
    expect(fed! - plain!).toBeCloseTo(Math.sqrt(16) * 2 ** -8, 5);
  });
});

it("knows graphs that make integers of floats", () => {
  const steps = (to: string): boolean => {
    const graph = parseGraph(`graph g(x: f32[4], i: i64[4]) -> (y, z) {
      z = add(i, i) : i64[4]
      y = cast(x) {to: ${to}, saturate: true} : ${to}[4]
    }`);
    if (!graph.ok) throw new Error(graph.diagnostics[0]!.message);
    return hasSteps(graph.value);
  };
  expect([steps("i8"), steps("u8"), steps("f16"), steps("bool")]).toEqual([
    true,
    true,
    false,
    false,
  ]);
});

it("knows graphs that rank floats", () => {
  const ranks = (dtype: "f32" | "i64"): boolean => {
    const g = new GraphBuilder("g");
    const x = g.input("x", { dtype, shape: [constant(8)] });
    const attrs = { axis: 0, k: constant(3), largest: true, sorted: true };
    return hasRanks(g.finish([...g.nodes("topK", [x], attrs)]));
  };
  expect([ranks("f32"), ranks("i64")]).toEqual([true, false]);
});

const y = (...values: number[]) => refTensor("f32", [values.length], values);

describe("compareTensors", () => {
  const [inf, nan] = [Infinity, Number.NaN];
  it("counts what is finite on both sides, and what is not", () => {
    expect(compareTensors(y(1, nan, inf, 2, nan), y(1, nan, inf, inf, 2))).toMatchObject({
      elements: 5,
      compared: 1,
      nan: 2,
      infinite: 2,
      worst: { relative: Infinity, index: 3 },
    });
    expect(compareTensors(y(nan, inf), y(nan, inf))).toMatchObject({
      compared: 0,
      worst: { relative: 0 },
    });
    const large = refTensor("i64", [1], [2n ** 62n]);
    expect(compareTensors(large, large)).toMatchObject({ elements: 1, compared: 1 });
  });
  it("knows a tensor of one value", () => {
    expect(compareTensors(y(0, 0), y(0, 0)).onlyValue).toBe(0);
    expect(compareTensors(y(0, 1), y(0, 1)).onlyValue).toBeUndefined();
    expect(compareTensors(y(3), y(3)).onlyValue).toBeUndefined();
  });
});

describe("worstDifference", () => {
  it("is relative to the largest expected value", () => {
    expect(worstDifference(y(1, 101), y(1, 100))).toMatchObject({ relative: 0.01, index: 1 });
    expect(worstDifference(y(Number.NaN), y(Number.NaN)).relative).toBe(0);
  });
  it("is infinite where a NaN, an infinity or the shape differs", () => {
    expect(worstDifference(y(Number.NaN), y(1)).relative).toBe(Infinity);
    expect(worstDifference(y(1), y(Infinity)).relative).toBe(Infinity);
    expect(worstDifference(y(1, 2), y(1)).relative).toBe(Infinity);
    expect(worstDifference(refTensor("f64", [1], [1]), y(1)).relative).toBe(Infinity);
    expect(worstDifference(refTensor("f32", [1, 1], [1]), y(1)).relative).toBe(Infinity);
  });
  it("makes a mismatch exit with 3 and a missing peer with 6", () => {
    expect([exitCodeOf("CLI004"), exitCodeOf("CLI003")]).toEqual([3, 6]);
    expect(exitCodeOf("CLI009")).toBe(3);
  });
});
