/**
 * A program ready to run as machine code: emitted, its pages mapped, its threads started when they are
 * first needed. The caller writes inputs and weights into the views of their buffers, runs with
 * parameter values, and reads outputs from the views. Thread 0 is the caller's own (or, for `run`, one
 * of the process's pool); the others wait for jobs in emitted code (emit/x64/thread-code.ts).
 */
import {
  abortCodes,
  mathFunctions,
  mathWord,
  sharedBlock,
  sleepNanoseconds,
  threadBlock,
} from "../../emit/x64/context-block.ts";
import { emitX64, type X64Program } from "../../emit/x64/emit-program.ts";
import { arenas, withOwnEnds } from "../../emit/x64/program-layout.ts";
import { type Arena, arenaVariable, bufferVariable } from "../../program/addresses.ts";
import type { Buffer, Program, Task } from "../../program/program.ts";
import { arenaSizes, capacityBytes } from "../../program/storage-sizes.ts";
import { evaluate } from "../../semantics/index-expr.ts";
import {
  type Diagnostic,
  DiagnosticError,
  diagnostic,
  fail,
  ok,
  type Result,
} from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import type { Target } from "../../target/target.ts";
import { copyInPieces, memoryOfViews } from "../buffer-memory.ts";
import { type NativeFunction, type NativeSystem, viewLimit } from "../ffi/native-system.ts";
import { openProcessors } from "../ffi/processors.ts";
import { mappedAddress } from "../files/mapped-file.ts";
import { indexOutOfRange } from "../index-out-of-range.ts";
import { type LentArray, lendApart } from "../lent-arrays.ts";
import type { ParameterValues, ProgramInstance, ProgramStep } from "../model-session.ts";
import { ThreadChoices } from "../thread-choice.ts";
import { ThreadPlaces } from "../thread-places.ts";
import { noExecution } from "./cpuid.ts";
import { NativeMemory } from "./native-memory.ts";
import { type CodeFunction, notePerfMap } from "./perf-map.ts";

/** What an instance needs of emitted machine code. */
export type NativeCode = {
  readonly kind: "x64";
  readonly bytes: Uint8Array;
  /** What lies where, for profilers. */
  readonly functions: readonly CodeFunction[];
} & Pick<X64Program, "entries" | "layout" | "checks">;

export interface NativeOptions {
  readonly system: NativeSystem;
  /** Compute threads of a run, the caller's included. */
  readonly threads: number;
  /** Cores that they may use at once: more threads than these do not poll. */
  readonly parallelism: number;
  /** For tests: a page without access on both sides of every mapping. */
  readonly guards?: boolean;
  /** Code of the program that was emitted for this target and system before. */
  readonly code?: NativeCode;
  /** The program with its kernels' bodies, where `program` is but its outline: for steps. */
  readonly whole?: () => Program;
  /** The program's weights: used where they lie if that is a mapped file, else copied. */
  readonly arena?: Uint8Array;
  /** See copyInPieces. */
  readonly forget?: () => void;
}

/** Polls before a thread sleeps: some tens of microseconds. */
const spins = 4000;
const stallMilliseconds = 20_000;

/** Emits a program for its target unless its code is there, and gives it memory. */
export function createNativeInstance(
  program: Program,
  target: Target,
  options: NativeOptions,
): Result<NativeInstance> {
  const { code, system } = options;
  const emitted = code ? ok(code) : emitNativeCode(program, target, system);
  if (!emitted.ok) return emitted;
  const memory = new NativeMemory(system);
  try {
    const instance = new NativeInstance({
      program: withOwnEnds(program),
      target,
      emitted: emitted.value,
      memory,
      options,
    });
    return ok(instance, emitted.warnings);
  } catch (error) {
    memory.unmap();
    if (!(error instanceof DiagnosticError)) throw error;
    return fail(...error.diagnostics);
  }
}

/** Machine code for a target of this emitter. */
export function emitNative(
  program: Program,
  target: Target,
  system: Pick<NativeSystem, "kind">,
): Result<X64Program> {
  const evex = target.vectorBytes === 64;
  const features = { evex, vectorBits: evex ? 512 : 256 } as const;
  return emitX64(program, { features, system: system.kind });
}

