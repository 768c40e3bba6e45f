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

/** Samples of a bin along one axis: how many there are, and the coordinates of those that may count. */
interface BinSamples {
  readonly count: number;
  readonly coordinates: readonly number[];
}

/** Along one axis: what the box is rounded to, where it has edges, and the extent of the data. */
interface RoiAxis {
  readonly round: (value: number) => number;
  readonly edges: readonly [number, number];
  readonly bins: number;
  readonly extent: number;
}

/**
 * Samples of one bin. Without a ratio there are as many as elements fit into a bin; where the quotient is close to
 * a whole number a rounding decides, so that it is made in the type of the boxes, as implementations do. A box may
 * have any size: samples that are more than one outside of the data are counted, not listed.
 */
function binSamples(attrs: RoiAlignAttributes, axis: RoiAxis, bin: number): BinSamples {
  const { edges, bins, extent } = axis;
  const [start, length] = roiSpan(attrs, edges, (value) => value);
  const binLength = length / bins;
  const [, rounded] = roiSpan(attrs, edges, axis.round);
  const wanted = attrs.samplingRatio || Math.ceil(axis.round(rounded / bins));
  if (!(wanted > 0) || !Number.isFinite(binLength)) return { count: 0, coordinates: [] };
  const step = binLength / wanted;
  const at = (i: number): number => start + bin * binLength + ((i + 0.5) * binLength) / wanted;
  const coordinates: number[] = [];
  // One more at both ends, whatever was rounded here; none counts twice.
  const first = step > 0 ? Math.max(0, Math.floor((-1 - at(0)) / step) - 1) : 0;
  for (let i = first; i < wanted; i++) {
    if (step > 0 && at(i) > extent + step) break;
    coordinates.push(at(i));
  }
  return { count: wanted, coordinates };
}

/** Begin and length of a box along one axis, in elements, each operation rounded. */
function roiSpan(
  { halfPixel, spatialScale }: RoiAlignAttributes,
  edges: readonly [number, number],
  round: (value: number) => number,
): readonly [start: number, length: number] {
  const offset = halfPixel ? 0.5 : 0;
  const [start, end] = edges.map((edge) => round(round(edge * spatialScale) - offset)) as [
    number,
    number,
  ];
  const length = round(end - start);
  return [start, halfPixel ? length : Math.max(length, 1)];
}

/** One bin's value: the mean of its `count` bilinear samples, or the greatest weighted neighbour. */
function alignBin(
  attrs: RoiAlignAttributes,
  { count, samples }: { readonly count: number; readonly samples: readonly (readonly Tap[])[] },
  plane: Float64Array,
): number {
  if (attrs.mode === "avg") {
    let total = 0;
    for (const taps of samples) for (const [at, weight] of taps) total += weight * plane[at]!;
    return total / Math.max(count, 1);
  }
  let most = Number.NEGATIVE_INFINITY;
  let isEmpty = true;
  for (const taps of samples) {
    for (const [at, weight] of taps) {
      most = Math.max(most, weight * plane[at]!);
      isEmpty = false;
    }
  }
  return isEmpty ? 0 : most;
}

export const roiAlign: Reference<"roiAlign"> = (attrs, [x, boxes, batchIndices]) => {
  const [, channels, height, width] = x!.shape as [number, number, number, number];
  const { outputHeight, outputWidth } = attrs;
  const [data, corners] = [numbersOf(x!), numbersOf(boxes!)];
  const batches = indicesOf(batchIndices!);
  const shape = [boxes!.shape[0]!, channels, outputHeight, outputWidth];
  const round = boxes!.dtype === "f32" ? Math.fround : (value: number) => value;
  const values = new Float64Array(elementCount(shape));
  forEachIndex([shape[0]!, outputHeight, outputWidth], (index) => {
    const [roi, row, column] = index as [number, number, number];
    const [x1, y1, x2, y2] = corners.subarray(roi * 4, roi * 4 + 4) as unknown as number[];
    const down = { round, edges: [y1!, y2!], bins: outputHeight, extent: height } as const;
    const across = { round, edges: [x1!, x2!], bins: outputWidth, extent: width } as const;
    const [ys, xs] = [binSamples(attrs, down, row), binSamples(attrs, across, column)];
    const samples = ys.coordinates.flatMap((y) =>
      xs.coordinates.map((at) =>
        combineTaps([clampedTaps(y, height), clampedTaps(at, width)], [width, 1]),
      ),
    );
    const count = ys.count * xs.count;
    for (let c = 0; c < channels; c++) {
      const base = (batches[roi]! * channels + c) * height * width;
      const to = ((roi * channels + c) * outputHeight + row) * outputWidth + column;
      values[to] = alignBin(attrs, { count, samples }, data.subarray(base, base + height * width));
    }
  });
  return [finish(x!.dtype, shape, values)];
};
