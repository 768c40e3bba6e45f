/**
 * Loads and stores between memory and registers. A vector moves in the widest pieces that its alignment
 * proves (a piece of n bytes has to lie at a multiple of n), up to 16 bytes. Swizzled shared buffers are
 * accessed within one 16-byte chunk at a time, whose number is exchanged by the row's.
 */
import type { DType } from "../../semantics/dtype.ts";
import { dtypes } from "../../semantics/dtype.ts";
import * as ix from "../../semantics/index-expr.ts";
import { withoutConstant } from "./index-scope.ts";
import type { KernelContext, MemoryPlace } from "./kernel-context.ts";
import { isBelowByte, loadBits, storeBits } from "./packed-access.ts";
import type { Operand, PtxCode } from "./ptx-code.ts";
import { isTinyFloat } from "./tiny-floats.ts";
import {
  copyRegister,
  isPacked,
  isUnsigned,
  joinLanes,
  lanesOf,
  literal,
  type Registers,
  toRegister,
} from "./values.ts";

/** What the driver's allocator and the memory plan promise of every buffer's address. */
export const bufferAlignment = 16;
const widestBytes = 16;

export interface Access {
  readonly place: MemoryPlace;
  readonly index: readonly ix.IndexExpr[];
  readonly dtype: DType;
  readonly lanes: number;
}

interface Piece {
  /** Bytes from the first. */
  readonly from: number;
  readonly bytes: number;
}

/** The greatest power of two up to 16 that divides the address, whatever its variables are; the base is aligned. */
export function alignmentOf(address: ix.IndexExpr, base: string): number {
  const factors = address.terms.map((term) => (term.key === base ? widestBytes : factorOf(term)));
  return Math.min(powerIn(address.constant), ...factors);
}

/** The same of a term: what is known of its coefficient and of each atom. */
function factorOf({ coefficient, atoms }: ix.IndexTerm): number {
  const factors = atoms.map((atom) => {
    if (atom.kind === "variable" || atom.kind === "floorDiv") return 1;
    return Math.min(...ix.atomOperands(atom).map((operand) => alignmentOf(operand, "")));
  });
  return Math.min(
    widestBytes,
    factors.reduce((a, b) => a * b, powerIn(coefficient)),
  );
}

function powerIn(value: number): number {
  let power = widestBytes;
  while (value % power !== 0) power /= 2;
  return power;
}

/** Pieces that lie inside an element or cover whole ones. */
function piecesOf(bytes: number, elementBytes: number, alignment: number): readonly Piece[] {
  const pieces: Piece[] = [];
  for (let from = 0; from < bytes; ) {
    let size = widestBytes;
    while (size > elementBytes && (size > bytes - from || size > alignment || from % size !== 0)) {
      size /= 2;
    }
    pieces.push({ from, bytes: size });
    from += size;
  }
  return pieces;
}

/** `[%d1+16]`, with the swizzle applied. */
export function spellAddress(
  context: KernelContext,
  place: MemoryPlace,
  address: ix.IndexExpr,
  more = 0,
): string {
  const { scope } = context;
  if (place.swizzleBytes === 0) {
    const varying = withoutConstant(address);
    const offset = address.constant + more;
    if (varying.terms.length === 0) return `[${offset}]`;
    const bits = place.space === "shared" ? 32 : 64;
    const register = scope.register(varying, bits);
    return offset === 0 ? `[${register}]` : `[${register}+${offset}]`;
  }
  return swizzledAddress(context, place.swizzleBytes, ix.add(address, more));
}

/**
 * Chunks of 16 bytes exchanged by bits 7 and up of the address (plan/instructions/swizzle.ts). What is exchanged hangs
 * on the address modulo eight rows of the swizzle: accesses that are a multiple of that apart share a register.
 */
function swizzledAddress(
  { code, scope }: KernelContext,
  span: 32 | 64 | 128,
  address: ix.IndexExpr,
): string {
  const period = 8 * span;
  const near = ((address.constant % period) + period) % period;
  const first = ix.add(withoutConstant(address), near);
  const register = scope.derived(`swizzle ${span} ${first.key}`, () => {
    const linear = scope.register(first, 32);
    const mask = (span / 16 - 1) * 16;
    const rows = code.op("and.b32", "r", code.op("shr.u32", "r", linear, "3"), String(mask));
    return code.op("xor.b32", "r", linear, rows);
  });
  const offset = address.constant - near;
  return offset === 0 ? `[${register}]` : `[${register}+${offset}]`;
}

