/**
 * Inputs from files in place of drawn ones: what they say of open extents. An axis whose extent is a symbol by
 * itself gives the symbol the file's extent; what else there is to agree, the run checks.
 */
import { looksLikeArtifact } from "../../artifact/artifact.ts";
import { readInterface } from "../../frontend/onnx/import/import-model.ts";
import type { Graph } from "../../graph/graph.ts";
import { variableName } from "../../semantics/index-expr.ts";
import { ok, type Result } from "../../support/diagnostic.ts";
import type { CommandContext } from "../command.ts";
import type { Tensors } from "../library/loaded-model.ts";
import { givenSizes } from "../library/model-bytes.ts";
import { type OpenArgs, readRequest } from "./open.ts";

/** Extents of symbols, by the names of the graph's inputs in order. */
export function extentsOf(
  graph: Graph,
  names: readonly string[],
  given: Tensors,
): ReadonlyMap<string, number> {
  const extents = new Map<string, number>();
  for (const [i, name] of names.entries()) {
    const tensor = Object.hasOwn(given, name) ? given[name] : undefined;
    const { shape } = graph.values[graph.inputs[i]!]!.type;
    if (tensor?.shape.length !== shape.length) continue;
    for (const [axis, extent] of shape.entries()) {
      const symbol = variableName(extent);
      if (symbol !== undefined && !extents.has(symbol)) extents.set(symbol, tensor.shape[axis]!);
    }
  }
  return extents;
}

/** `--shape` texts for extents of a model that have no bound and that these inputs settle. */
export function shapesOfInputs(
  args: OpenArgs,
  given: Tensors,
  context: CommandContext,
): Result<readonly string[]> {
  if (Object.keys(given).length === 0) return ok([]);
  const request = readRequest(args, context);
  if (!request.ok) return request;
  const { source, options } = request.value;
  if (looksLikeArtifact(source.bytes)) return ok([]);
  const read = readInterface(source.bytes, givenSizes(options));
  // What is wrong with the model says who opens it.
  if (!read.ok) return ok([]);
  const { graph, inputNames } = read.value;
  const open = new Set(graph.symbols.filter((s) => s.max === Infinity).map((s) => s.name));
  const extents = [...extentsOf(graph, inputNames, given)].filter(([name]) => open.has(name));
  return ok(extents.map(([name, extent]) => `${name}=${extent}`));
}
