/**
 * Operators of com.microsoft that are one operator of ai.onnx, or two, under another name: older exporters and
 * tools for processors, GPUs and training wrote them. Definitions: ONNX Runtime's ContribOperators page.
 */
import { constantValue } from "../../../../semantics/index-expr.ts";
import { NodeView, one } from "../node-view.ts";
import type { Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";
import { addBias, checkSpatial, transposedConvolution } from "./linear.ts";
import { reductionRows } from "./reduction.ts";
import { realInverse } from "./signal.ts";

/** The last axes that are transformed; each spectrum is a pair on an axis behind them. */
function signalAxes(node: NodeView, rank: number): readonly number[] {
  const { attributes } = node;
  const [normalized, onesided] = [
    attributes.int("normalized") ?? 0,
    attributes.int("onesided") ?? 1,
  ];
  if (normalized !== 0) attributes.refuse("normalized", normalized, "0");
  if (onesided !== 1) attributes.refuse("onesided", onesided, "1");
  const count = attributes.int("signal_ndim") ?? 1;
  if (count < 1 || count > rank) attributes.refuse("signal_ndim", count, `1 to ${rank}`);
  return Array.from({ length: count }, (_, i) => rank - 1 - i);
}

/** Half of the spectrum of a real signal along its last axis, the whole along those before it. */
function realTransform(node: NodeView): Operand {
  const x = node.input(0);
  const { shape } = x.type;
  const [last, ...before] = signalAxes(node, shape.length);
  const whole = { inverse: false, onesided: false };
  let y = node.emit("dft", [node.reshape(x, [...shape, one])], {
    ...whole,
    axis: last!,
    onesided: true,
    length: shape[last!]!,
  });
  for (const axis of before) y = node.emit("dft", [y], { ...whole, axis, length: shape[axis]! });
  return y;
}

/** The real signal of such a spectrum. */
function realTransformBack(node: NodeView): Operand {
  const x = node.input(0);
  const { shape } = x.type;
  if (shape.length < 2 || constantValue(shape.at(-1)!) !== 2)
    node.refuse("no pairs on the last axis", "a spectrum of pairs");
  const [last, ...before] = signalAxes(node, shape.length - 1);
  let y = x;
  for (const axis of before)
    y = node.emit("dft", [y], { inverse: true, onesided: false, axis, length: shape[axis]! });
  const signal = realInverse(node.withInputs([y]), y, { axis: last!, half: shape[last!]! });
  return node.reshape(signal, signal.type.shape.slice(0, -1));
}

/** Rows of a table. What is said for training changes no result. */
function embedding(node: NodeView): Operand {
  return node.emit("gather", [node.input(0), node.input(1)], { axis: 0 });
}

/** Whether no element of any operand is infinite or not a number; either may be asked alone. */
function isAllFinite(node: NodeView): Operand {
  const { attributes } = node;
  const [infinite, wrong] = [
    attributes.flag("isinf_only", false),
    attributes.flag("isnan_only", false),
  ];
  if (infinite && wrong) attributes.refuse("isnan_only", 1, "one of isinf_only and isnan_only");
  const found = node.allInputs().flatMap((x): Operand[] => {
    const axes = x.type.shape.map((_, i) => i);
    const ends = { detectNegative: true, detectPositive: true };
    const marks = [
      ...(wrong ? [] : [node.emit("isInf", [x], ends)]),
      ...(infinite ? [] : [node.emit("isNan", [x], {})]),
    ];
    return marks.map((m) =>
      axes.length === 0 ? m : node.emit("reduce", [m], { kind: "or", axes, keepDims: false }),
    );
  });
  const any = found.reduce((a, b) => node.emit("or", [a, b], {}));
  return node.emit("not", [any], {});
}

/** Sums of bytes in 32 bits, signed or not as they are. */
function reduceSumInteger(node: NodeView): Operand {
  const x = node.input(0);
  const wide = node.cast(x, x.type.dtype === "u8" ? "u32" : "i32");
  const made = reductionRows.ReduceSum.convert(
    new NodeView({ ...node.withInputs([wide]), version: 1 }),
  );
  return made as Operand;
}

/** (A - its zero point) (B - its zero point), of bytes, in 32 bits. */
function mulInteger(node: NodeView): Operand {
  const moved = (at: number): Operand => {
    const x = node.cast(node.input(at), "i32");
    const zero = node.optional(at + 1);
    return zero ? node.emit("sub", [x, node.reshape(node.cast(zero, "i32"), [])], {}) : x;
  };
  return node.emit("mul", [moved(0), moved(2)], {});
}

/** The padding [low…, high…] is an operand, which is known at import, behind data and weights. */
function paddedByOperand(node: NodeView): Operand {
  const [x, weights] = [node.input(0), node.input(1)];
  checkSpatial(node, x, weights);
  const pads = node.inputs[2] ? node.integers(2, "pads") : undefined;
  const y = transposedConvolution(node.withInputs([x, weights]), pads);
  return addBias(node, y, node.optional(3));
}

export const microsoftPlainRows = {
  Rfft: { since: [1], convert: realTransform },
  Irfft: { since: [1], convert: realTransformBack },
  TorchEmbedding: { since: [1], convert: embedding },
  IsAllFinite: { since: [1], convert: isAllFinite },
  ReduceSumInteger: { since: [1], convert: reduceSumInteger },
  MulInteger: { since: [1], convert: mulInteger },
  ConvTransposeWithDynamicPads: { since: [1], convert: paddedByOperand },
  SampleOp: { since: [1], convert: (node) => node.input(0) },
} satisfies OperatorTable;
