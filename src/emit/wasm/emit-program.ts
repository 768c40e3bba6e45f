/**
 * Program to WebAssembly module: one function a kernel, and `run(thread, threads)`, which every compute
 * thread calls and which follows the program's tasks, each launch finished before the next one that has to
 * see it begins. All threads take the same way through the tasks. That orders more than counters
 * ask for, so waits become barriers and signals nothing.
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
import { visitExprs } from "../../program/walk.ts";
import * as ix from "../../semantics/index-expr.ts";
import { loopRange } from "../../semantics/index-range.ts";
import type { ScalarOp } from "../../semantics/scalar-expr.ts";
import { attempt, type Result } from "../../support/diagnostic.ts";
import { emitBarrier } from "./barrier.ts";
import { type DealFunctions, emitDealFunctions } from "./deal.ts";
import { floatRows } from "./float-rows.ts";
import type { FunctionBuilder, FunctionIndex, Local } from "./function-builder.ts";
import { halfRows } from "./half-rows.ts";
import { IndexScope } from "./index-scope.ts";
import { integerRows } from "./integer-rows.ts";
import { type BufferPlace, KernelContext } from "./kernel-context.ts";
import { endTrip, firstTrip, KernelEmitter } from "./kernel-emitter.ts";
import { Library, type LibraryRow } from "./library.ts";
import { mathRows } from "./math-rows.ts";
import { type CodeRange, ModuleBuilder } from "./module-builder.ts";
import { layoutOf, type ProgramLayout } from "./program-layout.ts";
import { mathNamesOf } from "./scalar-ops.ts";
import { type KernelFunction, TaskEmitter } from "./task-emitter.ts";
import { tinyFloatRows } from "./tiny-float-rows.ts";

export interface WasmEmitOptions {
  /** Spell fma as relaxed_madd; the engine must have relaxed SIMD. */
  readonly relaxedFma: boolean;
  /** Import a shared memory, for more than one thread. */
  readonly sharedMemory: boolean;
}

export interface WasmProgram {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Stretches of the module and the kernel and statement they were printed from. */
  readonly map: readonly CodeRange[];
  readonly layout: ProgramLayout;
  /** Distance that every arena has to keep from the end of the block at least. */
  readonly guardBytes: number;
  /** What the numbers of failed checks stand for. */
  readonly checks: readonly string[];
  /** Whether threads claim parts of the work (program/dealing.ts): no thread has to take part in a run. */
  readonly isDealt: boolean;
}

export const entryName = "run";
const address = { min: 0, max: Number.POSITIVE_INFINITY };
/** A memory of any size that 32-bit addresses reach may be given. */
const mostPages = 65536;

const libraryRows: ReadonlyMap<string, LibraryRow> = new Map([
  ...integerRows,
  ...floatRows,
  ...halfRows,
  ...tinyFloatRows,
  ...mathRows.map((r) => [r.name, r.row] as const),
]);

export function emitProgram(program: Program, options: WasmEmitOptions): Result<WasmProgram> {
  return attempt(() => new ProgramEmitter(program, options).emit());
}

class ProgramEmitter {
  readonly #program: Program;
  readonly #options: WasmEmitOptions;
  readonly #module = new ModuleBuilder();
  readonly #library: Library;
  readonly #layout: ProgramLayout;
  readonly #checks: string[] = [];
  readonly #launches = new Map<string, ReturnType<typeof launchesOf>>();
  #inMemory: ReadonlyMap<string, BufferPlace> | undefined;
  readonly #kernels = new Map<string, KernelFunction>();
  readonly #deals: Deals | undefined;
  #barrier: FunctionIndex = 0;
  #dealing: DealFunctions | undefined;
  #guardBytes = 0;

  constructor(program: Program, options: WasmEmitOptions) {
    this.#program = program;
    this.#options = options;
    this.#layout = layoutOf(program);
    this.#deals = dealsOf(program);
    for (const launch of launchesOf(program.tasks, new Map())) {
      const same = this.#launches.get(launch.task.kernel);
      if (same) same.push(launch);
      else this.#launches.set(launch.task.kernel, [launch]);
    }
    this.#library = new Library(this.#module, libraryRows);
  }

