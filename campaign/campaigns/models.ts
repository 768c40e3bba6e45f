/**
 * Every model of the table at every shape on random inputs, against onnxruntime-node within the
 * model's rounding. Trial number n takes case n of the table, around and around, with inputs of its
 * own. Target `wasm`: compiled and run; `oracle`: import and float64 semantics, nothing compiled.
 */
import { fetchModel } from "../../bench/models/fetch.ts";
import { hintsFor, randomInputs } from "../../bench/models/random-inputs.ts";
import { roundingOf } from "../../bench/models/rounding.ts";
import { type ModelCase, type ModelRow, modelTable } from "../../bench/models/table.ts";
import { countElements, toleranceOf, worstDifference } from "../../bench/sessions/compare.ts";
import { oracleRuntime } from "../../bench/sessions/oracle.ts";
import { ortNodeRuntime } from "../../bench/sessions/ort-node.ts";
import type { Runtime, Tensors } from "../../bench/sessions/session.ts";
import { wavetileRuntime } from "../../bench/sessions/wavetile.ts";
import { DiagnosticError, type Result } from "../../src/support/diagnostic.ts";
import { Rng } from "../../src/support/rng.ts";
import { type Campaign, type Finding, passed } from "../campaign.ts";

const cases = modelTable.flatMap((row) => row.cases.map((modelCase) => ({ row, modelCase })));

export const models: Campaign = {
  name: "models",
  summary: "the model table on random inputs against onnxruntime-node",
  targets: ["wasm", "oracle"],
  defaultCount: cases.length,
  open: async (target) => {
    const ours = target === "wasm" ? wavetileRuntime("wasm", 1) : oracleRuntime;
    return (seed) => {
      const { row, modelCase } = cases[seed % cases.length]!;
      return compare(row, modelCase, seed, ours);
    };
  },
};

async function compare(
  row: ModelRow,
  modelCase: ModelCase,
  seed: number,
  ours: Runtime,
): Promise<Finding> {
  const bytes = unwrap(fetchModel(row));
  const inputs = randomInputs(modelCase, new Rng(seed));
  const expected = await runOnce(ortNodeRuntime(1), row, bytes, inputs);
  const tolerance = toleranceOf(unwrap(roundingOf(bytes)), countElements(expected));
  const session = await ours.open(bytes, hintsFor(row));
  const worst = worstDifference(await session.run(inputs), expected);
  await session.release();
  if (worst <= tolerance) return passed;
  const found = `differs by ${worst.toExponential(2)}, allowed ${tolerance.toExponential(2)}`;
  return { kind: "failed", reason: `${row.name} ${modelCase.name} ${found}` };
}

async function runOnce(
  runtime: Runtime,
  row: ModelRow,
  bytes: Uint8Array,
  inputs: Tensors,
): Promise<Tensors> {
  const session = await runtime.open(bytes, hintsFor(row));
  const outputs = await session.run(inputs);
  await session.release();
  return outputs;
}

function unwrap<T>(result: Result<T>): T {
  if (!result.ok) throw new DiagnosticError(result.diagnostics);
  return result.value;
}
