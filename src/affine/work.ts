/**
 * Budgets counted in units of work, and answers that may be "unknown". The exact algorithms of this
 * folder are exponential in the worst case, so each of them spends from a Work and stops with GiveUp
 * when it is used up, when a coefficient leaves the exactly representable range, or when a question
 * has no finite answer. GiveUp never leaves the folder: `answer` and `decide` turn it into "unknown",
 * which a caller has to treat like a refusal.
 */

import { DiagnosticError } from "../support/diagnostic.ts";

/** A decision. "unknown" means not proved: callers treat it as the unfavourable answer. */
export type Truth = "yes" | "no" | "unknown";

/** Why something stayed unknown. */
export type UnknownReason =
  | "budget"
  | "overflow"
  /** No finite answer. */
  | "unbounded"
  /** No single answer: it depends on parameters. */
  | "parametric";

/** A value, or the reason why it could not be found. */
export type Answer<T> =
  | { readonly kind: "known"; readonly value: T }
  | { readonly kind: "unknown"; readonly reason: UnknownReason };

/** Work units that one question may spend unless the caller says otherwise (about 0.2 s). */
export const defaultWork = 400_000;

/** Carries "unknown" from deep inside an algorithm to `answer` or `decide`. */
export class GiveUp extends Error {
  readonly reason: UnknownReason;
  constructor(reason: UnknownReason) {
    super(`gave up: ${reason}`);
    this.name = "GiveUp";
    this.reason = reason;
  }
}

/** A counter of work units; `spend` throws GiveUp once the limit is passed. */
export class Work {
  #left: number;
  readonly #outer: Work | undefined;

  constructor(limit: number = defaultWork, outer?: Work) {
    this.#left = limit;
    this.#outer = outer;
  }

  spend(units: number): void {
    // What is refused here is not spent outside.
    this.#outer?.spend(Math.max(0, Math.min(units, this.#left)));
    this.#left -= units;
    if (this.#left < 0) throw new GiveUp("budget");
  }

  /** Runs `body` with at most `limit` of the units left: why it gave up while there are others, or "done". */
  attempt(limit: number, body: (work: Work) => void): UnknownReason | "done" {
    const own = new Work(limit, this);
    try {
      body(own);
      return "done";
    } catch (error) {
      const isOurs = error instanceof GiveUp && (error.reason !== "budget" || own.#left < 0);
      if (!isOurs) throw error;
      return error.reason;
    }
  }
}

/** Of an expression (expression.ts), which knows no budgets. */
function isOverflow(error: unknown): boolean {
  return error instanceof DiagnosticError && error.diagnostics[0]?.code === "AFF002";
}

/** Runs `body` within a budget and reports what it gave up on as "unknown". */
export function answer<T>(body: (work: Work) => T, limit: number = defaultWork): Answer<T> {
  try {
    return { kind: "known", value: body(new Work(limit)) };
  } catch (error) {
    if (error instanceof GiveUp) return { kind: "unknown", reason: error.reason };
    if (isOverflow(error)) return { kind: "unknown", reason: "overflow" };
    throw error;
  }
}

/** `answer` for yes-or-no questions. */
export function decide(body: (work: Work) => boolean, limit: number = defaultWork): Truth {
  const result = answer(body, limit);
  if (result.kind === "unknown") return "unknown";
  return result.value ? "yes" : "no";
}
