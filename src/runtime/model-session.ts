/**
 * A model on this machine: a program's instance with its weights in place. Inputs are copied in and
 * outputs copied out, unless the program can run on the caller's arrays while the caller waits; shape parameters follow from the inputs' shapes, so one session serves every
 * shape in the program's ranges. Runs go one after another: each owns the memory while it runs.
 * A state begins as zeros; after each run the bytes of its output are those of its input for the next.
 * It may be fed like an input, which replaces what was kept.
 */
import type { Buffer, Program, Task } from "../program/program.ts";
import { type DType, storageBytes } from "../semantics/dtype.ts";
import { evaluate, type IndexExpr } from "../semantics/index-expr.ts";
import { packInto } from "../semantics/layout.ts";
import { withoutSubnormals } from "../semantics/subnormals.ts";
import { makeTensor, type Tensor, type TensorData, tensorBytes } from "../semantics/tensor.ts";
import { ByExtents } from "../support/by-extents.ts";
import {
  attempt,
  type Diagnostic,
  diagnostic,
  fail,
  ok,
  type Result,
} from "../support/diagnostic.ts";
import { emptyNamed, named } from "../support/named.ts";
import { bindParameters, type GivenShape } from "./bind-parameters.ts";
import type { BufferMemory } from "./buffer-memory.ts";
import { type LentArray, lentArray } from "./lent-arrays.ts";
import { type KernelTime, type ProgramStep, profileProgram } from "./profile-program.ts";

export type { KernelTime, ProgramStep };

export type ParameterValues = Readonly<Record<string, number>>;

/** A program ready to run on this machine, whatever its code is. */
export interface ProgramInstance {
  /** Buffers of scope memory, each at its capacity. */
  readonly memory: BufferMemory;
  /** Its code does so itself: weights may keep theirs. */
  readonly countsSubnormalsAsZero?: true;
  /** They are in their places already, and may be read alone. */
  readonly hasWeights?: boolean;
  /**
   * Until `giveBack` runs that block are on these arrays in place of its memory of their buffers, on those that it
   * marks as lent. Absent: none of its runs are.
   */
  lend?(arrays: readonly LentArray[]): void;
  giveBack?(arrays: readonly LentArray[]): void;
  /** Writes the parameters of the next run without running. */
  bind(parameters: ParameterValues): Result<void>;
  /** Runs on this thread and its helpers; blocks. */
  runSync(parameters: ParameterValues): Result<void>;
  /** Runs beside this thread; the caller must not touch the buffers before it settles. */
  run(parameters: ParameterValues, signal?: AbortSignal): Promise<Result<void>>;
  /** One task as a program of its own on the same memory, for profiles. */
  createStep(task: Task): Result<ProgramStep>;
  /** Ends the threads and gives the memory back. */
  dispose(): void | Promise<void>;
}

export interface SessionOptions {
  /** Elements of a weight by the graph's name. */
  readonly weight: (name: string) => Tensor;
  /** All weights as the program reads them, in place of `weight`: its arena of them. */
  readonly arena?: Uint8Array;
  /** Called when weights were copied: what they were copied from may leave memory (MappedFile). */
  readonly forget?: () => void;
  /** What the user calls an input or output, for messages; by default the graph's name. */
  readonly title?: (name: string) => string;
}

/** An input or output as a caller sees it. */
export interface PortDescription {
  readonly name: string;
  readonly title: string;
  readonly dtype: DType;
  readonly shape: readonly IndexExpr[];
  /** An input that need not be fed: it is kept from run to run. */
  readonly kept: boolean;
}

export type Feeds = Readonly<Record<string, Tensor>>;
export type Outputs = Record<string, Tensor>;
export type MakeTensor = (dtype: DType, shape: readonly number[]) => Tensor;

/** Shapes of inputs whose parameters are remembered. */
const mostShapes = 16;

const nothing: Feeds = {};

/** A buffer that a run takes an input from, or leaves an output in. */
interface End {
  readonly buffer: Buffer;
  /** The graph's name. */
  readonly source: string;
  /** The caller's, where it may take the buffer's place. */
  readonly array: LentArray | undefined;
}

