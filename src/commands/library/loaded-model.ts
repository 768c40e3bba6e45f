/**
 * A model that is ready to run: `run` on the calling thread and its helpers, `runAsync` beside it. Any
 * number of callers may use `runAsync` at once; their runs queue. A state is an input that takes the value
 * which an output had in the run before; it begins as zeros, and a feed replaces what was kept.
 */
import type { ArtifactMeta } from "../../artifact/artifact.ts";
import {
  fitsOutput,
  type KernelTime,
  type ModelSession,
  type Outputs,
  unknownOutput,
} from "../../runtime/model-session.ts";
import { type Tensor, tensorBytes } from "../../semantics/tensor.ts";
import {
  contain,
  containLater,
  type Diagnostic,
  diagnostic,
  fail,
  ok,
  type Result,
} from "../../support/diagnostic.ts";
import { emptyNamed, named } from "../../support/named.ts";
import { checkTensor } from "./check-tensor.ts";
import type { ModelPorts, Port } from "./ports.ts";
import { unwrap } from "./wavetile-error.ts";

export type Tensors = Readonly<Record<string, Tensor>>;

export interface RunOptions {
  /** Cancels the run; only where it leaves the event loop free. */
  readonly signal?: AbortSignal;
  /**
   * Tensors by output name that take the results, in place of new ones: a caller that runs often spares
   * the pages of new arrays. They have to fit (RUN018, RUN019); after a run that fails their elements may be any.
   */
  readonly outputs?: Tensors;
}

/** What a loaded model does its runs with: one program, or one for each size. */
export type RunningModel = Pick<
  ModelSession,
  "run" | "runAsync" | "profile" | "poison" | "resetStates" | "dispose"
>;

/** A model as its user sees it: the names and types of what goes in and comes out. */
export interface ModelFace {
  readonly start: { readonly meta: Pick<ArtifactMeta, "inputs" | "outputs"> };
  readonly ports: ModelPorts;
}

export class LoadedModel {
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
  /** What loading had to say: why WebAssembly runs in place of machine code, for one. */
  readonly warnings: readonly Diagnostic[];
  readonly #session: RunningModel;
  readonly #release: (() => void) | undefined;
  /** The model's names to the graph's and back. */
  readonly #valueOf: ReadonlyMap<string, string>;
  readonly #nameOf: ReadonlyMap<string, string>;
  #running = 0;
  #queue: Promise<unknown> = Promise.resolve();
  #disposed = false;

  /** @param release what the session stands on, given back after it */
  constructor(
    { start: { meta }, ports }: ModelFace,
    session: RunningModel,
    release?: () => void,
    warnings: readonly Diagnostic[] = [],
  ) {
    this.warnings = warnings;
    this.#session = session;
    this.#release = release;
    this.#valueOf = new Map(meta.inputs.map((p) => [p.name, p.value]));
    this.#nameOf = new Map(meta.outputs.map((p) => [p.value, p.name]));
    this.inputs = ports.inputs;
    this.outputs = ports.outputs;
  }

  /**
   * Outputs for these inputs, by the model's names; a sequence `s` is one tensor for each element, `s.0`, `s.1`, ….
   * Blocks. Throws WavetileError with diagnostics.
   */
  run(feeds: Tensors, options?: Pick<RunOptions, "outputs">): Tensors {
    return unwrap(this.tryRun(feeds, options));
  }

  /** As `run`, with the diagnostics as a value. */
  tryRun(feeds: Tensors, { outputs }: Pick<RunOptions, "outputs"> = {}): Result<Tensors> {
    const ready = this.#ready();
    if (!ready.ok) return ready;
    const prepared = this.#prepare(feeds);
    if (!prepared.ok) return prepared;
    const into = this.#prepareOutputs(outputs);
    if (!into.ok) return into;
    const ran = contain(() => this.#session.run(prepared.value, into.value));
    return this.#finish(ran, into.value);
  }

  /** Outputs for these inputs, leaving the event loop free. Rejects with WavetileError. */
  async runAsync(feeds: Tensors, { signal, outputs }: RunOptions = {}): Promise<Tensors> {
    if (this.#disposed) unwrap(disposed());
    if (signal !== undefined && !(signal instanceof AbortSignal)) unwrap(noSignal());
    this.#running++;
    // Copied now: the caller may use its arrays again while the run waits for its turn.
    const prepared = copied(this.#prepare(feeds));
    const into = this.#prepareOutputs(outputs);
    const turn = this.#queue.then(async () => {
      if (!prepared.ok) return prepared;
      if (!into.ok) return into;
      const ran = await containLater(() =>
        this.#session.runAsync(prepared.value, signal, into.value),
      );
      return this.#finish(ran, into.value);
    });
    // A run that throws is a bug that its caller sees; the next in the queue runs all the same.
    this.#queue = turn.then(
      () => this.#running--,
      () => this.#running--,
    );
    return unwrap(await turn);
  }

