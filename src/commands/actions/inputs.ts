/** Feeds for a run: from .npy files, or random with a seed. */

import type { ArtifactMeta } from "../../artifact/artifact.ts";
import type { Graph } from "../../graph/graph.ts";
import { maskInputs } from "../../graph/mask-inputs.ts";
import { positionInputs } from "../../graph/position-inputs.ts";
import { readNpy } from "../../runtime/files/npy.ts";
import { readWhole } from "../../runtime/files/plain-file.ts";
import { isFloatDType } from "../../semantics/dtype.ts";
import { evaluate, type IndexExpr, variablesOf } from "../../semantics/index-expr.ts";
import { fromRef, randomTensor, type Tensor, toRef } from "../../semantics/tensor.ts";
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { emptyNamed } from "../../support/named.ts";
import { Rng } from "../../support/rng.ts";
import type { Tensors } from "../library/loaded-model.ts";

/** Splits `NAME=VALUE`; the name may not be empty. */
export function splitAssignment(option: string, text: string): Result<readonly [string, string]> {
  const at = text.indexOf("=");
  if (at > 0) return ok([text.slice(0, at), text.slice(at + 1)]);
  return fail(
    diagnostic("CLI001", `${JSON.stringify(text)} is not of the form NAME=VALUE`, {
      at: option,
      help: `write ${option} NAME=VALUE; wavetile inspect MODEL prints the names`,
    }),
  );
}

/** `NAME=VALUE` texts as an object. */
export function readAssignments(
  option: string,
  texts: readonly string[],
): Result<Readonly<Record<string, string>>> {
  const pairs: (readonly [string, string])[] = [];
  for (const text of texts) {
    const pair = splitAssignment(option, text);
    if (!pair.ok) return pair;
    const [name, value] = pair.value;
    const other = pairs.find(([n]) => n === name);
    if (other && other[1] !== value) {
      return fail(
        diagnostic("CLI001", `${name} is given twice: ${other[1]} and ${value}`, { at: option }),
      );
    }
    pairs.push(pair.value);
  }
  return ok(Object.fromEntries(pairs));
}

/** Tensors of `NAME=FILE.npy` texts. */
export function readInputs(texts: readonly string[], option = "--input"): Result<Tensors> {
  const files = readAssignments(option, texts);
  if (!files.ok) return files;
  const tensors = emptyNamed<Tensor>();
  for (const [name, path] of Object.entries(files.value)) {
    const bytes = readWhole(path);
    if (!bytes.ok) return bytes;
    const tensor = readNpy(bytes.value);
    if (!tensor.ok) return fail(...tensor.diagnostics.map((d) => ({ ...d, at: path })));
    tensors[name] = tensor.value;
  }
  return ok(tensors);
}

/** What has inputs. */
interface FedModel {
  readonly artifact: { readonly graph: Graph; readonly meta: Pick<ArtifactMeta, "inputs"> };
}

/**
 * Random tensors for all inputs, by the model's names; symbols take their upper ends unless given. Elements that
 * are positions along an axis are within it, and masks hide some.
 */
export function randomInputs(
  { artifact }: FedModel,
  seed: number,
  symbols: ReadonlyMap<string, number> = upperEnds(artifact.graph),
): Tensors {
  const { graph, meta } = artifact;
  const rng = new Rng(seed);
  const limits = positionInputs(graph);
  const masks = maskNames({ artifact });
  return Object.fromEntries(
    graph.inputs.map((v, i) => {
      const { name } = meta.inputs[i]!;
      const { dtype, shape } = graph.values[v]!.type;
      const extents = shape.map((e) => evaluate(e, symbols));
      const drawn = randomTensor(dtype, extents, rng);
      if (masks.has(name)) return [name, asMask(drawn)];
      const ends = (limits.get(v) ?? []).flatMap((e) => knownAt(e, symbols));
      const tensor = ends.length === 0 ? drawn : within(drawn, Math.min(...ends));
      return [name, tensor];
    }),
  );
}

/**
 * Inputs that say what counts, by the model's names: integers and truths by what they are called or by what is done
 * with them, floats by both. Those that hold positions are none.
 */
export function maskNames({ artifact: { graph, meta } }: FedModel): ReadonlySet<string> {
  const [used, positions] = [maskInputs(graph), positionInputs(graph)];
  const masks = graph.inputs.flatMap((v, i) => {
    const { name } = meta.inputs[i]!;
    const isCalled = /mask(?!ed|ing)/i.test(name);
    const isFloat = isFloatDType(graph.values[v]!.type.dtype);
    const isMask = isFloat ? isCalled && used.has(v) : isCalled || used.has(v);
    return isMask && !positions.has(v) ? [name] : [];
  });
  return new Set(masks);
}

/** 0 or 1, the first of each row 1: where nothing counts a model has nothing to say. */
function asMask(drawn: Tensor): Tensor {
  const ref = toRef(drawn);
  const row = drawn.shape.at(-1) ?? 1;
  const bitOf = (x: number | bigint, i: number): boolean =>
    i % row === 0 ||
    (typeof x === "bigint" ? (x & 1n) === 1n : isFloatDType(drawn.dtype) ? x > 0 : x % 2 !== 0);
  const data = ref.data.slice();
  for (let i = 0; i < data.length; i++) {
    const bit = bitOf(data[i]!, i);
    data[i] = data instanceof Float64Array ? Number(bit) : BigInt(bit);
  }
  return fromRef({ ...ref, data });
}

/**
 * The result of a run on inputs that were drawn, but for those that were given: what they may be wrong for is named,
 * with the options that give others.
 */
export function ofDrawn<T>(
  ran: Result<T>,
  feeds: Tensors,
  { given = {}, options }: { readonly given?: Tensors; readonly options: string },
): Result<T> {
  if (ran.ok || !ran.diagnostics.some((d) => d.code === "RUN006")) return ran;
  const drawn = Object.entries(feeds).filter(([name]) => !Object.hasOwn(given, name));
  const integers = drawn.filter(([, t]) => !isFloatDType(t.dtype));
  // What was given is a place in a table before floats that were drawn are.
  const isGiven = Object.values(given).some((t) => !isFloatDType(t.dtype));
  const suspects = integers.length > 0 || isGiven ? integers : drawn;
  const names = suspects.map(([name]) => name);
  if (names.length === 0) return ran;
  const help = `the inputs were drawn at random, among them ${names.join(", ")}: give what is a place in a table by ${options}`;
  return fail(...ran.diagnostics.map((d) => (d.code === "RUN006" ? { ...d, help } : d)));
}

/** The extent, unless data decide it. */
function knownAt(extent: IndexExpr, symbols: ReadonlyMap<string, number>): readonly number[] {
  const isKnown = [...variablesOf(extent)].every((name) => symbols.has(name));
  return isKnown ? [evaluate(extent, symbols)] : [];
}

/** Integers as positions along an axis; floats stay. */
function within(drawn: Tensor, end: number): Tensor {
  const ref = toRef(drawn);
  if (isFloatDType(drawn.dtype) || end < 1) return drawn;
  const place = (x: number | bigint): number | bigint =>
    typeof x === "bigint" ? (x < 0n ? -x : x) % BigInt(end) : Math.abs(x) % end;
  const data = (ref.data as Float64Array).map(place as (x: number) => number);
  return fromRef({ ...ref, data });
}

function upperEnds(graph: Graph): ReadonlyMap<string, number> {
  return new Map(graph.symbols.map((s) => [s.name, s.max]));
}
