/**
 * A program ready to run on a GPU: its kernels assembled, its buffers on the device, its launches captured
 * as a graph for each set of parameter values, with the transfers of inputs and outputs around them. A
 * program whose launches depend on what it computes is launched step by step instead.
 */
import { emitPtx } from "../../emit/ptx/emit-program.ts";
import type { PtxKernel, PtxModule, PtxParameter } from "../../emit/ptx/ptx-module.ts";
import type { Program, Task } from "../../program/program.ts";
import { memoryBytes } from "../../program/storage-sizes.ts";
import { type DType, dtypes } from "../../semantics/dtype.ts";
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
import { indexOutOfRange } from "../index-out-of-range.ts";
import {
  type ElementCondition,
  isStatic,
  type PlannedLaunch,
  walkLaunches,
} from "../launch-plan.ts";
import type { ParameterValues, ProgramInstance, ProgramStep } from "../model-session.ts";
import type { CudaDevice } from "./device.ts";
import { guardCuda } from "./driver.ts";
import { type AssembledKernel, assembledKernels, loadEmitted } from "./emitted-module.ts";
import { allocateHost, type HostMemory } from "./host-memory.ts";
import { CudaLaunch, type KernelArgument } from "./launch.ts";
import type { CubinStore, CudaModule } from "./module.ts";
import { ProgramMemory } from "./program-memory.ts";
import { copiesFor, RotatingRuns } from "./rotating-runs.ts";
import {
  type CudaGraph,
  type CudaStream,
  captureGraph,
  createEvent,
  createStream,
} from "./stream.ts";
import { encodeTensorMap, type tensorMapTypes } from "./tensor-map.ts";

export interface CudaOptions {
  /** Given up to the instance, which closes it. */
  readonly device: CudaDevice;
  readonly store?: CubinStore;
}

/** Graphs that are kept for the parameter values seen last. */
const mostGraphs = 8;
const faultWords = 4;

export function createCudaInstance(
  program: Program,
  target: Target,
  { device, store }: CudaOptions,
): Result<CudaInstance> {
  const made = attemptOnDevice(() => {
    const { machine } = target;
    invariant(machine?.kind === "gpu", () => `target ${target.name} is no GPU`);
    const emitted = take(emitPtx(program, machine.architecture, target.blocks));
    const module = take(loadEmitted(device, emitted, store));
    return new CudaInstance({ program, device, emitted, module });
  });
  if (!made.ok) device.close();
  return made;
}

interface InstanceParts {
  readonly program: Program;
  readonly device: CudaDevice;
  readonly emitted: PtxModule;
  readonly module: CudaModule;
}

export class CudaInstance implements ProgramInstance {
  readonly memory: ProgramMemory;
  readonly #parts: InstanceParts;
  readonly #kernels: ReadonlyMap<string, PtxKernel>;
  readonly #stream: CudaStream;
  readonly #faults: HostMemory;
  readonly #faultsAt: bigint;
  readonly #counters = new Map<string, { readonly address: bigint; readonly words: number }>();
  readonly #gridBarriers = new Map<string, bigint>();
  readonly #graphs = new Map<string, CudaGraph>();
  /** Native structures that enqueued launches point to. */
  readonly #launches = new Map<string, readonly CudaLaunch[]>();
  #bound: ReadonlyMap<string, number> = new Map();
  #disposed = false;

  constructor(parts: InstanceParts) {
    this.#parts = parts;
    const { program, device, emitted } = parts;
    this.#kernels = new Map(emitted.kernels.map((k) => [k.name, k]));
    this.memory = new ProgramMemory(program, device);
    this.#stream = createStream(device);
    this.#faults = allocateHost(device, 4 * faultWords);
    this.#faultsAt = this.memory.take(4 * faultWords);
    for (const { name, shape } of program.counters) {
      const words = shape.reduce((n, e) => n * evaluate(e, new Map()), 1);
      this.#counters.set(name, { address: this.memory.take(4 * words), words });
    }
    for (const k of emitted.kernels) {
      if (!k.parameters.some((p) => p.kind === "gridBarrier")) continue;
      const address = this.memory.take(4);
      device.fill(address, 0, 4);
      this.#gridBarriers.set(k.name, address);
    }
  }