  /** Runs kernel by kernel with the time of each on the clock `now` (milliseconds). */
  profile(
    feeds: Tensors,
    now: () => number,
  ): Result<{ readonly outputs: Tensors; readonly kernels: readonly KernelTime[] }> {
    const ready = this.#ready();
    if (!ready.ok) return ready;
    const prepared = this.#prepare(feeds);
    if (!prepared.ok) return prepared;
    const run = contain(() => this.#session.profile(prepared.value, now));
    if (!run.ok) return run;
    const outputs = this.#finish(ok(run.value.outputs));
    return outputs.ok ? ok({ outputs: outputs.value, kernels: run.value.kernels }) : outputs;
  }

  /** Fills outputs and scratch memory with NaN patterns: a stale result cannot pass for a new one. */
  poison(): void {
    this.#session.poison();
  }

  /** Forgets the states: the next run starts from zeros. */
  resetStates(): void {
    this.#session.resetStates();
  }

  /** Ends the threads and frees the memory, after the runs that were asked for. */
  async dispose(): Promise<void> {
    if (this.#disposed) return;
    this.#disposed = true;
    await this.#queue;
    await this.#session.dispose();
    this.#release?.();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.dispose();
  }

  #ready(): Result<void> {
    if (this.#disposed) return disposed();
    if (this.#running === 0) return ok(undefined);
    return fail(
      diagnostic("RUN035", `${this.#running} runs of this model are in progress`, {
        help: "await them, or use runAsync, which queues",
      }),
    );
  }

  /** Checked feeds under the graph's names, states added. */
  #prepare(feeds: Tensors): Result<Tensors> {
    if (typeof feeds !== "object" || feeds === null) {
      const message = "the feeds are no object of tensors by input name";
      return fail(diagnostic("RUN036", message, { help: `its inputs: ${namesOf(this.inputs)}` }));
    }
    const prepared = emptyNamed<Tensor>();
    for (const [name, value] of Object.entries(feeds)) {
      const tensor = checkTensor(`input "${name}"`, value);
      if (!tensor.ok) return tensor;
      prepared[this.#valueOf.get(name) ?? name] = tensor.value;
    }
    return ok(prepared);
  }

  /** Checked tensors for outputs under the graph's names. */
  #prepareOutputs(given: Tensors | undefined): Result<Tensors | undefined> {
    if (given === undefined) return ok(undefined);
    if (typeof given !== "object" || given === null) {
      const message = "outputs is no object of tensors by output name";
      return fail(diagnostic("RUN036", message, { help: `its outputs: ${namesOf(this.outputs)}` }));
    }
    const values = new Map([...this.#nameOf].map(([value, name]) => [name, value]));
    const prepared = emptyNamed<Tensor>();
    for (const [name, value] of Object.entries(given)) {
      const tensor = checkTensor(`output "${name}"`, value);
      if (!tensor.ok) return tensor;
      prepared[values.get(name) ?? name] = tensor.value;
    }
    return ok(prepared);
  }

  /** @param into tensors that take the outputs; what a session gave beside them is copied */
  #finish(result: Result<Outputs>, into: Tensors = {}): Result<Tensors> {
    if (!result.ok) return result;
    for (const [value, tensor] of Object.entries(into)) {
      const made = named(result.value, value);
      if (!made)
        return fail(
          unknownOutput(
            value,
            this.outputs.map((p) => ({ title: p.name })),
          ),
        );
      if (made.data === tensor.data) continue;
      const fits = fitsOutput(this.#nameOf.get(value) ?? value, made, tensor);
      if (!fits.ok) return fits;
      tensorBytes(tensor).set(tensorBytes(made));
      result.value[value] = tensor;
    }
    const outputs = Object.fromEntries(
      Object.entries(result.value).map(([value, t]) => [this.#nameOf.get(value) ?? value, t]),
    );
    return ok(outputs, result.warnings);
  }
}

function copied(feeds: Result<Tensors>): Result<Tensors> {
  if (!feeds.ok) return feeds;
  const copies = Object.entries(feeds.value).map(([name, tensor]) => [
    name,
    { ...tensor, data: tensor.data.slice() },
  ]);
  return ok(Object.fromEntries(copies) as Tensors);
}

function namesOf(ports: readonly Port[]): string {
  return ports.map((p) => p.name).join(", ");
}

function noSignal(): Result<never> {
  return fail(diagnostic("CLI001", "signal is no AbortSignal", { help: "new AbortController()" }));
}

function disposed(): Result<never> {
  return fail(
    diagnostic("RUN037", "the model was disposed", { help: "dispose it after its last run" }),
  );
}
