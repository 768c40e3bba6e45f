/**
 * The graph that a model is for the values of its feeds, by the reference alone: where values that the model
 * computes decide what it is (a shape, a number of steps), the interpreter computes them, one after another.
 */
import type { ImportedModel } from "../../frontend/onnx/import/import-model.ts";
import { runGraph } from "../../interp/graph.ts";
import { fromRef, type RefTensor, type Tensor, toRef } from "../../semantics/tensor.ts";
import type { Result } from "../../support/diagnostic.ts";
import type { Tensors } from "./loaded-model.ts";
import { type GivenSizes, importBytes, type ModelBytes } from "./model-bytes.ts";

/** Values that may be computed in a row, each for the next. */
const mostSteps = 64;

/** @param given sizes, and inputs that are fixed; what a program computed is not taken over */
export function specialisedReference(
  source: ModelBytes,
  given: GivenSizes,
  feeds: Tensors,
): Result<ImportedModel> {
  const { computed: _, ...own } = given;
  let values: Readonly<Record<string, Tensor>> = own.values ?? {};
  let computed: Readonly<Record<string, Tensor>> = {};
  for (let step = 0; ; step++) {
    const unknown = new Set<string>();
    const at = { ...own, values, computed };
    const read = importBytes(source, { ...at, onUnknown: (name) => unknown.add(name) });
    if (read.ok || unknown.size === 0 || step === mostSteps) return read;
    const asked = [...unknown];
    const fixed = asked.filter((name) => Object.hasOwn(feeds, name));
    values = { ...values, ...Object.fromEntries(fixed.map((name) => [name, feeds[name]!])) };
    const outputs = asked.filter((name) => !Object.hasOwn(feeds, name));
    if (outputs.length === 0) continue;
    const part = importBytes(source, { ...at, values, outputs });
    if (!part.ok) return part;
    const found = runReference(part.value, feeds);
    if (!found.ok) return found;
    const named = part.value.outputNames.map(
      (name, i) => [name, fromRef(found.value[i]!)] as const,
    );
    computed = { ...computed, ...Object.fromEntries(named) };
  }
}

export function runReference(
  { graph, weights, inputNames }: ImportedModel,
  feeds: Tensors,
): Result<readonly RefTensor[]> {
  return runGraph(
    graph,
    inputNames.map((name) => toRef(feeds[name]!)),
    weights,
  );
}
