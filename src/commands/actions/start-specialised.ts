/**
 * A model that has no program before values of its inputs are known, on random inputs: it is made for the values
 * that were drawn, as a run with inputs from files makes it for theirs.
 */
import { readInterface } from "../../frontend/onnx/import/import-model.ts";
import { threadsHere } from "../../runtime/detect/threads-here.ts";
import { isFloatDType } from "../../semantics/dtype.ts";
import { fromRef, type Tensor, toRef } from "../../semantics/tensor.ts";
import { type Diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { named } from "../../support/named.ts";
import type { CommandContext } from "../command.ts";
import { firstSizes } from "../library/assumed-sizes.ts";
import { findTarget } from "../library/choose-target.ts";
import { LoadedModel, type Tensors } from "../library/loaded-model.ts";
import { givenSizes, type ModelBytes } from "../library/model-bytes.ts";
import { isArtifact, type OpenOptions } from "../library/open-model.ts";
import { defaultLimits, specialise } from "../library/specialising-session.ts";
import { assumed } from "./at-sizes.ts";
import { maskNames, randomInputs } from "./inputs.ts";
import { type OpenArgs, readRequest } from "./open.ts";

export interface SpecialisedModel {
  readonly source: ModelBytes;
  /** The sizes and values that the program was made for. */
  readonly options: OpenOptions;
  readonly model: LoadedModel;
  readonly feeds: Tensors;
  readonly threads: number;
  readonly target: string;
}

/** Integers that are drawn: as sizes, as counts and as places in tables they mean something. */
const integers = { least: 1, count: 4 } as const;

/**
 * @param args `given`: inputs that are not drawn
 * @param diagnostics why the model has no one program
 * @returns undefined where the values of a run do not help: the diagnostics are the answer
 */
export function startSpecialised(
  args: OpenArgs & { readonly seed: number; readonly given?: Tensors },
  context: CommandContext,
  diagnostics: readonly Diagnostic[],
): Result<SpecialisedModel> | undefined {
  if (args.state.length > 0 || !diagnostics.some((d) => d.code === "ONX013")) return undefined;
  const request = readRequest(args, context);
  if (!request.ok) return request;
  const { source } = request.value;
  if (isArtifact(source)) return undefined;
  const target = findTarget(args.target);
  if (!target.ok) return target;
  const { shapes, texts } = sizesOf(source, request.value.options);
  const threads = args.threads ?? threadsHere().threads;
  const wanted = { ...request.value.options, shapes, threads, limits: defaultLimits };
  const made = specialise(source, wanted);
  // What it says of the model without values is what the caller knows.
  if (!made.ok) return undefined;
  const { face, session } = made.value;
  const { meta } = face.start;
  const drawable = { artifact: { graph: session.graph, meta } };
  const drawn = randomInputs(drawable, args.seed);
  const masks = maskNames(drawable);
  const sized = Object.entries(drawn).map(
    ([name, t]) => [name, masks.has(name) ? t : asSizes(t)] as const,
  );
  const feeds = { ...Object.fromEntries(sized), ...args.given };
  const settled = session.settle(
    Object.fromEntries(meta.inputs.map((p) => [p.value, feeds[p.name]!])),
  );
  const said = texts.length > 0 ? [assumed(texts)] : [];
  if (!settled.ok) {
    const decided = "values of the inputs decide what the model is, and these were drawn";
    return fail(
      ...settled.diagnostics.map((d) => ({ ...d, notes: [...(d.notes ?? []), decided] })),
    );
  }
  const model = new LoadedModel(face, session);
  const { name } = target.value;
  return ok({ source, options: settled.value, model, feeds, threads, target: name }, [
    ...said,
    ...made.warnings,
  ]);
}

/** Sizes for what nobody bounded, and their texts. */
function sizesOf(source: ModelBytes, options: OpenOptions) {
  const read = readInterface(source.bytes, givenSizes(options));
  const open = read.ok ? read.value.graph.symbols.filter((s) => s.max === Infinity) : [];
  if (open.length === 0) return { shapes: options.shapes, texts: [] };
  const shapes = firstSizes(source, options);
  const texts = open.flatMap(({ name }) => {
    const size = named(shapes, name);
    return size === undefined ? [] : [`${name}=${String(size)}`];
  });
  return { shapes, texts };
}

function asSizes(drawn: Tensor): Tensor {
  const ref = toRef(drawn);
  if (isFloatDType(drawn.dtype) || drawn.dtype === "bool") return drawn;
  const { least, count } = integers;
  const place = (x: number | bigint): number | bigint =>
    typeof x === "bigint"
      ? ((x < 0n ? -x : x) % BigInt(count)) + BigInt(least)
      : (Math.abs(x) % count) + least;
  return fromRef({ ...ref, data: (ref.data as Float64Array).map(place as (x: number) => number) });
}
