/**
 * bf16 as it stands in memory, two in each 32 bits of a register: what dot products of bf16 take, where all other
 * code has it widened to f32. In: a kernel's statements, or an operand. Out: which names are such operands, and the
 * operand as integers of 16 bits.
 */
import type { Expr, Statement } from "../../program/statement.ts";
import { visitExprs } from "../../program/walk.ts";

/** Names of bf16 that dot products read. */
export function dotPatterns(body: readonly Statement[]): ReadonlySet<string> {
  const found = new Set<string>();
  visitExprs(body, (e) => {
    if (e.kind !== "call" || e.dtype !== "f32") return;
    for (const o of e.operands) if (o.kind === "local" && o.dtype === "bf16") found.add(o.name);
  });
  return found;
}

/** A loaded operand as the integers of its patterns; undefined: it is computed. */
export function patternsOf(e: Expr): Expr | undefined {
  if (e.kind === "local" || e.kind === "load") return { ...e, dtype: "i16" };
  if (e.kind !== "splat") return undefined;
  const operand = patternsOf(e.operand);
  return operand && { ...e, dtype: "i16", operand };
}
