/**
 * From the bytes of an artifact or an ONNX model to a program that can run on this machine. An ONNX
 * model is compiled here and becomes the same value that an artifact is read into, so that all
 * commands and the library treat both alike.
 */
import {
  type Artifact,
  type ArtifactMeta,
  looksLikeArtifact,
  type TargetCode,
  tensorNames,
} from "../../artifact/artifact.ts";
import { type Container, isWeights, openContainer, take } from "../../artifact/container.ts";
import { readArena, readContainer } from "../../artifact/read-artifact.ts";
import { readerOfWeights } from "../../artifact/weights.ts";
import type { ArtifactContent } from "../../artifact/write-artifact.ts";
import { type CompiledModel, compileModel, type ScheduledRegions } from "../../compile.ts";
import type { ImportedModel } from "../../frontend/onnx/import/import-model.ts";
import { unboundedSymbols } from "../../graph/unbounded-symbols.ts";
import type { Program } from "../../program/program.ts";
import type { RewriteMode } from "../../rewrite/families/index.ts";
import type { RuleRow } from "../../rewrite/rule-row.ts";
import { createSession, runnableTargets, runsHere } from "../../runtime/create-session.ts";
import type { CudaWish } from "../../runtime/cuda/features.ts";
import { type EmittedCode, emitHere } from "../../runtime/emit-here.ts";
import { checksums } from "../../runtime/files/hash-bytes.ts";
import type { KeptFiles } from "../../runtime/files/kept-files.ts";
import type { ModelSession } from "../../runtime/model-session.ts";
import type { WorkerPool } from "../../runtime/wasm/worker-pool.ts";
import type { Schedule } from "../../schedule/directive.ts";
import type { SchedulingMemory } from "../../scheduled-graph.ts";
import type { Tensor } from "../../semantics/tensor.ts";
import {
  attempt,
  type Diagnostic,
  diagnostic,
  fail,
  ok,
  type Result,
} from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import type { Allowance } from "../../target/allowing.ts";
import type { Target } from "../../target/target.ts";
import { version } from "../version.ts";
import { chooseTargetHere, findTarget } from "./choose-target.ts";
import { findKept, type KeptModel, keepModel, openKeptModels, readerOfKept } from "./kept-model.ts";
import { linkStates, type StateLinks } from "./link-states.ts";
import { type CalibrationWish, findCalibration } from "./machine-calibration.ts";
import { type GivenSizes, importBytes, type ModelBytes, portNames } from "./model-bytes.ts";
import {
  addPortable,
  codeOf,
  compilePortable,
  isOfGraph,
  portableTarget,
  viewsOf,
} from "./portable-program.ts";
import { describePorts, type ModelPorts } from "./ports.ts";
import { searchReport } from "./search-report.ts";

export interface OpenOptions extends GivenSizes {
  /** Name of a target, or `auto`: the best that this engine can run. */
  readonly target: string;
  /** Inputs of an ONNX model that take over an output of the run before: input to output. */
  readonly states?: StateLinks;
  readonly seed: number;
  /** Threads that an ONNX model is compiled for; the program runs on any number. */
  readonly threads?: number;
  /** What may change results within a bound, which is kept with the program; default: nothing. */
  readonly allow?: readonly Allowance[];
  /** Whether the graph is rewritten before it is compiled; default: off. */
  readonly rewrite?: RewriteMode;
  /** Rules beside those of the families, proved before they are used. */
  readonly rules?: readonly RuleRow[];
  /** Say by which rules rewriting found each graph. */
  readonly explainRewrite?: boolean;
  /** Compile an ONNX model for WebAssembly too, where the target is machine code: for artifacts. */
  readonly portable?: boolean;
  /** Schedules by region that were measured to be the best on this machine. */
  readonly measured?: ReadonlyMap<string, Schedule>;
  /** Prices that were fitted to this machine; default: off. */
  readonly calibration?: CalibrationWish;
  readonly onPass?: (pass: string) => void;
  /** See CompileOptions. */
  readonly memory?: ModelMemory;
  readonly onScheduled?: (scheduled: ScheduledRegions, target: Target) => void;
  /** Which GPU, and how much of its memory. */
  readonly gpu?: CudaWish;
  /** What earlier loads left; by default the user's cache folder, where this is a built package. */
  readonly kept?: KeptFiles | undefined;
}