function layoutOf(context: KernelContext, access: Access): readonly Piece[] {
  const { place, index, dtype, lanes } = access;
  const size = dtypes[dtype].bits / 8;
  const address = context.address(place, index);
  const alignment = alignmentAt(place, address);
  if (place.swizzleBytes > 0 && alignment < Math.min(16, lanes * size)) {
    context.refuse(`${lanes} lanes across the chunks of swizzled buffer ${place.buffer.name}`);
  }
  return piecesOf(lanes * size, size, alignment);
}

/** What divides an address in a place, up to 16. */
export function alignmentAt(place: MemoryPlace, address: ix.IndexExpr): number {
  return alignmentOf(address, withoutBase(place));
}

/** The variable of the base address: what it holds is aligned. */
function withoutBase(place: MemoryPlace): string {
  return place.base.terms[0]?.key ?? "";
}

/** Loads; where a predicate is given and false, `fill` is the value of every lane. */
export function loadMemory(
  context: KernelContext,
  access: Access,
  guard?: { readonly predicate: Operand; readonly fill: number | bigint },
): Registers {
  const { code } = context;
  const { place, dtype, lanes } = access;
  context.classOf(dtype);
  if (isBelowByte(dtype)) return loadBits(context, access, guard);
  const size = dtypes[dtype].bits / 8;
  const address = context.address(place, access.index);
  const parts: Operand[] = [];
  const words: Operand[] = [];
  const whole = isPacked(dtype, lanes);
  for (const piece of layoutOf(context, access)) {
    const at = spellAddress(context, place, address, piece.from);
    const raw = loadPiece(
      context,
      place,
      { at, bytes: piece.bytes, elementBytes: size },
      guard?.predicate,
      guard && patternOf(dtype, guard.fill),
    );
    if (whole && piece.bytes >= 4 && parts.length === 0) words.push(...raw);
    else parts.push(...unpack(code, dtype, raw, piece.bytes));
  }
  if (!whole) return parts;
  return [...words, ...joinTail(code, dtype, parts)];
}

/** The lanes that did not come as whole words. */
function joinTail(code: PtxCode, dtype: DType, parts: Registers): Registers {
  if (parts.length === 0) return [];
  return joinLanes(code, dtype, parts.length === 1 ? [parts[0]!, parts[0]!] : parts);
}

interface Transfer {
  readonly at: string;
  readonly bytes: number;
  readonly elementBytes: number;
}

/** Bits of one element as a number, for registers that a predicated load leaves alone. */
function patternOf(dtype: DType, fill: number | bigint): { dtype: DType; fill: number | bigint } {
  return { dtype, fill };
}

/** Words of 32 bits, or one register of the element's size where the piece is one element. */
function loadPiece(
  context: KernelContext,
  place: MemoryPlace,
  { at, bytes, elementBytes }: Transfer,
  predicate: Operand | undefined,
  fill: { dtype: DType; fill: number | bigint } | undefined,
): Registers {
  const { code } = context;
  const unit = unitBytes(bytes, elementBytes);
  const kind = unit === 8 ? "d" : unit === 4 ? "r" : unit === 2 ? "h" : "r";
  const registers = Array.from({ length: bytes / unit }, () => code.fresh(kind));
  if (predicate && fill) {
    const pattern = fillPattern(context, fill, unit);
    for (const r of registers) copyRegister(code, kind, r, pattern);
  }
  const list = registers.length === 1 ? registers[0]! : `{${registers.join(", ")}}`;
  const vector = registers.length === 1 ? "" : `.v${registers.length}`;
  // Loads through the read-only cache are moved in front of barriers (ptxas 13.0): what is wanted behind a fold over
  // the block would hold registers while the whole block waits (a norm of groups took 128 of them, so it takes 71).
  const isConstant = place.space === "global" && place.isConstant && !context.isBehindFold;
  const cache = isConstant ? ".nc" : "";
  const test = predicate ? `@${predicate} ` : "";
  code.emit(`${test}ld.${place.space}${cache}${vector}.b${8 * unit} ${list}, ${at}`);
  return registers;
}

/** What one register of a piece holds. */
function unitBytes(bytes: number, elementBytes: number): number {
  if (elementBytes === 8) return 8;
  return Math.min(bytes, 4);
}