/** What follows from the shapes of a run's inputs. */
interface Binding {
  readonly parameters: ParameterValues;
  /** Of each output. */
  readonly shapes: readonly (readonly number[])[];
}

export class ModelSession {
  readonly inputs: readonly PortDescription[];
  readonly outputs: readonly PortDescription[];
  readonly #program: Program;
  readonly #instance: ProgramInstance;
  readonly #title: (name: string) => string;
  /** Buffers that a run takes its inputs from, or leaves its outputs in: states are among them. */
  readonly #ends: Readonly<Record<"input" | "output", readonly End[]>>;
  readonly #lent: readonly LentArray[];
  readonly #inputNames: ReadonlySet<string>;
  readonly #bindings = new ByExtents<Result<Binding>>(mostShapes);
  #queue: Promise<unknown> = Promise.resolve();
  /** So are the arrays that the next run makes for outputs. */
  #isPoisoned = false;

  constructor(program: Program, instance: ProgramInstance, options: SessionOptions) {
    this.#program = program;
    this.#instance = instance;
    this.#title = options.title ?? ((name) => name);
    this.#ends = { input: endsOf(program, "input"), output: endsOf(program, "output") };
    this.inputs = this.#ports("input");
    this.outputs = this.#ports("output");
    this.#inputNames = new Set(this.inputs.map((p) => p.name));
    const ends = [...this.#ends.input, ...this.#ends.output];
    this.#lent = ends.flatMap(({ array }) => array ?? []);
    this.resetStates();
    if (instance.hasWeights) return;
    const { memory, countsSubnormalsAsZero } = instance;
    const { forget } = options;
    for (const { name, source, layout } of this.#owners("weight")) {
      const given = options.weight(source!);
      const tensor = countsSubnormalsAsZero ? given : withoutSubnormals(given);
      if (layout) memory.compose(name, (bytes) => packInto(bytes, tensor, layout));
      else memory.write(name, tensorBytes(tensor), forget);
      forget?.();
    }
  }

  /**
   * Runs on the calling thread and the pool; blocks.
   * @param into tensors that take the outputs of their names, in place of new ones
   * @param make makes the others; what they hold before the run is nothing to it
   */
  run(feeds: Feeds, into?: Feeds, make?: MakeTensor): Result<Outputs> {
    const bound = this.#judge(feeds, into);
    if (!bound.ok) return bound;
    const outputs = this.#outputsFor(bound.value, into, make);
    try {
      this.#lend(feeds, outputs);
      this.#writeInputs(feeds);
      const outcome = this.#instance.runSync(bound.value.parameters);
      if (!outcome.ok) return outcome;
      this.#readOutputs(outputs);
      return ok(outputs);
    } finally {
      this.#instance.giveBack?.(this.#lent);
    }
  }

  /** Leaves the event loop free; concurrent calls run one after another. */
  runAsync(
    feeds: Feeds,
    signal?: AbortSignal,
    into?: Feeds,
    make?: MakeTensor,
  ): Promise<Result<Outputs>> {
    const turn = this.#queue.then(async (): Promise<Result<Outputs>> => {
      const bound = this.#start(feeds, into);
      if (!bound.ok) return bound;
      const outcome = await this.#instance.run(bound.value.parameters, signal);
      if (!outcome.ok) return outcome;
      const outputs = this.#outputsFor(bound.value, into, make);
      this.#readOutputs(outputs);
      return ok(outputs);
    });
    this.#queue = turn;
    return turn;
  }

  /** Runs launch by launch, each as a program of its own, and times them. */
  profile(
    feeds: Feeds,
    now: () => number,
  ): Result<{ readonly outputs: Outputs; readonly kernels: readonly KernelTime[] }> {
    const bound = this.#start(feeds);
    if (!bound.ok) return bound;
    this.#instance.bind(bound.value.parameters);
    const parameters = new Map(Object.entries(bound.value.parameters));
    const kernels = profileProgram(this.#program, this.#instance, { parameters, now });
    if (!kernels.ok) return kernels;
    const outputs = this.#outputsFor(bound.value);
    this.#readOutputs(outputs);
    return ok({ outputs, kernels: kernels.value });
  }

  /** Fills scratch memory and outputs with NaN patterns, so that a stale result cannot look right. */
  poison(): void {
    this.#isPoisoned = true;
    for (const b of [...this.#owners("scratch"), ...this.#ends.output.map((e) => e.buffer)]) {
      this.#instance.memory.fill(b.name, 0xff);
    }
  }

  /** States are zeros again, as before the first run. */
  resetStates(): void {
    for (const b of this.#owners("state")) this.#instance.memory.fill(b.name, 0);
  }

  /** Ends the threads; the session cannot run again. */
  async dispose(): Promise<void> {
    await this.#instance.dispose();
  }

  #owners(kind: Buffer["kind"]): readonly Buffer[] {
    return this.#program.buffers.filter((b) => b.kind === kind && b.viewOf === undefined);
  }

  #ports(kind: "input" | "output"): readonly PortDescription[] {
    return this.#ends[kind].map(({ buffer, source }) => ({
      name: source,
      title: this.#title(source),
      dtype: buffer.dtype,
      shape: buffer.shape,
      kept: buffer.kind === "state",
    }));
  }

  /** The same, and copies the inputs in. */
  #start(feeds: Feeds, into?: Feeds): Result<Binding> {
    const bound = this.#judge(feeds, into);
    if (bound.ok) this.#writeInputs(feeds);
    return bound;
  }

  /** Those that the program does not run on. */
  #writeInputs(feeds: Feeds): void {
    for (const { buffer, source, array } of this.#ends.input) {
      const feed = named(feeds, source);
      if (feed && !array?.isLent) this.#instance.memory.write(buffer.name, tensorBytes(feed));
    }
  }

  /** Has the program run on the caller's arrays, and on new ones for outputs, where they are what it expects. */
  #lend(feeds: Feeds, outputs: Outputs): void {
    if (!this.#instance.lend) return;
    for (const { source, array } of this.#ends.input) {
      if (array) array.data = wholeData(named(feeds, source));
    }
    for (const { source, array } of this.#ends.output) {
      if (array) array.data = wholeData(outputs[source]);
    }
    this.#instance.lend(this.#lent);
  }

  /** Checks the feeds and the tensors for outputs, and binds the parameters. */
  #judge(feeds: Feeds, into?: Feeds): Result<Binding> {
    const bound = this.#bind(feeds);
    if (!bound.ok) return bound;
    for (const [name, tensor] of into ? Object.entries(into) : []) {
      const at = this.outputs.findIndex((p) => p.name === name);
      const port = this.outputs[at];
      if (!port) return fail(unknownOutput(name, this.outputs));
      const shape = bound.value.shapes[at]!;
      const fits = fitsOutput(port.title, { dtype: port.dtype, shape }, tensor);
      if (!fits.ok) return fits;
    }
    return bound;
  }

  /** Inputs of shapes that were found to fit before are not judged again. */
  #bind(feeds: Feeds): Result<Binding> {
    const faults: Diagnostic[] = [];
    for (const name of Object.keys(feeds)) {
      if (!this.#inputNames.has(name)) faults.push(unknownInput(name, this.inputs));
    }
    const extents: (readonly number[] | undefined)[] = [];
    for (const port of this.inputs) {
      const feed = named(feeds, port.name);
      extents.push(feed?.shape);
      if (!feed && !port.kept) faults.push(missingInput(port));
      else if (feed && feed.dtype !== port.dtype) faults.push(wrongType(port, feed));
    }
    if (faults.length > 0) return fail(...faults);
    const known = this.#bindings.find(extents);
    if (known) return known;
    const given = this.inputs.flatMap((port, i): GivenShape[] => {
      const shape = extents[i];
      return shape ? [{ port: { name: port.title, shape: port.shape }, shape }] : [];
    });
    const bound = bindParameters(this.#program, given);
    if (!bound.ok) return bound;
    const binding = ok({
      parameters: Object.fromEntries(bound.value),
      shapes: this.outputs.map((p) => p.shape.map((e) => evaluate(e, bound.value))),
    });
    this.#bindings.keep(extents, binding);
    return binding;
  }

  /** A tensor for every output: the caller's, or a new one. */
  #outputsFor({ shapes }: Binding, into: Feeds = nothing, make: MakeTensor = makeTensor): Outputs {
    const outputs = emptyNamed<Tensor>();
    for (let i = 0; i < this.#ends.output.length; i++) {
      const { buffer, source } = this.#ends.output[i]!;
      const given = named(into, source);
      // The caller's own: what is remembered of the shapes is not handed out.
      const tensor = given ?? make(buffer.dtype, [...shapes[i]!]);
      if (this.#isPoisoned && !given) tensorBytes(tensor).fill(0xff);
      outputs[source] = tensor;
    }
    this.#isPoisoned = false;
    return outputs;
  }

  /** Copies the results that were not written in place, and what is kept for the next run. */
  #readOutputs(outputs: Outputs): void {
    const { memory } = this.#instance;
    for (const { buffer, source, array } of this.#ends.output) {
      if (!array?.isLent) memory.readInto(buffer.name, tensorBytes(outputs[source]!));
    }
    for (const { input, output } of this.#program.states) memory.copy(output, input);
  }
}

