/**
 * The validator: total, and closed on failure. A program that it passes has, for all parameter values
 * and thread counts, and in every schedule:
 *
 * - names, types, arities and scopes in order (structure.ts);
 * - every access in bounds, by symbolic proof from loop extents and guards (facts.ts, sequential.ts),
 *   or for threads that cooperate by running them on constants (trace.ts);
 * - no write to inputs or weights;
 * - every element of every output written (cover.ts: boxes, split loops, tails, branches, pieces);
 * - no read of what has not been written;
 * - no two unordered accesses of which one writes: between grid instances and threads that do not
 *   talk, by separation (separate.ts); between threads that do, by a run whose synchronisation is
 *   shown to be the same in every schedule (protocol.ts); between launches, by counters
 *   (task-order.ts) and waits for earlier ones (dependents.ts); asynchronous effects included, with
 *   proxy fences;
 * - every wait met: no threshold, parity or number of arrivals that can never come, no cycle;
 * - buffers that live at the same time in different bytes, aligned, large enough (placement.ts).
 *
 * What cannot be proved, or is too large to, is rejected with a diagnostic that says what was tried to
 * be proved and where. Assumed, not proved: `proved` ranges of letIndex (their maker's claim; the
 * interpreter tests it), and that weights and inputs hold what the graph says.
 */
import { withinExactIntegers } from "../../semantics/index-expr.ts";
import { ok, type Result } from "../../support/diagnostic.ts";
import type { Program } from "../program.ts";
import { checkDependents } from "./dependents.ts";
import type { ProvedLaunches } from "./known-launches.ts";
import { checkPlacements } from "./placement.ts";
import { Report } from "./report.ts";
import { checkStructure } from "./structure.ts";
import { checkTaskOrder } from "./task-order.ts";
import { checkTasks, type TaskProofs } from "./tasks.ts";

export interface ProofOptions {
  /**
   * Steps of a cooperative launch up to which all its threads are run (protocol.ts); longer ones are
   * proved in parts where that says everything about them (split-proof.ts).
   */
  readonly stepsRunWhole?: number;
  /** Launches that were proved of other programs, and are added to: equal ones are not proved again. */
  readonly proved?: ProvedLaunches;
}

const stepsRunWhole = 100_000;

/** The program itself when it is valid, else what is wrong with it. */
export function validateProgram(program: Program, options: ProofOptions = {}): Result<Program> {
  const report = new Report();
  // Programs come from files too: their numbers may be such that a proof leaves the exact integers.
  withinExactIntegers(
    () => checkAll(program, report, { stepsRunWhole, ...options }),
    (why) => report.add("PRG060", why),
  );
  return report.isClean ? ok(program) : { ok: false, diagnostics: report.diagnostics };
}

function checkAll(program: Program, report: Report, proofs: TaskProofs): void {
  checkStructure(program, report);
  if (!report.isClean) return;
  const records = checkTasks(program, report, proofs);
  checkTaskOrder(program, records, report);
  checkDependents(program, report);
  checkPlacements(program, records, report);
}
