/**
 * Reference of resize, as ONNX Resize defines it: per axis each result position has a source
 * coordinate (by the coordinate transform) and a few weighted source positions (by the mode); the axes
 * are applied one after the other. Positions outside repeat the edge, or with `excludeOutside` weigh
 * nothing. With `antialias` a shrinking filter is stretched over the source.
 */
import type { ConcreteAttrs } from "../concrete-attrs.ts";
import { splitAtAxis } from "../shape.ts";
import { numbersOf } from "../tensor.ts";
import { finish, type Reference } from "./reference.ts";

type ResizeAttributes = ConcreteAttrs<"resize">;

/** One axis of a resize. */
interface ResizedAxis {
  readonly from: number;
  readonly to: number;
  readonly scale: number;
  /** tf_crop_and_resize: the region in fractions of the extent. */
  readonly start: number;
  readonly end: number;
}

/** What one result position is made of; `outside` takes the extrapolation value. */
interface Sample {
  readonly positions: readonly number[];
  readonly weights: readonly number[];
  readonly outside: boolean;
}

/** The source coordinate of result position `at`. */
function sourceCoordinate(
  transform: ResizeAttributes["coordinates"],
  at: number,
  { from, to, scale, start, end }: ResizedAxis,
): number {
  // The unrounded extent: with given scales it may differ from `to`.
  const extent = scale * from;
  switch (transform) {
    case "align_corners":
      return extent === 1 ? 0 : (at * (from - 1)) / (extent - 1);
    case "asymmetric":
      return at / scale;
    case "tf_crop_and_resize":
      return extent === 1
        ? ((start + end) * (from - 1)) / 2
        : start * (from - 1) + (at * (end - start) * (from - 1)) / (extent - 1);
    case "pytorch_half_pixel":
      return extent === 1 ? -0.5 : (at + 0.5) / scale - 0.5;
    case "half_pixel":
      return (at + 0.5) / scale - 0.5;
    case "half_pixel_symmetric":
      return (from / 2) * (1 - to / extent) + (at + 0.5) / scale - 0.5;
  }
}

function nearestPosition(rounding: ResizeAttributes["nearest"], x: number): number {
  switch (rounding) {
    case "floor":
      return Math.floor(x);
    case "ceil":
      return Math.ceil(x);
    case "round_prefer_floor":
      return Math.ceil(x - 0.5);
    case "round_prefer_ceil":
      return Math.floor(x + 0.5);
  }
}

/** The triangle filter. */
function linearWeight(x: number): number {
  return Math.max(0, 1 - Math.abs(x));
}

/** Keys' cubic convolution filter with coefficient `a` (Keys 1981). */
export function cubicWeight(x: number, a: number): number {
  const d = Math.abs(x);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? (((d - 5) * d + 8) * d - 4) * a : 0;
}

/** Source positions and weights of one coordinate, before what lies outside is dealt with. */
function filterTaps(attrs: ResizeAttributes, x: number, scale: number): Sample {
  if (attrs.mode === "nearest") {
    return { positions: [nearestPosition(attrs.nearest, x)], weights: [1], outside: false };
  }
  const reach = attrs.mode === "linear" ? 1 : 2;
  const stretch = attrs.antialias ? Math.min(scale, 1) : 1;
  const positions: number[] = [];
  const weights: number[] = [];
  for (let p = Math.ceil(x - reach / stretch); p <= x + reach / stretch; p++) {
    const distance = (p - x) * stretch;
    const isLinear = attrs.mode === "linear";
    positions.push(p);
    weights.push(isLinear ? linearWeight(distance) : cubicWeight(distance, attrs.cubicCoefficient));
  }
  return { positions, weights, outside: false };
}

function sampleAt(attrs: ResizeAttributes, at: number, axis: ResizedAxis): Sample {
  const x = sourceCoordinate(attrs.coordinates, at, axis);
  const crops = attrs.coordinates === "tf_crop_and_resize";
  const outside = crops && (x < 0 || x > axis.from - 1);
  const { positions, weights } = filterTaps(attrs, x, axis.scale);
  const kept = positions.map((p, i) =>
    attrs.excludeOutside && (p < 0 || p >= axis.from) ? 0 : weights[i]!,
  );
  const total = kept.reduce((a, b) => a + b, 0);
  return {
    positions: positions.map((p) => Math.min(Math.max(p, 0), axis.from - 1)),
    weights: kept.map((w) => w / total),
    outside,
  };
}

function resizeAxis(
  data: Float64Array,
  shape: readonly number[],
  axis: number,
  plan: { readonly samples: readonly Sample[]; readonly extrapolation: number },
): Float64Array {
  const { outer, extent, inner } = splitAtAxis(shape, axis);
  const { samples, extrapolation } = plan;
  const result = new Float64Array(outer * samples.length * inner);
  for (let o = 0; o < outer; o++) {
    for (const [s, { positions, weights, outside }] of samples.entries()) {
      const to = (o * samples.length + s) * inner;
      if (outside) {
        result.fill(extrapolation, to, to + inner);
        continue;
      }
      for (const [t, weight] of weights.entries()) {
        if (weight === 0) continue;
        const from = (o * extent + positions[t]!) * inner;
        for (let i = 0; i < inner; i++) result[to + i] = result[to + i]! + weight * data[from + i]!;
      }
    }
  }
  return result;
}

export const resize: Reference<"resize"> = (attrs, [x]) => {
  let data: Float64Array = numbersOf(x!).slice();
  const shape = [...x!.shape];
  for (const [i, axis] of attrs.axes.entries()) {
    const from = shape[axis]!;
    const to = attrs.sizes[i]!;
    const scale = attrs.scales?.[i] ?? to / from;
    const start = attrs.regionStart?.[i] ?? 0;
    const resized = { from, to, scale, start, end: attrs.regionEnd?.[i] ?? 1 };
    const samples = Array.from({ length: to }, (_, at) => sampleAt(attrs, at, resized));
    data = resizeAxis(data, shape, axis, { samples, extrapolation: attrs.extrapolation });
    shape[axis] = to;
  }
  return [finish(x!.dtype, shape, data)];
};