/** The session of an instance; one whose weights cannot be read is given back. */
export function openSession(
  program: Program,
  instance: ProgramInstance,
  options: SessionOptions,
): Result<ModelSession> {
  const made = attempt(() => new ModelSession(program, instance, options));
  if (!made.ok) void instance.dispose();
  return made;
}

function endsOf({ states, buffers }: Program, kind: "input" | "output"): readonly End[] {
  const kept = new Set(states.map((s) => s[kind]));
  const own = buffers.filter(
    (b) => b.viewOf === undefined && (b.kind === kind || kept.has(b.name)),
  );
  return own.map((buffer) => ({
    buffer,
    source: buffer.source!,
    // States are kept from run to run.
    array: kept.has(buffer.name) ? undefined : lentArray(buffer.name, kind === "output"),
  }));
}

/** Of a tensor that is there and has all its elements. */
function wholeData(tensor: Tensor | undefined): TensorData | undefined {
  if (!tensor) return undefined;
  let elements = 1;
  for (const extent of tensor.shape) elements *= extent;
  const bytes = storageBytes(tensor.dtype, elements);
  return tensor.data.byteLength === bytes ? tensor.data : undefined;
}

export function unknownInput(
  name: string,
  inputs: readonly Pick<PortDescription, "title">[],
): Diagnostic {
  return diagnostic("RUN011", `the model has no input "${name}"`, {
    help: `its inputs are ${inputs.map((p) => p.title).join(", ")}`,
  });
}

