/**
 * Times of many schedules of one region, in this process and on one thread: programs take turns, each
 * sample is long enough for the clock, the smallest of all rounds counts (a machine that is busy only
 * ever adds). Two interleaved halves of the rounds give the noise ceiling of any model of these times.
 */
import { lowerRegionProgram } from "../../src/lower/region-program.ts";
import type { Program } from "../../src/program/program.ts";
import { validateProgram } from "../../src/program/validate/validate.ts";
import type { Region } from "../../src/region/nest.ts";
import { type LoadedProgram, loadProgram } from "../../src/runtime/child/executor.ts";
import { applySchedule } from "../../src/schedule/apply.ts";
import type { Schedule } from "../../src/schedule/directive.ts";
import { checkSchedule } from "../../src/schedule/legality.ts";
import { tensorBytes } from "../../src/semantics/tensor.ts";
import type { Target } from "../../src/target/target.ts";

export interface TimedSchedule {
  readonly schedule: Schedule;
  readonly ns: number;
  /** The same from every other round. */
  readonly halves: readonly [number, number];
}

interface Loaded {
  readonly schedule: Schedule;
  readonly code: LoadedProgram;
  readonly halves: [number, number];
  repeats: number;
}

export interface SamplingOptions {
  readonly rounds: number;
  readonly sampleNs: number;
}

/** The program of a schedule, or why it is none: legality, lowering or the validator's refusal. */
export function programOf(region: Region, schedule: Schedule, target: Target): Program | string {
  const scheduled = applySchedule(region, schedule);
  if (!scheduled.ok) return scheduled.diagnostics[0]!.message;
  const legal = checkSchedule(scheduled.value);
  if (!legal.ok) return legal.diagnostics[0]!.message;
  const lowered = lowerRegionProgram(scheduled.value, target);
  if (!lowered.ok) return lowered.diagnostics[0]!.message;
  const valid = validateProgram(lowered.value.program);
  return valid.ok ? lowered.value.program : valid.diagnostics[0]!.message;
}

export function timeSchedules(
  programs: readonly { readonly schedule: Schedule; readonly program: Program }[],
  { rounds, sampleNs }: SamplingOptions,
): readonly TimedSchedule[] {
  const loaded = programs.map(({ schedule, program }): Loaded => {
    const code = loadProgram(program, 1);
    if (!code.ok) throw new Error(JSON.stringify(code.diagnostics));
    for (const b of program.buffers) {
      if (b.kind !== "input" && b.kind !== "weight") continue;
      const bytes = code.value.bytes(b.name);
      if (b.dtype !== "f32") continue;
      const count = bytes.length / 4;
      const data = Float32Array.from({ length: count }, (_, i) => ((i * 31) % 97) / 97 - 0.5);
      bytes.set(tensorBytes({ dtype: "f32", shape: [count], data }));
    }
    return { schedule, code: code.value, halves: [Infinity, Infinity], repeats: 1 };
  });
  for (const one of loaded) {
    const once = Math.min(...[1, 2, 3, 4].map(() => timeOf(one.code, 1)));
    one.repeats = Math.max(1, Math.min(5000, Math.ceil(sampleNs / once)));
  }
  for (let round = 0; round < rounds; round++) {
    for (const one of loaded) {
      const ns = timeOf(one.code, one.repeats);
      const half = round % 2;
      one.halves[half] = Math.min(one.halves[half]!, ns);
    }
  }
  const timed = loaded.map(({ schedule, halves }) => ({
    schedule,
    ns: Math.min(...halves),
    halves,
  }));
  for (const { code } of loaded) code.unload();
  return timed;
}

function timeOf(code: LoadedProgram, repeats: number): number {
  const start = process.hrtime.bigint();
  for (let i = 0; i < repeats; i++) code.run({});
  return Number(process.hrtime.bigint() - start) / repeats;
}
