/**
 * References of gridSample and roiAlign: values at fractional positions. gridSample takes any number
 * of spatial axes; the last axis of its grid holds coordinates in [-1, 1], innermost axis first.
 * roiAlign follows He et al. 2017 with ONNX's two coordinate conventions.
 */
import type { ConcreteAttrs } from "../concrete-attrs.ts";
import { roundHalfEven } from "../float-codec.ts";
import { elementCount, forEachIndex, rowMajorStrides } from "../shape.ts";
import { indicesOf, numbersOf } from "../tensor.ts";
import { finish, type Reference } from "./reference.ts";
import { cubicWeight } from "./resizing.ts";

type GridSampleAttributes = ConcreteAttrs<"gridSample">;

/** A source position with its weight. */
type Tap = readonly [position: number, weight: number];

/** Folds a coordinate back into [low, high] by reflection at both ends. */
function reflect(x: number, low: number, high: number): number {
  const range = high - low;
  if (range === 0) return low;
  const period = 2 * range;
  const folded = x - low - period * Math.floor((x - low) / period);
  return low + Math.min(folded, period - folded);
}

/** Grid coordinate in [-1, 1] to a source coordinate. */
function denormalize(g: number, extent: number, alignCorners: boolean): number {
  return alignCorners ? ((g + 1) / 2) * (extent - 1) : ((g + 1) * extent - 1) / 2;
}

/** Source positions along one axis; those that padding makes zero are left out. */
function axisTaps(attrs: GridSampleAttributes, g: number, extent: number): Tap[] {
  const [low, high] = attrs.alignCorners ? [0, extent - 1] : [-0.5, extent - 0.5];
  let x = denormalize(g, extent, attrs.alignCorners);
  if (attrs.mode === "nearest") x = roundHalfEven(x);
  if (attrs.mode !== "cubic" && (x < low || x > high)) {
    if (attrs.padding === "border") x = Math.min(Math.max(x, 0), extent - 1);
    if (attrs.padding === "reflection") x = reflect(x, low, high);
  }
  return neighbours(attrs, x).flatMap(([position, weight]): Tap[] => {
    if (position >= 0 && position < extent) return [[position, weight]];
    if (attrs.padding === "zeros" || !Number.isFinite(position)) return [];
    const inside =
      attrs.padding === "border"
        ? Math.min(Math.max(position, 0), extent - 1)
        : reflect(position, low, high);
    return [[inside, weight]];
  });
}

function neighbours(attrs: GridSampleAttributes, x: number): Tap[] {
  const base = Math.floor(x);
  switch (attrs.mode) {
    case "nearest":
      return [[roundHalfEven(x), 1]];
    case "linear":
      return [
        [base, base + 1 - x],
        [base + 1, x - base],
      ];
    case "cubic":
      return [-1, 0, 1, 2].map((d): Tap => [base + d, cubicWeight(x - base - d, -0.75)]);
  }
}

/** The product of per-axis taps as offsets and weights. */
function combineTaps(perAxis: readonly (readonly Tap[])[], strides: readonly number[]): Tap[] {
  let taps: Tap[] = [[0, 1]];
  for (const [axis, list] of perAxis.entries()) {
    taps = taps.flatMap(([offset, weight]) =>
      list.map(([position, w]): Tap => [offset + position * strides[axis]!, weight * w]),
    );
  }
  return taps;
}

