/**
 * The other side of steps. A quantisation makes two integers of two values that differ by a rounding, where an
 * edge lies between them, and from there on everything differs by what a step makes of it. In: a node that
 * rounds floats to a byte or less, its reference, and how far its operand may be off. Out: the integers with
 * every one that the operand's error could move to the next one moved there.
 */
import type { RefTensor } from "../semantics/tensor.ts";

/**
 * @param error of the operand, relative to its largest value
 * @param run the node on another first operand
 */
export function onOtherSide(
  [x]: readonly RefTensor[],
  made: readonly RefTensor[],
  error: number,
  run: (x: RefTensor) => readonly RefTensor[],
): readonly RefTensor[] {
  const values = x!.data as Float64Array;
  const largest = values.reduce(
    (most, v) => (Number.isFinite(v) ? Math.max(most, Math.abs(v)) : most),
    0,
  );
  const distance = error * largest;
  const [below, above] = [-distance, distance].map(
    (by) => run({ ...x!, data: values.map((v) => v + by) } as RefTensor)[0]!,
  );
  const [result, ...rest] = made;
  const data = result!.data.slice();
  for (let i = 0; i < data.length; i++) {
    // What is whole already was rounded before: its program has the same integer.
    if (Number.isInteger(values[i])) continue;
    const other = below!.data[i] === data[i] ? above!.data[i]! : below!.data[i]!;
    data[i] = other;
  }
  return [{ ...result!, data } as RefTensor, ...rest];
}
