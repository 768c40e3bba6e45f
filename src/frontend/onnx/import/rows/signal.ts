/** Fourier transforms and window functions. */

import { dtypes } from "../../../../semantics/dtype.ts";
import { roundToFloat } from "../../../../semantics/float-codec.ts";
import {
  add,
  constant,
  constantValue,
  floorDiv,
  type IndexExpr,
  max,
  mul,
  sub,
} from "../../../../semantics/index-expr.ts";
import { simplify } from "../../../../semantics/index-range.ts";
import { refTensor } from "../../../../semantics/tensor.ts";
import { type NodeView, one } from "../node-view.ts";
import { constantFromRef, type Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";
import { sliceAxis } from "./slicing.ts";

/** The axis is an attribute up to version 17, then an operand. */
function dft(node: NodeView): Operand {
  const { attributes } = node;
  const x = node.input(0);
  const rank = x.type.shape.length;
  const old = node.version < 20;
  const given = old
    ? (attributes.int("axis") ?? 1)
    : node.optional(2)
      ? node.integers(2, "axis")[0]!
      : -2;
  const axis = node.axis(given, rank);
  const length = node.optional(1) ? node.indexList(1, "dft_length")[0]! : x.type.shape[axis]!;
  const [inverse, onesided] = [
    attributes.flag("inverse", false),
    attributes.flag("onesided", false),
  ];
  if (inverse && onesided) return realInverse(node, x, { axis, half: x.type.shape[axis]! });
  return node.emit("dft", [x], { axis, inverse, onesided, length });
}

/**
 * The real signal of half a spectrum: the other half is the mirrored conjugate, then the real part of
 * the full inverse transform is taken.
 */
export function realInverse(
  node: NodeView,
  x: Operand,
  { axis, half }: { readonly axis: number; readonly half: IndexExpr },
): Operand {
  const length = node.optional(1) ? node.indexList(1, "dft_length")[0]! : mul(2, sub(half, 1));
  const last = x.type.shape.length - 1;
  const rest = sliceAxis(node, x, { axis, start: one, step: 1, size: sub(length, half) });
  const mirrored = node.emit("reverse", [rest], { axes: [axis] });
  const signs = constantFromRef(refTensor(x.type.dtype, [2], [1, -1]));
  const conjugate = node.emit("mul", [mirrored, signs], {});
  const full = node.emit("concat", [x, conjugate], { axis });
  const signal = node.emit("dft", [full], { axis, inverse: true, onesided: false, length });
  return sliceAxis(node, signal, { axis: last, start: sub(one, 1), step: 1, size: one });
}

/** Where the samples of each frame stand, [frames, length]; a signal shorter than a frame has none. */
function framePositions(
  node: NodeView,
  samples: IndexExpr,
  { step, length }: { readonly step: number; readonly length: number },
): Operand {
  const known = constantValue(samples);
  const last = floorDiv(sub(samples, length), step);
  const { ranges } = node.emitter.assembly.symbols;
  const frames = simplify(max(0, add(last, 1)), ranges);
  if (known !== undefined && known < length)
    node.refuse(`${known} samples in frames of ${length}`, "at least one frame");
  const count = node.emit("iota", [], { shape: [frames, one], axis: 0, dtype: "i64" });
  const within = node.emit("iota", [], { shape: [one, constant(length)], axis: 1, dtype: "i64" });
  const start = node.emit("mul", [count, node.splat("i64", step)], {});
  return node.emit("add", [start, within], {});
}

/** [b, n, 1 or 2]; exporters write real signals as [b, n] too, as onnxruntime takes them. */
function signalOf(node: NodeView): Operand {
  const signal = node.input(0);
  const { shape } = signal.type;
  if (shape.length === 2) return node.reshape(signal, [...shape, one]);
  node.checkRank(signal, 3, "the signal");
  return signal;
}

/** Overlapping frames of the signal, weighted and transformed: [b, frames, bins, 2]. */
function shortTimeTransform(node: NodeView): Operand {
  const signal = signalOf(node);
  const [step] = node.integers(1, "frame_step");
  const window = node.optional(2);
  const given = node.optional(3) ? node.indexList(3, "frame_length")[0] : window?.type.shape[0];
  const length = node.fixedExtent(given ?? one, "the frame length");
  if (!step || step < 1 || length < 1 || length > largestWindow || step > largestWindow)
    node.refuse(`frames of ${length} samples, every ${step}`, "positive numbers");
  const index = framePositions(node, signal.type.shape[1]!, { step, length });
  const framed = node.emit("gather", [signal, index], { axis: 1 });
  const weighted = window
    ? node.emit("mul", [framed, node.reshape(window, [constant(length), one])], {})
    : framed;
  const onesided = node.attributes.flag("onesided", true);
  return node.emit("dft", [weighted], {
    axis: 2,
    inverse: false,
    onesided,
    length: constant(length),
  });
}

/**
 * Sum of cosines with these coefficients over one period, or one sample less when symmetric. A symmetric window of
 * one sample has a period of 0: its sample is 0 / 0, as the definition and onnxruntime have it.
 */
function cosineWindow(...coefficients: readonly number[]) {
  return (node: NodeView): Operand => {
    const size = constantValue(node.indexList(0, "size")[0] ?? one);
    if (size === undefined || size < 0 || size > largestWindow) {
      node.refuse(`a window of ${size} samples`, `0 to ${largestWindow} samples, known at import`);
    }
    const dtype = node.dtype(node.attributes.int("output_datatype") ?? 1);
    const period = node.attributes.flag("periodic", true) ? size : size - 1;
    const sample = (n: number): number => {
      const angle = (2 * Math.PI * n) / period;
      return coefficients.reduce((sum, c, k) => sum + c * Math.cos(k * angle), 0);
    };
    const float = dtypes[dtype].kind === "float";
    if (!float && size > 0 && period === 0) {
      node.refuse(`a symmetric window of one sample, which is no number, in ${dtype}`, "floats");
    }
    const values = Array.from({ length: size }, (_, n) =>
      float ? roundToFloat(dtype, sample(n)) : Math.trunc(sample(n)),
    );
    return constantFromRef(refTensor(dtype, [size], values));
  };
}

const largestWindow = 2 ** 20;

export const signalRows = {
  DFT: { since: [17, 20], convert: dft },
  STFT: { since: [17], convert: shortTimeTransform },
  HannWindow: { since: [17], convert: cosineWindow(0.5, -0.5) },
  HammingWindow: { since: [17], convert: cosineWindow(25 / 46, -21 / 46) },
  BlackmanWindow: { since: [17], convert: cosineWindow(0.42, -0.5, 0.08) },
} satisfies OperatorTable;
