/**
 * States of a model whose format has none: the user says which input takes over which output, by the
 * model's own names, and the graph carries the pairs from there on.
 */
import type { ImportedModel } from "../../frontend/onnx/import/import-model.ts";
import { verifyGraph } from "../../graph/verify.ts";
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";

/** Input name to the name of the output that it takes over. */
export type StateLinks = Readonly<Record<string, string>>;

export function linkStates(model: ImportedModel, links: StateLinks): Result<ImportedModel> {
  const { graph, inputNames, outputNames } = model;
  if (Object.keys(links).length === 0) return ok(model);
  const states: { input: number; output: number }[] = [];
  for (const [input, output] of Object.entries(links)) {
    const [from, to] = [inputNames.indexOf(input), outputNames.indexOf(output)];
    if (from < 0 || to < 0) {
      return fail(unknownState(input, output, { inputs: inputNames, outputs: outputNames }));
    }
    states.push({ input: graph.inputs[from]!, output: graph.outputs[to]! });
  }
  const linked = { ...graph, states };
  const faults = verifyGraph(linked);
  return faults.length === 0 ? ok({ ...model, graph: linked }) : fail(...faults);
}

export function unknownState(
  input: string,
  output: string,
  names: { readonly inputs: readonly string[]; readonly outputs: readonly string[] },
): Diagnostic {
  return diagnostic("CLI001", `state ${input} <- ${output} names no input and output`, {
    at: `--state ${input}`,
    help: `inputs: ${names.inputs.join(", ")}; outputs: ${names.outputs.join(", ")}`,
  });
}
