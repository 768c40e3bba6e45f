import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Rng } from "../../support/rng.ts";
import type { ConcreteAttrs } from "../concrete-attrs.ts";
import { type RefTensor, randomRef, refTensor } from "../tensor.ts";
import type { ReferenceContext } from "./reference.ts";
import { cubicWeight, resize } from "./resizing.ts";
import { gridSample, roiAlign } from "./sampling.ts";

const context: ReferenceContext<never> = {
  runSubgraph: (body) => body,
  subgraphOutputTypes: (body) => body,
};
const values = (tensor: RefTensor | undefined) => [...tensor!.data].map(Number);

function expectNear(actual: readonly number[], expected: readonly number[], tolerance = 1e-12) {
  expect(actual.length).toBe(expected.length);
  for (const [i, e] of expected.entries()) {
    if (!(Math.abs(actual[i]! - e) <= tolerance)) expect.fail(`${i}: ${actual[i]} instead of ${e}`);
  }
}

const plain = {
  mode: "linear",
  coordinates: "half_pixel",
  nearest: "round_prefer_floor",
  cubicCoefficient: -0.75,
  excludeOutside: false,
  antialias: false,
  extrapolation: 0,
} as const;

type ResizeOptions = Partial<ConcreteAttrs<"resize">>;

describe("resize", () => {
  const line = refTensor("f64", [4], [1, 2, 3, 4]);
  const run = (size: number, options: ResizeOptions = {}, x = line) =>
    values(resize({ ...plain, axes: [0], sizes: [size], ...options }, [x], context)[0]);

  it("to the same size is the identity in every mode", () => {
    for (const mode of ["nearest", "linear", "cubic"] as const) {
      for (const coordinates of ["half_pixel", "align_corners", "asymmetric"] as const) {
        for (const antialias of [false, true]) {
          expectNear(run(4, { mode, coordinates, antialias }), [1, 2, 3, 4]);
        }
      }
    }
  });

  it("interpolates as the definitions of the coordinates say", () => {
    expectNear(run(8), [1, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4]);
    expectNear(run(7, { coordinates: "align_corners" }), [1, 1.5, 2, 2.5, 3, 3.5, 4]);
    expectNear(run(8, { coordinates: "asymmetric" }), [1, 1.5, 2, 2.5, 3, 3.5, 4, 4]);
    expectNear(run(1, { coordinates: "pytorch_half_pixel" }), [1]);
    expectNear(run(2, { coordinates: "half_pixel" }), [1.5, 3.5]);
  });

  it("uses a given scale rather than the ratio of sizes", () => {
    expectNear(run(2, { scales: [0.6], coordinates: "asymmetric" }), [1, 1 + 1 / 0.6]);
  });

  it.each([
    ["round_prefer_floor", [1, 1, 2, 2]],
    ["round_prefer_ceil", [1, 2, 2, 2]],
    ["floor", [1, 1, 2, 2]],
    ["ceil", [1, 2, 2, 2]],
  ] as const)("nearest %s of coordinates 0, 0.5, 1, 1.5", (nearest, expected) => {
    const pair = refTensor("f64", [2], [1, 2]);
    expect(run(4, { mode: "nearest", coordinates: "asymmetric", nearest }, pair)).toEqual(expected);
  });

  it("cuts regions and extrapolates outside", () => {
    const crop = { coordinates: "tf_crop_and_resize", extrapolation: 9 } as const;
    expectNear(run(3, { ...crop, regionStart: [0], regionEnd: [1] }), [1, 2.5, 4]);
    expectNear(run(3, { ...crop, regionStart: [0.5], regionEnd: [1.5] }), [2.5, 4, 9]);
  });

  it("antialiasing averages over the shrunk pixels", () => {
    expectNear(run(1, { antialias: true }), [2.5]);
    const spike = refTensor("f64", [4], [8, 0, 0, 0]);
    // Triangle of half-width 2 around 0.5, edge repeated: weights 1/8 at -1, 3/8 at 0.
    expectNear(run(2, { antialias: true }, spike), [4, 0]);
    expectNear(run(2, { antialias: true, excludeOutside: true }, spike), [24 / 7, 0]);
  });

  it("cubic weights sum to one and reproduce lines inside", () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1, noNaN: true }), (t) => {
        const weights = [-1, 0, 1, 2].map((d) => cubicWeight(t - d, -0.5));
        expect(Math.abs(weights.reduce((a, b) => a + b, 0) - 1)).toBeLessThan(1e-12);
        const mean = weights.reduce((sum, w, i) => sum + w * (i - 1), 0);
        expect(Math.abs(mean - t)).toBeLessThan(1e-12);
      }),
    );
  });

  it("is separable: axes in either order", () => {
    const x = randomRef("f64", [3, 5], new Rng(3));
    const both = (axes: number[], sizes: number[]) =>
      values(resize({ ...plain, mode: "cubic", axes, sizes }, [x], context)[0]);
    expectNear(both([0, 1], [5, 3]), both([1, 0], [3, 5]), 1e-12);
  });
});