  /** The PTX text and how each kernel is launched. */
  get emitted(): PtxModule {
    return this.#parts.emitted;
  }

  /** Registers, shared and local memory of the kernels as assembled, by the program's names. */
  kernelFacts(): readonly AssembledKernel[] {
    return assembledKernels(this.#parts.emitted, this.#parts.module);
  }

  bind(parameters: ParameterValues): Result<void> {
    for (const { name, min, max } of this.#parts.program.parameters) {
      const value = parameters[name];
      if (value !== undefined && Number.isInteger(value) && value >= min && value <= max) continue;
      const help = `give an integer from ${min} to ${max}`;
      return fail(diagnostic("RUN008", `parameter ${name} is ${value}`, { help }));
    }
    this.#bound = new Map(Object.entries(parameters));
    return ok(undefined);
  }

  runSync(parameters: ParameterValues): Result<void> {
    const begun = this.#begin(parameters);
    if (!begun.ok) return begun;
    const waited = guardCuda(() => this.#stream.synchronize());
    return waited.ok ? this.#outcome() : waited;
  }

  async run(parameters: ParameterValues, signal?: AbortSignal): Promise<Result<void>> {
    if (signal?.aborted) return fail(cancelled());
    const begun = this.#begin(parameters);
    if (!begun.ok) return begun;
    for (;;) {
      const done = guardCuda(() => this.#stream.isDone());
      if (!done.ok) return done;
      if (done.value) break;
      await new Promise((resolve) => setImmediate(resolve));
    }
    return signal?.aborted ? fail(cancelled()) : this.#outcome();
  }

  createStep(task: Task): Result<ProgramStep> {
    const runSync = (): Result<void> =>
      attemptOnDevice(() => {
        this.#parts.device.makeCurrent();
        this.#launch([task], this.#bound, { key: "step" });
        this.#stream.synchronize();
      });
    return ok({ runSync, dispose: () => undefined });
  }

  /** Enqueues one run `count` times without transfers in between; for measurements. */
  repeat(parameters: ParameterValues, count: number): Result<void> {
    const bound = this.bind(parameters);
    if (!bound.ok) return bound;
    return attemptOnDevice(() => {
      this.#parts.device.makeCurrent();
      const graph = this.#graphOf(false);
      for (let i = 0; i < count; i++) graph.launch(this.#stream);
    });
  }

  /**
   * Milliseconds of each launch of a run, by itself: a graph of `count` of it between two events. Buffers
   * that kernels share hold nothing meaningful afterwards.
   */
  timeLaunches(
    parameters: ParameterValues,
    count: number,
  ): Result<readonly { readonly kernel: string; readonly ms: number }[]> {
    const bound = this.bind(parameters);
    if (!bound.ok) return bound;
    return attemptOnDevice(() => {
      const { device, program } = this.#parts;
      device.makeCurrent();
      const [start, end] = [createEvent(device), createEvent(device)];
      const times: { readonly kernel: string; readonly ms: number }[] = [];
      const launch = (planned: PlannedLaunch): void => {
        const prepared = this.#prepare({ ...planned, dependent: false });
        if (!prepared) return;
        const graph = captureGraph(device, this.#stream, () => {
          for (let i = 0; i < count; i++) prepared.launch(this.#stream.handle);
        });
        try {
          graph.launch(this.#stream);
          start.record(this.#stream);
          graph.launch(this.#stream);
          end.record(this.#stream);
          times.push({ kernel: planned.task.kernel, ms: end.since(start) / count });
        } finally {
          graph.close();
        }
      };
      const test = (condition: ElementCondition, values: ReadonlyMap<string, number>): boolean =>
        this.#test(condition, values);
      try {
        walkLaunches({ tasks: program.tasks, parameters: this.#bound, launch, test });
      } finally {
        start.close();
        end.close();
      }
      return times;
    });
  }

  /**
   * Runs that take turns on copies of the program's memory, so many that together they do not fit the L2
   * cache: none finds there what it reads. As long as a run is more than that by itself there is one copy.
   */
  rotate(parameters: ParameterValues): Result<RotatingRuns> {
    const bound = this.bind(parameters);
    if (!bound.ok) return bound;
    return attemptOnDevice(() => {
      const { device, program } = this.#parts;
      const room = { l2Bytes: device.attributes.l2Bytes, freeBytes: device.freeBytes() };
      const copies = copiesFor(memoryBytes(program), room);
      const others = Array.from({ length: copies - 1 }, () => this.memory.duplicate());
      const enqueue = (): void => {
        for (const [i, memory] of [this.memory, ...others].entries()) {
          this.#clearCounters();
          this.#launch(program.tasks, this.#bound, { key: `rotate ${i}`, memory });
        }
      };
      const dispose = (): void => {
        for (const memory of others) memory.dispose();
      };
      const stream = this.#stream;
      const fixed = isStatic(program.tasks);
      return new RotatingRuns({ device, stream, enqueue, copies, fixed, dispose });
    });
  }

  get stream(): CudaStream {
    return this.#stream;
  }

  get device(): CudaDevice {
    return this.#parts.device;
  }

  /** Gives the device's memory back; bytes that were leaked are a bug. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    const lost = this.#parts.device.isLost();
    this.memory.dispose();
    const leaked = this.#parts.device.close();
    invariant(leaked === 0 || lost, () => `${leaked} bytes were not given back`);
  }

  #begin(parameters: ParameterValues): Result<void> {
    invariant(!this.#disposed, () => "a disposed instance does not run");
    const bound = this.bind(parameters);
    if (!bound.ok) return bound;
    return attemptOnDevice(() => {
      this.#parts.device.makeCurrent();
      if (isStatic(this.#parts.program.tasks)) this.#graphOf(true).launch(this.#stream);
      else this.#enqueue(true, "direct");
    });
  }

  #graphOf(transfers: boolean): CudaGraph {
    const key = `${transfers} ${JSON.stringify([...this.#bound])}`;
    const known = this.#graphs.get(key);
    if (known) return known;
    if (this.#graphs.size >= mostGraphs) {
      const [oldest] = this.#graphs.keys();
      this.#graphs.get(oldest!)!.close();
      this.#graphs.delete(oldest!);
      this.#launches.delete(oldest!);
    }
    const { device } = this.#parts;
    const graph = captureGraph(device, this.#stream, () => this.#enqueue(transfers, key));
    this.#graphs.set(key, graph);
    return graph;
  }

  /** Everything of one run, in order, onto the stream. */
  #enqueue(transfers: boolean, key: string): void {
    const { driver } = this.#parts.device;
    const { tasks } = this.#parts.program;
    const stream = this.#stream.handle;
    const clear = (address: bigint, words: number): void =>
      driver.call("cuMemsetD32Async", address, 0, words, stream);
    const checks = this.#parts.emitted.checks.length > 0;
    if (checks) clear(this.#faultsAt, faultWords);
    this.#clearCounters();
    if (transfers) this.memory.transfer("input", this.#bound, stream);
    this.#launch(tasks, this.#bound, { key });
    if (transfers) this.memory.transfer("output", this.#bound, stream);
    if (checks) {
      const { address } = this.#faults;
      driver.call("cuMemcpyDtoHAsync_v2", address, this.#faultsAt, 4 * faultWords, stream);
    }
  }

  #clearCounters(): void {
    const { driver } = this.#parts.device;
    for (const { address, words } of this.#counters.values()) {
      driver.call("cuMemsetD32Async", address, 0, words, this.#stream.handle);
    }
  }

  #launch(
    tasks: readonly Task[],
    parameters: ReadonlyMap<string, number>,
    { key, memory = this.memory }: { readonly key: string; readonly memory?: ProgramMemory },
  ): void {
    const made: CudaLaunch[] = [];
    this.#launches.set(key, made);
    walkLaunches({
      tasks,
      parameters,
      launch: (planned) => {
        const launch = this.#prepare(planned, memory);
        if (!launch) return;
        made.push(launch);
        launch.launch(this.#stream.handle);
      },
      test: (condition, values) => this.#test(condition, values),
    });
  }

  #prepare(
    { task: { kernel: name }, values, tables, dependent }: PlannedLaunch,
    memory = this.memory,
  ): CudaLaunch | undefined {
    const { device, module } = this.#parts;
    const kernel = this.#kernels.get(name)!;
    const at = new Map(values).set("threads", 1);
    const grid = kernel.grid.map((e) => evaluate(e, at)) as [number, number, number];
    if (grid.includes(0)) return undefined;
    const args = kernel.parameters.map((p) =>
      this.#argument(p, name, { values: at, tables, memory }),
    );
    const config = {
      grid,
      block: [kernel.threads, 1, 1] as const,
      sharedBytes: kernel.dynamicSharedBytes,
      cooperative: kernel.cooperative,
      dependent,
      ...(kernel.cluster > 1 && { cluster: [kernel.cluster, 1, 1] as const }),
    };
    return new CudaLaunch(device, module.kernels.get(kernel.entry)!, config, args);
  }

  #argument(
    p: PtxParameter,
    kernel: string,
    {
      values,
      tables,
      memory,
    }: Pick<PlannedLaunch, "values" | "tables"> & {
      readonly memory: ProgramMemory;
    },
  ): KernelArgument {
    const address = (name: string): bigint => memory.addressOf(tables.get(name) ?? name);
    switch (p.kind) {
      case "buffer":
        return { kind: "u64", value: address(p.name) };
      case "index": {
        const value = values.get(p.name);
        invariant(value !== undefined, () => `index ${p.name} of ${kernel} has no value`);
        if (p.bits === 32) return { kind: "u32", value: value >>> 0 };
        return { kind: "u64", value: BigInt.asUintN(64, BigInt(value)) };
      }
      case "counter":
        return { kind: "u64", value: this.#counters.get(p.name)!.address };
      case "gridBarrier":
        return { kind: "u64", value: this.#gridBarriers.get(kernel)! };
      case "faults":
        return { kind: "u64", value: this.#faultsAt };
      case "tensorMap": {
        const all = (list: typeof p.dims): number[] => list.map((e) => evaluate(e, values));
        const { status, map } = encodeTensorMap(this.#parts.device.driver, {
          type: tensorMapType(p.dtype),
          address: address(p.name),
          dims: all(p.dims),
          strides: all(p.strides),
          box: p.box,
          swizzleBytes: p.swizzleBytes,
          l2PromotionBytes: 256,
        });
        if (status === 0) return { kind: "bytes", value: map };
        throw new DiagnosticError([
          diagnostic("CUD002", `the driver takes no tensor map of ${p.name}: status ${status}`),
        ]);
      }
    }
  }

  #test({ buffer, index }: ElementCondition, values: ReadonlyMap<string, number>): boolean {
    this.#stream.synchronize();
    const { dtype, shape } = this.#parts.program.buffers.find((b) => b.name === buffer)!;
    const flat = index.reduce(
      (n, e, axis) => n * evaluate(shape[axis]!, values) + evaluate(e, values),
      0,
    );
    const size = dtypes[dtype].bits / 8;
    const element = new Uint8Array(size);
    this.#parts.device.download(this.memory.addressOf(buffer) + BigInt(flat * size), element);
    return element.some((byte) => byte !== 0);
  }

  #outcome(): Result<void> {
    const { checks } = this.#parts.emitted;
    if (checks.length === 0) return ok(undefined);
    const words = new DataView(this.#faults.bytes.buffer, this.#faults.bytes.byteOffset);
    if (words.getUint32(0, true) === 0) return ok(undefined);
    return fail(
      indexOutOfRange(
        [words.getInt32(8, true), words.getInt32(12, true)],
        checks[words.getUint32(4, true)] ?? "a check",
      ),
    );
  }
}

/** Elements that only move may be any type of their size. */
function tensorMapType(dtype: DType): keyof typeof tensorMapTypes {
  if (dtype === "f32" || dtype === "f16" || dtype === "bf16" || dtype === "f64") return dtype;
  const bits = dtypes[dtype].bits;
  return bits === 64 ? "u64" : bits === 32 ? "u32" : bits === 16 ? "u16" : "u8";
}

function cancelled(): Diagnostic {
  return diagnostic("RUN004", "the run was cancelled by its AbortSignal");
}

function take<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new DiagnosticError(result.diagnostics);
}

/** What the driver or the device refuses, as diagnostics. */
function attemptOnDevice<T>(body: () => T): Result<T> {
  try {
    return guardCuda(body);
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    return fail(...error.diagnostics);
  }
}
