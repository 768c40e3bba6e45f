/**
 * Compares a compiled program with a reference on fresh random inputs, memory poisoned beforehand. The
 * reference is the float64 interpreter on the graph as it was imported (for an artifact: as it was
 * stored), or onnxruntime on the model file. The tolerance follows from the graph.
 */
import { runGraph } from "../../interp/graph.ts";
import { readBytes } from "../../runtime/files/files.ts";
import { type RefTensor, toRef } from "../../semantics/tensor.ts";
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { tolerancesOf, worstDifference } from "../../verdict/tolerance.ts";
import type { Action } from "../command.ts";
import type { Tensors } from "../library/loaded-model.ts";
import { openPeer } from "../library/onnxruntime.ts";
import type { OpenModel } from "../library/open-model.ts";
import { randomInputs } from "./inputs.ts";
import { type OpenArgs, startPath } from "./open.ts";
import { oracleSeconds, type Symbols, shapesWithin } from "./oracle-budget.ts";
import { printTable } from "./table.ts";
import { verifyRegions } from "./verify-regions.ts";

interface VerifyArgs extends OpenArgs {
  readonly against: "oracle" | "onnxruntime";
  /** Seconds that the oracle may take. */
  readonly budget: number;
  readonly seed: number;
}

export const verifyModel: Action<VerifyArgs> = async (args, context) => {
  const started = startPath(args, context);
  if (!started.ok) return started;
  const { model, opened, threads } = started.value;
  const { graph, meta } = opened.artifact;
  const ends = new Map(graph.symbols.map((s) => [s.name, s.max]));
  const shapes = args.against === "oracle" ? shapesWithin(graph, args.budget, args.seed) : ends;
  if (!shapes) {
    await model.dispose();
    return verifyRegions(opened, args.seed, oracleSeconds(graph, ends), context);
  }
  const feeds = randomInputs(opened, args.seed, shapes);
  model.poison();
  const found = model.tryRun(feeds);
  await model.dispose();
  if (!found.ok) return found;
  context.progress(args.against);
  const expected =
    args.against === "oracle"
      ? runOracle(opened, feeds)
      : await runPeer(args.model, opened, feeds, threads);
  if (!expected.ok) return expected;
  // The artifact alone is held to its own graph, approximated or not.
  const granted = opened.origin ? (meta.errorBound ?? 0) : 0;
  const tolerances = tolerancesOf(graph).map((t) => t + granted);
  const outputs = meta.outputs.map(({ name }, i) => {
    const worst = worstDifference(toRef(found.value[name]!), expected.value[i]!);
    const tolerance = tolerances[i]!;
    return { name, tolerance, worst, agrees: worst.relative <= tolerance };
  });
  const failed = outputs
    .filter((o) => !o.agrees)
    .map(({ name, worst, tolerance }) =>
      diagnostic(
        "CLI004",
        `output ${name}: element ${worst.index} is ${worst.found}, ${args.against} has ${worst.expected}`,
        { notes: [`relative difference ${worst.relative}, tolerance ${tolerance}`] },
      ),
    );
  const text = printTable(
    ["output", "difference", "tolerance", "agrees"],
    outputs.map((o) => [
      o.name,
      o.worst.relative.toExponential(2),
      o.tolerance.toExponential(2),
      o.agrees ? "yes" : "no",
    ]),
  );
  const coverage = { kind: "whole", shapes: Object.fromEntries(shapes) };
  const approximation = granted > 0 ? { errorBound: granted } : {};
  const asked = { against: args.against, seed: args.seed, threads };
  const data = { ...asked, coverage, ...approximation, outputs };
  return ok(
    {
      data,
      text: text + grantedError(granted) + smallerShapes(shapes, ends),
      target: opened.target.name,
      failed,
    },
    started.warnings,
  );
};

/** What to say of rules that approximate. */
function grantedError(bound: number): string {
  if (bound === 0) return "";
  return `\nrules that approximate may have added ${bound.toExponential(2)}: it is part of the tolerance`;
}

/** What to say where the largest shapes were over the budget. */
function smallerShapes(shapes: Symbols, ends: Symbols): string {
  if ([...ends].every(([name, end]) => shapes.get(name) === end)) return "";
  const chosen = [...shapes].map(([name, value]) => `${name} = ${value}`).join(", ");
  return `\nthe largest shapes are over the budget: compared at ${chosen}`;
}

function runOracle(opened: OpenModel, feeds: Tensors): Result<readonly RefTensor[]> {
  const model = opened.origin?.imported ?? opened.artifact;
  const inputs = opened.artifact.meta.inputs.map(({ name }) => toRef(feeds[name]!));
  return runGraph(model.graph, inputs, model.weights);
}

async function runPeer(
  path: string,
  opened: OpenModel,
  feeds: Tensors,
  threads: number,
): Promise<Result<readonly RefTensor[]>> {
  if (!opened.origin) {
    return fail(
      diagnostic("CLI001", "onnxruntime reads ONNX models, not artifacts", {
        at: "--against onnxruntime",
        help: "give the ONNX model, with the --shape options of the artifact",
      }),
    );
  }
  const bytes = readBytes(path);
  if (!bytes.ok) return bytes;
  const peer = await openPeer(bytes.value, threads);
  if (!peer.ok) return peer;
  const outputs = await peer.value.run(feeds);
  await peer.value.release();
  return ok(opened.artifact.meta.outputs.map(({ name }) => toRef(outputs[name]!)));
}
