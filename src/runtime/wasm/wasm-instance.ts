/**
 * A program ready to run: emitted, compiled, its memory laid out, on one thread or a pool. The caller
 * writes inputs and weights into the views of their buffers, runs with parameter values, and reads
 * outputs from the views.
 */

import { controlBlock } from "../../emit/wasm/control-block.ts";
import {
  emitProgram,
  entryName,
  type WasmEmitOptions,
  type WasmProgram,
} from "../../emit/wasm/emit-program.ts";
import { type Arena, arenaVariable, baseOf, bufferVariable } from "../../program/addresses.ts";
import type { Buffer, Program } from "../../program/program.ts";
import { arenaSizes, capacityBytes } from "../../program/storage-sizes.ts";
import { evaluate } from "../../semantics/index-expr.ts";
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import { copyInPieces } from "../buffer-memory.ts";
import { ThreadChoices } from "../thread-choice.ts";
import { allocateMemory } from "./memory.ts";
import { programOutcome, threadFailed } from "./run-outcome.ts";
import type { WorkerHost } from "./worker-host.ts";
import type { PoolProgram, WorkerPool } from "./worker-pool.ts";

/** What an instance needs of an emitted module. */
export type WasmCode = { readonly kind: "wasm" } & Pick<
  WasmProgram,
  "bytes" | "layout" | "guardBytes" | "checks" | "isDealt"
>;

export function emitWasmCode(program: Program, options: WasmEmitOptions): Result<WasmCode> {
  const emitted = emitProgram(program, options);
  if (!emitted.ok) return emitted;
  const { bytes, layout, guardBytes, checks, isDealt } = emitted.value;
  return ok({ kind: "wasm", bytes, layout, guardBytes, checks, isDealt });
}

export interface WasmInstanceOptions {
  /** Use relaxed SIMD; probe for it first. */
  readonly relaxedFma: boolean;
  /** Code of the program that was emitted with the same options before. */
  readonly code?: WasmCode;
  /** The program with its kernels' bodies, where `program` is but its outline: for steps. */
  readonly whole?: () => Program;
  /** The program's weights, copied into their place. */
  readonly arena?: Uint8Array;
  /** See copyInPieces. */
  readonly forget?: () => void;
  /** Asked for pages of the memory before anything is written there, and for modules. */
  readonly host?: Pick<WorkerHost, "hugePages" | "compile">;
  /** Threads that run the program; absent: the calling thread alone, on memory that is not shared. */
  readonly pool?: WorkerPool;
}

type ParameterValues = Readonly<Record<string, number>>;

const alignmentBytes = 64;

/** Emits a program unless its code is there, compiles it and gives it memory. */
export function createWasmInstance(
  program: Program,
  options: WasmInstanceOptions,
): Result<WasmInstance> {
  const { pool, relaxedFma, code, arena, forget, host, whole = () => program } = options;
  const emit = { relaxedFma, sharedMemory: pool !== undefined };
  const emitted = code ? ok(code) : emitWasmCode(program, emit);
  if (!emitted.ok) return emitted;
  const plan = planAddresses(program, emitted.value, pool?.threads ?? 1, arena?.length ?? 0);
  const memory = allocateMemory(plan.bytes, pool !== undefined);
  if (!memory.ok) return memory;
  // Refused, they stay small, which is slower and nothing else.
  host?.hugePages?.()?.(new Uint8Array(memory.value.buffer));
  if (arena) {
    copyInPieces(new Uint8Array(memory.value.buffer, plan.arenas.weights), arena, forget);
  }
  const compile = host?.compile ?? asEngineDoes;
  const module = compile(emitted.value.bytes);
  const { checks, isDealt } = emitted.value;
  const ready = { module, memory: memory.value, entry: entryName, checks, isDealt };
  const parts = { program, whole, emitted: emitted.value, plan, ready, pool, relaxedFma, compile };
  return ok(new WasmInstance(parts));
}

const asEngineDoes = (bytes: Uint8Array<ArrayBuffer>): WebAssembly.Module =>
  new WebAssembly.Module(bytes);

