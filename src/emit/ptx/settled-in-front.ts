/**
 * What a role settles in front of its body. It stays in registers until its last reader: an assembler (ptxas 13.0)
 * moves nothing over a barrier or an exchange between threads. What reads an operand at the digits of an element's
 * number, as the scales of a norm over groups of channels, has a quotient and addresses of its own for each element
 * that a thread keeps; who sends to other blocks has an address for each of them, and sends for each fold. Behind a
 * meeting, outside of loops, these are computed where they are asked for.
 */
import type { Statement } from "../../program/statement.ts";
import { childBodies } from "../../program/walk.ts";
import * as ix from "../../semantics/index-expr.ts";

/** Statements of a body of which everything is settled in front, and those of which what is cheap is. */
export interface InFront {
  readonly whole: readonly Statement[];
  readonly cheap: readonly Statement[];
}

export function settledInFront(body: readonly Statement[]): InFront {
  const first = body.findIndex((s) => isMeeting(s));
  const behind = new Set(first < 0 ? [] : body.slice(first).filter(isLate));
  return {
    whole: body.filter((s) => !behind.has(s)),
    cheap: [...behind].filter((s) => !sends(s)),
  };
}

/** Whether it is more than loads, stores and what is computed of them. */
function isMeeting(s: Statement): boolean {
  return isPlain(s) || s.kind === "for" || s.kind === "letIndex"
    ? childBodies(s).some((b) => b.some(isMeeting))
    : true;
}

function isPlain({ kind }: Statement): boolean {
  return kind === "let" || kind === "store" || kind === "if" || kind === "when";
}

/** Loops settle what their trips share, and a bound index what is behind it. */
function isLate(s: Statement): boolean {
  const isExchange = isSent(s) || s.kind === "wait";
  return (isPlain(s) || isExchange) && childBodies(s).every((b) => b.every(isLate));
}

function sends(s: Statement): boolean {
  return isSent(s) || childBodies(s).some((b) => b.some(sends));
}

function isSent(s: Statement): boolean {
  return s.kind === "intrinsic" && s.intrinsic.startsWith("peer.store.");
}

/** Whether it has a quotient or remainder that is more than a shift or a mask. */
export function hasQuotient({ terms }: ix.IndexExpr): boolean {
  return terms.some(({ atoms }) => atoms.some(isQuotient));
}

function isQuotient(atom: ix.IndexAtom): boolean {
  if (atom.kind === "variable") return false;
  const parts = ix.atomOperands(atom);
  if (parts.some(hasQuotient)) return true;
  if (atom.kind !== "floorDiv" && atom.kind !== "mod") return false;
  const divisor = ix.constantValue(parts[1]!);
  return divisor === undefined || !Number.isInteger(Math.log2(divisor));
}
