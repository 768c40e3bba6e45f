/** A matrix instruction as a line of PTX, with the registers that `matrixRegisters` declares. */
import type { MatrixRequest, TensorMemoryRequest } from "./matrix-legality.ts";
import type { AccumulatorType, OperandType } from "./matrix-table.ts";

const operandBits: Readonly<Record<OperandType, number>> = {
  f16: 16,
  bf16: 16,
  tf32: 32,
  f64: 64,
  e4m3: 8,
  e5m2: 8,
  // Smaller floats travel in containers of eight bits.
  e3m2: 8,
  e2m3: 8,
  e2m1: 8,
  s8: 8,
  u8: 8,
  s4: 4,
  u4: 4,
  b1: 1,
};

const accumulatorBits: Readonly<Record<AccumulatorType, number>> = {
  f16: 16,
  f32: 32,
  f64: 64,
  s32: 32,
};

/** Declarations for any number of the lines below. */
export const matrixRegisters =
  ".reg .f32 f<256>; .reg .f64 g<64>; .reg .b32 r<256>; .reg .b64 da, db; .reg .pred p; .reg .b32 id, sa, sb, tm;";

export function spellMatrix(request: MatrixRequest): string {
  return request.family === "mma" ? spellMma(request) : spellWgmma(request);
}

/** Registers of a fragment that 32 threads share. */
function fragment(elements: number, bits: number): number {
  return Math.max(1, (elements * bits) / (32 * Math.max(bits, 32)));
}

function list(prefix: string, from: number, count: number): string {
  return `{${Array.from({ length: count }, (_, i) => `${prefix}${from + i}`).join(", ")}}`;
}

/** Accumulators live in registers of their own type; halves are packed in pairs. */
function accumulatorPrefix(type: AccumulatorType): string {
  return type === "f32" ? "f" : type === "f64" ? "g" : "r";
}

function spellMma({ a, b, accumulator, m, n, k, ...rest }: MatrixRequest): string {
  const modifier: string = rest.modifier ?? "";
  const operand = (type: OperandType, elements: number, from: number): string =>
    list(type === "f64" ? "g" : "r", from, fragment(elements, operandBits[type]));
  const sums = list(
    accumulatorPrefix(accumulator),
    0,
    fragment(m * n, accumulatorBits[accumulator]),
  );
  const logic = modifier.endsWith(".popc") ? modifier : "";
  const kind = modifier.startsWith(".kind") ? modifier : "";
  const types = `.${accumulator}.${a}.${b}.${accumulator}`;
  const operands = [sums, operand(a, m * k, 16), operand(b, k * n, 40), sums];
  return `mma.sync.aligned.m${m}n${n}k${k}.row.col${kind}${types}${logic} ${operands.join(", ")};`;
}

function spellWgmma({ a, b, accumulator, m, n, k, ...rest }: MatrixRequest): string {
  const modifier: string = rest.modifier ?? "";
  const threads = 128;
  const bits = accumulatorBits[accumulator];
  const count = Math.max(1, Math.floor((m * n * bits) / (threads * 32)));
  const sums = list(accumulatorPrefix(accumulator), 0, count);
  const wide = a === "f16" || a === "bf16";
  const isFloat = accumulator !== "s32";
  const tail = `${isFloat ? ", 1, 1" : ""}${wide ? ", 0, 0" : ""}`;
  const types = `.${accumulator}.${a}.${b}`;
  return `wgmma.mma_async.sync.aligned.m${m}n${n}k${k}${types}${modifier} ${sums}, da, db, p${tail};`;
}

export function spellTensorMemory({ kind, blocks, scaleVector }: TensorMemoryRequest): string {
  const scaled = scaleVector === undefined ? "" : `.block_scale.scale_vec::${scaleVector}`;
  const scales = scaleVector === undefined ? "" : ", [sa], [sb]";
  return `tcgen05.mma.cta_group::${blocks}.kind::${kind}${scaled} [tm], da, db, id${scales}, p;`;
}

/** A kernel of one line each; line `i` of `lines` stands in line `i + firstLine` of the text. */
export function spellKernel(target: string, lines: readonly string[]): string {
  const head = [
    ".version 9.0",
    `.target sm_${target}`,
    ".address_size 64",
    `.visible .entry k() { ${matrixRegisters}`,
  ];
  return [...head, ...lines, "ret; }", ""].join("\n");
}

/** Line of the text (from 1) in which the first instruction stands. */
export const firstLine = 5;
