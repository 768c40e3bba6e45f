/**
 * A run of a model in stages: programs for what lies between the places where data decide sizes or when a
 * loop ends, or where numbers are drawn, and between them the reference of the one operator, which tells how
 * many there are in this run. A program that would get an empty tensor is not run: its references are, which
 * cost nothing then.
 */
import type { Graph, Model, WeightStore } from "../../graph/graph.ts";
import { runGraph } from "../../interp/graph.ts";
import type { Feeds, KernelTime, ModelSession, Outputs } from "../../runtime/model-session.ts";
import { elementCount } from "../../semantics/shape.ts";
import { fromRef, type Tensor, toRef } from "../../semantics/tensor.ts";
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { RunningModel } from "./loaded-model.ts";

export interface Stage {
  readonly graph: Graph;
  readonly weights: WeightStore;
  /** Absent: the node whose results have sizes that data decide. */
  readonly session?: ModelSession;
  /** Of memory that the program holds. */
  readonly bytes: number;
}

export class StagedSession implements RunningModel {
  readonly #model: Model;
  readonly #stages: readonly Stage[];
  readonly #end: () => Promise<void>;

  /** @param end called when the stages have been disposed of, with what they share */
  constructor(model: Model, stages: readonly Stage[], end: () => Promise<void> = async () => {}) {
    this.#model = model;
    this.#stages = stages;
    this.#end = end;
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
    for (const [i, stage] of this.#stages.entries()) {
      const taken = take(stage, values.value);
      if (isProgram(stage, taken)) {
        const run = stage.session.profile(taken, now);
        if (!run.ok) return run;
        kernels.push(...run.value.kernels.map((k) => ({ ...k, stage: i + 1 })));
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
    await this.#end();
  }

  #start(feeds: Feeds): Result<Map<string, Tensor>> {
    const { graph } = this.#model;
    const names = graph.inputs.map((id) => graph.values[id]!.name);
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
    const { graph, weights } = this.#model;
    const constants = new Map(graph.weights.map((w) => [w.value, w.source]));
    const constant = (id: number): Tensor => {
      const source = constants.get(id)!;
      return source.kind === "inline" ? source.tensor : weights.read(source.key);
    };
    return Object.fromEntries(
      graph.outputs.map((id) => {
        const { name } = graph.values[id]!;
        return [name, values.get(name) ?? constant(id)];
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
