/**
 * Program to x86-64 machine code, position-independent, in one piece: a function a kernel, the tasks
 * that every thread follows, and the entries around them (thread-code.ts), with constants behind. All
 * state is in the thread's block (context-block.ts), so any number of instances share the code.
 *
 * The emitter prints what the program says and refuses (EMT001) what it has no spelling for.
 */
import {
  type Arena,
  arenaVariable,
  baseOf,
  bufferVariable,
  localOffsets,
} from "../../program/addresses.ts";
import { type Deals, dealsOf } from "../../program/dealing.ts";
import { launchesOf, type Tables } from "../../program/launches.ts";
import type { Kernel, Program } from "../../program/program.ts";
import { threadCountName } from "../../program/program.ts";
import { unrollLoops } from "../../program/unroll.ts";
import * as ix from "../../semantics/index-expr.ts";
import { loopRange } from "../../semantics/index-range.ts";
import { attempt, type Result } from "../../support/diagnostic.ts";
import { ConstantPool } from "./constant-pool.ts";
import { threadBlock } from "./context-block.ts";
import { contextPointer, FunctionCode, type FunctionParts } from "./function-code.ts";
import { IndexScope } from "./index-scope.ts";
import { type BufferPlace, KernelContext } from "./kernel-context.ts";
import { endTrip, firstTrip, KernelEmitter } from "./kernel-emitter.ts";
import { type LinkedCode, link } from "./link.ts";
import { type Label, memory, type Register } from "./operand.ts";
import { layoutOf, type ProgramLayout, withOwnEnds } from "./program-layout.ts";
import { type KernelFunction, TaskEmitter } from "./task-emitter.ts";
import {
  type DealCode,
  emitBarrier,
  emitDealCode,
  emitThreadCode,
  type System,
} from "./thread-code.ts";
import type { Features } from "./vector-code.ts";

export interface X64EmitOptions {
  readonly features: Features;
  /** Calling convention and way to sleep. */
  readonly system: System;
}

export interface X64Program {
  readonly code: LinkedCode;
  /** Offsets of the functions that the runtime calls with a thread's block. */
  readonly entries: Readonly<Record<"enter" | "dispatch" | "work" | "quit", number>>;
  readonly layout: ProgramLayout;
  /** What the numbers of failed checks stand for. */
  readonly checks: readonly string[];
}

const address = { min: 0, max: Number.POSITIVE_INFINITY };
/** Keeps shares of loops within 32 bits. */
export const mostThreads = 4096;
/** What a callee may overwrite above its return address (Windows x64 ABI, "home space"). */
const homeSpaceBytes = 64;

export function emitX64(program: Program, options: X64EmitOptions): Result<X64Program> {
  return attempt(() => new ProgramEmitter(program, options).emit());
}

/** Words of the thread's block with what it has claimed. */
const claimedWords: ReadonlyMap<string, number> = new Map([
  [firstTrip, threadBlock.firstPart],
  [endTrip, threadBlock.endPart],
]);

class ProgramEmitter {
  readonly #program: Program;
  readonly #options: X64EmitOptions;
  readonly #layout: ProgramLayout;
  readonly #parts: FunctionParts;
  readonly #checks: string[] = [];
  readonly #launches = new Map<string, ReturnType<typeof launchesOf>>();
  readonly #kernels = new Map<string, KernelFunction>();
  readonly #functions: FunctionCode[] = [];
  readonly #memory: ReadonlyMap<string, BufferPlace>;
  readonly #deals: Deals | undefined;
  #labels = 0;

