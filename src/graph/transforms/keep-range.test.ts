/** What leaves the range of f16 on its way is kept, wherever it goes; what the model asks to be rounded is rounded. */
import { describe, expect, it } from "vitest";
import { runGraph } from "../../interp/graph.ts";
import { numbersOf, type RefTensor, refTensor } from "../../semantics/tensor.ts";
import { parseGraph } from "../graph-text.ts";
import { keepRange } from "./keep-range.ts";
import { keepWide } from "./keep-wide.ts";

const weights = {
  read(key: string): never {
    throw new Error(`no weight ${key}`);
  },
};

function graphOf(text: string) {
  const graph = parseGraph(text);
  if (!graph.ok) throw new Error(graph.diagnostics[0]!.message);
  return { graph: graph.value, weights };
}

function outputs(model: ReturnType<typeof keepRange>, inputs: readonly RefTensor[]) {
  const found = runGraph(model.graph, inputs, model.weights);
  if (!found.ok) throw new Error(found.diagnostics[0]!.message);
  return found.value.map((t) => [...numbersOf(t)]);
}

const whole = (text: string) => keepWide(graphOf(text), { everywhere: true });

describe("conversions to half precision that the model asks for", () => {
  const cast = (to: string, rounds: string) => `graph "g" (x: f32[4]) -> (y) {
    h = cast(x) {to: ${to}, saturate: false${rounds}} : ${to}[4]
    y = cast(h) {to: f32, saturate: false} : f32[4]
  }`;
  const x = [refTensor("f32", [4], [2049, -4095, 70_000, 1 + 2 ** -9])];

  it.each([
    ["f16", [2048, -4096, Infinity, 1 + 2 ** -9]],
    ["bf16", [2048, -4096, 70_144, 1]],
  ])("round to %s, and overflow, where halves are kept wide", (to, wanted) => {
    const { model } = whole(cast(to, ", rounds: true"));
    const kept = model.graph.values.filter((v) => v.type.dtype === to);
    expect(kept).toHaveLength(1);
    expect(outputs(model, x)).toEqual([wanted]);
    expect(outputs(keepRange(graphOf(cast(to, ", rounds: true"))), x)).toEqual([wanted]);
  });

  it("are left out where they are an operator's own", () => {
    const { model } = whole(cast("f16", ""));
    expect(outputs(model, x)).toEqual([[...numbersOf(x[0]!)]]);
  });

  it.each([true, false])(
    "round what fits of a value that may leave the range (%s)",
    (everywhere) => {
      const text = `graph "g" (x: f32[3]) -> (y) {
      p = mul(x, x) : f32[3]
      h = cast(p) {to: f16, saturate: false, rounds: true} : f16[3]
      y = cast(h) {to: f32, saturate: false} : f32[3]
    }`;
      const first = keepWide(graphOf(text), { everywhere });
      expect(first.wide.map((w) => w.value)).toEqual(["h"]);
      const inputs = [refTensor("f32", [3], [300, 1 + 2 ** -12, -128.125])];
      const wanted = [90_000, 1, 16_416];
      expect(outputs(first.model, inputs)).toEqual([wanted]);
      // As in a part of a model that was prepared as a whole.
      const second = keepWide(first.model, { everywhere: true });
      expect(second.wide).toEqual([]);
      expect(outputs(second.model, inputs)).toEqual([wanted]);
    },
  );
});

