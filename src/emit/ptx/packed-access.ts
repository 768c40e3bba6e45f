/**
 * Elements below a byte. A load takes the byte that holds one and cuts it out; lanes that are whole bytes, at a
 * multiple of as many, come by one load. Neighbours share a byte and may be
 * other threads', so a store changes the bits of its own element alone, in the word around it: one operation in
 * memory clears them, another sets them (PTX ISA, "red"; operations of one thread on one word keep their order).
 * Memory of a thread's own is read, changed and written back.
 */
import { flatIndex } from "../../program/addresses.ts";
import { type DType, dtypes, isFloatDType } from "../../semantics/dtype.ts";
import { encodeFloat } from "../../semantics/float-codec.ts";
import * as ix from "../../semantics/index-expr.ts";
import type { KernelContext, MemoryPlace } from "./kernel-context.ts";
import type { Access } from "./memory-access.ts";
import type { Operand } from "./ptx-code.ts";
import { literal, type Registers, toRegister } from "./values.ts";

/** Bytes of one load. */
const widestBytes = 16;

export function isBelowByte(dtype: DType): boolean {
  return dtypes[dtype].bits < 8;
}

/** Number of the first element, counted in lanes from the buffer's first. */
export function packedIndex({ buffer }: MemoryPlace, index: readonly ix.IndexExpr[]): ix.IndexExpr {
  return ix.mul(buffer.lanes, flatIndex(buffer, index));
}

interface BitPlace {
  /** Address of the unit of memory that holds the element. */
  readonly at: Operand;
  /** Of the element's first bit in it. */
  readonly shift: Operand;
}

/** Where a lane's bits are, in units of `unitBits`. */
function bitPlaceOf(
  context: KernelContext,
  { place, index, dtype }: Access,
  lane: number,
  unitBits: 8 | 32,
): BitPlace {
  const { code, scope } = context;
  if (place.swizzleBytes > 0) context.refuse(`packed ${dtype} in swizzled ${place.buffer.name}`);
  const wide = place.space !== "shared";
  const [kind, bits] = wide ? (["d", 64] as const) : (["r", 32] as const);
  const { bits: own } = dtypes[dtype];
  const each = unitBits / own;
  const first = scope.register(packedIndex(place, index), bits);
  const number = lane === 0 ? first : code.op(`add.s${bits}`, kind, first, String(lane));
  const unit = code.op(`shr.u${bits}`, kind, number, String(Math.log2(each)));
  const bytes =
    unitBits === 8 ? unit : code.op(`shl.b${bits}`, kind, unit, String(Math.log2(unitBits / 8)));
  const at = code.op(`add.s${bits}`, kind, bytes, scope.value(place.base, bits));
  const inUnit = code.op(`and.b${bits}`, kind, number, String(each - 1));
  const narrow = wide ? code.op("cvt.u32.u64", "r", inUnit) : inUnit;
  return { at, shift: code.op("shl.b32", "r", narrow, String(Math.log2(own))) };
}

/** Loads; where a predicate is given and false, `fill` is the value of every lane. */
export function loadBits(
  context: KernelContext,
  access: Access,
  guard?: { readonly predicate: Operand; readonly fill: number | bigint },
): Registers {
  const { code } = context;
  const { place, dtype, lanes } = access;
  const { bits, kind } = dtypes[dtype];
  const cache = place.space === "global" && place.isConstant ? ".nc" : "";
  const test = guard ? `@${guard.predicate} ` : "";
  const sign = kind === "int" ? "s" : "u";
  const words = loadWhole(context, access, guard);
  if (words) {
    const inWord = Math.min(32 / bits, lanes);
    return Array.from({ length: lanes }, (_, lane) => {
      const at = String(bits * (lane % inWord));
      return code.op(`bfe.${sign}32`, "r", words[Math.floor(lane / inWord)]!, at, String(bits));
    });
  }
  return Array.from({ length: lanes }, (_, lane) => {
    const { at, shift } = bitPlaceOf(context, access, lane, 8);
    const byte = guard ? code.op("mov.b32", "r", "0") : code.fresh("r");
    code.emit(`${test}ld.${place.space}${cache}.u8 ${byte}, [${at}]`);
    const value = code.op(`bfe.${sign}32`, "r", byte, shift, String(bits));
    if (!guard) return value;
    const fill = literal(code, dtype, guard.fill);
    return code.op("selp.b32", "r", value, fill, guard.predicate);
  });
}

/** Words (or a part of one) that hold all lanes; undefined where they are not known to lie at a multiple of their size. */
function loadWhole(
  context: KernelContext,
  { place, index, dtype, lanes }: Access,
  guard?: { readonly predicate: Operand; readonly fill: number | bigint },
): Registers | undefined {
  const { code, scope } = context;
  const { bits } = dtypes[dtype];
  const bytes = (lanes * bits) / 8;
  const first = packedIndex(place, index);
  const steps = [first.constant, ...first.terms.map((t) => t.coefficient)];
  const isWhole = bytes >= 1 && bytes <= widestBytes && Math.log2(bytes) % 1 === 0;
  if (!isWhole || place.swizzleBytes > 0 || steps.some((n) => n % lanes !== 0)) return undefined;
  const wide = place.space !== "shared";
  const [kind, width] = wide ? (["d", 64] as const) : (["r", 32] as const);
  const byte = scope.register(ix.floorDiv(first, 8 / bits), width);
  const at = code.op(`add.s${width}`, kind, byte, scope.value(place.base, width));
  const count = Math.max(1, bytes / 4);
  const mask = 2 ** bits - 1;
  const value = Number(guard?.fill ?? 0);
  const pattern = isFloatDType(dtype) ? encodeFloat(dtype, value) : value & mask;
  const fill = pattern * (0xffffffff / mask);
  const registers = Array.from({ length: count }, () =>
    guard ? code.op("mov.b32", "r", String(fill)) : code.fresh("r"),
  );
  const test = guard ? `@${guard.predicate} ` : "";
  const cache = place.space === "global" && place.isConstant ? ".nc" : "";
  const type = bytes < 4 ? `u${8 * bytes}` : "b32";
  const vector = count === 1 ? "" : `.v${count}`;
  const list = count === 1 ? registers[0]! : `{${registers.join(", ")}}`;
  code.emit(`${test}ld.${place.space}${cache}${vector}.${type} ${list}, [${at}]`);
  return registers;
}

export function storeBits(context: KernelContext, access: Access, value: Registers): void {
  const { code } = context;
  const { place, dtype } = access;
  const mask = String(2 ** dtypes[dtype].bits - 1);
  value.forEach((lane, i) => {
    const { at, shift } = bitPlaceOf(context, access, i, place.space === "local" ? 8 : 32);
    const own = code.op("and.b32", "r", toRegister(code, "r", lane), mask);
    const bits = code.op("shl.b32", "r", own, shift);
    const ones = code.op("shl.b32", "r", code.op("mov.b32", "r", mask), shift);
    const others = code.op("not.b32", "r", ones);
    if (place.space === "local") {
      const old = code.fresh("r");
      code.emit(`ld.local.u8 ${old}, [${at}]`);
      const kept = code.op("and.b32", "r", old, others);
      code.emit(`st.local.u8 [${at}], ${code.op("or.b32", "r", kept, bits)}`);
      return;
    }
    const scope = place.space === "global" ? ".gpu" : ".cta";
    code.emit(`red.relaxed${scope}.${place.space}.and.b32 [${at}], ${others}`);
    code.emit(`red.relaxed${scope}.${place.space}.or.b32 [${at}], ${bits}`);
  });
}
