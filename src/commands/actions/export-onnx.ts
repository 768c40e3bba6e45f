/** Writes the graph of a model, rewritten for a target or as it was imported, as an ONNX model. */
import { looksLikeArtifact } from "../../artifact/artifact.ts";
import { openContainer } from "../../artifact/container.ts";
import { readContainer } from "../../artifact/read-artifact.ts";
import { graphToExport } from "../../compile.ts";
import {
  type ExportedModel,
  exportOnnx,
  exportOpset,
} from "../../frontend/onnx/export/export-model.ts";
import { importOnnx } from "../../frontend/onnx/import/import-model.ts";
import type { Model } from "../../graph/graph.ts";
import { unboundedSymbols } from "../../graph/unbounded-symbols.ts";
import { writeAtomically, writePartsAtomically } from "../../runtime/files/files.ts";
import { checksums } from "../../runtime/files/hash-bytes.ts";
import { type ModelSource, readModelFile } from "../../runtime/files/model-source.ts";
import { baseName, samePath } from "../../runtime/files/paths.ts";
import { tensorBytes } from "../../semantics/tensor.ts";
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { Action, CommandContext } from "../command.ts";
import { findTarget } from "../library/choose-target.ts";
import { parseShapes } from "../library/load.ts";
import { atSizes } from "./at-sizes.ts";
import { readAssignments } from "./inputs.ts";
import { readRules } from "./rules-file.ts";
import { readValues } from "./values.ts";

interface ExportArgs {
  readonly model: string;
  readonly onnx: string;
  readonly rewrite: "on" | "off";
  readonly rules?: string | undefined;
  readonly target: string;
  readonly shape: readonly string[];
  readonly value: readonly string[];
}

/** A model with the names that its file gives inputs and outputs. */
interface NamedModel {
  readonly model: Model;
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  /** Prices of the import and of what is written; absent where nothing was rewritten. */
  readonly prices?: { readonly importNs: number; readonly exportNs: number };
}

const exportGiven: Action<ExportArgs> = async (args, context) => {
  const { onnx } = args;
  if (samePath(onnx, args.model)) {
    const help = "give the export another name";
    return fail(diagnostic("CLI001", `${onnx} is the model itself`, { at: "--onnx", help }));
  }
  const source = readModelFile(args.model);
  if (!source.ok) return source;
  const isArtifact = looksLikeArtifact(source.value.bytes) || args.model.endsWith(".wt");
  const named = isArtifact
    ? readGraph(source.value, args)
    : importGraph(source.value, args, context);
  if (!named.ok) return named;
  const { model, inputNames, outputNames, prices } = named.value;
  context.progress("export");
  const dataPath = `${onnx}.data`;
  const made = exportOnnx(model, { inputNames, outputNames, dataLocation: baseName(dataPath) });
  if (!made.ok) return made;
  const written = writeFiles(onnx, dataPath, made.value);
  if (!written.ok) return written;
  const { bytes, external, nodes, weightBytes } = made.value;
  const data = {
    output: onnx,
    opset: exportOpset,
    bytes: bytes.length,
    nodes,
    weightBytes,
    ...(external.length > 0 && { data: dataPath }),
    ...(prices && { importPriceNs: prices.importNs, priceNs: prices.exportNs }),
  };
  const text = [
    `${onnx}: ${nodes} nodes of operator set ${exportOpset}, ${weightBytes} bytes of weights${external.length > 0 ? ` in ${dataPath}` : ""}`,
    ...(prices ? [describePrices(prices)] : []),
  ].join("\n");
  return ok({ data, text }, [...named.warnings, ...made.warnings]);
};

const exportAtSizes = atSizes(exportGiven, { ranges: ["batch", "length"] });

/** Rewriting compares prices, which need sizes; what is written holds for these. */
export const exportAction: Action<ExportArgs> = (args, context) =>
  args.rewrite === "on" ? exportAtSizes(args, context) : exportGiven(args, context);

function describePrices({ importNs, exportNs }: NonNullable<NamedModel["prices"]>): string {
  const saved = 100 * (1 - exportNs / importNs);
  return `rewritten from ${(importNs / 1e6).toFixed(4)} to ${(exportNs / 1e6).toFixed(4)} ms (${saved.toFixed(1)} % less), one operator after another at the target's rates`;
}

/** What was optimized was rewritten then, or not; shapes and values are fixed in it. */
function readGraph(source: ModelSource, args: ExportArgs): Result<NamedModel> {
  const given = args.shape.length > 0 ? "--shape" : args.value.length > 0 ? "--value" : undefined;
  if (given !== undefined) {
    return fail(
      diagnostic("CLI001", "the graph of an artifact was fixed when it was optimized", {
        at: given,
        help: `give the ONNX model that it was made from, or leave ${given} away`,
      }),
    );
  }
  const container = openContainer(source.bytes, checksums);
  if (!container.ok) return container;
  const artifact = readContainer(container.value, { choose: () => [] });
  if (!artifact.ok) return artifact;
  const { graph, weights, meta } = artifact.value;
  return ok({
    model: { graph, weights },
    inputNames: meta.inputs.map((p) => p.name),
    outputNames: meta.outputs.map((p) => p.name),
  });
}

function importGraph(
  source: ModelSource,
  args: ExportArgs,
  context: CommandContext,
): Result<NamedModel> {
  const assigned = readAssignments("--shape", args.shape);
  if (!assigned.ok) return assigned;
  const shapes = parseShapes(assigned.value);
  if (!shapes.ok) return shapes;
  const values = readValues(args.value, source);
  if (!values.ok) return values;
  context.progress("import");
  const imported = importOnnx(source.bytes, {
    shapes: shapes.value,
    values: values.value,
    readExternal: source.readExternal,
  });
  if (!imported.ok) return imported;
  const { inputNames, outputNames } = imported.value;
  const rules = readRules(args.rules, args.rewrite);
  if (!rules.ok) return rules;
  if (args.rewrite === "off") {
    return ok({ model: imported.value, inputNames, outputNames }, imported.warnings);
  }
  const open = unboundedSymbols(imported.value.graph);
  if (open) return fail(open);
  const target = findTarget(args.target);
  if (!target.ok) return target;
  const options = { onPass: context.progress, rules: rules.value };
  const chosen = graphToExport(imported.value, target.value, options);
  if (!chosen.ok) return chosen;
  const { model, ...prices } = chosen.value;
  return ok({ model, inputNames, outputNames, prices }, [
    ...imported.warnings,
    ...target.warnings,
    ...chosen.warnings,
  ]);
}

/** The weights first: a model whose data are not there yet must not be found. */
function writeFiles(path: string, dataPath: string, made: ExportedModel): Result<void> {
  if (made.external.length > 0) {
    const parts = made.external.map(({ offset, read }) => ({
      offset,
      read: () => tensorBytes(read()),
    }));
    const data = writePartsAtomically(dataPath, parts);
    if (!data.ok) return data;
  }
  return writeAtomically(path, made.bytes);
}
