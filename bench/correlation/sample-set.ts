/**
 * Times of many candidates of one workload, in this process and on one thread: programs take turns, each
 * sample is long enough for the clock, the smallest of all rounds counts (a machine that is busy only
 * ever adds). Each program is loaded several times, since where its code and its buffers come to lie changes times
 * by some percent for as long as it is loaded: a candidate's time is the mean over its instances, and how well the
 * mean of one half of them ranks that of the other is the noise ceiling of any model of these times.
 */
import { lowerProgram } from "../../src/lower/lower-program.ts";
import type { Program } from "../../src/program/program.ts";
import { capacityBytes } from "../../src/program/storage-sizes.ts";
import { validateProgram } from "../../src/program/validate/validate.ts";
import type { ProgramRegions } from "../../src/region/regions-of.ts";
import { type LoadedProgram, loadProgram } from "../../src/runtime/child/executor.ts";
import { geometricMean } from "../../src/runtime/measure/statistics.ts";
import { applySchedule } from "../../src/schedule/apply.ts";
import type { Schedule } from "../../src/schedule/directive.ts";
import { checkSchedule } from "../../src/schedule/legality/legality.ts";
import type { ScheduledRegion } from "../../src/schedule/scheduled-region.ts";
import { tensorBytes } from "../../src/semantics/tensor.ts";
import type { Target } from "../../src/target/target.ts";

export interface TimedProgram {
  readonly ns: number;
  /** Of each half of its instances. */
  readonly halves: readonly [number, number];
}

interface Loaded {
  readonly code: LoadedProgram;
  ns: number;
  repeats: number;
}

/** Of each program, an even number. */
const instances = 4;

export interface SamplingOptions {
  readonly rounds: number;
  readonly sampleNs: number;
}

/** The program of a workload under schedules of all its regions, or why it is none. */
export function programOf(
  { nests, regions }: ProgramRegions,
  schedules: readonly Schedule[],
  target: Target,
): Program | string {
  const scheduled: ScheduledRegion[] = [];
  for (const [i, region] of regions.entries()) {
    const applied = applySchedule(region, schedules[i]!);
    const legal = applied.ok ? checkSchedule(applied.value) : applied;
    if (!legal.ok) return legal.diagnostics[0]!.message;
    scheduled.push(legal.value);
  }
  const lowered = lowerProgram({ nests, scheduled, requires: [], states: [] }, target);
  if (!lowered.ok) return lowered.diagnostics[0]!.message;
  const valid = validateProgram(lowered.value.program);
  return valid.ok ? lowered.value.program : valid.diagnostics[0]!.message;
}

export function timePrograms(
  programs: readonly Program[],
  { rounds, sampleNs }: SamplingOptions,
): readonly TimedProgram[] {
  const loaded = Array.from({ length: instances }, () => programs)
    .flat()
    .map(loadFilled);
  for (const one of loaded) {
    const once = Math.min(...[1, 2, 3, 4].map(() => timeOf(one.code, 1)));
    one.repeats = Math.max(1, Math.min(5000, Math.ceil(sampleNs / once)));
  }
  for (let round = 0; round < rounds; round++) {
    for (const one of loaded) one.ns = Math.min(one.ns, timeOf(one.code, one.repeats));
  }
  for (const { code } of loaded) code.unload();
  return programs.map((_, i) => {
    const times = Array.from({ length: instances }, (_, k) => loaded[i + k * programs.length]!.ns);
    const halves = [
      geometricMean(times.slice(0, instances / 2)),
      geometricMean(times.slice(instances / 2)),
    ] as const;
    return { ns: geometricMean(halves), halves };
  });
}

function loadFilled(program: Program): Loaded {
  const code = loadProgram(program, 1);
  if (!code.ok) throw new Error(JSON.stringify(code.diagnostics));
  for (const b of program.buffers) {
    if (b.kind !== "input" && b.kind !== "weight") continue;
    if (b.dtype !== "f32") continue;
    const count = capacityBytes(program, b) / 4;
    const data = Float32Array.from({ length: count }, (_, i) => ((i * 31) % 97) / 97 - 0.5);
    code.value.write(b.name, tensorBytes({ dtype: "f32", shape: [count], data }));
  }
  return { code: code.value, ns: Infinity, repeats: 1 };
}

function timeOf(code: LoadedProgram, repeats: number): number {
  const start = process.hrtime.bigint();
  for (let i = 0; i < repeats; i++) code.run({});
  return Number(process.hrtime.bigint() - start) / repeats;
}
