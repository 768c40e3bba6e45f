/**
 * A model in which data decide sizes (NonZero, Unique, NonMaxSuppression) or when a loop ends, or that draws numbers: programs for
 * what lies between, each for any size up to the bound, and between them the reference of the one operator,
 * which tells how many there are in this run. A program that would get an empty tensor is not run: its references are,
 * which cost nothing then.
 */
import type { Graph, Node, WeightStore } from "../../graph/graph.ts";
import { subgraphsOf } from "../../graph/op-table.ts";
import { runGraph } from "../../interp/graph.ts";
import type { Feeds, KernelTime, ModelSession, Outputs } from "../../runtime/model-session.ts";
import { memoryBytes } from "../../runtime/storage-sizes.ts";
import { elementCount } from "../../semantics/shape.ts";
import { fromRef, type Tensor, toRef } from "../../semantics/tensor.ts";
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { ModelFace, RunningModel } from "./loaded-model.ts";
import { importBytes, type ModelBytes, portNames } from "./model-bytes.ts";
import { findTarget, type OpenOptions, startSession } from "./open-model.ts";
import { describePorts } from "./ports.ts";
import { type OpenStages, openStages } from "./stages.ts";
import { unboundedSymbols } from "./unbounded-symbols.ts";

interface Stage {
  readonly graph: Graph;
  readonly weights: WeightStore;
  /** Absent: the node whose results have sizes that data decide. */
  readonly session?: ModelSession;
  /** Of memory that the program holds. */
  readonly bytes: number;
}

export interface Staged {
  readonly face: ModelFace;
  readonly session: StagedSession;
}

/** The model in stages; undefined where no data decide a size, so that stages would not help. */
export function stageModel(
  source: ModelBytes,
  options: OpenOptions & { readonly threads: number },
): Result<Staged> | undefined {
  const read = importBytes(source, options);
  if (!read.ok) return read;
  const target = findTarget(options.target);
  if (!target.ok) return target;
  const open = unboundedSymbols(read.value.graph);
  if (open) return fail(open);
  const opened = openStages(read.value, target.value, options);
  if (!opened?.ok) return opened;
  const { graph, stages: parts } = opened.value;
  const session = startStages(opened.value, options.threads);
  if (!session.ok) return session;
  const meta = portNames(read.value, graph);
  const face = { start: { meta }, ports: describePorts(graph, meta) };
  const bodies = parts.flatMap((p) => (p.opened ? [] : p.graph.nodes));
  const slow = bodies.filter((node) => subgraphsOf(node).length > 0);
  const warnings = [...read.warnings, ...opened.warnings, ...slow.map(onReference)];
  return ok({ face, session: session.value }, warnings);
}

/** Each program loaded, with the references between them. */
export function startStages(
  { graph, weights, stages: parts }: OpenStages,
  threads: number,
): Result<StagedSession> {
  const stages: Stage[] = [];
  for (const { graph: own, opened } of parts) {
    const session = opened ? startSession(opened, threads) : undefined;
    if (session && !session.ok) return session;
    const bytes = opened ? memoryBytes(opened.start.program) : 0;
    stages.push({ graph: own, weights, bytes, ...(session && { session: session.value }) });
  }
  return ok(new StagedSession(graph, stages));
}

/** Control flow that ends where data say so: told, because the reference takes its time. */
function onReference(node: Node): Diagnostic {
  const found = diagnostic("SCH015", `${node.op} of ${node.origin ?? "the model"} has no program`, {
    help: "its body runs on the reference, in every trip; bound its trips by 64 to have it copied out",
  });
  return { ...found, severity: "warning" };
}

export class StagedSession implements RunningModel {
  readonly #graph: Graph;
  readonly #stages: readonly Stage[];

  constructor(graph: Graph, stages: readonly Stage[]) {
    this.#graph = graph;
    this.#stages = stages;
  }

  /** Of memory that its programs hold. */
  get bytes(): number {
    return this.#stages.reduce((sum, s) => sum + s.bytes, 0);
  }

