/**
 * References of pool and poolIndices over [batch, channel, spatial…]. Padding never wins a maximum and
 * adds nothing to a sum; an average divides by the positions inside the operand or, with
 * `countPadding`, inside the padded operand. A maximum over NaN is NaN; among equal maxima
 * poolIndices gives the first in row-major order of the window.
 */
import { invariant } from "../../support/invariant.ts";
import type { ConcreteAttrs } from "../concrete-attrs.ts";
import { elementCount, forEachIndex, rowMajorStrides, type Shape } from "../shape.ts";
import { numbersOf, zeroRef } from "../tensor.ts";
import { finish, type Reference } from "./reference.ts";
import { windowResultShape } from "./window.ts";

type PoolAttributes = ConcreteAttrs<"pool">;

/** The operand positions under one window and its divisor when padding counts. */
interface Window {
  readonly offsets: Int32Array;
  readonly paddedCount: number;
}

/** Every window of a pool, in row-major order of the result. */
function poolWindows(spatial: Shape, result: Shape, attrs: PoolAttributes): Window[] {
  const strides = rowMajorStrides(spatial);
  const windows: Window[] = [];
  forEachIndex(result, (index) => {
    const offsets: number[] = [];
    let paddedCount = 0;
    forEachIndex(attrs.window, (position) => {
      let offset = 0;
      let inside = true;
      let insidePadded = true;
      for (let axis = 0; axis < spatial.length; axis++) {
        const start = index[axis]! * attrs.strides[axis]! - attrs.padLow[axis]!;
        const at = start + position[axis]! * attrs.dilations[axis]!;
        inside &&= at >= 0 && at < spatial[axis]!;
        insidePadded &&= at < spatial[axis]! + attrs.padHigh[axis]!;
        offset += at * strides[axis]!;
      }
      if (inside) offsets.push(offset);
      if (insidePadded) paddedCount++;
    });
    windows.push({ offsets: Int32Array.from(offsets), paddedCount });
  });
  return windows;
}

function poolWindow(x: Float64Array, base: number, window: Window, attrs: PoolAttributes): number {
  const { offsets } = window;
  switch (attrs.kind) {
    case "max": {
      let best = -Infinity;
      for (let i = 0; i < offsets.length; i++) best = Math.max(best, x[base + offsets[i]!]!);
      return best;
    }
    case "lp": {
      let total = 0;
      for (const offset of offsets) total += Math.abs(x[base + offset]!) ** attrs.exponent;
      return total ** (1 / attrs.exponent);
    }
    default: {
      let total = 0;
      for (let i = 0; i < offsets.length; i++) total += x[base + offsets[i]!]!;
      if (attrs.kind === "sum") return total;
      return total / (attrs.countPadding ? window.paddedCount : offsets.length);
    }
  }
}

export const pool: Reference<"pool"> = (attrs, [x]) => {
  const spatial = x!.shape.slice(2);
  const result = windowResultShape(spatial, attrs.window, attrs);
  const windows = poolWindows(spatial, result, attrs);
  const planes = x!.shape[0]! * x!.shape[1]!;
  const pixels = elementCount(spatial);
  const data = numbersOf(x!);
  const values = new Float64Array(planes * windows.length);
  let at = 0;
  for (let plane = 0; plane < planes; plane++) {
    for (const window of windows) values[at++] = poolWindow(data, plane * pixels, window, attrs);
  }
  return [finish(x!.dtype, [...x!.shape.slice(0, 2), ...result], values)];
};

/** The row-major spatial offset spelled with the first spatial axis running fastest. */
function columnMajorOffset(offset: number, spatial: Shape): number {
  const strides = rowMajorStrides(spatial);
  let columnStride = 1;
  let result = 0;
  for (const [axis, stride] of strides.entries()) {
    result += (Math.floor(offset / stride) % spatial[axis]!) * columnStride;
    columnStride *= spatial[axis]!;
  }
  return result;
}

export const poolIndices: Reference<"poolIndices"> = (attrs, [x]) => {
  invariant(attrs.kind === "max", () => `indices of a ${attrs.kind} pool`);
  const spatial = x!.shape.slice(2);
  const shape = windowResultShape(spatial, attrs.window, attrs);
  const windows = poolWindows(spatial, shape, attrs);
  const pixels = elementCount(spatial);
  const data = numbersOf(x!);
  const result = zeroRef("i64", [...x!.shape.slice(0, 2), ...shape]);
  for (let i = 0; i < result.data.length; i++) {
    const base = Math.floor(i / windows.length) * pixels;
    const { offsets } = windows[i % windows.length]!;
    let best = offsets[0] ?? 0;
    for (const offset of offsets) {
      const [value, bestValue] = [data[base + offset]!, data[base + best]!];
      if (value > bestValue || (Number.isNaN(value) && !Number.isNaN(bestValue))) best = offset;
    }
    const within = attrs.columnMajor ? columnMajorOffset(best, spatial) : best;
    result.data[i] = BigInt(base + within);
  }
  return [result];
};