export function emitNativeCode(
  program: Program,
  target: Target,
  system: Pick<NativeSystem, "kind">,
): Result<NativeCode> {
  const emitted = emitNative(program, target, system);
  if (!emitted.ok) return emitted;
  const { code, entries, layout, checks } = emitted.value;
  const functions = code.functions.map(({ name, start, end }) => ({ name, start, end }));
  const made = { kind: "x64", bytes: code.bytes, functions, entries, layout, checks } as const;
  return ok(made, emitted.warnings);
}

interface InstanceParts {
  readonly program: Program;
  readonly target: Target;
  readonly emitted: NativeCode;
  readonly memory: NativeMemory;
  readonly options: NativeOptions;
}

interface Loaded {
  readonly enter: NativeFunction;
  readonly dispatch: NativeFunction;
  readonly quit: NativeFunction;
  readonly work: bigint;
}

export class NativeInstance implements ProgramInstance {
  readonly memory = memoryOfViews((name) => this.bytes(name));
  /** FTZ and DAZ are set while it runs. */
  readonly countsSubnormalsAsZero = true;
  readonly hasWeights: boolean;
  readonly #parts: InstanceParts;
  readonly #buffers: ReadonlyMap<string, Buffer>;
  readonly #bases: ReadonlyMap<string, bigint>;
  /** Of each buffer with an address of its own, its word in a thread's block and its place in our memory. */
  readonly #ends: ReadonlyMap<string, { readonly word: number; readonly own: bigint }>;
  readonly #views = new Map<string, Uint8Array>();
  readonly #shared: Int32Array;
  readonly #blocks: readonly bigint[];
  readonly #words: readonly BigInt64Array[];
  readonly #code: Loaded;
  readonly #workers: bigint[] = [];
  readonly #choices: ThreadChoices;
  /** Of runs on threads of the system's pool: they start and end by messages. */
  readonly #choicesBeside: ThreadChoices;
  #places: ThreadPlaces | undefined;
  #disposed = false;

  constructor(parts: InstanceParts) {
    this.#parts = parts;
    const { program, emitted, memory, options } = parts;
    const { system, threads } = options;
    this.#choices = new ThreadChoices(threads);
    this.#choicesBeside = new ThreadChoices(threads);
    this.#buffers = new Map(program.buffers.map((b) => [b.name, b]));
    this.#code = load(memory, emitted, system);
    const shared = memory.map(sharedBlock.bytes);
    this.#shared = new Int32Array(system.view(shared, sharedBlock.bytes));
    const place = (bytes: number): bigint =>
      options.guards ? memory.mapGuarded(bytes) : memory.map(bytes);
    const { arena } = options;
    this.hasWeights = arena !== undefined;
    invariant(
      !arena || arena.length >= arenaSizes(program).weights,
      () => `${arena!.length} bytes of weights are less than the program reads`,
    );
    const mapped = arena && mappedWeights(arena);
    const weights = mapped ?? (arena && place(Math.max(1, arena.length)));
    this.#bases = placeBuffers(program, emitted, place, weights);
    if (arena && mapped === undefined) this.#fillWeights(arena);
    const { blockBytes, localBytes, buffers } = emitted.layout;
    const own = (name: string): bigint => this.#bases.get(bufferVariable(name))!;
    this.#ends = new Map([...buffers].map(([b, at]) => [b, { word: at / 8, own: own(b) }]));
    // Pages of their own keep what different threads write apart.
    this.#blocks = Array.from({ length: threads }, () => memory.map(blockBytes));
    this.#words = this.#blocks.map((b) => new BigInt64Array(system.view(b, blockBytes)));
    const locals = this.#blocks.map(() => place(Math.max(64, localBytes)));
    this.#writeBlocks(shared, locals);
    this.#shared[sharedBlock.idleSpinLimit / 4] = this.#spins;
    this.#shared[sharedBlock.stallLimit / 4] = (stallMilliseconds * 1e6) / sleepNanoseconds;
  }