/** Whether a caller's tensor can take an output of this type and shape. */
export function fitsOutput(
  title: string,
  { dtype, shape }: Pick<Tensor, "dtype" | "shape">,
  given: Tensor,
): Result<void> {
  const isSame = shape.length === given.shape.length && shape.every((e, i) => e === given.shape[i]);
  if (dtype === given.dtype && isSame) return ok(undefined);
  const found = `${given.dtype} of shape [${given.shape.join(", ")}]`;
  return fail(
    diagnostic("RUN019", `output "${title}" does not fit the tensor that is to take it: ${found}`, {
      help: `give a ${dtype} tensor of shape [${shape.join(", ")}], or none`,
    }),
  );
}

export function unknownOutput(
  name: string,
  ports: readonly Pick<PortDescription, "title">[],
): Diagnostic {
  return diagnostic("RUN018", `the model has no output "${name}"`, {
    help: `its outputs are ${ports.map((p) => p.title).join(", ")}`,
  });
}

function missingInput(port: PortDescription): Diagnostic {
  return diagnostic("RUN012", `input "${port.title}" is missing`, {
    help: `feed a ${port.dtype} tensor of shape [${port.shape.map((e) => e.key).join(", ")}]`,
  });
}

export function wrongType(
  port: Pick<PortDescription, "title" | "dtype">,
  feed: Tensor,
): Diagnostic {
  return diagnostic("RUN013", `input "${port.title}" is ${feed.dtype}, not ${port.dtype}`, {
    help: "convert the tensor before the run",
  });
}
