/**
 * What the threads of a warp tell each other. An instruction moves a word of 32 bits, or two do one of 64; a
 * narrower value is the value of a word for it, which all of them are exactly, and is narrowed behind it.
 */
import type { DType } from "../semantics/dtype.ts";

const words: Partial<Record<DType, DType>> = {
  ...{ f32: "f32", i32: "i32", u32: "u32", f64: "f64", i64: "i64", u64: "u64" },
  ...{ bool: "u32", i8: "i32", u8: "u32", i16: "i32", u16: "u32" },
};

/** The type in which values of a type are exchanged; undefined: they are not. */
export function exchangedAs(dtype: DType): DType | undefined {
  return words[dtype];
}

export function isExchanged({ dtype }: { readonly dtype: DType }): boolean {
  return exchangedAs(dtype) !== undefined;
}