  emit(): WasmProgram {
    const limits = { minPages: 1, maxPages: mostPages, shared: this.#options.sharedMemory };
    this.#module.importMemory("env", "memory", limits);
    this.#library.importMath(mathNamesOf(this.#operators()));
    if (this.#deals) this.#dealing = emitDealFunctions(this.#module);
    else this.#barrier = emitBarrier(this.#module);
    for (const kernel of this.#program.kernels) this.#addKernel(unrollLoops(kernel));
    const signature = { params: ["i32", "i32"], results: [] } as const;
    const { index, builder } = this.#module.function(entryName, signature);
    this.#writeRun(builder);
    this.#module.exportFunction(entryName, index);
    const { bytes, map } = this.#module.encode();
    const [layout, checks] = [this.#layout, this.#checks];
    const isDealt = this.#deals !== undefined;
    return { bytes, map, layout, guardBytes: this.#guardBytes, checks, isDealt };
  }

  #operators(): Set<ScalarOp> {
    const ops = new Set<ScalarOp>();
    for (const { roles } of this.#program.kernels) {
      for (const role of roles) {
        visitExprs(role.body, (e) => {
          if (e.kind === "apply") ops.add(e.op);
        });
      }
    }
    return ops;
  }

  /** A kernel's function takes its grid coordinates, `threads`, bindings, table addresses, and dealt trips. */
  #addKernel(kernel: Kernel): void {
    const own = this.#launches.get(kernel.name);
    if (!own) return;
    const bindings = [...new Set(own.flatMap((l) => l.task.bindings.map(([name]) => name)))];
    const tables = [...new Set(own.flatMap((l) => [...l.tables.keys()]))];
    const axes = kernel.grid.axes.map((a) => a.name);
    const takesTrips = this.#deals?.get(kernel.name)?.by === "trips";
    const trips = takesTrips ? [firstTrip, endTrip] : [];
    const names = [...axes, threadCountName, ...bindings, ...tables.map(bufferVariable), ...trips];
    const params = [...names, "@thread"].map(() => "i32" as const);
    const { index, builder } = this.#module.function(kernel.name, { params, results: [] });
    this.#kernels.set(kernel.name, { index, kernel, takesTrips, bindings, tables });
    const scope = new IndexScope(builder, (name) => this.#outerVariable(builder, names, name));
    this.#declareOuter(scope);
    for (const { name, extent } of kernel.grid.axes) {
      scope.declare(name, loopRange(extent, scope.ranges));
    }
    for (const name of tables) scope.declare(bufferVariable(name), address);
    for (const name of trips) scope.declare(name, address);
    const context = new KernelContext({
      f: builder,
      scope,
      library: this.#library,
      places: this.#places(kernel, new Map(own.flatMap((l) => [...l.tables]))),
      relaxedFma: this.#options.relaxedFma,
      kernel: kernel.name,
      parking: ix.add(ix.variable(arenaVariable("local")), this.#layout.parkedAt),
    });
    new KernelEmitter(context, { kernel, takesTrips }, this.#checks).emit();
    this.#guardBytes = Math.max(this.#guardBytes, scope.guardBytes);
  }

  /** Ranges of parameters and addresses; bindings may be anything. */
  #declareOuter(scope: IndexScope): void {
    scope.declare(threadCountName, { min: 1, max: Number.POSITIVE_INFINITY });
    for (const { name, min, max } of this.#program.parameters) scope.declare(name, { min, max });
    for (const arena of Object.keys(this.#layout.arenas)) {
      scope.declare(arenaVariable(arena as Arena), address);
    }
    for (const name of this.#layout.buffers.keys()) scope.declare(bufferVariable(name), address);
  }

  /** Places of the program's own buffers: the same for every kernel. */
  #memoryPlaces(): ReadonlyMap<string, BufferPlace> {
    if (this.#inMemory) return this.#inMemory;
    const places = new Map<string, BufferPlace>();
    const buffers = new Map(this.#program.buffers.map((b) => [b.name, b]));
    for (const buffer of this.#program.buffers) {
      places.set(buffer.name, { kind: "memory", buffer, base: baseOf(buffer, buffers) });
    }
    this.#inMemory = places;
    return places;
  }

  #places(kernel: Kernel, tables: Tables): Map<string, BufferPlace> {
    const places = new Map(this.#memoryPlaces());
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

  /** A parameter of the function, or a word of the block loaded into a local. */
  #outerVariable(f: FunctionBuilder, names: readonly string[], name: string): Local | undefined {
    const at = names.indexOf(name);
    if (at >= 0) return f.param(at);
    if (name === arenaVariable("local")) {
      const local = f.local("i32");
      this.#loadWord(f, this.#layout.arenas.local);
      f.get(f.param(names.length)).i32Const(this.#layout.localBytes).op("i32.mul");
      f.op("i32.add").set(local);
      return local;
    }
    const word = this.#layout.parameters.get(name) ?? this.#addressWord(name);
    if (word === undefined) return undefined;
    const local = f.local("i32");
    this.#loadWord(f, word);
    f.set(local);
    return local;
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

  #loadWord(f: FunctionBuilder, address: number): void {
    f.i32Const(0).memory("i32.load", address);
  }

  #writeRun(f: FunctionBuilder): void {
    const scope = new IndexScope(f, (name) => {
      return name === threadCountName ? f.param(1) : this.#outerVariable(f, [], name);
    });
    this.#declareOuter(scope);
    const emitter = new TaskEmitter({
      f,
      scope,
      barrier: this.#barrier,
      dealing: this.#deals && { deals: this.#deals, functions: this.#dealing! },
      program: this.#program,
      kernels: this.#kernels,
      checks: this.#checks,
    });
    emitter.emit();
    this.#guardBytes = Math.max(this.#guardBytes, scope.guardBytes);
  }
}
