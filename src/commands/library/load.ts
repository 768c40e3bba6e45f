/** `load`: a path or bytes, of an artifact or an ONNX model, to a model that runs. */
import { looksLikeArtifact } from "../../artifact/artifact.ts";
import {
  parseShapeOverride,
  type ShapeOverride,
} from "../../frontend/onnx/import/shape-override.ts";
import type { CudaWish } from "../../runtime/cuda/features.ts";
import { threadsHere } from "../../runtime/detect/threads-here.ts";
import { type ModelSource, openModelFile } from "../../runtime/files/model-source.ts";
import type { Tensor } from "../../semantics/tensor.ts";
import {
  contain,
  type Diagnostic,
  diagnostic,
  fail,
  ok,
  type Result,
} from "../../support/diagnostic.ts";
import { emptyNamed } from "../../support/named.ts";
import { carryStates } from "./carried-states.ts";
import type { StateLinks } from "./link-states.ts";
import { LoadedModel, type ModelFace, type RunningModel } from "./loaded-model.ts";
import type { ModelBytes } from "./model-bytes.ts";
import { isArtifact, type OpenOptions, openModel, startSession } from "./open-model.ts";
import {
  defaultLimits,
  type SpecialisationLimits,
  type SpecialiseOptions,
  specialise,
} from "./specialising-session.ts";
import { stageModel } from "./staged-session.ts";
import { unwrap } from "./wavetile-error.ts";

export interface LoadOptions {
  /** Name of a target; by default the best that this engine runs. */
  readonly target?: string;
  /** Compute threads; by default as many as the machine runs at once. */
  readonly threads?: number;
  /** For ONNX models: symbolic dimensions, `{ W: 320 }` or `{ W: "32..960" }`. */
  readonly shapes?: Readonly<Record<string, number | string>>;
  /** For ONNX models: inputs whose values are fixed, by name. */
  readonly values?: Readonly<Record<string, Tensor>>;
  /**
   * For ONNX models: inputs that take over an output of the run before, `{ stateIn: "stateOut" }`. They begin
   * as zeros; extents that no other input decides begin as 0 and may grow.
   */
  readonly states?: StateLinks;
  /**
   * For ONNX models with extents that `shapes` leaves without a bound, or in which values of a run decide
   * shapes and branches: a program is made for each size and such value that comes, and at most so many of
   * them are kept, holding at most so many bytes (by default 8 and 1 GiB; the newest always stays).
   */
  readonly specialise?: Partial<SpecialisationLimits>;
  /**
   * For a GPU's target: which of the GPUs, counted from 0 as the driver does, and the most bytes of its
   * memory that the model may hold.
   */
  readonly gpu?: { readonly device?: number; readonly memoryBytes?: number };
  readonly onPass?: (pass: string) => void;
}

/** Throws WavetileError with diagnostics. */
export async function load(
  source: string | Uint8Array,
  options: LoadOptions = {},
): Promise<LoadedModel> {
  return unwrap(tryLoad(source, options));
}

const mostThreads = 1024;

const optionNames: Readonly<Record<keyof LoadOptions, true>> = {
  target: true,
  threads: true,
  shapes: true,
  values: true,
  states: true,
  specialise: true,
  gpu: true,
  onPass: true,
};

/** As `load`, with the diagnostics as a value. */
export function tryLoad(
  source: string | Uint8Array,
  options: LoadOptions = {},
): Result<LoadedModel> {
  const wrong = notALoad(source, options);
  if (wrong) return fail(wrong);
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(optionNames, name));
  if (unknown !== undefined) {
    return fail(
      diagnostic("CLI001", `load has no option ${JSON.stringify(unknown)}`, {
        help: `its options are ${Object.keys(optionNames).join(", ")}`,
      }),
    );
  }
  const { threads: wanted } = options;
  if (wanted !== undefined && !(Number.isInteger(wanted) && wanted >= 1 && wanted <= mostThreads)) {
    return fail(
      diagnostic("CLI001", `threads is ${JSON.stringify(wanted)}`, {
        help: `give an integer from 1 to ${mostThreads}`,
      }),
    );
  }
  const bytes: Result<ModelBytes & Pick<ModelSource, "release">> =
    typeof source === "string" ? openModelFile(source, looksLikeArtifact) : ok({ bytes: source });
  if (!bytes.ok) return bytes;
  const shapes = parseShapes(options.shapes ?? {});
  if (!shapes.ok) return shapes;
  const limits = limitsOf(options.specialise ?? {});
  if (!limits.ok) return limits;
  const gpu = wishOf(options.gpu);
  if (!gpu.ok) return gpu;
  const { values, states, threads, onPass } = options;
  const open = {
    target: options.target ?? "auto",
    shapes: shapes.value,
    seed: 0,
    ...(values && { values }),
    ...(states && { states }),
    ...(threads !== undefined && { threads }),
    ...(onPass && { onPass }),
    ...(gpu.value && { gpu: gpu.value }),
  };
  const count = threads ?? threadsHere().threads;
  const whole = { ...open, threads: count, limits: limits.value };
  const started = contain(() => startAny(bytes.value, whole, open));
  const { release } = bytes.value;
  if (!started.ok) {
    release?.();
    return started;
  }
  const { face, session } = started.value;
  const { warnings } = started;
  return ok(new LoadedModel(face, session, release, warnings), warnings);
}

/**
 * A model that has no one program: without bounds it has one for each size, so has one that needs sizes as
 * numbers or whose range is not proved, and where data decide sizes there are several, one after another;
 * states are carried from run to run then. The diagnostics why there is no program stay the answer else.
 */
