/**
 * The ONNX backend test suite (../shared/conformance beside the repository), case by case at the suite's
 * own tolerances: trial n is case n. Target `oracle`: import and float64 semantics; `wasm`: compiled,
 * run as WebAssembly; `cuda-interp`: compiled for a GPU, emitted as PTX, and run in the program interpreter, in
 * another order, so that a few trials in a row are a sample of the whole. Cases that do not pass stand in conformance/exceptions.ts with their reason and
 * count as skipped; a case that fails without a row fails, and so does one that passes with a row.
 */

import { DiagnosticError, formatDiagnostic } from "../../src/support/diagnostic.ts";
import { InternalError } from "../../src/support/invariant.ts";
import { type Campaign, type Finding, passed, type Trial } from "../campaign.ts";
import {
  type CaseOutcome,
  evaluateCase,
  type Machine,
  onBlocks,
  onOracle,
  onWasm,
} from "../conformance/evaluate-case.ts";
import { caseCount, exceptionFor, type Stage } from "../conformance/exceptions.ts";
import { caseNames, prepareSuite, readCase } from "../conformance/suite.ts";

export const conformance: Campaign = {
  name: "conformance",
  summary: "the ONNX backend test suite, each case on the oracle or compiled",
  targets: ["oracle", "wasm", "cuda-interp"],
  defaultCount: caseCount,
  open: async (target) => {
    const missing = prepareSuite();
    if (missing !== undefined) return () => ({ kind: "skipped", reason: missing });
    return trialOn(target as Stage);
  },
};

/** From one trial's case to the next one's; prime to the number of cases. */
const strides: Readonly<Record<Stage, number>> = { oracle: 1, wasm: 1, "cuda-interp": 571 };

const machines: Readonly<Record<Stage, Machine>> = {
  oracle: onOracle,
  wasm: onWasm,
  "cuda-interp": onBlocks,
};

function trialOn(stage: Stage): Trial {
  const names = caseNames();
  return async (seed) => {
    const name = names[(seed * strides[stage]) % names.length]!;
    if (names.length !== caseCount) {
      return { kind: "failed", reason: `${names.length} cases, the table is for ${caseCount}` };
    }
    return judge(name, await problemOf(name, stage), stage);
  };
}

function judge(name: string, problem: string | undefined, stage: Stage): Finding {
  const listed = exceptionFor(name, stage);
  if (problem === undefined && listed === undefined) return passed;
  if (problem === undefined) {
    return { kind: "failed", reason: `${name} passes: take its row out (${listed})` };
  }
  if (listed === undefined) return { kind: "failed", reason: `${name}: ${problem}` };
  return { kind: "skipped", reason: `listed: ${listed}` };
}

/** What is wrong; refusals and our own bugs are problems of the case, whatever raises them. */
async function problemOf(name: string, stage: Stage): Promise<string | undefined> {
  try {
    const { problem }: CaseOutcome = await evaluateCase(readCase(name), machines[stage]);
    return problem;
  } catch (error) {
    if (error instanceof DiagnosticError) return error.diagnostics.map(formatDiagnostic).join("; ");
    if (error instanceof InternalError) return error.message;
    throw error;
  }
}
