/**
 * A run of a model in stages: programs for what lies between the places where data decide sizes or when a
 * loop ends, or where numbers are drawn, and between them the reference of the one operator, which tells how
 * many there are in this run. A program that would get an empty tensor is not run: its references are, which
 * cost next to nothing then (stage-reference.ts).
 */
import type { Graph, Model, ValueId, WeightSource, WeightStore } from "../../graph/graph.ts";
import type {
  Feeds,
  KernelTime,
  ModelSession,
  Outputs,
  ParameterValues,
} from "../../runtime/model-session.ts";
import { RunsTogether } from "../../runtime/wasm/runs-together.ts";
import type { WorkerPool } from "../../runtime/wasm/worker-pool.ts";
import type { Tensor } from "../../semantics/tensor.ts";
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { emptyNamed, named } from "../../support/named.ts";
import type { RunningModel } from "./loaded-model.ts";
import { PassingTensors } from "./passing-tensors.ts";
import { StageReference } from "./stage-reference.ts";

export interface Stage {
  readonly graph: Graph;
  readonly weights: WeightStore;
  /** Absent: the node whose results have sizes that data decide. */
  readonly session?: ModelSession;
  /** Of memory that the program holds. */
  readonly bytes: number;
}

/** Tensors of a run by the names of their values. */
type Values = Map<string, Tensor>;

export class StagedSession implements RunningModel {
  readonly #weights: WeightStore;
  readonly #stages: readonly RunningStage[];
  readonly #inputs: readonly string[];
  readonly #outputs: readonly ModelOutput[];
  readonly #pool: WorkerPool | undefined;
  readonly #together: RunsTogether | undefined;

  /** @param pool threads that the programs share, which end with them */
  constructor({ graph, weights }: Model, stages: readonly Stage[], pool?: WorkerPool) {
    this.#weights = weights;
    const results = new Set(namesOf(graph, graph.outputs));
    const lasts = lastsOf(stages, results);
    const most = new Map(graph.symbols.map((s) => [s.name, s.max]));
    this.#stages = stages.map((stage, i) => new RunningStage(stage, lasts[i]!, most));
    const sources = new Map(graph.weights.map((w) => [w.value, w.source]));
    this.#inputs = namesOf(graph, graph.inputs);
    this.#outputs = graph.outputs.map((id) => ({
      name: graph.values[id]!.name,
      constant: sources.get(id),
    }));
    this.#pool = pool;
    this.#together = pool && pool.threads > 1 ? new RunsTogether(pool) : undefined;
  }

  /** Of memory that its programs hold. */
  get bytes(): number {
    return this.#stages.reduce((sum, { stage }) => sum + stage.bytes, 0);
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
    const passing = new PassingTensors();
    for (const stage of this.#stages) {
      const taken = stage.take(values.value);
      const program = stage.programFor(taken);
      const done = program
        ? put(program.run(stage.named(taken), undefined, passing.make), values.value, passing)
        : stage.interpret(taken, values.value, passing);
      if (!done.ok) return done;
      stage.forget(values.value, passing);
    }
    return ok(this.#results(values.value, feeds));
  }

  async #runAsync(feeds: Feeds, signal?: AbortSignal): Promise<Result<Outputs>> {
    const values = this.#start(feeds);
    if (!values.ok) return values;
    const passing = new PassingTensors();
    for (const stage of this.#stages) {
      const taken = stage.take(values.value);
      const program = stage.programFor(taken);
      const done = program
        ? put(
            await program.runAsync(stage.named(taken), signal, undefined, passing.make),
            values.value,
            passing,
          )
        : stage.interpret(taken, values.value, passing);
      if (!done.ok) return done;
      stage.forget(values.value, passing);
    }
    return ok(this.#results(values.value, feeds));
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
      const taken = stage.take(values.value);
      const program = stage.programFor(taken);
      if (program) {
        const run = program.profile(stage.named(taken), now);
        if (!run.ok) return run;
        kernels.push(...run.value.kernels.map((k) => ({ ...k, stage: i + 1 })));
        put(ok(run.value.outputs), values.value);
      } else {
        const done = stage.interpret(taken, values.value);
        if (!done.ok) return done;
      }
    }
    return ok({ outputs: this.#results(values.value, feeds), kernels });
  }

  poison(): void {
    for (const { stage } of this.#stages) stage.session?.poison();
  }

  /** A model in stages has no states. */
  resetStates(): void {}

  async dispose(): Promise<void> {
    await Promise.all(this.#stages.map(({ stage }) => stage.session?.dispose()));
    await this.#pool?.dispose();
  }

  #start(feeds: Feeds): Result<Values> {
    const names = this.#inputs;
    const missing = names.find((name) => !named(feeds, name));
    const unknown = Object.keys(feeds).find((name) => !names.includes(name));
    if (missing === undefined && unknown === undefined) return ok(new Map(Object.entries(feeds)));
    const help = `its inputs are ${names.join(", ")}`;
    if (unknown !== undefined) {
      return fail(diagnostic("RUN011", `the model has no input "${unknown}"`, { help }));
    }
    return fail(diagnostic("RUN012", `input "${missing}" is missing`, { help }));
  }

  #results(values: Values, feeds: Feeds): Outputs {
    const given = Object.values(feeds);
    const outputs = emptyNamed<Tensor>();
    for (const { name, constant } of this.#outputs) {
      const value = values.get(name) ?? this.#read(constant!);
      // What a stage passed on is the caller's own tensor, which he may write to.
      const isGiven = given.includes(value);
      outputs[name] = isGiven ? ({ ...value, data: value.data.slice() } as Tensor) : value;
    }
    return outputs;
  }

  #read(source: WeightSource): Tensor {
    return source.kind === "inline" ? source.tensor : this.#weights.read(source.key);
  }
}

