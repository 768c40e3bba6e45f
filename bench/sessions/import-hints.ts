/** Hints of the Session interface as options of the importer. */
import type { ImportOptions } from "../../src/frontend/onnx/import/import-model.ts";
import { parseShapeOverride } from "../../src/frontend/onnx/import/shape-override.ts";
import { readModelFile } from "../../src/runtime/files/model-source.ts";
import { DiagnosticError, type Result } from "../../src/support/diagnostic.ts";
import type { ModelHints } from "./session.ts";
import { toStored } from "./stored-tensors.ts";

export function importOptions({ constants = {}, shapes = {}, path }: ModelHints): ImportOptions {
  return {
    ...(path !== undefined && { readExternal: unwrap(readModelFile(path)).readExternal }),
    values: mapValues(constants, toStored),
    shapes: mapValues(shapes, (text) => unwrap(parseShapeOverride(text))),
  };
}

/** The value, or its diagnostics thrown to whoever opened the model. */
export function unwrap<T>(result: Result<T>): T {
  if (!result.ok) throw new DiagnosticError(result.diagnostics);
  return result.value;
}

function mapValues<A, B>(from: Readonly<Record<string, A>>, map: (a: A) => B): Record<string, B> {
  return Object.fromEntries(Object.entries(from).map(([name, value]) => [name, map(value)]));
}