/** What was found of the parts of a model, for its target and for the portable program beside that. */
export interface ModelMemory {
  readonly own: SchedulingMemory;
  readonly portable: SchedulingMemory;
}

/** A model with a program for one target. What is read only by inspecting may be parsed on demand. */
export interface OpenModel {
  readonly artifact: ArtifactContent;
  readonly target: Target;
  readonly code: TargetCode;
  readonly ports: ModelPorts;
  /** How to start it. */
  readonly start: Startable;
  /** What led to the program; absent when it was read from an artifact. */
  readonly origin?: { readonly imported: ImportedModel; readonly compiled: CompiledModel };
}

/** What a session is made of. */
interface Startable {
  readonly meta: Pick<ArtifactMeta, "inputs" | "outputs">;
  /** The program, or its outline where its code is there. */
  readonly program: Program;
  readonly weight: (name: string) => Tensor;
  readonly code?: EmittedCode;
  readonly whole?: () => Program;
  /** The program's weights as it reads them, where the artifact has them so. */
  readonly arena?: Uint8Array;
  /** See SessionOptions. */
  readonly forget?: () => void;
  /** Called with the code that was emitted. */
  readonly onEmitted?: (code: EmittedCode) => void;
}

export function openModel(source: ModelBytes, options: OpenOptions): Result<OpenModel> {
  return isArtifact(source) ? openArtifact(source, options) : compileOnnx(source, options);
}

export function isArtifact({ bytes, path }: ModelBytes): boolean {
  return looksLikeArtifact(bytes) || path?.endsWith(".wt") === true;
}

function openArtifact(source: ModelBytes, options: OpenOptions): Result<OpenModel> {
  const [shape] = Object.keys(options.shapes);
  if (shape !== undefined) return fail(fixedBefore("shapes", `--shape ${shape}`));
  const [state] = Object.keys(options.states ?? {});
  if (state !== undefined) return fail(fixedBefore("states", `--state ${state}`));
  const [value] = Object.keys(options.values ?? {});
  if (value !== undefined) return fail(fixedBefore("values", `--value ${value}`));
  const { rewrite = "off", calibration = "off" } = options;
  if (calibration !== "off" && calibration !== "auto") {
    return fail(fixedBefore("prices", `--calibration ${calibration}`));
  }
  if (rewrite !== "off") return fail(fixedBefore("operations", `--rewrite ${rewrite}`));
  const [allowed] = options.allow ?? [];
  if (allowed) return fail(fixedBefore("schedules", `--allow ${allowed}`));
  const container = openContainer(source.bytes, checksums, { later: true });
  if (!container.ok) return container;
  if (container.value.isStaged) return fail(inStages());
  const chosen = chooseTargetHere(container.value, options.target, options.gpu?.ordinal);
  if (!chosen.ok) return chosen;
  const store = storeOf(options);
  const opened = openContained(container.value, chosen.value, { store, forget: source.forget });
  return opened.ok ? ok(opened.value, chosen.warnings) : opened;
}

/** Where what earlier loads left is found. */
export function storeOf(options: Pick<OpenOptions, "kept">): KeptFiles | undefined {
  return "kept" in options ? options.kept : openKeptModels();
}

/** Where a container's programs were kept, and how the pages of its file leave memory. */
interface ContainerPlace {
  readonly store: KeptFiles | undefined;
  readonly forget?: (() => void) | undefined;
}

/** The program for `target` of an artifact, or of a stage of one, proved now or before. */
export function openContained(
  container: Container,
  target: Target,
  { store, forget }: ContainerPlace,
): Result<OpenModel> {
  const kept = store && findKept(store, container, target);
  return attempt(() => {
    checkNeeded(container, target);
    // What runs where it lies was read in time, unless a proof comes first; what is to be copied is read in pieces.
    if (!kept || !isRunInPlace(container, target)) forget?.();
    const ways = { store, ...(forget && { forget }) };
    return kept
      ? openKept(container, target, { kept, ...ways })
      : take(openWhole(container, target, ways));
  });
}

function isRunInPlace({ tensors }: Container, target: Target): boolean {
  return target.emitter === "x64" && tensors.has(tensorNames.arena(target.name));
}

