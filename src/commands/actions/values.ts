/**
 * What `--value` says of inputs that are fixed when a model is compiled: files, or numbers in the element type and
 * shape that the model declares.
 */
import { looksLikeArtifact } from "../../artifact/artifact.ts";
import { readInterface } from "../../frontend/onnx/import/import-model.ts";
import type { TensorType } from "../../graph/graph.ts";
import { dtypes, isIntegerDType } from "../../semantics/dtype.ts";
import { constantValue } from "../../semantics/index-expr.ts";
import { integerRange } from "../../semantics/integer.ts";
import { fromRef, refTensor, type Tensor } from "../../semantics/tensor.ts";
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { emptyNamed } from "../../support/named.ts";
import type { Tensors } from "../library/loaded-model.ts";
import type { ModelBytes } from "../library/model-bytes.ts";
import { readAssignments, readInputs } from "./inputs.ts";

const option = "--value";
const number = /^(true|false|[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?)$/i;

/** Tensors of `NAME=FILE.npy`, `NAME=NUMBER` and `NAME=NUMBER,NUMBER,…` texts; a file may be named `./7`. */
export function readValues(texts: readonly string[], { bytes }: ModelBytes): Result<Tensors> {
  const assigned = readAssignments(option, texts);
  if (!assigned.ok) return assigned;
  const given = Object.entries(assigned.value);
  const isSaid = (text: string): boolean => text.split(",").every((n) => number.test(n));
  const files = given.filter(([, text]) => !isSaid(text)).map(([name, path]) => `${name}=${path}`);
  const read = readInputs(files, option);
  const said = given.filter(([, text]) => isSaid(text));
  // What an artifact is made for is fixed: whoever opens it says so.
  const declared = said.length === 0 || looksLikeArtifact(bytes) ? ok(undefined) : typesOf(bytes);
  if (!read.ok || !declared.ok) return read.ok ? (declared as Result<never>) : read;
  const tensors = Object.assign(emptyNamed<Tensor>(), read.value);
  for (const [name, text] of said) {
    // The importer names inputs that there are none of.
    const type = declared.value?.get(name) ?? { dtype: "i64", shape: [] };
    const made = tensorOf(text.split(","), type, `${option} ${name}=${text}`);
    if (!made.ok) return made;
    tensors[name] = made.value;
  }
  return ok(tensors);
}

function typesOf(bytes: Uint8Array): Result<ReadonlyMap<string, TensorType>> {
  const found = readInterface(bytes);
  if (!found.ok) return found;
  const { graph, inputNames } = found.value;
  return ok(new Map(inputNames.map((name, i) => [name, graph.values[graph.inputs[i]!]!.type])));
}

/** One number for all elements, or one for each; an extent that is open is what they leave. */
function tensorOf(texts: readonly string[], type: TensorType, at: string): Result<Tensor> {
  const { dtype, shape } = type;
  const open = shape.flatMap((d, i) => (constantValue(d) === undefined ? [i] : []));
  const known = shape.reduce((n, d) => n * (constantValue(d) ?? 1), 1);
  const rest = texts.length / known;
  const isFilled = open.length === 0 && texts.length === 1;
  const fits = isFilled || (open.length === 0 ? rest === 1 : open.length === 1);
  if (!fits || !Number.isInteger(isFilled ? 1 : rest)) {
    const extents = shape.map((d) => d.key).join(", ");
    return fail(unlike(`${texts.length} numbers are no ${dtype}[${extents}]`, at));
  }
  const numbers = texts.map((text) => numberOf(text, type));
  const wrong = numbers.indexOf(undefined);
  if (wrong >= 0) return fail(unlike(`${texts[wrong]} is no ${dtype}`, at));
  const extents = shape.map((d) => constantValue(d) ?? rest);
  const all = isFilled ? new Array(known).fill(numbers[0]) : numbers;
  return ok(fromRef(refTensor(dtype, extents, all as number[])));
}

function numberOf(text: string, { dtype }: TensorType): number | bigint | undefined {
  const isTruth = /^(true|false)$/i.test(text);
  if (dtypes[dtype].kind === "bool" || isTruth) {
    const isMeant = isTruth || text === "0" || text === "1";
    return isMeant && dtypes[dtype].kind === "bool" ? Number(/^(true|1)$/i.test(text)) : undefined;
  }
  if (!isIntegerDType(dtype)) return Number(text);
  if (!/^[-+]?\d+$/.test(text)) return undefined;
  const value = BigInt(text.replace("+", ""));
  const { min, max } = integerRange(dtype);
  return value < min || value > max ? undefined : value;
}

function unlike(message: string, at: string): Diagnostic {
  const help =
    "give numbers of the input's type, as many as it has elements or one for all, or an .npy file";
  return diagnostic("CLI001", message, { at, help });
}