describe("a value that leaves the range of f16", () => {
  it.each([true, false])("is kept for others where it is an output too (%s)", (everywhere) => {
    const text = `graph "g" (x: f16[3]) -> (p, y, p) {
      p = mul(x, x) : f16[3]
      y = sqrt(p) : f16[3]
    }`;
    const { model, wide } = keepWide(graphOf(text), { everywhere });
    const { graph } = model;
    expect(wide.map((w) => w.value)).toEqual(["p"]);
    expect(graph.outputs.map((id) => graph.values[id]!.name)).toEqual(["p", "y", "p"]);
    expect(graph.outputs.map((id) => graph.values[id]!.type.dtype)).toEqual(["f16", "f16", "f16"]);
    const p = [Infinity, 1, Infinity];
    const found = outputs(model, [refTensor("f16", [3], [300, 1, -400])]);
    expect(found).toEqual([p, [300, 1, 400], p]);
  });

  const normed = (x: string, shape: string) => `
      p = mul(${x}, ${x}) : f16[${shape}]
      t = reduce(p) {kind: sum, axes: [0], keepDims: true} : f16[1]
      s = sqrt(t) : f16[1]
      n = div(${x}, s) : f16[${shape}]`;

  it("is kept in a loop, and what goes from trip to trip", () => {
    const model =
      graphOf(`graph "g" (n: i64[], x0: f16[4], k: f16[]) -> (y, rows) where 0 <= trips <= 10 {
      c = constant bool[] (1)
      (y, rows) = loop(n, c, x0, k) {body: graph "b" (i: i64[], go: bool[], x: f16[4], by: f16[]) -> (go, z, q) {${normed("x", "4")}
        z = mul(n, by) : f16[4]
        q = mul(z, z) : f16[4]
      }, carried: 1, maxTrips: 10} : (f16[4], f16[trips, 4])
      }`);
    const { wide } = keepWide(model);
    expect(wide.map((w) => w.value)).toEqual(expect.arrayContaining(["x", "p", "z", "q"]));
    const x = refTensor("f16", [4], [500, 500, -500, 500]);
    const inputs = [refTensor("i64", [], [3n]), x, refTensor("f16", [], [1000])];
    const [y, rows] = outputs(keepRange(model), inputs);
    expect(y).toEqual([500, 500, -500, 500]);
    // Collected rows are outputs of the model: those are f16, and say so.
    expect(rows).toEqual(new Array<number>(12).fill(Infinity));
  });

  it("is kept in a branch and behind it", () => {
    const model = graphOf(`graph "g" (c: bool[], x: f16[3]) -> (y) {
      b = if(c, x) {then: graph "t" (a: f16[3]) -> (p) {
        p = mul(a, a) : f16[3]
      }, else: graph "e" (a: f16[3]) -> (p) {
        p = neg(a) : f16[3]
      }} : f16[3]
      y = sqrt(b) : f16[3]
    }`);
    const x = refTensor("f16", [3], [300, 1, -400]);
    const run = (c: number) => outputs(keepRange(model), [refTensor("bool", [], [c]), x]);
    expect(run(1)).toEqual([[300, 1, 400]]);
    expect(run(0)[0]![2]).toBe(20);
  });

  it("is kept in a scan, whose sums grow by its length at most", () => {
    const scan = (steps: number, body: string) =>
      graphOf(`graph "g" (h0: f16[3], xs: f16[${steps}, 3]) -> (y) {
      (h, r) = scan(h0, xs) {body: graph "b" (h: f16[3], x: f16[3]) -> (next, o) {
        ${body}
        o = sqrt(next) : f16[3]
      }, carried: 1, sequences: 1, inputAxes: [0], inputReversed: [false], outputAxes: [0], outputReversed: [false]} : (f16[3], f16[${steps}, 3])
      y = sqrt(h) : f16[3]
    }`);
    const sum = "next = add(h, x) : f16[3]";
    expect(keepWide(scan(40, sum)).isChanged).toBe(false);
    expect(keepWide(scan(100, sum)).wide.map((w) => w.value)).toContain("next");
    const squares = "p = mul(x, x) : f16[3]\n next = add(h, p) : f16[3]";
    const model = scan(2, squares);
    const inputs = [
      refTensor("f16", [3], [0, 0, 0]),
      refTensor("f16", [2, 3], [300, 3, 0, 400, 4, 1]),
    ];
    expect(outputs(keepRange(model), inputs)).toEqual([[500, 5, 1]]);
  });
});