/** The fill value repeated over `unit` bytes. */
function fillPattern(
  context: KernelContext,
  { dtype, fill }: { dtype: DType; fill: number | bigint },
  unit: number,
): Operand {
  const { code } = context;
  const size = dtypes[dtype].bits / 8;
  const value = dtype === "bool" ? (fill ? "1" : "0") : literal(code, dtype, fill);
  if (unit === size || Number(fill) === 0) {
    if (size === 2 && unit === 4) return "0";
    return value;
  }
  if (size === 2) return joinLanes(code, "f16", [toHalf(code, value), toHalf(code, value)])[0]!;
  const byte = code.op("and.b32", "r", toRegister(code, "r", value), "255");
  const factor = unit === 2 ? "257" : "16843009";
  const repeated = code.op("mul.lo.u32", "r", byte, factor);
  return unit === 2 ? code.op("cvt.u16.u32", "h", repeated) : repeated;
}

function toHalf(code: PtxCode, value: Operand): Operand {
  return value.startsWith("%h") ? value : code.op("mov.b16", "h", value);
}

/** One register a lane from what a piece was loaded into. */
function unpack(code: PtxCode, dtype: DType, raw: Registers, bytes: number): Registers {
  const size = dtypes[dtype].bits / 8;
  if (size >= 4) return raw;
  const floating = dtype === "f16" || dtype === "bf16";
  if (floating) return bytes === 2 ? raw : lanesOf(code, dtype, bytes / 2, raw);
  const isPattern = dtype === "bool" || isTinyFloat(dtype);
  const sign = isUnsigned(dtype) || isPattern ? "u" : "s";
  const each = Math.min(4, bytes) / size;
  const integers = raw.flatMap((word) => {
    const source = word.startsWith("%h") ? code.op("cvt.u32.u16", "r", word) : word;
    return Array.from({ length: each }, (_, i) =>
      code.op(`bfe.${sign}32`, "r", source, String(8 * size * i), String(8 * size)),
    );
  });
  if (dtype !== "bool") return integers;
  return integers.map((r) => code.op("setp.ne.s32", "p", r, "0"));
}

/** Stores a value in the form of values.ts. */
export function storeMemory(context: KernelContext, access: Access, value: Registers): void {
  const { code } = context;
  const { place, dtype, lanes } = access;
  if (isBelowByte(dtype)) {
    storeBits(context, access, value);
    return;
  }
  const size = dtypes[dtype].bits / 8;
  const address = context.address(place, access.index);
  const pieces = layoutOf(context, access);
  const halves =
    isPacked(dtype, lanes) && pieces.some((p) => p.bytes < 4)
      ? lanesOf(code, dtype, lanes, value)
      : [];
  for (const { from, bytes } of pieces) {
    const at = spellAddress(context, place, address, from);
    const first = from / size;
    const unit = unitBytes(bytes, size);
    const registers = isPacked(dtype, lanes)
      ? bytes >= 4
        ? value.slice(first / 2, (first + bytes / 2) / 2)
        : [halves[first]!]
      : packedWords(code, dtype, value.slice(first, first + bytes / size), unit);
    const list = registers.length === 1 ? registers[0]! : `{${registers.join(", ")}}`;
    const vector = registers.length === 1 ? "" : `.v${registers.length}`;
    code.emit(`st.${place.space}${vector}.b${8 * unit} ${at}, ${list}`);
  }
}

/** Lanes narrower than a unit of `unit` bytes put together. */
function packedWords(code: PtxCode, dtype: DType, lanes: Registers, unit: number): Registers {
  const size = dtypes[dtype].bits / 8;
  const kind = size === 8 ? "d" : "r";
  const integers =
    dtype === "bool"
      ? lanes.map((p) => code.op("selp.b32", "r", "1", "0", p))
      : lanes.map((l) => (l.startsWith("%h") ? l : toRegister(code, kind, l)));
  if (size >= unit)
    return size === 2 && dtype !== "f16" && dtype !== "bf16"
      ? integers.map((i) => code.op("cvt.u16.u32", "h", i))
      : integers;
  const each = unit / size;
  const words: Operand[] = [];
  for (let i = 0; i < integers.length; i += each) {
    let word = integers[i]!;
    for (let k = 1; k < each; k++) {
      word = code.op(
        "bfi.b32",
        "r",
        integers[i + k]!,
        word,
        String(8 * size * k),
        String(8 * size),
      );
    }
    words.push(unit === 2 ? code.op("cvt.u16.u32", "h", word) : word);
  }
  return words;
}
