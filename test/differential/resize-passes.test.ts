/**
 * Resize by passes along one axis each against the oracle: extents that no vector divides, one element, open ones,
 * three axes, halves, filters longer than what is written out, and results outside of the operand.
 */
import { describe, expect, it } from "vitest";
import { GraphBuilder } from "../../src/graph/builder.ts";
import type { Graph } from "../../src/graph/graph.ts";
import { distanceOf } from "../../src/interp/approximate.ts";
import type { ResizeAttrs } from "../../src/semantics/core-ops.ts";
import type { DType } from "../../src/semantics/dtype.ts";
import { type IndexExpr, mul, toIndex } from "../../src/semantics/index-expr.ts";
import { numbersOf, type RefTensor, randomRef } from "../../src/semantics/tensor.ts";
import { Rng } from "../../src/support/rng.ts";
import { checkOnProcessor, processors } from "./on-processors.ts";

interface Case {
  readonly dtype?: DType;
  readonly shape: readonly number[];
  readonly axes: readonly number[];
  readonly sizes: readonly number[];
  /** The extent of the first resized axis is a symbol, and its result twice as long. */
  readonly open?: boolean;
  readonly how?: Partial<ResizeAttrs>;
}

const linear: Omit<ResizeAttrs, "axes" | "sizes"> = {
  mode: "linear",
  coordinates: "half_pixel",
  nearest: "floor",
  cubicCoefficient: -0.75,
  excludeOutside: false,
  antialias: false,
  extrapolation: 9,
};

function graphOf({ dtype = "f32", shape, axes, sizes, open = false, how }: Case): Graph {
  const b = new GraphBuilder("resize");
  const first = axes[0]!;
  const dims = shape.map((d, i) => (open && i === first ? b.symbol("N", 1, 40) : toIndex(d)));
  const to = sizes.map((n, i): IndexExpr => (open && i === 0 ? mul(dims[first]!, 2) : toIndex(n)));
  const x = b.input("x", { dtype, shape: dims });
  return b.finish([b.node("resize", [x], { ...linear, ...how, axes, sizes: to })]);
}

/** Of numbers of about 1: sums of a few products. */
function expectClose(how: string, found: readonly RefTensor[], want: readonly RefTensor[]): void {
  for (const [i, tensor] of want.entries()) {
    const most = tensor.dtype === "f32" ? 1e-5 : 4e-3;
    const [a, b] = [numbersOf(found[i]!), numbersOf(tensor)];
    const worst = b.findIndex((x, at) => !(distanceOf(a[at]!, x) <= most));
    expect({ how, worst, is: a[worst] }).toEqual({ how, worst: -1, is: undefined });
  }
}

/** Numbers from -1 to 1. */
function operand({ dtype = "f32", shape }: Case, rng: Rng): RefTensor {
  const { data } = randomRef(dtype, shape, rng);
  for (let i = 0; i < data.length; i++) {
    data[i] = rng.integer(-64, 64) / 64;
  }
  return { dtype, shape, data };
}

describe("resize by passes", () => {
  const crop = {
    coordinates: "tf_crop_and_resize",
    regionStart: [0.1, -0.2],
    regionEnd: [0.8, 1.1],
  };
  const cases: readonly Case[] = [
    { shape: [1, 3, 9, 11], axes: [2, 3], sizes: [18, 22] },
    { shape: [2, 1, 37, 5], axes: [2, 3], sizes: [17, 70] },
    { shape: [1, 2, 20, 33], axes: [2, 3], sizes: [10, 16], how: { coordinates: "align_corners" } },
    { shape: [1, 2, 7, 40], axes: [2, 3], sizes: [19, 40], how: { coordinates: "asymmetric" } },
    { shape: [1, 1, 1, 1], axes: [2, 3], sizes: [5, 35] },
    {
      shape: [1, 2, 6, 6],
      axes: [2, 3],
      sizes: [12, 1],
      how: { coordinates: "pytorch_half_pixel" },
    },
    { shape: [1, 2, 6, 21], axes: [2, 3], sizes: [12, 13], open: true },
    { shape: [2, 4, 5, 6], axes: [1, 2, 3], sizes: [7, 9, 20] },
    { shape: [6, 5, 35], axes: [0, 1], sizes: [3, 11] },
    { shape: [1, 2, 9, 10], axes: [2, 3], sizes: [21, 35], how: { mode: "cubic" } },
    {
      shape: [1, 2, 9, 10],
      axes: [2, 3],
      sizes: [13, 4],
      how: { mode: "cubic", excludeOutside: true },
    },
    { shape: [1, 2, 9, 30], axes: [2, 3], sizes: [12, 17], how: crop as Partial<ResizeAttrs> },
    { shape: [1, 2, 90, 40], axes: [2, 3], sizes: [9, 20], how: { antialias: true } },
    { shape: [1, 2, 9, 33], axes: [2, 3], sizes: [18, 22], dtype: "f16" },
  ];

  it.each(cases)(
    "is resize: %j",
    async (c) => {
      const rng = new Rng(Number(process.env.PROPERTY_SEED ?? 1) + c.sizes[0]!);
      const input = operand(c, rng);
      const symbols = c.open ? { N: c.shape[c.axes[0]!]! } : {};
      for (const name of processors) {
        await checkOnProcessor(
          { graph: graphOf(c), input, symbols },
          { name, rng, compare: expectClose },
        );
      }
    },
    60_000,
  );
});
