/**
 * Arrays of a caller that a program runs on in place of its own memory. A program writes outputs while it still reads
 * inputs, so an output that shares bytes with another of the arrays is not among them. A run of a small model takes
 * a few microseconds: the records live as long as their session, and nothing is made for a run.
 */
import type { TensorData } from "../semantics/tensor.ts";
import { invariant } from "../support/invariant.ts";

/** The place of one input or output. */
export interface LentArray {
  readonly buffer: string;
  readonly isWritten: boolean;
  /** The caller's array, as long as the run may use it. */
  data: TensorData | undefined;
  /** Whether it does. */
  isLent: boolean;
  address: bigint;
  /** The same, and the address behind the last byte: numbers are compared faster. */
  from: number;
  to: number;
}

export function lentArray(buffer: string, isWritten: boolean): LentArray {
  return { buffer, isWritten, data: undefined, isLent: false, address: 0n, from: 0, to: 0 };
}

/** Lends all that are there but the outputs that lie over another array. Those that are read alone may do so. */
export function lendApart(
  arrays: readonly LentArray[],
  addressOf: (data: TensorData) => bigint,
): void {
  for (const array of arrays) {
    const { data } = array;
    array.isLent = data !== undefined && data.byteLength > 0;
    if (!data || !array.isLent) continue;
    array.address = addressOf(data);
    array.from = Number(array.address);
    array.to = array.from + data.byteLength;
    invariant(Number.isSafeInteger(array.to), () => "addresses of arrays are exact");
  }
  for (const output of arrays) {
    if (!output.isWritten || !output.isLent) continue;
    for (const other of arrays) {
      // An output that is not lent after all is written behind the run: nothing meets it there.
      if (other !== output && other.isLent && other.from < output.to && output.from < other.to) {
        output.isLent = false;
      }
    }
  }
}
