/**
 * Reference of dft, straight from the definition X[k] = sum over n of x[n] e^(-2 pi i k n / N), along
 * one axis of an operand whose last axis holds a real value or a (real, imaginary) pair. The operand is
 * cut or padded with zeros to `length`. The inverse divides by N. `onesided` keeps the first
 * N/2 + 1 bins of a forward transform; an inverse one takes those bins and gives real values.
 */
import { invariant } from "../../support/invariant.ts";
import type { ConcreteAttrs } from "../concrete-attrs.ts";
import { elementCount, rowMajorStrides, type Shape, viewOffsets } from "../shape.ts";
import { numbersOf } from "../tensor.ts";
import { unitRoot } from "../unit-roots.ts";
import { finish, type Reference } from "./reference.ts";

interface Signal {
  readonly re: Float64Array;
  readonly im: Float64Array;
}

/** cos and sin of 2 pi j / n for every j. */
function twiddles(n: number): Signal {
  return {
    re: Float64Array.from({ length: n }, (_, j) => unitRoot(j, n)[0]),
    im: Float64Array.from({ length: n }, (_, j) => unitRoot(j, n)[1]),
  };
}

/** The first `bins` bins; `sign` -1 is the forward transform. */
function transform(signal: Signal, unit: Signal, bins: number, sign: 1 | -1): Signal {
  const n = signal.re.length;
  const out = { re: new Float64Array(bins), im: new Float64Array(bins) };
  for (let k = 0; k < bins; k++) {
    let re = 0;
    let im = 0;
    let phase = 0;
    for (let j = 0; j < n; j++) {
      const c = unit.re[phase]!;
      const s = sign * unit.im[phase]!;
      re += signal.re[j]! * c - signal.im[j]! * s;
      im += signal.re[j]! * s + signal.im[j]! * c;
      phase += k;
      if (phase >= n) phase -= n;
    }
    out.re[k] = re;
    out.im[k] = im;
  }
  return out;
}

/** Fills bins N/2 + 1 … N - 1 by conjugate symmetry. */
function completeOnesided(signal: Signal, given: number): void {
  const n = signal.re.length;
  for (let k = given; k < n; k++) {
    signal.re[k] = signal.re[n - k]!;
    signal.im[k] = -signal.im[n - k]!;
  }
}

interface Layout {
  readonly shape: Shape;
  readonly parts: number;
  readonly extent: number;
  readonly stride: number;
  /** Offset of the first element of each transformed line. */
  readonly lines: Int32Array;
}

function layoutOf(shape: Shape, axis: number): Layout {
  const strides = rowMajorStrides(shape);
  const others = shape.map((_, i) => i).filter((i) => i !== axis && i !== shape.length - 1);
  const lines = viewOffsets(
    others.map((i) => shape[i]!),
    others.map((i) => strides[i]!),
  );
  return { shape, parts: shape.at(-1)!, extent: shape[axis]!, stride: strides[axis]!, lines };
}

function readLine(data: Float64Array, layout: Layout, line: number, length: number): Signal {
  const signal = { re: new Float64Array(length), im: new Float64Array(length) };
  for (let j = 0; j < Math.min(layout.extent, length); j++) {
    const at = layout.lines[line]! + j * layout.stride;
    signal.re[j] = data[at]!;
    if (layout.parts === 2) signal.im[j] = data[at + 1]!;
  }
  return signal;
}

function resultShape(shape: Shape, attrs: ConcreteAttrs<"dft">): number[] {
  const bins = attrs.onesided && !attrs.inverse ? Math.floor(attrs.length / 2) + 1 : attrs.length;
  const result = shape.map((extent, axis) => (axis === attrs.axis ? bins : extent));
  result[result.length - 1] = attrs.onesided && attrs.inverse ? 1 : 2;
  return result;
}

export const dft: Reference<"dft"> = (attrs, [x]) => {
  const { axis, inverse, onesided, length } = attrs;
  invariant(axis < x!.shape.length - 1, () => `dft along the axis of real and imaginary parts`);
  const from = layoutOf(x!.shape, axis);
  const to = layoutOf(resultShape(x!.shape, attrs), axis);
  const data = numbersOf(x!);
  const values = new Float64Array(elementCount(to.shape));
  const unit = twiddles(length);
  const scale = inverse ? 1 / length : 1;
  for (let line = 0; line < from.lines.length; line++) {
    const signal = readLine(data, from, line, length);
    if (inverse && onesided) completeOnesided(signal, Math.floor(length / 2) + 1);
    const out = transform(signal, unit, to.extent, inverse ? 1 : -1);
    for (let k = 0; k < to.extent; k++) {
      const at = to.lines[line]! + k * to.stride;
      values[at] = out.re[k]! * scale;
      if (to.parts === 2) values[at + 1] = out.im[k]! * scale;
    }
  }
  return [finish(x!.dtype, to.shape, values)];
};
