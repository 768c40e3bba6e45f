/**
 * One run of a program launch by launch, each as a program of its own on the same memory, with the time of each.
 * Control flow is decided here: loops are run through, conditions read what the launches before left. A launch that
 * a trip gives other values is another step.
 */
import type { Program, Task } from "../program/program.ts";
import { type DType, storageBytes } from "../semantics/dtype.ts";
import { constant, evaluate } from "../semantics/index-expr.ts";
import { tensorFromBytes, toRef } from "../semantics/tensor.ts";
import { attempt, DiagnosticError, type Result, reject } from "../support/diagnostic.ts";
import { invariant } from "../support/invariant.ts";
import type { BufferMemory } from "./buffer-memory.ts";
import { type ElementCondition, type PlannedLaunch, walkLaunches } from "./launch-plan.ts";

/** Time of one launch of a kernel in a profiled run, on the clock that was given. */
export interface KernelTime {
  readonly kernel: string;
  readonly region: string;
  readonly startMs: number;
  readonly endMs: number;
  /** Of a model in stages: which of them it belongs to, counted from 1. */
  readonly stage?: number;
}

/** A part of a program that runs on the program's memory. */
export interface ProgramStep {
  readonly runSync: () => Result<void>;
  readonly dispose: () => void;
}

export interface ProfiledInstance {
  readonly memory: Pick<BufferMemory, "read">;
  /** One task as a program of its own on the same memory. */
  createStep(task: Task): Result<ProgramStep>;
}

/** Rounds of a profile before the one that counts: engines start with unoptimized code. */
const warmUpRounds = 6;

/** Launches of a program that differ: each has code of its own. */
const mostSteps = 4096;

/**
 * The launches of one run in order, on the inputs and parameters that the instance has been given. RUN010: too many
 * of them differ. RUN007: a loop makes more trips than it may.
 */
export function profileProgram(
  program: Program,
  instance: ProfiledInstance,
  given: {
    readonly parameters: ReadonlyMap<string, number>;
    readonly now: () => number;
  },
): Result<readonly KernelTime[]> {
  const profile = new ProgramProfile(program, instance, given);
  try {
    return attempt(() => {
      for (let round = 0; round < warmUpRounds; round++) profile.run();
      return profile.run();
    });
  } finally {
    profile.dispose();
  }
}

type Given = Parameters<typeof profileProgram>[2];

class ProgramProfile {
  readonly #program: Program;
  readonly #instance: ProfiledInstance;
  readonly #given: Given;
  readonly #regions: ReadonlyMap<string, string>;
  readonly #steps = new Map<string, ProgramStep>();

  constructor(program: Program, instance: ProfiledInstance, given: Given) {
    this.#program = program;
    this.#instance = instance;
    this.#given = given;
    this.#regions = new Map(program.kernels.map((k) => [k.name, k.region]));
  }

  run(): readonly KernelTime[] {
    const { parameters, now } = this.#given;
    const times: KernelTime[] = [];
    walkLaunches({
      tasks: this.#program.tasks,
      parameters,
      launch: (planned) => {
        const { kernel } = planned.task;
        const step = this.#stepOf(planned);
        const startMs = now();
        settled(step.runSync());
        times.push({ kernel, region: this.#regions.get(kernel)!, startMs, endMs: now() });
      },
      test: (condition, values) => this.#isSet(condition, values),
    });
    return times;
  }

  dispose(): void {
    for (const step of this.#steps.values()) step.dispose();
  }

  #stepOf({ task, values, tables }: PlannedLaunch): ProgramStep {
    const bound = task.bindings.map(([name]) => [name, values.get(name)!] as const);
    const key = JSON.stringify([task.kernel, bound, [...tables]]);
    const known = this.#steps.get(key);
    if (known) return known;
    if (this.#steps.size === mostSteps) {
      reject("RUN010", `more than ${mostSteps} launches of the program differ`, {
        at: `kernel ${task.kernel}`,
        help: "profile a run with fewer trips: give its loops less to do",
      });
    }
    const launch = { ...task, bindings: bound.map(([n, value]) => [n, constant(value)] as const) };
    const step = settled(this.#instance.createStep(withTables(launch, tables)));
    this.#steps.set(key, step);
    return step;
  }

  #isSet({ buffer, index }: ElementCondition, values: ReadonlyMap<string, number>): boolean {
    const found = this.#program.buffers.find((b) => b.name === buffer);
    invariant(found, () => `no buffer ${buffer} to test`);
    const at = index.reduce(
      (flat, e, axis) => flat * evaluate(found.shape[axis]!, values) + evaluate(e, values),
      0,
    );
    return this.#element(buffer, found.dtype, at) !== 0;
  }

  #element(buffer: string, dtype: DType, at: number): number {
    const size = storageBytes(dtype, 1);
    const bytes = this.#instance.memory.read(buffer, (at + 1) * size).subarray(at * size);
    return Number(toRef(tensorFromBytes(dtype, [1], bytes)).data[0]);
  }
}

/** A loop of one trip names the rows. */
function withTables(launch: Task, tables: ReadonlyMap<string, string>): Task {
  if (tables.size === 0) return launch;
  const rows = [...tables].map(([name, row]) => ({ name, rows: [row] }));
  return { kind: "repeat", variable: "@step", count: constant(1), tables: rows, body: [launch] };
}

function settled<T>(result: Result<T>): T {
  if (!result.ok) throw new DiagnosticError(result.diagnostics);
  return result.value;
}
