import { describe, expect, it } from "vitest";
import { differenceOnBlocks } from "../../../campaign/run-on-blocks.ts";
import { compileModel } from "../../compile.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import type { Graph } from "../../graph/graph.ts";
import { tensorType } from "../../graph/tensor-type.ts";
import { noWeights } from "../../interp/graph.ts";
import type { ScatterReduction } from "../../semantics/core-ops.ts";
import { type DType, isFloatDType } from "../../semantics/dtype.ts";
import { elementCount } from "../../semantics/shape.ts";
import { type RefTensor, refTensor } from "../../semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { Rng } from "../../support/rng.ts";
import { targets } from "../../target/index.ts";

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

interface Scatter {
  readonly dtype: DType;
  readonly reduction: ScatterReduction;
  readonly data: readonly number[];
  readonly indices: readonly number[];
  /** Of ScatterElements; absent: ScatterND. */
  readonly axis?: number | undefined;
}

function slicesOf({ data, indices, axis }: Pick<Scatter, "data" | "indices" | "axis">) {
  if (axis !== undefined) return indices;
  return [...indices.slice(0, -1), ...data.slice(indices.at(-1))];
}

/** What updates are written over is an input, or the double of one. */
function graphOf({ dtype, reduction, data, indices, axis }: Scatter, doubled = false): Graph {
  const g = new GraphBuilder("scatter");
  const x = g.input("x", tensorType(dtype, ...data));
  const i = g.input("i", tensorType("i64", ...indices));
  const u = g.input("u", tensorType(dtype, ...slicesOf({ data, indices, axis })));
  const over = doubled ? g.node("add", [x, x], {}) : x;
  return g.finish([
    axis === undefined
      ? g.node("scatterNd", [over, i, u], { reduction })
      : g.node("scatterElements", [over, i, u], { axis, reduction }),
  ]);
}

/** Small whole numbers, whose sums are exact in any order. */
function numbers(dtype: DType, shape: readonly number[], rng: Rng): RefTensor {
  const [least, most] = [isFloatDType(dtype) ? -3 : 0, dtype === "bool" ? 1 : 3];
  return refTensor(
    dtype,
    shape,
    Array.from({ length: elementCount(shape) }, () => rng.integer(least, most)),
  );
}

/** Places of updates, each met by several and some counted from the end. */
function places({ data, indices, axis }: Scatter, rng: Rng): RefTensor {
  const width = indices.at(-1)!;
  const values = Array.from({ length: elementCount(indices) }, (_, n) => {
    const extent = axis === undefined ? data[n % width]! : data[axis]!;
    const place = rng.integer(0, extent - 1);
    return BigInt(rng.integer(0, 3) === 0 ? place - extent : place);
  });
  return refTensor("i64", indices, values);
}

function inputsOf(scatter: Scatter): readonly RefTensor[] {
  const rng = new Rng(7);
  const { dtype, data } = scatter;
  return [numbers(dtype, data, rng), places(scatter, rng), numbers(dtype, slicesOf(scatter), rng)];
}

function compiled(graph: Graph) {
  return take(compileModel({ graph, weights: noWeights }, { target: targets.get("h200")! }));
}

/** Regions of the graph, and blocks by threads of each kernel. */
function shapes(graph: Graph): readonly string[] {
  return compiled(graph).plan.program.kernels.map(({ name, grid, roles }) => {
    const blocks = grid.axes.map((a) => a.extent.key).join("x");
    return `${name} ${blocks} of ${roles[0]!.copies * roles[0]!.threads}`;
  });
}

describe("updates in parts", () => {
  it.each([
    { dtype: "f32", reduction: "add", data: [9, 4], indices: [333, 1] },
    { dtype: "i32", reduction: "mul", data: [3, 3], indices: [40, 13, 2] },
    { dtype: "i64", reduction: "max", data: [12], indices: [400, 1] },
    { dtype: "u8", reduction: "add", data: [5, 8], indices: [257, 1] },
    { dtype: "bf16", reduction: "min", data: [20, 3], indices: [300, 2], axis: 0 },
    { dtype: "f16", reduction: "add", data: [3, 20], indices: [2, 500], axis: 1 },
    { dtype: "f32", reduction: "none", data: [20, 8], indices: [700, 1] },
    { dtype: "u16", reduction: "none", data: [4, 5, 2], indices: [20, 40, 2] },
    { dtype: "i64", reduction: "none", data: [3, 20, 4], indices: [2, 700, 4], axis: 1 },
    { dtype: "bool", reduction: "none", data: [30], indices: [600, 1] },
  ] as const)("are the updates in their order: %o", (scatter) => {
    for (const doubled of scatter.dtype === "bool" ? [false] : [false, true]) {
      const graph = graphOf(scatter, doubled);
      const names = compiled(graph).regions.map((r) => r.name);
      expect(names.some((name) => name.endsWith(".fill"))).toBe(true);
      expect(differenceOnBlocks(graph, inputsOf(scatter))).toBeUndefined();
    }
  });

  it("stay an error of the run where a place is none", () => {
    const scatter = { dtype: "f32", reduction: "add", data: [9], indices: [400, 1] } as const;
    const [data, , updates] = inputsOf(scatter);
    const wrong = refTensor(
      "i64",
      [400, 1],
      Array.from({ length: 400 }, (_, n) => (n === 399 ? 9n : 0n)),
    );
    expect(() => differenceOnBlocks(graphOf(scatter), [data!, wrong, updates!])).toThrow("index");
  });

  it("fill the machine where they are many, and are one kernel where they are few", () => {
    const many = { dtype: "f32", data: [20_000, 64], indices: [20_000, 1] } as const;
    expect(shapes(graphOf({ ...many, reduction: "add" }))).toEqual([
      "S1.fill 80000 of 256",
      "S1 64x1 of 16",
      "S1.fold 5000 of 64",
    ]);
    expect(shapes(graphOf({ ...many, reduction: "none" }))).toEqual([
      "S1.fill 2500 of 256",
      "S1 2 of 64",
      "S1.fold 79 of 64",
      "S1.choose 500x1 of 160",
    ]);
    expect(shapes(graphOf({ ...many, data: [20_000], reduction: "none" }))).toEqual([
      "S1.fill 2500 of 256",
      "S1 2 of 64",
      "S1.fold 79 of 64",
      "S1.choose 79 of 256",
    ]);
    const few = { dtype: "f32", data: [16, 8], indices: [5, 1] } as const;
    expect(shapes(graphOf({ ...few, reduction: "add" }))).toEqual(["S0 1 of 32", "S1 1 of 8"]);
  });

  it("leave the sign of a zero that nothing is added to", () => {
    const scatter = { dtype: "f32", reduction: "add", data: [9], indices: [400, 1] } as const;
    const zeros = refTensor("f32", [9], new Array<number>(9).fill(-0));
    const [, , updates] = inputsOf(scatter);
    const first = refTensor("i64", [400, 1], new Array<bigint>(400).fill(0n));
    const g = new GraphBuilder("quotients");
    const x = g.input("x", tensorType("f32", 9));
    const i = g.input("i", tensorType("i64", 400, 1));
    const u = g.input("u", tensorType("f32", 400));
    const one = g.input("one", tensorType("f32", 9));
    const y = g.node("scatterNd", [x, i, u], { reduction: "add" });
    const graph = g.finish([g.node("div", [one, y], {})]);
    const ones = refTensor("f32", [9], new Array<number>(9).fill(1));
    expect(differenceOnBlocks(graph, [zeros, first, updates!, ones])).toBeUndefined();
  });
});
