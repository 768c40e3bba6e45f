import { describe, expect, it } from "vitest";
import { toIndex } from "../semantics/index-expr.ts";
import { GraphBuilder } from "./builder.ts";
import { compulsoryBytes, flopsOf } from "./counts.ts";
import type { ValueId } from "./graph.ts";
import { traitsOf } from "./op-table.ts";
import type { OpWriter } from "./op-writer.ts";
import { tensorType } from "./tensor-type.ts";

/** Flops and bytes of the last node, as text. */
function check(body: (b: GraphBuilder, x: ValueId) => ValueId): readonly [string, string] {
  const b = new GraphBuilder("counts");
  const M = b.symbol("M", 1, 64);
  const x = b.input("x", tensorType("f32", M, 8));
  const graph = b.finish([body(b, x)]);
  const node = graph.nodes.at(-1)!;
  return [flopsOf(node, graph).key, compulsoryBytes(node, graph).key];
}

describe("counts", () => {
  it("of elementwise ops, products, movement and partial reads", () => {
    expect(check((b, x) => b.apply("exp", x))).toEqual(["8*M", "64*M"]);
    expect(check((b, x) => b.mul(x, x))).toEqual(["8*M", "64*M"]);
    expect(check((b, x) => b.einsum("i k, j k -> i j", x, x))).toEqual(["16*M*M", "32*M + 4*M*M"]);
    expect(check((b, x) => b.transpose(x, [1, 0]))).toEqual(["0", "64*M"]);
    expect(check((b, x) => b.sliceAxis(x, 1, 0, 2))).toEqual(["0", "16*M"]);
    expect(check((b, x) => b.node("dimSize", [x], { axis: 0 }))).toEqual(["0", "8"]);
  });

  it("of composites and scans follow the definition", () => {
    // max, subtraction, exp, sum, division
    expect(check((b, x) => b.node("softmax", [x], { axis: 1 }))).toEqual(["40*M", "64*M"]);
    const scan = check((b, x) => {
      const type = tensorType("f32", 8);
      const inputs = ["sum", "row"].map((name) => ({ name, type }));
      const body = b.subgraph("step", inputs, (w, [sum, row]) => [w.add(sum!, row!)]);
      const start = b.node("broadcast", [b.scalarLike(0, x)], { shape: type.shape });
      const order = { inputAxes: [0], inputReversed: [false], outputAxes: [], outputReversed: [] };
      return b.node("scan", [start, x], { body, carried: 1, sequences: 1, ...order });
    });
    expect(scan[0]).toBe("8*M");
  });

  it("of loops in loops that data end are a number", () => {
    const most = toIndex(2 ** 31 - 1);
    const looped = (b: OpWriter, x: ValueId, depth: number): ValueId => {
      if (depth === 0) return b.apply("tanh", x);
      const ports = [
        { name: "i", type: tensorType("i64") },
        { name: "c", type: tensorType("bool") },
        { name: "s", type: b.typeOf(x) },
      ];
      const body = b.subgraph("body", ports, (w, [, c, s]) => [c!, looped(w, s!, depth - 1)]);
      const start = [b.scalar(9n, "i64"), b.scalar(1, "bool"), x];
      return b.nodes("loop", start, { body, carried: 1, maxTrips: most })[0]!;
    };
    for (const depth of [1, 2, 5]) {
      const [flops] = check((b, x) => looped(b, x, depth));
      expect(flops).toMatch(/^\d+\*M$/);
    }
  });

  it("counts two flops per multiply-add of a convolution", () => {
    const [flops] = check((b) => {
      const w = b.weight("w", tensorType("f32", 16, 4, 3, 3));
      const x = b.weight("image", tensorType("f32", 1, 8, 10, 10));
      const pair = [1, 1];
      const window = { strides: pair, dilations: pair, padLow: [0, 0], padHigh: [0, 0] };
      return b.node("convolution", [x, w], { ...window, groups: 2 });
    });
    expect(flops).toBe(String(2 * 16 * 8 * 8 * 4 * 9));
  });
});

describe("traitsOf", () => {
  it("depends on attributes where linearity does", () => {
    const b = new GraphBuilder("traits");
    const x = b.input("x", tensorType("f32", 4, 4));
    b.reduce("sum", x, [1], false);
    b.reduce("max", x, [0, 1], false);
    b.add(x, x);
    b.node("softmax", [x], { axis: 0 });
    const graph = b.finish([x]);
    expect(graph.nodes.map((n) => traitsOf(n, graph))).toEqual([
      { reduction: [1], linear: "jointly" },
      { reduction: [0, 1] },
      { elementwise: "add", commutative: true, linear: "jointly" },
      { composite: true },
    ]);
  });
});