  constructor(given: Program, options: X64EmitOptions) {
    const program = withOwnEnds(given);
    this.#program = program;
    this.#options = options;
    this.#layout = layoutOf(program);
    this.#deals = dealsOf(program);
    const newLabel = (): Label => ({ kind: "label", id: this.#labels++ });
    const reservedBytes = options.system === "windows" ? homeSpaceBytes : 0;
    this.#parts = { constants: new ConstantPool(newLabel()), newLabel, reservedBytes };
    for (const launch of launchesOf(program.tasks, new Map())) {
      const same = this.#launches.get(launch.task.kernel);
      if (same) same.push(launch);
      else this.#launches.set(launch.task.kernel, [launch]);
    }
    const buffers = new Map(program.buffers.map((b) => [b.name, b]));
    this.#memory = new Map(
      program.buffers.map((buffer): [string, BufferPlace] => [
        buffer.name,
        { kind: "memory", buffer, base: baseOf(buffer, buffers) },
      ]),
    );
  }

  emit(): X64Program {
    const { system, features } = this.#options;
    const isDealt = this.#deals !== undefined;
    const barrier = emitBarrier(this.#parts, system);
    const deal = isDealt ? emitDealCode(this.#parts, system) : undefined;
    for (const kernel of this.#program.kernels) this.#addKernel(unrollLoops(kernel));
    const run = this.#addRun(barrier.entry, deal);
    const threads = emitThreadCode(this.#parts, system, { run, isDealt });
    const meetings = deal ? deal.functions : [barrier];
    const vectors = features.evex ? 32 : 16;
    const code = link(
      [...this.#functions, ...meetings, ...threads.functions],
      this.#parts.constants,
      {
        vectors,
        vectorBits: features.vectorBits,
      },
    );
    const at = (label: Label): number => code.entries.get(label.id)!;
    const { enter, dispatch, work, quit } = threads;
    return {
      code,
      entries: { enter: at(enter), dispatch: at(dispatch), work: at(work), quit: at(quit) },
      layout: this.#layout,
      checks: this.#checks,
    };
  }

  #addKernel(kernel: Kernel): void {
    const own = this.#launches.get(kernel.name);
    if (!own) return;
    const bindings = [...new Set(own.flatMap((l) => l.task.bindings.map(([name]) => name)))];
    const tables = [...new Set(own.flatMap((l) => [...l.tables.keys()]))];
    const axes = kernel.grid.axes.map((a) => a.name);
    const takesTrips = this.#deals?.get(kernel.name)?.by === "trips";
    const names = [...axes, ...bindings, ...tables.map(bufferVariable)];
    const f = new FunctionCode(kernel.name, this.#parts);
    this.#functions.push(f);
    this.#kernels.set(kernel.name, { entry: f.entry, kernel, takesTrips, bindings, tables });
    const scope = new IndexScope(f, (name) => this.#outerVariable(f, names, name));
    this.#declareOuter(scope);
    for (const { name, extent } of kernel.grid.axes) {
      scope.declare(name, loopRange(extent, scope.ranges));
    }
    for (const name of tables) scope.declare(bufferVariable(name), address);
    for (const name of [firstTrip, endTrip]) scope.declare(name, address);
    const context = new KernelContext({
      f,
      scope,
      places: this.#places(kernel, new Map(own.flatMap((l) => [...l.tables]))),
      features: this.#options.features,
      kernel: kernel.name,
    });
    new KernelEmitter(context, { kernel, takesTrips }, this.#checks).emit();
  }

  #addRun(barrier: Label, code: DealCode | undefined): Label {
    const f = new FunctionCode("run", this.#parts);
    this.#functions.push(f);
    const scope = new IndexScope(f, (name) => this.#outerVariable(f, [], name));
    this.#declareOuter(scope);
    const program = this.#program;
    const [kernels, checks] = [this.#kernels, this.#checks];
    const dealing = code && { deals: this.#deals!, code };
    new TaskEmitter({ f, scope, barrier, dealing, program, kernels, checks }).emit();
    return f.entry;
  }

  /** Ranges of parameters and addresses; bindings may be anything. */
  #declareOuter(scope: IndexScope): void {
    scope.declare(threadCountName, { min: 1, max: mostThreads });
    for (const { name, min, max } of this.#program.parameters) scope.declare(name, { min, max });
    for (const arena of Object.keys(this.#layout.arenas)) {
      scope.declare(arenaVariable(arena as Arena), address);
    }
    for (const name of this.#layout.buffers.keys()) scope.declare(bufferVariable(name), address);
  }

  #places(kernel: Kernel, tables: Tables): Map<string, BufferPlace> {
    const places = new Map(this.#memory);
    for (const [name, { rows }] of tables) {
      const buffer = this.#program.buffers.find((b) => b.name === rows[0])!;
      places.set(name, { kind: "memory", buffer, base: ix.variable(bufferVariable(name)) });
    }
    const { offsets } = localOffsets(this.#program, kernel);
    for (const buffer of kernel.buffers) {
      if (buffer.scope === "register") {
        places.set(buffer.name, { kind: "register", buffer, elements: new Map() });
      } else {
        const base = ix.add(ix.variable(arenaVariable("local")), offsets.get(buffer.name)!);
        places.set(buffer.name, { kind: "memory", buffer, base });
      }
    }
    return places;
  }

  /** A word of the thread's block in a register; undefined for what is bound further in. */
  #outerVariable(f: FunctionCode, names: readonly string[], name: string): Register | undefined {
    const argument = names.indexOf(name);
    const word =
      argument >= 0
        ? threadBlock.arguments + 8 * argument
        : name === threadCountName
          ? threadBlock.threads
          : (claimedWords.get(name) ??
            this.#layout.parameters.get(name) ??
            this.#addressWord(name));
    if (word === undefined) return undefined;
    const r = f.gpr();
    f.emit("mov", r, memory(contextPointer, word));
    return r;
  }

  #addressWord(variable: string): number | undefined {
    for (const [arena, word] of Object.entries(this.#layout.arenas)) {
      if (variable === arenaVariable(arena as Arena)) return word;
    }
    for (const [name, word] of this.#layout.buffers) {
      if (variable === bufferVariable(name)) return word;
    }
    return undefined;
  }
}