  run(feeds: Feeds): Result<Outputs> {
    const values = this.#start(feeds);
    if (!values.ok) return values;
    for (const stage of this.#stages) {
      const taken = take(stage, values.value);
      const outputs = isProgram(stage, taken) ? stage.session.run(taken) : interpret(stage, taken);
      if (!outputs.ok) return outputs;
      put(outputs.value, values.value);
    }
    return ok(this.#outputs(values.value));
  }

  async runAsync(feeds: Feeds, signal?: AbortSignal): Promise<Result<Outputs>> {
    const values = this.#start(feeds);
    if (!values.ok) return values;
    for (const stage of this.#stages) {
      const taken = take(stage, values.value);
      const outputs = isProgram(stage, taken)
        ? await stage.session.runAsync(taken, signal)
        : interpret(stage, taken);
      if (!outputs.ok) return outputs;
      put(outputs.value, values.value);
    }
    return ok(this.#outputs(values.value));
  }

  /** The kernels of all programs, one after another; references are no kernels. */
  profile(
    feeds: Feeds,
    now: () => number,
  ): Result<{ readonly outputs: Outputs; readonly kernels: readonly KernelTime[] }> {
    const values = this.#start(feeds);
    if (!values.ok) return values;
    const kernels: KernelTime[] = [];
    for (const stage of this.#stages) {
      const taken = take(stage, values.value);
      if (isProgram(stage, taken)) {
        const run = stage.session.profile(taken, now);
        if (!run.ok) return run;
        kernels.push(...run.value.kernels);
        put(run.value.outputs, values.value);
      } else {
        const outputs = interpret(stage, taken);
        if (!outputs.ok) return outputs;
        put(outputs.value, values.value);
      }
    }
    return ok({ outputs: this.#outputs(values.value), kernels });
  }

  poison(): void {
    for (const { session } of this.#stages) session?.poison();
  }

  /** A model in stages has no states. */
  resetStates(): void {}

  async dispose(): Promise<void> {
    await Promise.all(this.#stages.map((s) => s.session?.dispose()));
  }

  #start(feeds: Feeds): Result<Map<string, Tensor>> {
    const names = this.#graph.inputs.map((id) => this.#graph.values[id]!.name);
    const missing = names.find((name) => !feeds[name]);
    const unknown = Object.keys(feeds).find((name) => !names.includes(name));
    const help = `its inputs are ${names.join(", ")}`;
    if (unknown !== undefined) {
      return fail(diagnostic("RUN011", `the model has no input "${unknown}"`, { help }));
    }
    if (missing !== undefined) {
      return fail(diagnostic("RUN012", `input "${missing}" is missing`, { help }));
    }
    return ok(new Map(Object.entries(feeds)));
  }

  #outputs(values: ReadonlyMap<string, Tensor>): Outputs {
    const names = this.#graph.outputs.map((id) => this.#graph.values[id]!.name);
    const weights = new Map(this.#graph.weights.map((w) => [w.value, w.source]));
    return Object.fromEntries(
      names.map((name, i) => {
        const source = weights.get(this.#graph.outputs[i]!);
        const constant = source?.kind === "inline" ? source.tensor : undefined;
        return [name, values.get(name) ?? constant!];
      }),
    );
  }
}

function isProgram(
  stage: Stage,
  taken: Feeds,
): stage is Stage & { readonly session: ModelSession } {
  const isEmpty = Object.values(taken).some((t) => elementCount(t.shape) === 0);
  return stage.session !== undefined && !isEmpty;
}

function take({ graph }: Stage, values: ReadonlyMap<string, Tensor>): Feeds {
  const names = graph.inputs.map((id) => graph.values[id]!.name);
  return Object.fromEntries(names.map((name) => [name, values.get(name)!]));
}

function put(outputs: Outputs, values: Map<string, Tensor>): void {
  for (const [name, tensor] of Object.entries(outputs)) values.set(name, tensor);
}

function interpret({ graph, weights }: Stage, taken: Feeds): Result<Outputs> {
  const names = (ids: readonly number[]) => ids.map((id) => graph.values[id]!.name);
  const inputs = names(graph.inputs).map((name) => toRef(taken[name]!));
  const found = runGraph(widened(graph), inputs, weights);
  if (!found.ok) return found;
  const outputs = names(graph.outputs).map((name, i) => [name, fromRef(found.value[i]!)]);
  return ok(Object.fromEntries(outputs) as Outputs);
}

/** Sizes that data decide may be zero here. */
function widened(graph: Graph): Graph {
  return { ...graph, symbols: graph.symbols.map((s) => ({ ...s, min: 0 })) };
}
