/** What every trial of the fuzzing campaign holds an answer to. */
import type { Result } from "../../src/support/diagnostic.ts";
import { diagnosticCodes } from "../../src/support/diagnostic-codes.ts";
import { type Finding, passed } from "../campaign.ts";

/** A result, or a refusal whose diagnostics all have known codes. */
export function judge(result: Result<unknown>): Finding {
  if (result.ok) return passed;
  const unknown = result.diagnostics.filter((d) => !Object.hasOwn(diagnosticCodes, d.code));
  if (result.diagnostics.length > 0 && unknown.length === 0) return passed;
  return { kind: "failed", reason: `a refusal without a code: ${JSON.stringify(result)}` };
}