/** What a program's weights are read from: its arena, or the weights of the graph wherever they stand. */
function checkNeeded({ tensors, contents }: Container, target: Target): void {
  const arena = tensorNames.arena(target.name);
  if (tensors.has(arena)) contents(arena);
  else for (const name of tensors.keys()) if (isWeights(name)) contents(name);
}

/** The answer of what wants one program; `load` and `run` start its stages instead. */
function inStages(): Diagnostic {
  return diagnostic("SCH015", "the model runs in stages, and has no one program", {
    help: "load it and run its stages one after another, as load and the commands on models do",
  });
}

/** Parsed and proved; what its session emits is kept for the next time. */
function openWhole(
  container: Container,
  target: Target,
  { store, forget }: ContainerPlace,
): Result<OpenModel> {
  const read = readContainer(container, { choose: () => [target.name] });
  if (!read.ok) return read;
  const artifact = read.value;
  const code = artifact.targets.get(target.name)!;
  const { program } = code;
  const arena = artifact.arenas?.get(target.name);
  const weights = { ...(arena && { arena }), ...(forget && { forget }) };
  const start = { ...startable(artifact, program), ...weights };
  return ok({
    artifact,
    target,
    code,
    ports: describePorts(artifact.graph, artifact.meta),
    start: store
      ? {
          ...start,
          onEmitted: (emitted) =>
            keepModel(store, container, { artifact, program, target, code: emitted }),
        }
      : start,
  });
}

/** What an earlier load left; the texts are read when they are asked for. */
function openKept(
  container: Container,
  target: Target,
  { kept, forget }: ContainerPlace & { readonly kept: KeptModel },
): OpenModel {
  let read: Artifact | undefined;
  const whole = (): Artifact => {
    if (read) return read;
    const again = readContainer(container, { choose: () => [target.name], proved: true });
    invariant(again.ok, () => "an artifact that was read before can be read");
    read = again.value;
    return read;
  };
  const arena =
    kept.arenaBytes === undefined ? undefined : readArena(container, target.name, kept.arenaBytes);
  return {
    get artifact() {
      return whole();
    },
    get code() {
      return whole().targets.get(target.name)!;
    },
    target,
    ports: kept.ports.ports,
    start: {
      meta: kept.ports.names,
      program: kept.outline,
      weight: readerOfKept(kept, container),
      code: kept.code,
      ...(arena && { arena }),
      ...(forget && { forget }),
      whole: () => whole().targets.get(target.name)!.program,
    },
  };
}

function startable(artifact: ArtifactContent, program: Program): Startable {
  const { meta } = artifact;
  return { meta, program, weight: readerOfWeights(artifact, meta.views) };
}

function fixedBefore(what: string, option: string): Diagnostic {
  return diagnostic("CLI001", `the ${what} of an artifact were fixed when it was optimized`, {
    at: option,
    help: `give ${option.split(" ")[0]} to wavetile optimize, with the ONNX model`,
  });
}

function compileOnnx(source: ModelBytes, options: OpenOptions): Result<OpenModel> {
  const target = findTarget(options.target, options.gpu?.ordinal);
  if (!target.ok) return target;
  const imported = importModel(source, options);
  if (!imported.ok) return imported;
  const made = compileImported(imported.value, target.value, options);
  return made.ok
    ? ok(made.value, [...target.warnings, ...imported.warnings, ...made.warnings])
    : made;
}

/** From the bytes of an ONNX model to a graph whose extents have bounds, with its states linked. */
export function importModel(
  source: ModelBytes,
  options: GivenSizes & Pick<OpenOptions, "states" | "onPass">,
): Result<ImportedModel> {
  options.onPass?.("import");
  const read = importBytes(source, options);
  if (!read.ok) return read;
  const imported = linkStates(read.value, options.states ?? {});
  if (!imported.ok) return imported;
  const open = unboundedSymbols(imported.value.graph);
  return open ? fail(open) : ok(imported.value, read.warnings);
}

