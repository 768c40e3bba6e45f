/** `verify` where the oracle of the whole model is over the budget: its regions by samples. */
import { checkedIndices } from "../../artifact/checked-indices.ts";
import { type CompiledModel, compileModel } from "../../compile.ts";
import { printProgram } from "../../program/program-text.ts";
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { CommandContext, CommandResult } from "../command.ts";
import type { OpenModel } from "../library/open-model.ts";
import { checkOf, checkRegions, describeChecks } from "./check-regions.ts";

export async function verifyRegions(
  opened: OpenModel,
  seed: number,
  neededSeconds: number,
  { progress }: CommandContext,
): Promise<Result<CommandResult>> {
  const compiled = regionsOf(opened, neededSeconds);
  if (!compiled.ok) return compiled;
  const checked = await checkRegions(compiled.value, opened.target, { seed, progress });
  if (!checked.ok) return checked;
  const { reports, faults, warnings } = checked.value;
  const seconds = Math.ceil(neededSeconds);
  const regions = reports.map((r) => ({ region: r.region, check: checkOf(r) }));
  const coverage = { kind: "sampled", oracleSeconds: seconds, regions };
  const text = [
    `the oracle of the whole model takes about ${seconds} s, more than the budget: regions by samples`,
    describeChecks(reports),
  ].join("\n");
  const data = { against: "oracle", seed, coverage };
  return ok({ data, text, target: opened.target.name, failed: faults }, warnings);
}

/** The regions of the model's program; an artifact's are found again by compiling its graph. */
function regionsOf(opened: OpenModel, neededSeconds: number): Result<CompiledModel> {
  if (opened.origin) return ok(opened.origin.compiled);
  const again = compileModel(opened.artifact, { target: opened.target });
  if (!again.ok) return again;
  const found = checkedIndices(again.value.plan.program);
  if (printProgram(found) === printProgram(opened.code.program)) return again;
  return fail(
    diagnostic("VER004", "the artifact's program is not what its graph compiles to here", {
      help: `verify it whole: --budget ${Math.ceil(neededSeconds)}`,
    }),
  );
}
