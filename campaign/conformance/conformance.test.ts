/** The table of exceptions stays short, and the judge of outputs refuses what is wrong. */
import { describe, expect, test } from "vitest";
import type { HostValue } from "../../src/frontend/onnx/host-value.ts";
import type { Tensor } from "../../src/semantics/tensor.ts";
import { differenceOf } from "./compare-values.ts";
import { caseCount, exceptionFor, exceptions, failsAt } from "./exceptions.ts";

test("rows are sorted, once each, and few", () => {
  const names = exceptions.map(([name]) => name);
  expect(names).toEqual([...new Set(names)].sort());
  expect(names.length).toBeLessThanOrEqual(120);
  const failing = exceptions.filter((row) => failsAt(row, "oracle"));
  expect(caseCount - failing.length).toBeGreaterThanOrEqual(1750);
  expect(failing.filter(([name]) => name.startsWith("simple/"))).toEqual([]);
});

test("a row for compiled code does not excuse the oracle", () => {
  const [name] = exceptions.find(([, fails]) => fails === "compiled") ?? [];
  if (name === undefined) return;
  expect(exceptionFor(name, "oracle")).toBeUndefined();
  expect(exceptionFor(name, "wasm")).toBeDefined();
  expect(exceptionFor(name, "cuda-interp")).toBeDefined();
});

describe("outputs", () => {
  const f32 = (...values: number[]): Tensor => ({
    dtype: "f32",
    shape: [values.length],
    data: Float32Array.from(values),
  });
  const strings = (...elements: string[]): HostValue => ({
    kind: "strings",
    shape: [elements.length],
    elements,
  });
  test("equal within a thousandth", () => {
    expect(differenceOf(f32(1, 1000, Number.NaN), f32(1.0009, 999.5, Number.NaN))).toBeUndefined();
    expect(differenceOf(strings("a"), strings("a"))).toBeUndefined();
  });
  test.each<readonly [HostValue, HostValue]>([
    [f32(1), f32(1.002)],
    [f32(Number.NaN), f32(1)],
    [f32(Infinity), f32(-Infinity)],
    [f32(1), f32(1, 1)],
    [f32(1), { dtype: "i32", shape: [1], data: Int32Array.of(1) }],
    [strings("a"), strings("b")],
    [f32(1), strings("1")],
    [{ kind: "none" }, { kind: "sequence", elements: [] }],
    [
      { kind: "sequence", elements: [f32(1)] },
      { kind: "sequence", elements: [f32(2)] },
    ],
  ])("%# differ", (found, expected) => expect(differenceOf(found, expected)).toBeDefined());
});
