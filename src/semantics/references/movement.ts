/**
 * References of the ops that only move data: each builds the list of source offsets of its result and
 * copies. Also iota and dimSize, which read nothing but shapes.
 */
import { invariant } from "../../support/invariant.ts";
import { castScalar } from "../scalar-meaning.ts";
import {
  broadcastStrides,
  elementCount,
  rowMajorStrides,
  type Shape,
  splitAtAxis,
  viewOffsets,
} from "../shape.ts";
import { refTensor, zeroRef } from "../tensor.ts";
import { copyRange, type Reference, takeOffsets } from "./reference.ts";

export const iota: Reference<"iota"> = ({ shape, axis, dtype }) => {
  const result = zeroRef(dtype, shape);
  const { inner, extent } = splitAtAxis(shape, axis);
  for (let i = 0; i < result.data.length; i++) {
    result.data[i] = castScalar(Math.floor(i / inner) % extent, dtype, false);
  }
  return [result];
};

export const dimSize: Reference<"dimSize"> = ({ axis }, [x]) => [
  refTensor("i64", [], [x!.shape[axis]!]),
];

export const reshape: Reference<"reshape"> = ({ shape }, [x]) => {
  invariant(elementCount(shape) === x!.data.length, () => `reshape [${x!.shape}] to [${shape}]`);
  return [{ dtype: x!.dtype, shape, data: x!.data }];
};

export const diagonal: Reference<"diagonal"> = ({ axis, other }, [x]) => {
  const strides = rowMajorStrides(x!.shape);
  const both = strides.map((stride, i) => (i === axis ? stride + strides[other]! : stride));
  const keep = <T>(list: readonly T[]): T[] => list.filter((_, i) => i !== other);
  const shape = keep(x!.shape);
  return [takeOffsets(x!, shape, viewOffsets(shape, keep(both)))];
};

export const transpose: Reference<"transpose"> = ({ permutation }, [x]) => {
  const strides = rowMajorStrides(x!.shape);
  const shape = permutation.map((axis) => x!.shape[axis]!);
  const offsets = viewOffsets(
    shape,
    permutation.map((axis) => strides[axis]!),
  );
  return [takeOffsets(x!, shape, offsets)];
};

export const broadcast: Reference<"broadcast"> = ({ shape }, [x]) => {
  const offset = shape.length - x!.shape.length;
  invariant(
    offset >= 0 && x!.shape.every((extent, i) => extent === 1 || extent === shape[offset + i]),
    () => `broadcast [${x!.shape}] to [${shape}]`,
  );
  return [takeOffsets(x!, shape, viewOffsets(shape, broadcastStrides(x!.shape, shape)))];
};

export const slice: Reference<"slice"> = ({ starts, steps, sizes }, [x]) => {
  const strides = rowMajorStrides(x!.shape);
  let base = 0;
  for (const [axis, extent] of x!.shape.entries()) {
    const last = starts[axis]! + (sizes[axis]! - 1) * steps[axis]!;
    invariant(
      sizes[axis] === 0 || (starts[axis]! >= 0 && last < extent),
      () => `slice ${starts[axis]}..${last} of axis ${axis} of [${x!.shape}]`,
    );
    base += starts[axis]! * strides[axis]!;
  }
  const stepped = strides.map((stride, axis) => stride * steps[axis]!);
  return [takeOffsets(x!, sizes, viewOffsets(sizes, stepped, base))];
};

export const reverse: Reference<"reverse"> = ({ axes }, [x]) => {
  const { shape } = x!;
  const strides = rowMajorStrides(shape);
  let base = 0;
  for (const axis of axes) {
    base += (shape[axis]! - 1) * strides[axis]!;
    strides[axis] = -strides[axis]!;
  }
  return [takeOffsets(x!, shape, viewOffsets(shape, strides, base))];
};

export const concat: Reference<"concat"> = ({ axis }, inputs) => {
  const first = inputs[0]!;
  const total = inputs.reduce((sum, input) => sum + input.shape[axis]!, 0);
  const shape = first.shape.map((extent, i) => (i === axis ? total : extent));
  const result = zeroRef(first.dtype, shape);
  const { outer, inner } = splitAtAxis(shape, axis);
  let at = 0;
  for (const input of inputs) {
    const block = input.shape[axis]! * inner;
    for (let o = 0; o < outer; o++) {
      copyRange(input.data, o * block, block, result.data, o * total * inner + at);
    }
    at += block;
  }
  return [result];
};

type PadMode = "constant" | "reflect" | "edge" | "wrap";

/** The source position of padded position `at` along an axis of `extent`; -1 for the fill value. */
function padSource(mode: PadMode, at: number, extent: number): number {
  if (at >= 0 && at < extent) return at;
  switch (mode) {
    case "constant":
      return -1;
    case "edge":
      return Math.min(Math.max(at, 0), extent - 1);
    case "wrap":
      return at - extent * Math.floor(at / extent);
    case "reflect": {
      const period = Math.max(1, 2 * (extent - 1));
      const folded = at - period * Math.floor(at / period);
      return Math.min(folded, period - folded);
    }
  }
}

export const pad: Reference<"pad"> = ({ low, high, mode }, [x, fill]) => {
  const shape = x!.shape.map((extent, axis) => extent + low[axis]! + high[axis]!);
  const sources = shape.map((extent, axis) =>
    Int32Array.from({ length: extent }, (_, i) => padSource(mode, i - low[axis]!, x!.shape[axis]!)),
  );
  return [takeOffsets(x!, shape, mappedOffsets(sources, x!.shape), fill)];
};

/** Offsets of the outer product of per-axis source positions; a negative position is contagious. */
function mappedOffsets(sources: readonly Int32Array[], sourceShape: Shape): Int32Array {
  const strides = rowMajorStrides(sourceShape);
  let offsets = Int32Array.of(0);
  for (let axis = sources.length - 1; axis >= 0; axis--) {
    const positions = sources[axis]!;
    const grown = new Int32Array(positions.length * offsets.length);
    for (let i = 0; i < positions.length; i++) {
      const shift = positions[i]! * strides[axis]!;
      for (let j = 0; j < offsets.length; j++) {
        const inside = positions[i]! >= 0 && offsets[j]! >= 0;
        grown[i * offsets.length + j] = inside ? offsets[j]! + shift : -1;
      }
    }
    offsets = grown;
  }
  return offsets;
}
