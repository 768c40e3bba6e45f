/**
 * A run of a model in stages: programs for what lies between the places where data decide sizes or when a
 * loop ends, or where numbers are drawn, and between them the reference of the one operator, which tells how
 * many there are in this run. A program that would get an empty tensor is not run: its references are, which
 * cost next to nothing then (stage-reference.ts).
 */
import type { Graph, Model, WeightStore } from "../../graph/graph.ts";
import type {
  Feeds,
  KernelTime,
  ModelSession,
  Outputs,
  ParameterValues,
} from "../../runtime/model-session.ts";
import { RunsTogether } from "../../runtime/wasm/runs-together.ts";
import type { WorkerPool } from "../../runtime/wasm/worker-pool.ts";
import { elementCount } from "../../semantics/shape.ts";
import type { Tensor } from "../../semantics/tensor.ts";
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { RunningModel } from "./loaded-model.ts";
import { StageReference } from "./stage-reference.ts";

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
  readonly #references = new Map<Stage, StageReference>();
  readonly #pool: WorkerPool | undefined;
  readonly #together: RunsTogether | undefined;

  /** @param pool threads that the programs share, which end with them */
  constructor(model: Model, stages: readonly Stage[], pool?: WorkerPool) {
    this.#model = model;
    this.#stages = stages;
    this.#pool = pool;
    this.#together = pool && pool.threads > 1 ? new RunsTogether(pool) : undefined;
  }

  /** Of memory that its programs hold. */
  get bytes(): number {
    return this.#stages.reduce((sum, s) => sum + s.bytes, 0);
  }

  run(feeds: Feeds): Result<Outputs> {
    if (!this.#together) return this.#run(feeds);
    return this.#together.run(extentsOf(feeds), () => this.#run(feeds));
  }

  async runAsync(feeds: Feeds, signal?: AbortSignal): Promise<Result<Outputs>> {
    if (!this.#together) return this.#runAsync(feeds, signal);
    return this.#together.runAsync(extentsOf(feeds), () => this.#runAsync(feeds, signal));
  }

  #run(feeds: Feeds): Result<Outputs> {
    const values = this.#start(feeds);
    if (!values.ok) return values;
    for (const stage of this.#stages) {
      const taken = take(stage, values.value);
      const outputs = isProgram(stage, taken)
        ? stage.session.run(taken)
        : this.#interpret(stage, taken);
      if (!outputs.ok) return outputs;
      put(outputs.value, values.value);
    }
    return ok(this.#outputs(values.value, feeds));
  }

  async #runAsync(feeds: Feeds, signal?: AbortSignal): Promise<Result<Outputs>> {
    const values = this.#start(feeds);
    if (!values.ok) return values;
    for (const stage of this.#stages) {
      const taken = take(stage, values.value);
      const outputs = isProgram(stage, taken)
        ? await stage.session.runAsync(taken, signal)
        : this.#interpret(stage, taken);
      if (!outputs.ok) return outputs;
      put(outputs.value, values.value);
    }
    return ok(this.#outputs(values.value, feeds));
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
        const outputs = this.#interpret(stage, taken);
        if (!outputs.ok) return outputs;
        put(outputs.value, values.value);
      }
    }
    return ok({ outputs: this.#outputs(values.value, feeds), kernels });
  }

  poison(): void {
    for (const { session } of this.#stages) session?.poison();
  }

  /** A model in stages has no states. */
  resetStates(): void {}

  async dispose(): Promise<void> {
    await Promise.all(this.#stages.map((s) => s.session?.dispose()));
    await this.#pool?.dispose();
  }

  #interpret(stage: Stage, taken: Feeds): Result<Outputs> {
    const known = this.#references.get(stage);
    const reference = known ?? new StageReference(stage.graph, stage.weights);
    if (!known) this.#references.set(stage, reference);
    return reference.run(taken);
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

  #outputs(values: ReadonlyMap<string, Tensor>, feeds: Feeds): Outputs {
    const given = new Set(Object.values(feeds));
    // What a stage passed on is the caller's own tensor, which he may write to.
    const own = (value: Tensor): Tensor =>
      given.has(value) ? ({ ...value, data: value.data.slice() } as Tensor) : value;
    const { graph, weights } = this.#model;
    const constants = new Map(graph.weights.map((w) => [w.value, w.source]));
    const constant = (id: number): Tensor => {
      const source = constants.get(id)!;
      return source.kind === "inline" ? source.tensor : weights.read(source.key);
    };
    return Object.fromEntries(
      graph.outputs.map((id) => {
        const { name } = graph.values[id]!;
        return [name, own(values.get(name) ?? constant(id))];
      }),
    );
  }
}

/** What tells the size of a run's work, as far as its inputs do. */
function extentsOf(feeds: Feeds): ParameterValues {
  const dims = Object.entries(feeds).flatMap(([name, { shape }]) =>
    shape.map((extent, axis) => [`${name}.${axis}`, extent] as const),
  );
  return Object.fromEntries(dims);
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
