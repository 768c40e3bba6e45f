/** Float formats of at most 8 bits, with the figures that code between them and f32 is made of. */
import { invariant } from "../support/invariant.ts";
import { type DType, dtypes, type FloatFormat } from "./dtype.ts";

const f32Mantissa = 23;

/** A format with what follows from it. */
export interface TinyFloat extends FloatFormat {
  readonly signBit: number;
  /** The largest finite value. */
  readonly max: number;
  /** Bits of the mantissa that f32 has more. */
  readonly spare: number;
  /** Adding it to a subnormal rounds that at the format's last place. */
  readonly magic: number;
  readonly smallestNormal: number;
}

/** The format of a dtype that has one in the table of dtypes. */
export function tinyFloat(dtype: DType): TinyFloat {
  const { format, max, bits } = dtypes[dtype];
  invariant(format, () => `${dtype} has no float format`);
  const smallestNormal = 2 ** (1 - format.bias);
  return {
    ...format,
    max,
    signBit: 2 ** (bits - 1),
    spare: f32Mantissa - format.mantissaBits,
    magic: smallestNormal * 2 ** (f32Mantissa - format.mantissaBits),
    smallestNormal,
  };
}
