import { describe, expect, it } from "vitest";
import { differenceOnBlocks } from "../../../campaign/run-on-blocks.ts";
import { compileModel } from "../../compile.ts";
import { noWeights, runGraph } from "../../interp/graph.ts";
import { apply, argument } from "../../semantics/scalar-expr.ts";
import { evaluateScalar } from "../../semantics/scalar-meaning.ts";
import { Rng } from "../../support/rng.ts";
import { targets } from "../../target/index.ts";
import { selectTop } from "./select-top.ts";
import { graphOf, operand, type Top, take, valuesOf } from "./top-k.test-support.ts";

const target = targets.get("h200")!;

const types = ["f32", "bf16", "f16", "f8e5m2", "i8", "u8", "i16", "u16", "i32"] as const;

describe("topK by digits", () => {
  it.each(types)("is topK, equal values in their order: %s", (dtype) => {
    const rng = new Rng(17);
    const lines = [
      { shape: [2, 128], axis: 1 },
      { shape: [131], axis: 0 },
      { shape: [150, 2], axis: 0 },
      { shape: [2, 2, 200], axis: 2 },
      // Cut in groups first; of the second the last group is filled up.
      { shape: [1024], axis: 0 },
      { shape: [1, 1031], axis: 1 },
    ];
    for (const { shape, axis } of lines) {
      const n = shape[axis]!;
      for (const k of [9, 9 + rng.integer(0, 20), rng.integer(9, n), n - 1, n]) {
        const largest = rng.uniform() < 0.5;
        const top = { dtype, shape, axis, k, largest };
        const graph = graphOf(top);
        const { graph: selected } = selectTop(graph, { byDigits: true });
        expect(selected.nodes.length).toBeGreaterThan(graph.nodes.length + 8);
        const distinct = [1, 3, 100][rng.integer(0, 2)]!;
        const x = operand(top, rng, distinct);
        const [want, found] = [graph, selected].map((g) => take(runGraph(g, [x])).map(valuesOf));
        expect({ top, found }).toEqual({ top, found: want });
      }
    }
  });

  it("leaves what has no keys of 32 bits, what is short and what no line is known of", () => {
    const isLeft = (top: Top): boolean =>
      selectTop(graphOf(top), { byDigits: true }).graph.nodes.length === 1;
    const top = { shape: [500], axis: 0, k: 100, largest: true } as const;
    for (const dtype of ["f64", "i64", "u64", "u32"] as const)
      expect(isLeft({ ...top, dtype })).toBe(true);
    expect(isLeft({ ...top, dtype: "f32" })).toBe(false);
    expect(isLeft({ ...top, dtype: "f32", shape: [127] })).toBe(true);
    expect(isLeft({ ...top, dtype: "f32", k: 1 })).toBe(true);
  });
});

describe("the key of a number", () => {
  it("has the order of numbers, ties both zeros, and is the greatest for NaN", () => {
    const keyOf = (x: number): number =>
      evaluateScalar(apply("orderKey", argument(0, "f32")), [x]) as number;
    const bits = new DataView(new ArrayBuffer(4));
    const rng = new Rng(3);
    const numbers = Array.from({ length: 2000 }, () => {
      bits.setUint32(0, rng.integer(0, 2 ** 32 - 1));
      return bits.getFloat32(0);
    }).filter((x) => !Number.isNaN(x));
    numbers.push(0, -Infinity, Infinity, 2 ** -149, -(2 ** -149));
    numbers.sort((a, b) => a - b);
    for (const [i, x] of numbers.entries()) {
      const before = numbers[i - 1] ?? -Infinity;
      expect(Math.sign(keyOf(x) - keyOf(before))).toBe(x === before ? 0 : 1);
      expect(keyOf(-x) + keyOf(x)).toBe(0);
      expect(keyOf(x)).toBeLessThan(keyOf(Number.NaN));
    }
    expect(keyOf(-0)).toBe(keyOf(0));
    expect(keyOf(Number.NaN)).toBe(2 ** 31 - 1);
  });
});

describe("topK by digits on blocks", () => {
  const cases: readonly (Top & { readonly distinct: number })[] = [
    { dtype: "f32", shape: [200, 512], axis: 1, k: 20, largest: true, distinct: 40 },
  ];

  it.each(cases)("%o", (top) => {
    const compiled = take(compileModel({ graph: graphOf(top), weights: noWeights }, { target }));
    // Counts of all bits are one kernel.
    const most = Math.max(...compiled.regions.map((r) => r.scheduled.statements.length));
    expect(most).toBeGreaterThan(30);
  });

  const small: readonly (Top & { readonly distinct: number })[] = [
    { dtype: "f32", shape: [2, 140], axis: 1, k: 9, largest: true, distinct: 9 },
    { dtype: "bf16", shape: [1, 257], axis: 1, k: 40, largest: false, distinct: 3 },
    { dtype: "i8", shape: [130, 2], axis: 0, k: 130, largest: true, distinct: 100 },
  ];

  it.each(small)("as a program, proved and run: %o", (top) => {
    const x = operand(top, new Rng(9), top.distinct);
    expect(differenceOnBlocks(graphOf(top), [x])).toBeUndefined();
  });
});