export function startOtherwise(
  source: ModelBytes,
  options: SpecialiseOptions,
  diagnostics: readonly Diagnostic[],
): Result<StartedOtherwise> {
  const { states = {}, ...plain } = options;
  if (Object.keys(states).length > 0) {
    if (isArtifact(source)) return fail(...diagnostics);
    const started = startAny(source, plain);
    if (!started.ok) return started;
    const carried = carryStates(started.value, states);
    return carried.ok ? ok(carried.value, started.warnings) : carried;
  }
  const all = (code: Diagnostic["code"]): boolean => diagnostics.every((d) => d.code === code);
  const needsSizes = diagnostics.some((d) => d.code === "ONX013");
  if (all("CLI005") || needsSizes) return specialise(source, options);
  if (all("SCH032")) return specialiseRange(source, options, diagnostics);
  const staged = all("SCH015") ? stageModel(source, options) : undefined;
  return staged ?? fail(...diagnostics);
}

/** A program for each size of a range for which none was proved, and a word of it. */
function specialiseRange(
  source: ModelBytes,
  options: SpecialiseOptions,
  diagnostics: readonly Diagnostic[],
): Result<StartedOtherwise> {
  const isRange = (o: ShapeOverride): boolean => typeof o !== "number" && "min" in o;
  if (!Object.values(options.shapes).some(isRange)) return fail(...diagnostics);
  const made = specialise(source, options);
  const help = "a program is made for each size that comes instead";
  const said = diagnostics.map((d) => ({ ...d, severity: "warning" as const, help }));
  return made.ok ? ok(made.value, [...said, ...made.warnings]) : made;
}

interface StartedOtherwise {
  readonly face: ModelFace;
  readonly session: RunningModel;
}

/** With its one program where it has one, which is made with the options `compile`. */
function startAny(
  source: ModelBytes,
  options: SpecialiseOptions,
  compile: OpenOptions = options,
): Result<StartedOtherwise> {
  const opened = openModel(source, compile);
  if (!opened.ok) return startOtherwise(source, options, opened.diagnostics);
  const session = startSession(opened.value, options.threads, { gpu: options.gpu });
  return session.ok ? ok({ face: opened.value, session: session.value }, opened.warnings) : session;
}

/** What a caller without types may give in place of a model or of options. */
function notALoad(source: unknown, options: unknown): Diagnostic | undefined {
  if (typeof source !== "string" && !(source instanceof Uint8Array)) {
    return diagnostic("CLI001", `the model to load is ${nameOf(source)}`, {
      help: "give the path of an ONNX model or an artifact, or its bytes as a Uint8Array",
    });
  }
  if (typeof options === "object" && options !== null) return undefined;
  return diagnostic("CLI001", `the options of load are ${nameOf(options)}`, {
    help: "give an object, or nothing",
  });
}

function nameOf(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  return value instanceof Promise ? "a promise, which is to be awaited first" : "an object";
}

function limitsOf(given: Partial<SpecialisationLimits>): Result<SpecialisationLimits> {
  const limits = { ...defaultLimits, ...given };
  const names = Object.keys(defaultLimits) as (keyof SpecialisationLimits)[];
  const unknown = Object.keys(given).find((name) => !(names as string[]).includes(name));
  const wrong = names.find((name) => !(Number.isInteger(limits[name]) && limits[name] >= 1));
  if (unknown === undefined && wrong === undefined) return ok(limits);
  const at = unknown ?? wrong!;
  const found = JSON.stringify((given as Readonly<Record<string, unknown>>)[at]);
  return fail(
    diagnostic("CLI001", `specialise.${at} is ${found}`, {
      help: `give integers from 1 on for ${names.join(" and ")}`,
    }),
  );
}

function wishOf(given: LoadOptions["gpu"]): Result<CudaWish | undefined> {
  if (!given) return ok(undefined);
  const least = { device: 0, memoryBytes: 1 } as const;
  const entries = Object.entries(given) as [keyof typeof least, unknown][];
  const wrong = entries.find(
    ([name, value]) => !(Number.isInteger(value) && Number(value) >= least[name]),
  );
  if (wrong) {
    const [name, value] = wrong;
    return fail(
      diagnostic("CLI001", `gpu.${name} is ${JSON.stringify(value)}`, {
        help: `give an integer for device (from 0) or memoryBytes (from 1)`,
      }),
    );
  }
  const { device, memoryBytes } = given;
  return ok({
    ...(device !== undefined && { ordinal: device }),
    ...(memoryBytes !== undefined && { capBytes: memoryBytes }),
  });
}

export function parseShapes(
  shapes: Readonly<Record<string, number | string>>,
): Result<Readonly<Record<string, ShapeOverride>>> {
  const parsed = emptyNamed<ShapeOverride>();
  for (const [name, value] of Object.entries(shapes)) {
    if (typeof value !== "string" && !(Number.isSafeInteger(value) && value >= 0)) {
      return fail(
        diagnostic("CLI001", `the size is ${nameOf(value)}`, {
          at: `shape ${name}`,
          help: 'give an integer from 0 on, a range as in "32..960", or an expression as in "32*h"',
        }),
      );
    }
    const override = parseShapeOverride(String(value));
    if (!override.ok) {
      return fail(...override.diagnostics.map((d) => ({ ...d, at: `shape ${name}` })));
    }
    parsed[name] = override.value;
  }
  return ok(parsed);
}