interface AddressPlan {
  readonly arenas: Readonly<Record<Arena, number>>;
  readonly buffers: ReadonlyMap<string, number>;
  readonly bytes: number;
}

interface InstanceParts {
  readonly program: Program;
  readonly whole: () => Program;
  readonly emitted: WasmCode;
  readonly plan: AddressPlan;
  readonly ready: PoolProgram;
  readonly pool: WorkerPool | undefined;
  readonly relaxedFma: boolean;
  readonly compile: (bytes: Uint8Array<ArrayBuffer>) => WebAssembly.Module;
}

type Entry = (thread: number, threads: number) => void;

/** A part of a program that runs on the program's memory. */
export interface WasmStep {
  readonly runSync: () => Result<void>;
  readonly dispose: () => void;
}

export class WasmInstance {
  readonly #parts: InstanceParts;
  readonly #words: Int32Array;
  readonly #buffers: ReadonlyMap<string, Buffer>;
  /** Of buffers whose places depend on no parameter, as those that callers read and write. */
  readonly #views = new Map<string, Uint8Array>();
  readonly #choices: ThreadChoices;
  /** Of runs on workers: they start and end by messages. */
  readonly #choicesBeside: ThreadChoices;
  /** The program's number in the pool, or its entry function on this thread. */
  readonly #target: number | Entry;

  constructor(parts: InstanceParts) {
    this.#parts = parts;
    this.#buffers = new Map(parts.program.buffers.map((b) => [b.name, b]));
    const { pool, ready, plan, emitted } = parts;
    this.#choices = new ThreadChoices(pool?.threads ?? 1, pool?.use);
    this.#choicesBeside = new ThreadChoices(pool?.threads ?? 1, pool?.use);
    this.#words = new Int32Array(ready.memory.buffer);
    this.#target = pool ? pool.attach(ready) : instantiate(ready);
    for (const [arena, word] of Object.entries(emitted.layout.arenas)) {
      this.#words[word / 4] = plan.arenas[arena as Arena];
    }
    for (const [name, word] of emitted.layout.buffers) {
      this.#words[word / 4] = plan.buffers.get(name)!;
    }
  }

  /** The storage of a buffer of scope memory, at its capacity. Valid as long as the instance. */
  bytes(name: string, parameters?: ParameterValues): Uint8Array {
    if (parameters) return this.#view(name, parameters);
    const known = this.#views.get(name);
    if (known) return known;
    const made = this.#view(name, {});
    this.#views.set(name, made);
    return made;
  }

