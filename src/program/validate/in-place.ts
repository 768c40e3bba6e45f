/**
 * In-place writes: a kernel writes a buffer into the bytes of another that it reads for the last time.
 * Right when every read of an element comes before the write of the same element. For a read and a
 * write this is shown by: all loops around both are separated by the two places (separate.ts), so that
 * only equal trips touch one element; within a trip the read stands before the write, or in the other
 * branch, or the places differ by a constant.
 */
import { constantValue, sub } from "../../semantics/index-expr.ts";
import type { Buffer } from "../program.ts";
import type { Statement } from "../statement.ts";
import { type Place, signatureOf } from "./separate.ts";

/** The statement lists from the role's body down to an access, with its position in each. */
export type AccessPath = readonly {
  readonly body: readonly Statement[];
  readonly position: number;
  readonly loop: Extract<Statement, { kind: "for" }> | undefined;
}[];

export interface PlacedAccess extends Place {
  readonly buffer: Buffer;
  readonly path: AccessPath;
}

/** Whether the writes may go to the bytes that the reads come from. */
export function overwrites(
  reads: readonly PlacedAccess[],
  writes: readonly PlacedAccess[],
): boolean {
  return reads.every((read) =>
    writes.every(
      (write) => formOf(read.buffer) === formOf(write.buffer) && comesFirst(read, write),
    ),
  );
}

/** Buffers of one form have equal indices at equal bytes. */
export function formOf(buffer: Buffer): string {
  return `${buffer.dtype} [${buffer.shape.map((e) => e.key).join(", ")}]`;
}

function comesFirst(read: PlacedAccess, write: PlacedAccess): boolean {
  const common = commonDepth(read.path, write.path);
  const loops = read.path
    .slice(0, common)
    .flatMap((l) => (l.loop && l.loop.extent.key !== "1" ? [l.loop.variable] : []));
  const outer = (a: PlacedAccess): Place => ({
    ...a,
    spread: loops.map((name) => ({ name, identity: name, required: true })),
  });
  const [one, other] = [signatureOf(outer(read)), signatureOf(outer(write))];
  if (one === undefined || one !== other) return false;
  const exclusive =
    common < Math.min(read.path.length, write.path.length) && sameTurn(read, write, common);
  if (exclusive) return true;
  const at = common - 1;
  return read.path[at]!.position <= write.path[at]!.position || apart(read, write);
}

/** Number of lists that both accesses stand in. */
function commonDepth(a: AccessPath, b: AccessPath): number {
  let depth = 0;
  while (a[depth] && a[depth]!.body === b[depth]?.body) {
    depth++;
    if (a[depth - 1]!.position !== b[depth - 1]!.position) break;
  }
  return depth;
}

/** One statement leads to both, by different branches. */
function sameTurn(a: PlacedAccess, b: PlacedAccess, common: number): boolean {
  return a.path[common - 1]!.position === b.path[common - 1]!.position;
}

function apart(a: PlacedAccess, b: PlacedAccess): boolean {
  return a.index.some((e, axis) => {
    const difference = constantValue(sub(e, b.index[axis]!));
    if (difference === undefined) return false;
    return difference >= b.spans[axis]! || -difference >= a.spans[axis]!;
  });
}
