/**
 * Sliding windows over spatial axes, shared by convolutions and pools: extents, and the table of rows
 * that lets their inner loops run along the last spatial axis without bounds tests.
 */
import { elementCount, forEachIndex, offsetOf, rowMajorStrides, type Shape } from "../shape.ts";

export interface WindowGeometry {
  readonly strides: readonly number[];
  readonly dilations: readonly number[];
  readonly padLow: readonly number[];
}

interface Padding {
  readonly padHigh: readonly number[];
}

/** Extent that a dilated window covers. */
export function windowSpan(window: number, dilation: number): number {
  return dilation * (window - 1) + 1;
}

/**
 * Spatial extents of a convolution's or pool's result. With `ceil` a last window that starts inside
 * the operand or its low padding is kept although it ends beyond the high padding.
 */
export function windowResultShape(
  spatial: Shape,
  window: Shape,
  geometry: WindowGeometry & Padding & { readonly ceil?: boolean },
): number[] {
  return spatial.map((extent, axis) => {
    const stride = geometry.strides[axis]!;
    const low = geometry.padLow[axis]!;
    const span = windowSpan(window[axis]!, geometry.dilations[axis]!);
    const room = extent + low + geometry.padHigh[axis]! - span;
    if (!geometry.ceil) return Math.floor(room / stride) + 1;
    return Math.min(Math.ceil(room / stride) + 1, Math.ceil((extent + low) / stride));
  });
}

/**
 * For one position inside the window: the row pairs (windowed operand, result) that it connects, and
 * the range of the last result coordinate for which it lies inside the operand.
 */
export interface WindowTap {
  /** Position in the window, flat. */
  readonly tap: number;
  /** Result rows (flat over the outer spatial axes) and the operand offsets they read from. */
  readonly resultRows: Int32Array;
  readonly operandRows: Int32Array;
  /** First and one past the last column of a result row. */
  readonly from: number;
  readonly to: number;
  /** Operand column of result column c is `c * step + shift`. */
  readonly step: number;
  readonly shift: number;
}

/** All taps of a window over at least one spatial axis. */
export function windowTaps(
  operand: Shape,
  result: Shape,
  window: Shape,
  geometry: WindowGeometry,
): WindowTap[] {
  const { strides, dilations, padLow } = geometry;
  const last = operand.length - 1;
  const operandStrides = rowMajorStrides(operand);
  const outer = result.slice(0, -1);
  const width = result[last]!;
  const taps: WindowTap[] = [];
  forEachIndex(window, (position, tap) => {
    const resultRows: number[] = [];
    const operandRows: number[] = [];
    forEachIndex(outer, (row, rowNumber) => {
      const at = row.map(
        (r, axis) => r * strides[axis]! + position[axis]! * dilations[axis]! - padLow[axis]!,
      );
      if (at.some((c, axis) => c < 0 || c >= operand[axis]!)) return;
      resultRows.push(rowNumber * width);
      operandRows.push(offsetOf(at, operandStrides));
    });
    const step = strides[last]!;
    const shift = position[last]! * dilations[last]! - padLow[last]!;
    taps.push({
      tap,
      resultRows: Int32Array.from(resultRows),
      operandRows: Int32Array.from(operandRows),
      from: Math.max(0, Math.ceil(-shift / step)),
      to: Math.min(width, Math.floor((operand[last]! - 1 - shift) / step) + 1),
      step,
      shift,
    });
  });
  return taps;
}

/**
 * A pointwise window (extent 1, stride 1, no padding) sees the spatial axes as one long row, which
 * keeps the inner loops long.
 */
export function collapsesToRow(window: Shape, geometry: WindowGeometry & Padding): boolean {
  const { strides, padLow, padHigh } = geometry;
  return (
    elementCount(window) === 1 &&
    strides.every((stride) => stride === 1) &&
    [...padLow, ...padHigh].every((padding) => padding === 0)
  );
}
