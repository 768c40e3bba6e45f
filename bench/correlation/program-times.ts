/**
 * Where the correlation suite has its times from: measured in this process, measured and written to a file
 * (`--record`), or read from one (`--replay`), so that prices can be judged again without measuring. A program is
 * known by the hash of its text: another candidate has no time in the file, and the suite refuses it. What an
 * emitter makes of a program is not part of its text: a recording is good for the emitter that it was made with.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { z } from "zod";
import type { Program } from "../../src/program/program.ts";
import { printProgram } from "../../src/program/program-text.ts";
import { geometricMean } from "../../src/runtime/measure/statistics.ts";
import { sha256Text } from "../../src/support/hash.ts";
import { exitCodes, Refusal } from "../refusal.ts";
import { type SamplingOptions, type TimedProgram, timePrograms } from "./sample-set.ts";

export interface ProgramTimes {
  of(programs: readonly Program[], sampling: SamplingOptions): readonly TimedProgram[];
  /** Where the times are from, for the report. */
  readonly origin: string;
  /** Called after the last case. */
  readonly close: () => Promise<void>;
}

const recording = z.strictObject({
  schema: z.literal("wavetile/program-times@1"),
  target: z.string(),
  processor: z.string(),
  madeAt: z.string(),
  /** By hash of the program: nanoseconds of each half of its instances. */
  times: z.record(z.string(), z.tuple([z.number().positive(), z.number().positive()])),
});

const processor = (): string => cpus()[0]?.model ?? "unknown processor";
const nothing = async (): Promise<void> => undefined;

export function programTimes(
  target: string,
  { record, replay }: { readonly record?: string; readonly replay?: string },
): ProgramTimes {
  if (replay !== undefined) return replayed(target, replay);
  if (record !== undefined) return recorded(target, record);
  return { of: timePrograms, origin: "measured", close: nothing };
}

/** Written after every workload, and read first where it is there: a recording that was ended goes on. */
function recorded(target: string, file: string): ProgramTimes {
  const refuse = refusing("--record", file);
  const before = existsSync(file) ? readRecording(file, target, refuse) : undefined;
  if (before && before.processor !== processor()) refuse(`it was made on ${before.processor}`);
  const times: Record<string, readonly [number, number]> = { ...before?.times };
  const write = (): void => {
    const madeAt = new Date().toISOString();
    const schema = "wavetile/program-times@1";
    const data = { schema, target, processor: processor(), madeAt, times };
    writeFileSync(file, `${JSON.stringify(data, null, 1)}\n`);
  };
  return {
    of: (programs, sampling) => {
      // Programs of a workload are timed in turns: all of them or none.
      const known = programs.map((program) => times[hashOf(program)]);
      if (known.every((halves) => halves !== undefined)) return known.map(timedBy);
      const timed = timePrograms(programs, sampling);
      for (const [i, { halves }] of timed.entries()) times[hashOf(programs[i]!)] = halves;
      write();
      return timed;
    },
    origin: `measured, written to ${file}${before ? ` beside those of ${before.madeAt}` : ""}`,
    close: async () => write(),
  };
}

const refusing =
  (option: string, file: string) =>
  (what: string): never => {
    throw new Refusal(`${option} ${file}: ${what}; make one with --record`, exitCodes.usage);
  };

function timedBy(halves: readonly [number, number]): TimedProgram {
  return { ns: geometricMean(halves), halves };
}

function readRecording(file: string, target: string, refuse: (what: string) => never) {
  if (!existsSync(file)) refuse("there is no such file");
  const read = recording.safeParse(parseJson(readFileSync(file, "utf8")));
  if (!read.success) return refuse("this is no recording of times");
  if (read.data.target !== target) refuse(`its times are of ${read.data.target}, not of ${target}`);
  return read.data;
}

function replayed(target: string, file: string): ProgramTimes {
  const refuse = refusing("--replay", file);
  const { times, processor: on, madeAt } = readRecording(file, target, refuse);
  return {
    of: (programs) =>
      programs.map((program) =>
        timedBy(times[hashOf(program)] ?? refuse("a candidate has no time in it")),
      ),
    origin: `replayed from ${file}, made ${madeAt} on ${on}`,
    close: nothing,
  };
}

function hashOf(program: Program): string {
  return sha256Text(printProgram(program)).slice(0, 24);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
