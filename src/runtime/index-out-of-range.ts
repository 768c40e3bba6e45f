/** What a run is given up with that found an index outside of its tensor. */
import { type Diagnostic, diagnostic } from "../support/diagnostic.ts";

/** @param words of the index as the tensor has it, 64 bits: the lower half, the upper one */
export function indexOutOfRange([low, high]: readonly [number, number], at: string): Diagnostic {
  const index = (BigInt(high | 0) << 32n) | BigInt(low >>> 0);
  return diagnostic("RUN006", `index ${index} is out of range`, {
    at,
    help: "check the index tensor that is fed to the model",
  });
}