describe("gridSample", () => {
  const image = refTensor("f64", [1, 1, 2, 2], [1, 2, 3, 4]);
  const attrs = { mode: "linear", padding: "zeros", alignCorners: true } as const;
  const at = (x: number, y: number, options: Partial<ConcreteAttrs<"gridSample">> = {}) => {
    const grid = refTensor("f64", [1, 1, 1, 2], [x, y]);
    return values(gridSample({ ...attrs, ...options }, [image, grid], context)[0])[0]!;
  };

  it("has x innermost and corners at -1 and 1", () => {
    expect(at(-1, -1)).toBe(1);
    expect(at(1, -1)).toBe(2);
    expect(at(-1, 1)).toBe(3);
    expect(at(0, 0)).toBe(2.5);
    expect(at(-1, -1, { alignCorners: false })).toBe(0.25);
    expect(at(-0.5, -0.5, { alignCorners: false })).toBe(1);
  });

  it("pads", () => {
    expect(at(3, -1)).toBe(0);
    expect(at(3, -1, { padding: "border" })).toBe(2);
    expect(at(3, -1, { padding: "reflection" })).toBe(1);
    expect(at(2, 0, { padding: "reflection", mode: "nearest", alignCorners: false })).toBe(2);
  });

  it("on the identity grid is the identity in every mode", () => {
    const x = randomRef("f64", [1, 2, 3, 4], new Rng(5));
    const grid: number[] = [];
    for (let r = 0; r < 3; r++) for (let c = 0; c < 4; c++) grid.push((2 * c) / 3 - 1, r - 1);
    for (const mode of ["nearest", "linear", "cubic"] as const) {
      const coordinates = refTensor("f64", [1, 3, 4, 2], grid);
      const [y] = gridSample({ ...attrs, mode, padding: "border" }, [x, coordinates], context);
      expectNear(values(y), values(x), 1e-9);
    }
  });

  it("takes three spatial axes", () => {
    const cube = refTensor("f64", [1, 1, 2, 2, 2], [0, 1, 2, 3, 4, 5, 6, 7]);
    const grid = refTensor("f64", [1, 1, 1, 1, 3], [1, -1, 0]);
    expect(values(gridSample(attrs, [cube, grid], context)[0])).toEqual([3]);
  });
});

describe("roiAlign", () => {
  const ramp = refTensor(
    "f64",
    [1, 1, 4, 4],
    Array.from({ length: 16 }, (_, i) => (i % 4) + 10 * Math.floor(i / 4)),
  );
  const attrs = {
    mode: "avg",
    outputHeight: 1,
    outputWidth: 2,
    samplingRatio: 2,
    spatialScale: 0.5,
    halfPixel: false,
  } as const;
  const batch = refTensor("i64", [1], [0]);

  it("averages a linear image to its value at the centres of the bins", () => {
    const box = refTensor("f64", [1, 4], [0, 0, 4, 4]);
    // The box is [0, 2] x [0, 2] in pixels: bin centres at x 0.5 and 1.5, y 1.
    expectNear(values(roiAlign(attrs, [ramp, box, batch], context)[0]), [10.5, 11.5]);
    const adaptive = { ...attrs, samplingRatio: 0 };
    expectNear(values(roiAlign(adaptive, [ramp, box, batch], context)[0]), [10.5, 11.5]);
    const shifted = { ...attrs, halfPixel: true };
    const inner = refTensor("f64", [1, 4], [2, 2, 6, 6]);
    expectNear(values(roiAlign(shifted, [ramp, inner, batch], context)[0]), [16, 17]);
  });

  it("is zero for a box outside", () => {
    const box = refTensor("f64", [1, 4], [20, 20, 24, 24]);
    expect(values(roiAlign(attrs, [ramp, box, batch], context)[0])).toEqual([0, 0]);
    expect(values(roiAlign({ ...attrs, mode: "max" }, [ramp, box, batch], context)[0])).toEqual([
      0, 0,
    ]);
  });
});