  #view(name: string, parameters: ParameterValues): Uint8Array {
    const { program, plan, ready } = this.#parts;
    const buffer = this.#buffers.get(name);
    invariant(buffer, () => `no buffer ${name}`);
    const bindings = new Map(Object.entries(parameters));
    for (const [arena, address] of Object.entries(plan.arenas)) {
      bindings.set(arenaVariable(arena as Arena), address);
    }
    for (const [other, address] of plan.buffers) bindings.set(bufferVariable(other), address);
    const start = evaluate(baseOf(buffer, this.#buffers), bindings) >>> 0;
    return new Uint8Array(ready.memory.buffer, start, capacityBytes(program, buffer));
  }

  /** Runs on this thread and the pool's; blocks. */
  runSync(parameters: ParameterValues): Result<void> {
    const faults = this.#bind(parameters);
    if (!faults.ok) return faults;
    const { pool, ready } = this.#parts;
    if (typeof this.#target !== "number") return this.#runHere(this.#target, ready);
    if (pool!.threads === 1) return pool!.runSync(this.#target);
    const target = this.#target;
    return this.#choices.run(parameters, clock, (alone) =>
      pool!.runSync(target, alone ? 1 : pool!.threads),
    );
  }

  #runHere(entry: Entry, ready: PoolProgram): Result<void> {
    for (const key of ["abort", "faultStatement", "faultValue", "arrived"] as const) {
      this.#words[controlBlock[key] / 4] = 0;
    }
    try {
      entry(0, 1);
    } catch (error) {
      if (!(error instanceof WebAssembly.RuntimeError)) throw error;
      return fail(threadFailed(error.message));
    }
    return programOutcome(this.#words, "", ready.checks);
  }

  /**
   * One task of the program as a program of its own on the same memory, for profiles: run them in order
   * after `bind`. Dispose of it when done.
   */
  createStep(task: Program["tasks"][number]): Result<WasmStep> {
    const { whole, emitted, ready, pool, relaxedFma, compile } = this.#parts;
    const options = { relaxedFma, sharedMemory: pool !== undefined };
    const code = emitProgram({ ...whole(), tasks: [task] }, options);
    if (!code.ok) return code;
    invariant(
      code.value.guardBytes <= emitted.guardBytes,
      () => "a step needs no more guard than its program",
    );
    const module = compile(code.value.bytes);
    const { checks, isDealt } = code.value;
    const step: PoolProgram = { ...ready, module, checks, isDealt };
    if (!pool) {
      const run = instantiate(step);
      return ok({ runSync: () => this.#runHere(run, step), dispose: () => undefined });
    }
    const id = pool.attach(step);
    return ok({ runSync: () => pool.runSync(id), dispose: () => pool.detach(id) });
  }

  /** Writes the parameters of the next run without running. */
  bind(parameters: ParameterValues): Result<void> {
    return this.#bind(parameters);
  }

  /** Runs on workers; the caller must not touch the buffers before it settles. */
  run(parameters: ParameterValues, signal?: AbortSignal): Promise<Result<void>> {
    const { pool } = this.#parts;
    if (typeof this.#target !== "number") return Promise.resolve(this.runSync(parameters));
    const faults = this.#bind(parameters);
    if (!faults.ok) return Promise.resolve(faults);
    const { threads } = pool!;
    if (threads === 1) return pool!.run(this.#target, signal);
    return pool!.run(this.#target, signal, (make) =>
      this.#choicesBeside.runAsync(parameters, clock, (alone) => make(alone ? 1 : threads)),
    );
  }

  dispose(): void {
    if (typeof this.#target === "number") this.#parts.pool!.detach(this.#target);
  }

  #bind(parameters: ParameterValues): Result<void> {
    const { program, emitted } = this.#parts;
    for (const { name, min, max } of program.parameters) {
      const word = emitted.layout.parameters.get(name);
      if (word === undefined) continue;
      const value = parameters[name];
      if (value === undefined || !Number.isInteger(value) || value < min || value > max) {
        return fail(
          diagnostic("RUN008", `parameter ${name} is ${value}`, {
            help: `give an integer from ${min} to ${max}`,
          }),
        );
      }
      this.#words[word / 4] = value;
    }
    return ok(undefined);
  }
}

const clock = (): number => performance.now();

function instantiate(ready: PoolProgram): Entry {
  const imports = { env: { memory: ready.memory }, math: Math as never };
  const { exports } = new WebAssembly.Instance(ready.module, imports);
  return exports[ready.entry] as Entry;
}

/**
 * Arenas one after another above the block and the guard, then buffers without placement.
 * @param weightBytes of the arena of weights, which an outline may leave out
 */
function planAddresses(
  program: Program,
  emitted: WasmCode,
  threads: number,
  weightBytes: number,
): AddressPlan {
  const { layout, guardBytes } = emitted;
  let next = align(layout.blockBytes + guardBytes);
  const take = (bytes: number) => {
    const at = next;
    next = align(next + bytes);
    return at;
  };
  const sizes = arenaSizes(program);
  const arenas = {
    weights: take(Math.max(weightBytes, sizes.weights)),
    scratch: take(sizes.scratch),
    state: take(sizes.state),
    caller: take(sizes.caller),
    local: take(layout.localBytes * threads),
  };
  const buffers = new Map<string, number>();
  for (const b of program.buffers) {
    if (layout.buffers.has(b.name)) buffers.set(b.name, take(capacityBytes(program, b)));
  }
  return { arenas, buffers, bytes: next };
}

function align(bytes: number): number {
  return Math.ceil(bytes / alignmentBytes) * alignmentBytes;
}
