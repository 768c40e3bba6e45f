/**
 * Loops that the assembler may not unroll. It copies loops of known, few trips out whole, nests of them too,
 * moves all their loads to the front and then spills: such loops get `.pragma "nounroll"` (PTX ISA, "nounroll").
 */
import type { Expr, Statement } from "../../program/statement.ts";
import { ownExprs, visitExpr, visitStatements } from "../../program/walk.ts";
import { dtypes } from "../../semantics/dtype.ts";
import { constantValue } from "../../semantics/index-expr.ts";

type Loop = Extract<Statement, { kind: "for" }>;

/** Registers that the loads of an unrolled nest may take, of the 255 of a thread. */
const mostLoaded = 128;

/** @param inRegisters whether a buffer is registers, which are no loads */
export function staysRolled(loop: Loop, inRegisters: (buffer: string) => boolean): boolean {
  if (isPipelined(loop.body)) return true;
  const trips = constantValue(loop.extent);
  let isNest = false;
  visitStatements(loop.body, (s) => {
    if (s.kind === "for") isNest = true;
  });
  // The assembler weighs the registers of an innermost loop itself.
  return isNest && trips !== undefined && trips * loaded(loop.body, inRegisters) > mostLoaded;
}

/** Whether statements multiply by matrix instructions, or wait for copies that are some trips ahead. */
function isPipelined(body: readonly Statement[]): boolean {
  let found = false;
  visitStatements(body, (s) => {
    const multiplies = s.kind === "intrinsic" && /^w?g?mma\./.test(s.intrinsic);
    if (multiplies || s.kind === "waitGroup") found = true;
  });
  return found;
}

/** Registers of 32 bits that the loads of statements fill, loops of known extent copied out. */
function loaded(body: readonly Statement[], inRegisters: (buffer: string) => boolean): number {
  let words = 0;
  const count = (e: Expr): void => {
    if (e.kind === "load" && !inRegisters(e.buffer))
      words += Math.ceil((e.lanes * dtypes[e.dtype].bits) / 32);
  };
  for (const s of body) {
    for (const e of ownExprs(s)) visitExpr(e, count);
    if (s.kind === "for") words += (constantValue(s.extent) ?? 1) * loaded(s.body, inRegisters);
    else if (s.kind === "if") words += loaded(s.then, inRegisters) + loaded(s.else, inRegisters);
  }
  return words;
}
