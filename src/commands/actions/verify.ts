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
import { printTable } from "./table.ts";

interface VerifyArgs extends OpenArgs {
  readonly against: "oracle" | "onnxruntime";
  readonly seed: number;
}

export const verifyModel: Action<VerifyArgs> = async (args, context) => {
  const started = startPath(args, context);
  if (!started.ok) return started;
  const { model, opened, threads } = started.value;
  const { graph, meta } = opened.artifact;
  const feeds = randomInputs(opened, args.seed);
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
  const tolerances = tolerancesOf(graph);
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
  const data = { against: args.against, seed: args.seed, threads, outputs };
  return ok({ data, text, target: opened.target.name, failed }, started.warnings);
};

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