/** An output of the model, and where its value is if no stage gives it. */
interface ModelOutput {
  readonly name: string;
  readonly constant: WeightSource | undefined;
}

/** A stage with what all runs of it share. */
class RunningStage {
  readonly stage: Stage;
  readonly #inputs: readonly string[];
  readonly #outputs: readonly string[];
  /** Values that nobody reads behind it. */
  readonly #lasts: readonly string[];
  /** Extents of inputs that the program has no memory for, though data may decide them. */
  readonly #bounds: readonly {
    readonly input: number;
    readonly axis: number;
    readonly most: number;
  }[];
  /** The stage for all sizes that the model may have. */
  readonly #whole: Graph;
  #reference: StageReference | undefined;

  /** @param most of the model's symbols */
  constructor(stage: Stage, lasts: readonly string[], most: ReadonlyMap<string, number>) {
    this.stage = stage;
    const { symbols, inputs, values } = stage.graph;
    const mostOf = (s: (typeof symbols)[number]): number => most.get(s.name) ?? s.max;
    this.#whole = { ...stage.graph, symbols: symbols.map((s) => ({ ...s, max: mostOf(s) })) };
    const less = symbols.filter((s) => s.max < mostOf(s));
    this.#bounds = less.flatMap(({ name, max }) =>
      inputs.flatMap((id, input) =>
        values[id]!.type.shape.flatMap((extent, axis) =>
          extent.key === name ? [{ input, axis, most: max }] : [],
        ),
      ),
    );
    this.#lasts = lasts;
    this.#inputs = namesOf(stage.graph, stage.graph.inputs);
    this.#outputs = namesOf(stage.graph, stage.graph.outputs);
  }

  /** Its inputs, in the order of its graph. */
  take(values: Values): readonly Tensor[] {
    return this.#inputs.map((name) => values.get(name)!);
  }

  /** Its program, unless it has none, or an input is empty or larger than it has memory for. */
  programFor(taken: readonly Tensor[]): ModelSession | undefined {
    const isBeyond = this.#bounds.some(
      ({ input, axis, most }) => taken[input]!.shape[axis]! > most,
    );
    return isBeyond || taken.some((t) => t.shape.includes(0)) ? undefined : this.stage.session;
  }

  named(taken: readonly Tensor[]): Feeds {
    const feeds = emptyNamed<Tensor>();
    for (let i = 0; i < taken.length; i++) feeds[this.#inputs[i]!] = taken[i]!;
    return feeds;
  }

  interpret(taken: readonly Tensor[], values: Values, passing?: PassingTensors): Result<void> {
    this.#reference ??= new StageReference(this.#whole, this.stage.weights);
    const made = this.#reference.run(taken);
    if (!made.ok) return made;
    for (let i = 0; i < made.value.length; i++) {
      values.set(this.#outputs[i]!, made.value[i]!);
      passing?.name(made.value[i]!);
    }
    return ok(undefined);
  }

  /** Lets go of what nobody reads any more. */
  forget(values: Values, passing: PassingTensors): void {
    for (const name of this.#lasts) {
      const tensor = values.get(name);
      values.delete(name);
      if (tensor) passing.forget(tensor);
    }
  }
}

/** For each stage the values that it is the last to name, but for the model's results. */
function lastsOf(
  stages: readonly Stage[],
  results: ReadonlySet<string>,
): readonly (readonly string[])[] {
  const seen = new Set(results);
  const lasts = stages.toReversed().map(({ graph }) => {
    const own = new Set([...namesOf(graph, graph.inputs), ...namesOf(graph, graph.outputs)]);
    const found = [...own].filter((name) => !seen.has(name));
    for (const name of own) seen.add(name);
    return found;
  });
  return lasts.reverse();
}

function namesOf({ values }: Graph, ids: readonly ValueId[]): readonly string[] {
  return ids.map((id) => values[id]!.name);
}

/** Adds what a program gave to what is known. */
function put(outputs: Result<Outputs>, values: Values, passing?: PassingTensors): Result<void> {
  if (!outputs.ok) return outputs;
  for (const name of Object.keys(outputs.value)) {
    values.set(name, outputs.value[name]!);
    passing?.name(outputs.value[name]!);
  }
  return ok(undefined);
}

/** What tells the size of a run's work, as far as its inputs do. */
function extentsOf(feeds: Feeds): ParameterValues {
  const dims = Object.entries(feeds).flatMap(([name, { shape }]) =>
    shape.map((extent, axis) => [`${name}.${axis}`, extent] as const),
  );
  return Object.fromEntries(dims);
}
