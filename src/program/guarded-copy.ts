/**
 * `if c { issue cp.async d, s } else { store d = zero }` is one instruction where copies may bring zeros
 * instead of their source (PTX ISA, cp.async, operand src-size), and orders like the copy alone.
 */
import type { Statement } from "./statement.ts";

type Copy = Extract<Statement, { kind: "intrinsic" }>;

/** The copy of a guarded copy, which sets the same elements on both branches; undefined for any other. */
export function guardedCopy(s: Extract<Statement, { kind: "if" }>): Copy | undefined {
  const [copy, zero] = [s.then[0], s.else[0]];
  if (s.then.length !== 1 || s.else.length !== 1) return undefined;
  if (copy?.kind !== "intrinsic" || copy.intrinsic !== "cp.async") return undefined;
  if (zero?.kind !== "store" || zero.value.kind !== "literal") return undefined;
  const [to] = copy.operands;
  if (to?.kind !== "tile" || to.buffer !== zero.buffer || to.extents.length !== 1) return undefined;
  const isZero = Object.is(zero.value.value, 0) || zero.value.value === 0n;
  const same = to.index.every((e, i) => e.key === zero.index[i]!.key);
  return isZero && same && to.extents[0] === zero.value.lanes ? copy : undefined;
}
