/** The bytes of a model, how it is read from them with sizes and values that are given, and what it calls its ports. */
import type { ArtifactMeta } from "../../artifact/artifact.ts";
import type { ReadExternal } from "../../frontend/onnx/external-data.ts";
import { type ImportedModel, importOnnx } from "../../frontend/onnx/import/import-model.ts";
import type { ShapeOverrides } from "../../frontend/onnx/import/shape-override.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Tensor } from "../../semantics/tensor.ts";
import type { Result } from "../../support/diagnostic.ts";

export interface ModelBytes {
  readonly bytes: Uint8Array;
  readonly readExternal?: ReadExternal;
  /** Of a mapped file: what was read of `bytes` may leave memory (MappedFile). */
  readonly forget?: () => void;
  /** Where they come from: a file named .wt is an artifact whatever became of its first bytes. */
  readonly path?: string;
}

export interface GivenSizes {
  readonly shapes: ShapeOverrides;
  /** Inputs whose values are fixed when the model is compiled. */
  readonly values?: Readonly<Record<string, Tensor>>;
  /** See ImportOptions. */
  readonly computed?: Readonly<Record<string, Tensor>>;
  readonly outputs?: readonly string[];
  readonly onUnknown?: (name: string) => void;
}

export function importBytes(
  { bytes, readExternal }: ModelBytes,
  given: GivenSizes,
): Result<ImportedModel> {
  return importOnnx(bytes, { ...givenSizes(given), ...(readExternal && { readExternal }) });
}

/** What is given, as the importer takes it. */
export function givenSizes(given: GivenSizes): GivenSizes {
  const { shapes, values, computed, outputs, onUnknown } = given;
  return {
    shapes,
    ...(values && { values }),
    ...(computed && { computed }),
    ...(outputs && { outputs }),
    ...(onUnknown && { onUnknown }),
  };
}

/** What the model calls its inputs and outputs, in the order of the ports of `graph`. */
export function portNames(
  { inputNames, outputNames }: Pick<ImportedModel, "inputNames" | "outputNames">,
  graph: Graph,
): Pick<ArtifactMeta, "inputs" | "outputs"> {
  const port = (name: string, id: number) => ({ name, value: graph.values[id]!.name });
  return {
    inputs: graph.inputs.map((v, i) => port(inputNames[i]!, v)),
    outputs: graph.outputs.map((v, i) => port(outputNames[i]!, v)),
  };
}
