/**
 * Vectors that nothing reads. A value that its reader makes in another way (a byte that is only widened again)
 * is computed for nothing; so is what led to it alone. In: the code of a function with what each instruction
 * reads and writes. Out: the instructions that stay.
 */
import type { PlacedInstruction } from "./function-code.ts";
import type { Access } from "./liveness.ts";
import type { Register } from "./operand.ts";

/** Whether each instruction stays: it does not where all that it does is to write a vector that is never read. */
export function readInstructions(
  body: readonly PlacedInstruction[],
  accesses: readonly Access[],
): readonly boolean[] {
  const reads = new Map<number, number>();
  const count = (r: Register, by: number): void => {
    reads.set(r.id, (reads.get(r.id) ?? 0) + by);
  };
  for (const access of accesses) for (const r of access.reads) count(r, 1);
  const stays = body.map(() => true);
  // A value is computed before it is read: backwards, what led to it is met after it.
  for (let i = body.length - 1; i >= 0; i--) {
    const [written, ...others] = accesses[i]!.writes;
    if (written?.class !== "vec" || others.length > 0 || body[i]!.calls) continue;
    if ((reads.get(written.id) ?? 0) > 0) continue;
    stays[i] = false;
    for (const r of accesses[i]!.reads) count(r, -1);
  }
  return stays;
}