  #fillWeights(arena: Uint8Array): void {
    const { system, forget } = this.#parts.options;
    const at = this.#bases.get(arenaVariable("weights"))!;
    for (let done = 0; done < arena.length; done += viewLimit) {
      const part = arena.subarray(done, done + viewLimit);
      copyInPieces(new Uint8Array(system.view(at + BigInt(done), part.length)), part, forget);
    }
  }

  /** Bytes mapped for code, weights and buffers. */
  get mappedBytes(): number {
    return this.#parts.memory.bytes;
  }

  bytes(name: string): Uint8Array {
    const known = this.#views.get(name);
    if (known) return known;
    invariant(!this.#disposed, () => "a disposed instance has no memory");
    const { program, options } = this.#parts;
    const buffer = this.#buffers.get(name);
    invariant(buffer, () => `no buffer ${name}`);
    const { address, offset } = this.#locate(buffer);
    const length = capacityBytes(program, buffer);
    if (length > viewLimit) {
      throw new DiagnosticError([
        diagnostic("RUN051", `buffer ${name} has ${length} bytes, a view at most ${viewLimit}`, {
          help: "split the tensor, or quantize the weights",
        }),
      ]);
    }
    const view = new Uint8Array(
      options.system.view(address + BigInt(offset), Math.max(1, length)),
      0,
      length,
    );
    this.#views.set(name, view);
    return view;
  }

  bind(parameters: ParameterValues): Result<void> {
    const { program, emitted } = this.#parts;
    for (const { name, min, max } of program.parameters) {
      const word = emitted.layout.parameters.get(name);
      if (word === undefined) continue;
      const value = parameters[name];
      if (value === undefined || !Number.isInteger(value) || value < min || value > max) {
        const help = `give an integer from ${min} to ${max}`;
        return fail(diagnostic("RUN008", `parameter ${name} is ${value}`, { help }));
      }
      for (const words of this.#words) words[word / 8] = BigInt(value);
    }
    return ok(undefined);
  }

  lend(arrays: readonly LentArray[]): void {
    invariant(!this.#disposed, () => "a disposed instance does not run");
    const { options } = this.#parts;
    // Guards are around our own memory.
    if (options.guards) return;
    lendApart(arrays, options.system.addressOf);
    for (const { buffer, isLent, address } of arrays) {
      if (isLent) this.#point(this.#ends.get(buffer)!.word, address);
    }
  }

  giveBack(arrays: readonly LentArray[]): void {
    for (const array of arrays) {
      const { buffer, isLent } = array;
      array.data = undefined;
      if (!isLent) continue;
      array.isLent = false;
      const { word, own } = this.#ends.get(buffer)!;
      this.#point(word, own);
    }
  }

  #point(word: number, address: bigint): void {
    for (const words of this.#words) words[word] = address;
  }

  runSync(parameters: ParameterValues): Result<void> {
    const bound = this.bind(parameters);
    if (!bound.ok) return bound;
    if (this.#blocks.length === 1) return this.#alone(this.#code);
    return this.#choices.run(parameters, clock, (alone) =>
      alone ? this.#alone(this.#code) : this.#together(this.#code),
    );
  }

  async run(parameters: ParameterValues, signal?: AbortSignal): Promise<Result<void>> {
    const bound = this.bind(parameters);
    if (!bound.ok) return bound;
    if (this.#blocks.length === 1) return this.#beside(true, signal);
    return this.#choicesBeside.runAsync(parameters, clock, (alone) => this.#beside(alone, signal));
  }

  /** On a thread of the system's pool, alone or with the workers. */
  async #beside(alone: boolean, signal: AbortSignal | undefined): Promise<Result<void>> {
    if (signal?.aborted) return fail(cancelled());
    const ready = alone ? this.#reset() : this.#prepare();
    if (!ready.ok) return ready;
    // The pool's thread takes the processor of the calling one over, which waits for a promise.
    if (!alone) this.#keepApart();
    const abort = (): void => {
      Atomics.compareExchange(this.#shared, 0, abortCodes.none, abortCodes.cancelled);
    };
    signal?.addEventListener("abort", abort, { once: true });
    const { enter, dispatch } = this.#code;
    this.#setThreads(alone ? 1 : this.#blocks.length);
    await (alone ? enter : dispatch).onPool(this.#blocks[0]!);
    signal?.removeEventListener("abort", abort);
    return this.#outcome();
  }

  createStep(task: Task): Result<ProgramStep> {
    const { program, target, memory, options } = this.#parts;
    const { system, whole = () => program } = options;
    const emitted = emitNativeCode({ ...whole(), tasks: [task] }, target, system);
    if (!emitted.ok) return emitted;
    invariant(
      emitted.value.layout.blockBytes === this.#parts.emitted.layout.blockBytes,
      () => "a step has the layout of its program",
    );
    // Workers run the code that they were started with: a step runs on this thread alone.
    const code = load(memory, emitted.value, system);
    return ok({ runSync: () => this.#alone(code), dispose: () => undefined });
  }

  /** Ends the threads and gives the pages back. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    const { system } = this.#parts.options;
    if (this.#workers.length > 0) this.#code.quit(this.#blocks[0]!);
    for (const thread of this.#workers.splice(0)) system.joinThread(thread);
    this.#views.clear();
    this.#parts.memory.unmap();
  }

  #locate(buffer: Buffer): { address: bigint; offset: number } {
    const { viewOf, placement } = buffer;
    if (viewOf !== undefined) return this.#locate(this.#buffers.get(viewOf)!);
    if (!placement) return { address: this.#bases.get(bufferVariable(buffer.name))!, offset: 0 };
    const offset = evaluate(placement.byteOffset, new Map());
    return { address: this.#bases.get(arenaVariable(placement.arena))!, offset };
  }

  #writeBlocks(shared: bigint, locals: readonly bigint[]): void {
    const { emitted, options } = this.#parts;
    const { system } = options;
    const math = mathFunctions.map((name) => [name, system.symbol(name) ?? 0n] as const);
    const pause = system.symbol(system.kind === "windows" ? "SwitchToThread" : "sched_yield") ?? 0n;
    this.#words.forEach((words, thread) => {
      const set = (offset: number, value: bigint): void => {
        words[offset / 8] = value;
      };
      set(threadBlock.shared, shared);
      set(threadBlock.thread, BigInt(thread));
      set(threadBlock.threads, BigInt(options.threads));
      set(threadBlock.local, locals[thread]!);
      set(threadBlock.yieldThread, pause);
      for (const [name, address] of math) set(mathWord(name), address);
      for (const arena of arenas) {
        set(emitted.layout.arenas[arena], this.#bases.get(arenaVariable(arena))!);
      }
      for (const [name, word] of emitted.layout.buffers) {
        set(word, this.#bases.get(bufferVariable(name))!);
      }
    });
  }

  /** Polls of a wait; threads that are more than the cores do not poll. */
  get #spins(): number {
    const { threads, parallelism } = this.#parts.options;
    return threads > parallelism ? 0 : spins;
  }

  #together(code: Loaded): Result<void> {
    const ready = this.#prepare();
    if (!ready.ok) return ready;
    this.#keepApart();
    this.#setThreads(this.#blocks.length);
    code.dispatch(this.#blocks[0]!);
    return this.#outcome();
  }

  /** A program or one task of it on thread 0, which then is the only one. */
  #alone(code: Loaded): Result<void> {
    const ready = this.#reset();
    if (!ready.ok) return ready;
    this.#setThreads(1);
    code.enter(this.#blocks[0]!);
    return this.#outcome();
  }

  /** How many threads thread 0 takes itself for one of. */
  #setThreads(count: number): void {
    this.#words[0]![threadBlock.threads / 8] = BigInt(count);
  }

  #keepApart(): void {
    if (this.#spins > 0) this.#places?.keepApart(this.#systemThreads());
  }

  #prepare(): Result<void> {
    const ready = this.#reset();
    if (!ready.ok) return ready;
    const workers = this.#blocks.length - 1;
    this.#shared[sharedBlock.pending / 4] = workers;
    // The number of the job first: a worker that is late for an earlier one finds that it is over.
    const [low, high] = [sharedBlock.open / 4, sharedBlock.open / 4 + 1];
    Atomics.store(this.#shared, high, this.#shared[sharedBlock.job / 4]! + 1);
    Atomics.store(this.#shared, low, workers);
    return this.#startWorkers();
  }

  #reset(): Result<void> {
    invariant(!this.#disposed, () => "a disposed instance does not run");
    for (const key of ["abort", "faultStatement", "faultValue", "arrived"] as const) {
      this.#shared[sharedBlock[key] / 4] = 0;
    }
    this.#shared[sharedBlock.spinLimit / 4] = this.#spins;
    this.#shared.fill(0, sharedBlock.finished / 4, sharedBlock.bytes / 4);
    return ok(undefined);
  }

  /** Of workers that have said their numbers. */
  #systemThreads(): number[] {
    const word = threadBlock.systemThread / 8;
    const numbers = this.#workers.map((_, i) => Number(this.#words[i + 1]![word]!));
    return numbers.filter((number) => number !== 0);
  }

  #startWorkers(): Result<void> {
    const { system } = this.#parts.options;
    if (this.#workers.length === 0) {
      const processors = openProcessors();
      if (processors) this.#places = new ThreadPlaces(processors);
    }
    for (let thread = this.#workers.length + 1; thread < this.#blocks.length; thread++) {
      const jobs = BigInt(this.#shared[sharedBlock.job / 4]!);
      this.#words[thread]![threadBlock.lastJob / 8] = jobs;
      const started = system.startThread(this.#code.work, this.#blocks[thread]!);
      if (started === undefined) {
        const help = "use fewer threads, or raise the limit on processes";
        return fail(diagnostic("RUN054", `the system refused thread ${thread + 1}`, { help }));
      }
      this.#workers.push(started);
    }
    return ok(undefined);
  }

  #outcome(): Result<void> {
    const shared = this.#shared;
    const { checks } = this.#parts.emitted;
    const subject = checks[shared[sharedBlock.faultStatement / 4]!] ?? "a check";
    switch (Atomics.load(shared, sharedBlock.abort / 4)) {
      case abortCodes.none:
        return ok(undefined);
      case abortCodes.cancelled:
        return fail(cancelled());
      case abortCodes.stalled:
        return fail(
          diagnostic("RUN005", "a compute thread did not reach a barrier in time", {
            help: "use fewer threads than the machine has idle cores",
          }),
        );
      case abortCodes.outOfRange:
        return fail(
          indexOutOfRange(
            [shared[sharedBlock.faultValue / 4]!, shared[sharedBlock.faultValue / 4 + 1]!],
            subject,
          ),
        );
      case abortCodes.tooManyTrips:
        return fail(diagnostic("RUN007", "a loop made more trips than it may", { at: subject }));
    }
    invariant(false, () => `abort code ${shared[0]}`);
  }
}

const clock = (): number => performance.now();

function cancelled(): Diagnostic {
  return diagnostic("RUN004", "the run was cancelled by its AbortSignal");
}

function load(memory: NativeMemory, code: NativeCode, system: NativeSystem): Loaded {
  const { bytes, entries, functions } = code;
  const address = memory.mapCode(bytes);
  if (address === undefined) throw new DiagnosticError([noExecution()]);
  notePerfMap(address, functions);
  const at = (offset: number): bigint => address + BigInt(offset);
  return {
    enter: system.functionAt(at(entries.enter)),
    dispatch: system.functionAt(at(entries.dispatch)),
    quit: system.functionAt(at(entries.quit)),
    work: at(entries.work),
  };
}

/** What code expects of an arena's address: the begin of a cache line, the widest vector. */
const arenaAlignment = 64n;

/** Where a mapped file has the weights; undefined: in no such file, or not where code can read them. */
function mappedWeights(arena: Uint8Array): bigint | undefined {
  const at = mappedAddress(arena);
  return at !== undefined && at % arenaAlignment === 0n ? at : undefined;
}

/**
 * Addresses of the arenas and of unplaced buffers by the names of their index variables.
 * @param weights where the weights are, or are to be, if they come as a whole
 */
function placeBuffers(
  program: Program,
  { layout }: NativeCode,
  place: (bytes: number) => bigint,
  weights: bigint | undefined,
): Map<string, bigint> {
  const bases = new Map<string, bigint>();
  for (const [arena, bytes] of Object.entries(arenaSizes(program))) {
    const isThere = arena === "weights" && weights !== undefined;
    bases.set(arenaVariable(arena as Arena), isThere ? weights : place(Math.max(1, bytes)));
  }
  for (const b of program.buffers) {
    if (layout.buffers.has(b.name)) {
      bases.set(bufferVariable(b.name), place(Math.max(1, capacityBytes(program, b))));
    }
  }
  return bases;
}
