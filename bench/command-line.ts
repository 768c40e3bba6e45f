/**
 * The command line of a bench: NAME [--target T] [--threads N] [--batch N] [--only TEXT …] [--rounds N] [--seconds N]
 * [--clock wall|processor] [--record FILE | --replay FILE] [--json] [--install-peers].
 */
import { parseArgs } from "node:util";
import { leastRounds } from "../src/runtime/measure/sampling.ts";
import { exitCodes, listed, Refusal, readInteger } from "./refusal.ts";
import type { BenchRequest, Suite } from "./suites/suite.ts";

const clocks = ["wall", "processor"] as const;
export type Clock = (typeof clocks)[number];
const mostAtOnce = 64;

export interface BenchCommandLine extends BenchRequest {
  readonly suite: Suite;
  /** Cases whose name holds one of these texts; none: all. */
  readonly only: readonly string[];
  /** Rounds of a case, and seconds after which there are no more of them. */
  readonly rounds: number;
  readonly seconds: number;
  /** `processor`: what this process was given, for one thread on a machine that others use too. */
  readonly clock: Clock;
  readonly json: boolean;
  readonly installPeers: boolean;
}

/** @param cores the most threads that may be asked for */
export function readBenchCommandLine(
  args: readonly string[],
  suites: readonly Suite[],
  cores: number,
): BenchCommandLine {
  const { values, positionals } = parse(args);
  if (values.help)
    throw new Refusal(
      `npm run bench -- NAME [--target T] [--threads N] [--batch N] [--only TEXT …] [--rounds N] [--seconds N]\n  [--clock wall|processor] [--record FILE | --replay FILE] [--json] [--install-peers]\n${listed(suites)}`,
      0,
    );
  const suite = suites.find((s) => s.name === positionals[0]);
  if (suite === undefined || positionals.length > 1) {
    throw new Refusal(`name one suite:\n${listed(suites)}`, exitCodes.usage);
  }
  const target = values.target ?? suite.targets[0]!;
  if (!suite.targets.includes(target)) {
    const allowed = suite.targets.join(", ");
    throw new Refusal(
      `suite ${suite.name} has no target "${target}"; it has ${allowed}`,
      exitCodes.usage,
    );
  }
  const threads = readInteger("--threads", values.threads, [1, cores]);
  const rounds = readInteger("--rounds", values.rounds, [leastRounds, 1000]);
  const seconds = readInteger("--seconds", values.seconds, [1, 3600]);
  const clock = clocks.find((name) => name === values.clock);
  if (clock === undefined || (clock === "processor" && threads > 1)) {
    throw new Refusal("--clock takes wall or, with one thread, processor", exitCodes.usage);
  }
  const { only, json, "install-peers": installPeers } = values;
  const given = { ...readBatch(suite, values.batch), ...readTimesFiles(suite, values) };
  return { suite, target, threads, only, rounds, seconds, clock, json, installPeers, ...given };
}

function readBatch(suite: Suite, text: string | undefined): Pick<BenchRequest, "batch"> {
  if (text === undefined) return {};
  if (!suite.takesBatch) {
    throw new Refusal("--batch is for suites whose models take several at once", exitCodes.usage);
  }
  return { batch: readInteger("--batch", text, [1, mostAtOnce]) };
}

function readTimesFiles(
  suite: Suite,
  {
    record,
    replay,
  }: { readonly record?: string | undefined; readonly replay?: string | undefined },
): Pick<BenchRequest, "record" | "replay"> {
  if (record === undefined && replay === undefined) return {};
  if (!suite.recordsTimes || (record !== undefined && replay !== undefined)) {
    const text = "--record and --replay are one or the other, for suites that keep times";
    throw new Refusal(text, exitCodes.usage);
  }
  return { ...(record !== undefined && { record }), ...(replay !== undefined && { replay }) };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        target: { type: "string" },
        threads: { type: "string", default: "1" },
        batch: { type: "string" },
        only: { type: "string", multiple: true, default: [] },
        rounds: { type: "string", default: "15" },
        seconds: { type: "string", default: "10" },
        clock: { type: "string", default: "wall" },
        record: { type: "string" },
        replay: { type: "string" },
        help: { type: "boolean", short: "h", default: false },
        json: { type: "boolean", default: false },
        "install-peers": { type: "boolean", default: false },
      },
    });
  } catch (error) {
    if (error instanceof TypeError) throw new Refusal(error.message, exitCodes.usage);
    throw error;
  }
}
