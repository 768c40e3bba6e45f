/**
 * What makes a program of one kind of target run in this process. A new kind of code is a row of
 * `executors`; nothing else of the child knows it.
 */
import type { Program } from "../../program/program.ts";
import { diagnostic, fail, type Result } from "../../support/diagnostic.ts";
import { targets } from "../../target/index.ts";
import type { Target } from "../../target/target.ts";
import type { BufferMemory } from "../buffer-memory.ts";
import type { TimedSide } from "../measure/sampling.ts";
import { cudaExecutor } from "./cuda-executor.ts";
import { nativeExecutor } from "./native-executor.ts";
import { wasmExecutor } from "./wasm-executor.ts";

export interface LoadedProgram extends Pick<BufferMemory, "write" | "fill"> {
  /** The first `count` bytes of a buffer, not to be changed, until the next run. */
  read(buffer: string, count: number): Uint8Array;
  run(parameters: Readonly<Record<string, number>>): Result<void>;
  /** A side of a measurement with the device's own clock; absent: `run` under the caller's clock. */
  timed?(parameters: Readonly<Record<string, number>>): Result<TimedSide>;
  unload(): void;
}

export type Executor = (program: Program, target: Target, threads: number) => Result<LoadedProgram>;

const executors: Readonly<Partial<Record<NonNullable<Target["emitter"]>, Executor>>> = {
  wasm: wasmExecutor,
  x64: nativeExecutor,
  ptx: cudaExecutor,
};

/** Makes the code of a program for the target that it names. */
export function loadProgram(program: Program, threads: number): Result<LoadedProgram> {
  const target = targets.get(program.target);
  const executor = target?.emitter && executors[target.emitter];
  if (target && executor) return executor(program, target, threads);
  return fail(
    diagnostic("RUN040", `no way to run a program for target ${program.target} here`, {
      help: `use one of ${[...targets.values()].filter((t) => t.emitter && executors[t.emitter]).map((t) => t.name)}`,
    }),
  );
}
