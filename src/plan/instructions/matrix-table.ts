/**
 * Matrix instructions of NVIDIA GPUs, a row a legal family (PTX ISA 9.0: 9.7.14.5 mma, 9.7.15.5 wgmma,
 * 9.7.16.10 tcgen05.mma). What has no row is illegal. The assembler is the judge of every combination:
 * `npm run campaign -- instruction-legality`.
 */
import { steps } from "../../target/machine.ts";

/** Operand types as PTX spells them. */
export const operandTypes = [
  "f16",
  "bf16",
  "tf32",
  "f64",
  "e4m3",
  "e5m2",
  "e3m2",
  "e2m3",
  "e2m1",
  "s8",
  "u8",
  "s4",
  "u4",
  "b1",
] as const;
export type OperandType = (typeof operandTypes)[number];

export const accumulatorTypes = ["f16", "f32", "f64", "s32"] as const;
export type AccumulatorType = (typeof accumulatorTypes)[number];

/** `.target` names without their `sm_`; the suffix a is one chip, f a family. */
export const ptxTargets = [
  "75",
  "80",
  "86",
  "87",
  "88",
  "89",
  "90",
  "90a",
  "100",
  "100a",
  "100f",
  "103",
  "103a",
  "103f",
  "110",
  "110a",
  "110f",
  "120",
  "120a",
  "120f",
  "121",
  "121a",
  "121f",
] as const;
export type PtxTarget = (typeof ptxTargets)[number];

/** Since a number: that architecture and all later ones; a list: exactly those. */
export type Availability = number | readonly PtxTarget[];

export interface MatrixRow {
  readonly family: "mma" | "wgmma";
  /** Types of A and of B: every pair is legal. */
  readonly a: readonly OperandType[];
  readonly b: readonly OperandType[];
  readonly accumulators: readonly AccumulatorType[];
  readonly m: readonly number[];
  readonly n: readonly number[];
  readonly k: readonly number[];
  readonly on: Availability;
  /** Spelled between the layout and the types. */
  readonly modifier?: ".kind::f8f6f4" | ".and.popc" | ".xor.popc";
}

const fp8 = ["e4m3", "e5m2"] as const;
const fp864 = ["e4m3", "e5m2", "e3m2", "e2m3", "e2m1"] as const;
const bytes = ["s8", "u8"] as const;
const nibbles = ["s4", "u4"] as const;
const either = ["f16", "f32"] as const;

/** Chips with tensor memory. */
const tensorMemory = ["100a", "100f", "103a", "103f", "110a", "110f"] as const;
/** Warp-wide multiply on FP6 and FP4 operands. */
const warpBlackwell = ["120a", "120f", "121a", "121f"] as const;

type Shape = readonly [m: number, n: number, k: readonly number[]];

function mma(
  types: readonly OperandType[],
  accumulators: readonly AccumulatorType[],
  [m, n, k]: Shape,
  on: Availability,
): MatrixRow {
  return { family: "mma", a: types, b: types, accumulators, m: [m], n: [n], k, on };
}

function wgmma(
  types: readonly OperandType[],
  accumulators: readonly AccumulatorType[],
  n: readonly number[],
  k: number,
): MatrixRow {
  return { family: "wgmma", a: types, b: types, accumulators, m: [64], n, k: [k], on: ["90a"] };
}

const floatN = steps(8, 256, 8);
const integerN = [8, 16, 24, 32, ...steps(48, 256, 16)];

export const matrixRows: readonly MatrixRow[] = [
  mma(["f16"], either, [16, 8, [8]], 75),
  mma(["f16"], either, [16, 8, [16]], 80),
  mma(["bf16"], ["f32"], [16, 8, [8, 16]], 80),
  mma(["tf32"], ["f32"], [16, 8, [4, 8]], 80),
  mma(["f64"], ["f64"], [8, 8, [4]], 80),
  mma(["f64"], ["f64"], [16, 8, [4, 8, 16]], 90),
  mma(bytes, ["s32"], [8, 8, [16]], 75),
  mma(bytes, ["s32"], [16, 8, [16, 32]], 80),
  mma(nibbles, ["s32"], [8, 8, [32]], 75),
  mma(nibbles, ["s32"], [16, 8, [32, 64]], 80),
  { ...mma(["b1"], ["s32"], [8, 8, [128]], 75), modifier: ".xor.popc" },
  { ...mma(["b1"], ["s32"], [16, 8, [128, 256]], 80), modifier: ".xor.popc" },
  { ...mma(["b1"], ["s32"], [8, 8, [128]], 80), modifier: ".and.popc" },
  { ...mma(["b1"], ["s32"], [16, 8, [128, 256]], 80), modifier: ".and.popc" },
  mma(fp8, either, [16, 8, [16, 32]], 89),
  { ...mma(fp864, either, [16, 8, [32]], warpBlackwell), modifier: ".kind::f8f6f4" },
  { ...mma(fp8, either, [16, 8, [16]], warpBlackwell), modifier: ".kind::f8f6f4" },
  { ...mma(fp8, either, [16, 8, [16, 32]], tensorMemory), modifier: ".kind::f8f6f4" },
  wgmma(["f16"], either, floatN, 16),
  wgmma(["bf16"], ["f32"], floatN, 16),
  wgmma(["tf32"], ["f32"], floatN, 8),
  wgmma(fp8, either, floatN, 32),
  wgmma(bytes, ["s32"], integerN, 32),
  { ...wgmma(["b1"], ["s32"], integerN, 256), modifier: ".and.popc" },
];

/**
 * tcgen05.mma names only its kind in the text: types and shape stand in a descriptor that is checked
 * when it is made. K is 32 bytes of the wider operand.
 */
export interface TensorMemoryRow {
  readonly kind: string;
  /** `.block_scale` and the scale vector sizes it may have. */
  readonly scaleVectors?: readonly ("1X" | "2X" | "4X")[];
  readonly operands: readonly OperandType[];
  readonly accumulators: readonly AccumulatorType[];
  readonly k: number;
  readonly on: readonly PtxTarget[];
}

/** Scale vectors by size belong to a chip, not to a family. */
const scaled = ["100a", "103a", "110a"] as const;

export const tensorMemoryRows: readonly TensorMemoryRow[] = [
  { kind: "f16", operands: ["f16", "bf16"], accumulators: either, k: 16, on: tensorMemory },
  { kind: "tf32", operands: ["tf32"], accumulators: ["f32"], k: 8, on: tensorMemory },
  { kind: "f8f6f4", operands: fp864, accumulators: either, k: 32, on: tensorMemory },
  { kind: "i8", operands: bytes, accumulators: ["s32"], k: 32, on: ["100a", "110a"] },
  {
    kind: "mxf8f6f4",
    scaleVectors: ["1X"],
    operands: fp864,
    accumulators: ["f32"],
    k: 32,
    on: scaled,
  },
  {
    kind: "mxf4",
    scaleVectors: ["2X"],
    operands: ["e2m1"],
    accumulators: ["f32"],
    k: 64,
    on: scaled,
  },
  {
    kind: "mxf4nvf4",
    scaleVectors: ["2X", "4X"],
    operands: ["e2m1"],
    accumulators: ["f32"],
    k: 64,
    on: scaled,
  },
];