export const gridSample: Reference<"gridSample"> = (attrs, [x, grid]) => {
  const [batches, channels] = x!.shape as [number, number];
  const spatial = x!.shape.slice(2);
  const rank = spatial.length;
  const result = grid!.shape.slice(1, -1);
  const points = elementCount(result);
  const pixels = elementCount(spatial);
  const strides = rowMajorStrides(spatial);
  const [data, coordinates] = [numbersOf(x!), numbersOf(grid!)];
  const values = new Float64Array(batches * channels * points);
  for (let point = 0; point < batches * points; point++) {
    const perAxis = spatial.map((extent, axis) =>
      axisTaps(attrs, coordinates[point * rank + (rank - 1 - axis)]!, extent),
    );
    const taps = combineTaps(perAxis, strides);
    const batch = Math.floor(point / points);
    for (let c = 0; c < channels; c++) {
      const plane = batch * channels + c;
      let total = 0;
      for (const [offset, weight] of taps) total += weight * data[plane * pixels + offset]!;
      values[plane * points + (point % points)] = total;
    }
  }
  return [finish(x!.dtype, [batches, channels, ...result], values)];
};

type RoiAlignAttributes = ConcreteAttrs<"roiAlign">;

/** Neighbours of a coordinate clamped into the axis; none when it is more than one outside. */
function clampedTaps(x: number, extent: number): Tap[] {
  if (x < -1 || x > extent) return [];
  const clamped = Math.min(Math.max(x, 0), extent - 1);
  const base = Math.floor(clamped);
  return [
    [base, base + 1 - clamped],
    [Math.min(base + 1, extent - 1), clamped - base],
  ];
}

/** Sample coordinates of one bin along one axis. */
function binCoordinates(
  attrs: RoiAlignAttributes,
  edges: readonly [number, number],
  bin: { readonly index: number; readonly count: number },
): number[] {
  const offset = attrs.halfPixel ? 0.5 : 0;
  const start = edges[0] * attrs.spatialScale - offset;
  const length = edges[1] * attrs.spatialScale - offset - start;
  const binLength = (attrs.halfPixel ? length : Math.max(length, 1)) / bin.count;
  const samples = attrs.samplingRatio > 0 ? attrs.samplingRatio : Math.ceil(binLength);
  return Array.from(
    { length: samples },
    (_, i) => start + bin.index * binLength + ((i + 0.5) * binLength) / samples,
  );
}

/** One bin's value: the mean of its bilinear samples, or the greatest weighted neighbour. */
function alignBin(
  attrs: RoiAlignAttributes,
  samples: readonly (readonly Tap[])[],
  plane: Float64Array,
): number {
  if (attrs.mode === "avg") {
    let total = 0;
    for (const taps of samples) for (const [at, weight] of taps) total += weight * plane[at]!;
    return total / Math.max(samples.length, 1);
  }
  const weighted = samples.flatMap((taps) => taps.map(([at, weight]) => weight * plane[at]!));
  return weighted.length === 0 ? 0 : Math.max(...weighted);
}

export const roiAlign: Reference<"roiAlign"> = (attrs, [x, boxes, batchIndices]) => {
  const [, channels, height, width] = x!.shape as [number, number, number, number];
  const { outputHeight, outputWidth } = attrs;
  const count = boxes!.shape[0]!;
  const [data, corners] = [numbersOf(x!), numbersOf(boxes!)];
  const batches = indicesOf(batchIndices!);
  const shape = [count, channels, outputHeight, outputWidth];
  const values = new Float64Array(elementCount(shape));
  forEachIndex([count, outputHeight, outputWidth], (index) => {
    const [roi, row, column] = index as [number, number, number];
    const [x1, y1, x2, y2] = corners.subarray(roi * 4, roi * 4 + 4) as unknown as number[];
    const ys = binCoordinates(attrs, [y1!, y2!], { index: row, count: outputHeight });
    const xs = binCoordinates(attrs, [x1!, x2!], { index: column, count: outputWidth });
    const samples = ys.flatMap((y) =>
      xs.map((at) => combineTaps([clampedTaps(y, height), clampedTaps(at, width)], [width, 1])),
    );
    for (let c = 0; c < channels; c++) {
      const base = (batches[roi]! * channels + c) * height * width;
      const to = ((roi * channels + c) * outputHeight + row) * outputWidth + column;
      values[to] = alignBin(attrs, samples, data.subarray(base, base + height * width));
    }
  });
  return [finish(x!.dtype, shape, values)];
};
