/**
 * References of convolution and transposedConvolution: [batch, channel, spatial…] with weights
 * [output channel, input channel / groups, window…] (transposed: [input channel, output channel /
 * groups, window…]). For each result channel and tap the inner loop adds a weighted operand row to a
 * result row, four input channels at a time; sums are float64.
 */
import { invariant } from "../../support/invariant.ts";
import { isIntegerDType } from "../dtype.ts";
import { elementCount, type Shape } from "../shape.ts";
import { numbersOf, type RefTensor } from "../tensor.ts";
import { finish, type Reference } from "./reference.ts";
import {
  collapsesToRow,
  type WindowTap,
  windowResultShape,
  windowSpan,
  windowTaps,
} from "./window.ts";

interface Plane {
  readonly data: Float64Array;
  readonly base: number;
}

/** result[row] += sum over channels of weight * operand[row], for one tap. */
function accumulateTap(
  tap: WindowTap,
  result: Plane,
  operand: Plane & { readonly channels: number; readonly channelStride: number },
  weights: Plane & { readonly channelStride: number },
): void {
  const { from, to, step, shift } = tap;
  const x = operand.data;
  const out = result.data;
  for (let r = 0; r < tap.resultRows.length; r++) {
    const outBase = result.base + tap.resultRows[r]!;
    const row = operand.base + tap.operandRows[r]! + shift;
    let c = 0;
    for (; c + 3 < operand.channels; c += 4) {
      const w = weights.base + tap.tap + c * weights.channelStride;
      const w0 = weights.data[w]!;
      const w1 = weights.data[w + weights.channelStride]!;
      const w2 = weights.data[w + 2 * weights.channelStride]!;
      const w3 = weights.data[w + 3 * weights.channelStride]!;
      let x0 = row + c * operand.channelStride + from * step;
      let x1 = x0 + operand.channelStride;
      let x2 = x1 + operand.channelStride;
      let x3 = x2 + operand.channelStride;
      for (let i = outBase + from; i < outBase + to; i++) {
        out[i] = out[i]! + w0 * x[x0]! + w1 * x[x1]! + w2 * x[x2]! + w3 * x[x3]!;
        x0 += step;
        x1 += step;
        x2 += step;
        x3 += step;
      }
    }
    for (; c < operand.channels; c++) {
      const w0 = weights.data[weights.base + tap.tap + c * weights.channelStride]!;
      let x0 = row + c * operand.channelStride + from * step;
      for (let i = outBase + from; i < outBase + to; i++, x0 += step)
        out[i] = out[i]! + w0 * x[x0]!;
    }
  }
}

/** Integer sums must stay below 2^53 for float64 to be exact (8-bit operands are far from it). */
function checkExact(x: RefTensor, w: RefTensor): void {
  if (!isIntegerDType(x.dtype)) return;
  const bound = (t: RefTensor) => numbersOf(t).reduce((m, v) => Math.max(m, Math.abs(v)), 0);
  const terms = elementCount(w.shape);
  invariant(
    bound(x) * bound(w) * terms <= Number.MAX_SAFE_INTEGER,
    () => `sums of an integer convolution of [${x.shape}] with [${w.shape}] may pass 2^53`,
  );
}

export const convolution: Reference<"convolution"> = (attrs, [x, w]) => {
  const { groups } = attrs;
  checkExact(x!, w!);
  const [batches, channels] = x!.shape as [number, number];
  const [outputs, groupChannels] = w!.shape as [number, number];
  invariant(channels === groupChannels * groups, () => `${channels} channels, ${groups} groups`);
  const spatial = x!.shape.slice(2);
  const window = w!.shape.slice(2);
  const result = windowResultShape(spatial, window, attrs);
  const shape = [batches, outputs, ...result];
  const out = new Float64Array(elementCount(shape));
  const pixels = elementCount(spatial);
  const resultPixels = elementCount(result);
  const taps = collapsesToRow(window, attrs)
    ? windowTaps([pixels], [pixels], [1], { strides: [1], dilations: [1], padLow: [0] })
    : windowTaps(spatial, result, window, attrs);
  const groupOutputs = outputs / groups;
  const windowCount = elementCount(window);
  const operand = { data: numbersOf(x!), channels: groupChannels, channelStride: pixels };
  const weights = { data: numbersOf(w!), channelStride: windowCount };
  for (let plane = 0; plane < batches * outputs; plane++) {
    const output = plane % outputs;
    const group = Math.floor(output / groupOutputs);
    const firstChannel = Math.floor(plane / outputs) * channels + group * groupChannels;
    const from = { ...operand, base: firstChannel * pixels };
    const by = { ...weights, base: output * groupChannels * windowCount };
    for (const tap of taps) accumulateTap(tap, { data: out, base: plane * resultPixels }, from, by);
  }
  return [finish(attrs.accumulator ?? x!.dtype, shape, out)];
};

/** Spatial extents of a transposed convolution's result. */
function transposedResultShape(
  spatial: Shape,
  window: Shape,
  attrs: {
    readonly strides: readonly number[];
    readonly dilations: readonly number[];
    readonly padLow: readonly number[];
    readonly padHigh: readonly number[];
    readonly outputPadding: readonly number[];
  },
): number[] {
  return spatial.map((extent, axis) => {
    const padding = attrs.padLow[axis]! + attrs.padHigh[axis]!;
    const span = windowSpan(window[axis]!, attrs.dilations[axis]!);
    return (extent - 1) * attrs.strides[axis]! + span - padding + attrs.outputPadding[axis]!;
  });
}

/** Adds weight * (one operand plane), spread over the result plane, for one tap. */
function spreadTap(tap: WindowTap, weight: number, operand: Plane, result: Plane): void {
  const { from, to, step, shift } = tap;
  for (let r = 0; r < tap.resultRows.length; r++) {
    const xBase = operand.base + tap.resultRows[r]!;
    let at = result.base + tap.operandRows[r]! + shift + from * step;
    for (let i = xBase + from; i < xBase + to; i++, at += step) {
      result.data[at] = result.data[at]! + weight * operand.data[i]!;
    }
  }
}

export const transposedConvolution: Reference<"transposedConvolution"> = (attrs, [x, w]) => {
  const { groups } = attrs;
  checkExact(x!, w!);
  const [batches, channels] = x!.shape as [number, number];
  const groupOutputs = w!.shape[1]!;
  const outputs = groupOutputs * groups;
  const spatial = x!.shape.slice(2);
  const window = w!.shape.slice(2);
  const result = transposedResultShape(spatial, window, attrs);
  const shape = [batches, outputs, ...result];
  const out = new Float64Array(elementCount(shape));
  // The taps of the convolution whose gradient this is: its operand is our result and vice versa.
  const taps = windowTaps(result, spatial, window, attrs);
  const pixels = elementCount(spatial);
  const resultPixels = elementCount(result);
  const weights = numbersOf(w!);
  const data = numbersOf(x!);
  const groupChannels = channels / groups;
  for (let plane = 0; plane < batches * channels; plane++) {
    const channel = plane % channels;
    const group = Math.floor(channel / groupChannels);
    const firstOutput = Math.floor(plane / channels) * outputs + group * groupOutputs;
    for (let o = 0; o < groupOutputs; o++) {
      const weightBase = (channel * groupOutputs + o) * taps.length;
      const target = { data: out, base: (firstOutput + o) * resultPixels };
      for (const tap of taps) {
        spreadTap(tap, weights[weightBase + tap.tap]!, { data, base: plane * pixels }, target);
      }
    }
  }
  return [finish(x!.dtype, shape, out)];
};