/** From a graph whose extents have bounds to its program, as an artifact would hold it. */
export function compileImported(
  imported: ImportedModel,
  target: Target,
  options: OpenOptions,
): Result<OpenModel> {
  const wish = options.calibration ?? "off";
  const calibration = findCalibration(target, wish);
  if (!calibration.ok) return calibration;
  const used = calibration.value;
  const compiled = compileModel(imported, {
    target,
    ...(used && { model: used.model }),
    ...(options.threads !== undefined && { threads: options.threads }),
    ...(options.allow && { allow: options.allow }),
    ...(options.rewrite && { rewrite: options.rewrite }),
    ...(options.rules && { rules: options.rules }),
    ...(options.explainRewrite && { explain: true }),
    ...(options.measured && { measured: options.measured }),
    ...(options.memory && { memory: options.memory.own }),
    ...(options.onPass && { onPass: options.onPass }),
    ...(options.onScheduled && { onScheduled: (s) => options.onScheduled!(s, target) }),
  });
  if (!compiled.ok) return compiled;
  const { model } = compiled.value;
  const code = codeOf(compiled.value);
  const meta = {
    producer: version,
    seed: options.seed,
    ...portNames(imported, model.graph),
    views: viewsOf(compiled.value),
    searches: [searchReport(target.name, compiled.value, used?.origin)],
    ...approximated(compiled.value),
  };
  const own: ArtifactContent = {
    meta,
    graph: model.graph,
    targets: new Map([[target.name, code]]),
    weights: model.weights,
  };
  const warnings: Diagnostic[] = [...calibration.warnings];
  let artifact = own;
  if (options.portable && target.name !== portableTarget) {
    // All programs of an artifact share one graph.
    const shared = compiled.value.rewritten ? model : imported;
    const found = options.memory?.portable;
    let portable = compilePortable(shared, wish, found);
    if (portable.ok && portable.value && !isOfGraph(own, portable.value)) {
      portable = compilePortable(model, wish, found);
    }
    if (!portable.ok) return portable;
    warnings.push(...portable.warnings);
    artifact = addPortable(own, portable.value);
  }
  const origin = { imported, compiled: compiled.value };
  const ports = describePorts(artifact.graph, meta);
  const start = startable(artifact, code.program);
  return ok({ artifact, target, code, ports, start, origin }, [...warnings, ...compiled.warnings]);
}

/** What rules that approximate may have changed; nothing where none did. */
function approximated({ errorBound }: CompiledModel): { readonly errorBound?: number } {
  return errorBound > 0 ? { errorBound } : {};
}

/** Threads that several sessions use in turn; which GPU, and how much of its memory. */
export interface SessionPlace {
  readonly pool?: WorkerPool | undefined;
  readonly gpu?: CudaWish | undefined;
}

/** The program with its weights in memory, ready to run on `threads` threads, its own or those of a pool. */
export function startSession(
  { start, target }: OpenModel,
  threads: number,
  { pool, gpu }: SessionPlace = {},
): Result<ModelSession> {
  const isGpu = target.emitter === "ptx";
  if (!isGpu && !runsHere(target)) return fail(notHere(target));
  const { meta, program, weight, whole, arena, forget } = start;
  const titles = new Map([...meta.inputs, ...meta.outputs].map((p) => [p.value, p.name]));
  const title = (name: string) => titles.get(name) ?? name;
  const weights = { weight, ...(arena && { arena }), ...(forget && { forget }) };
  const options = { threads, title, ...weights, ...(pool && { pool }) };
  // A GPU's driver keeps what it assembled itself.
  if (isGpu) return createSession(program, target, { ...options, ...(gpu && { gpu }) });
  const emitted = start.code ? ok(start.code) : emitHere(program, target);
  if (!emitted.ok) return emitted;
  start.onEmitted?.(emitted.value);
  return createSession(program, target, {
    ...options,
    code: emitted.value,
    ...(whole && { whole }),
  });
}

function notHere({ name, emitter }: Target): Diagnostic {
  const { names, reasons } = runnableTargets();
  // Reasons are of machine code: WebAssembly is missing for others.
  const why = emitter === "x64" ? reasons : [];
  const because = why.length > 0 ? `: ${why.map((d) => d.message).join(", ")}` : "";
  return diagnostic("CLI006", `programs for target ${name} do not run here${because}`, {
    at: "--target",
    notes: why.flatMap((d) => [`${d.code}: ${d.message}`, ...(d.help ? [d.help] : [])]),
    help: `here run ${names.join(", ") || "none: this engine has no SIMD"}; see wavetile targets`,
  });
}
