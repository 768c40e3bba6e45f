/**
 * Loops that the assembler may not unroll. It copies loops of known, few trips out whole, nests of them too, moves all
 * their loads to the front, and then spills or takes ten times the registers that the text needs: such loops get
 * `.pragma "nounroll"` (PTX ISA, "nounroll"), and innermost ones as many copies of a trip as hide latency.
 */
import type { Expr, Statement } from "../../program/statement.ts";
import { ownExprs, visitExpr, visitStatements } from "../../program/walk.ts";
import { dtypes } from "../../semantics/dtype.ts";
import { constantValue } from "../../semantics/index-expr.ts";

type Loop = Extract<Statement, { kind: "for" }>;

/** Registers that the loads of an unrolled nest may take, of the 255 of a thread, and those of an innermost loop. */
const [mostLoaded, mostInnermost] = [128, 64] as const;
/**
 * Registers that a trip of an innermost loop loads, at most, that the assembler copies out whole without weighing it;
 * of trips that load more it makes few, better than copies here (ptxas 13.0).
 */
const mostOfTrip = 7;
/** Trips of an innermost loop that the assembler may copy out whole, whatever they load; of longer ones a few. */
const mostWhole = 512;
/** Registers that loads on the way together fill, as the assembler has them of a long loop (H200). */
const loadedAhead = 28;

export interface Unrolling {
  /** Trips that stand behind each other. */
  readonly copies: number;
  /** Whether that is all: the assembler makes no more of them. */
  readonly isRolled: boolean;
}

/** @param inRegisters whether a buffer is registers, which are no loads */
export function unrollingOf(loop: Loop, inRegisters: (buffer: string) => boolean): Unrolling {
  if (isPipelined(loop.body)) return { copies: 1, isRolled: true };
  // Of a loop that is dealt out each part has trips of its own.
  const trips = loop.mode.kind === "grid" ? undefined : constantValue(loop.extent);
  if (trips === undefined) return { copies: 1, isRolled: false };
  let isNest = false;
  visitStatements(loop.body, (s) => {
    if (s.kind === "for") isNest = true;
  });
  const words = loaded(loop.body, inRegisters);
  if (isNest) return { copies: 1, isRolled: trips * words > mostLoaded };
  const isWhole = words > 0 && words <= mostOfTrip && trips <= mostWhole;
  if (!isWhole || trips * words <= mostInnermost) return { copies: 1, isRolled: false };
  return { copies: Math.floor(loadedAhead / words), isRolled: true };
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
