/**
 * Weights of com.microsoft that are packed into bytes: as tensors of 2, 4 or 8 bits with a scale for each
 * row or block, which is the form that integer kernels read, or decoded where the codes stand for the
 * numbers of a table. Definitions: ONNX Runtime's ContribOperators page.
 */
import type { DType } from "../../../../semantics/dtype.ts";
import { roundToFloat } from "../../../../semantics/float-codec.ts";
import { constant } from "../../../../semantics/index-expr.ts";
import {
  fromRef,
  refTensor,
  tensorBytes,
  tensorFromBytes,
  toRef,
} from "../../../../semantics/tensor.ts";
import type { NodeView } from "../node-view.ts";
import { lazyConstant, type Operand } from "../operand.ts";
import { sliceAxis } from "./slicing.ts";

export const packedTypes: Readonly<Record<number, DType>> = { 2: "u2", 4: "u4", 8: "u8" };

/** The bytes of a constant as numbers of fewer bits, first the low ones, in rows of `shape`. */
export function unpacked(
  node: NodeView,
  index: number,
  { bits, shape }: { readonly bits: number; readonly shape: readonly number[] },
): Operand {
  const packed = node.input(index);
  const dtype = packedTypes[bits];
  if (!dtype) return node.attributes.refuse("bits", bits, "2, 4, 8");
  if (packed.kind !== "constant" || packed.type.dtype !== "u8")
    return node.refuse("packed weights of a run, or not of u8", "a u8 constant");
  const bytes = packed.shape.reduce((a, b) => a * b, 1);
  const wanted = (shape.reduce((a, b) => a * b, 1) * bits) / 8;
  if (bytes !== wanted) node.refuse(`${bytes} bytes for [${shape}] of ${bits} bits`, `${wanted}`);
  const { read } = packed.source;
  return lazyConstant({ dtype, shape }, packed.name, () =>
    tensorFromBytes(dtype, shape, tensorBytes(read())),
  );
}

/** The first `size` columns of a matrix. */
export function columns(node: NodeView, x: Operand, size: number): Operand {
  return sliceAxis(node, x, { axis: 1, start: constant(0), step: 1, size: constant(size) });
}

interface PackedExperts {
  /** Operands by position: [e, n, k / pack], scales [e, n] or [e, n, blocks], zero points packed like them. */
  readonly weights: number;
  readonly scales: number;
  readonly zeros: number;
  readonly bits: number;
  /** 0: one scale for a row. */
  readonly blockSize: number;
}

/**
 * Real weights [e, n, k] of experts that are packed along k; of chosen experts [t, c] theirs alone, of
 * which only the codes are fetched.
 */
export function dequantizedExperts(
  node: NodeView,
  packed: PackedExperts,
): (chosen: Operand | undefined) => Operand {
  const { bits, blockSize } = packed;
  const stored = node.input(packed.weights);
  node.checkRank(stored, 3, "weights of experts");
  const extents = stored.type.shape.map((d) => node.fixedExtent(d, "an extent of the experts"));
  const [experts, width, bytes] = extents as [number, number, number];
  const depth = (bytes * 8) / bits;
  const blocks = blockSize === 0 ? 1 : depth / blockSize;
  if (!Number.isInteger(blocks) || blocks < 1)
    node.refuse(`rows of ${depth} in blocks of ${blockSize}`, "a divisor");
  const shape = [experts, width, blocks];
  const to = node.input(0).type.dtype;
  const codes = unpacked(node, packed.weights, { bits, shape: [experts, width, depth] });
  const scales = node.cast(node.reshape(node.input(packed.scales), shape.map(constant)), to);
  const zeros = node.inputs[packed.zeros]
    ? unpacked(node, packed.zeros, { bits, shape })
    : node.splat(packedTypes[bits]!, 2 ** (bits - 1), shape);
  return (chosen) => {
    const own = [codes, scales, zeros].map((x) =>
      chosen ? node.emit("gather", [x, chosen], { axis: 0 }) : x,
    );
    return node.emit("dequantize", own, { axis: chosen ? 3 : 2, blockSize: depth / blocks, to });
  };
}

/** FP4 of bitsandbytes: sign, then 0, 2/3 · 2^-7 and six numbers of one bit of mantissa, over the largest. */
const fp4 = [0, 0.005208333333, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4];

/**
 * NF4: quantiles of the normal distribution between -1 and 1 with 0 among them (Dettmers et al., "QLoRA",
 * appendix E).
 */
const nf4 = [
  -1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
  -0.18477343022823334, -0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725,
  0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
  0.7229568362236023, 1,
];

const codeTables = [[...fp4, ...fp4.map((value) => 0 - value)], nf4] as const;

/** The weights [N, K] of MatMulBnb4, decoded when they are read; the first code of a byte is its high half. */
export function decodedBlocks(node: NodeView): Operand {
  const { attributes } = node;
  const [k, n] = [attributes.int("K") ?? 0, attributes.int("N") ?? 0];
  const block = attributes.int("block_size") ?? 0;
  const table = codeTables[attributes.int("quant_type") ?? -1];
  if (!table) return attributes.refuse("quant_type", attributes.int("quant_type"), "0, 1");
  const [codes, scales] = [node.input(1), node.input(2)];
  if (codes.kind !== "constant" || scales.kind !== "constant" || codes.type.dtype !== "u8")
    return node.refuse("weights of a run, or not of u8", "constants");
  const count = k * n;
  const lengths = [codes, scales].map((x) => x.shape.reduce((a, b) => a * b, 1));
  const wanted = [Math.ceil(count / 2), Math.ceil(count / block)];
  if (k < 1 || n < 1 || block < 1 || lengths.join() !== wanted.join())
    node.refuse(`${lengths.join(" bytes, ")} scales for [${n}, ${k}]`, wanted.join(" and "));
  const { dtype } = scales.type;
  const shape = [n, k];
  return lazyConstant({ dtype, shape }, codes.name, () => {
    const bytes = tensorBytes(codes.source.read());
    const largest = toRef(scales.source.read()).data as Float64Array;
    const values = Array.from({ length: count }, (_, i) => {
      const byte = bytes[i >> 1]!;
      const code = i % 2 === 0 ? byte >> 4 : byte & 15;
      return roundToFloat(dtype, Math.fround(table[code]!) * largest[Math.floor(i / block)]!);
    });
    return fromRef(refTensor(dtype, shape, values));
  });
}
