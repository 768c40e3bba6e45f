/** The command line of a bench: NAME [--target T] [--threads N] [--only TEXT …] [--json] [--install-peers]. */
import { parseArgs } from "node:util";
import { exitCodes, Refusal, readInteger } from "./refusal.ts";
import type { BenchRequest, Suite } from "./suites/suite.ts";

export interface BenchCommandLine extends BenchRequest {
  readonly suite: Suite;
  /** Cases whose name holds one of these texts; none: all. */
  readonly only: readonly string[];
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
  const suite = suites.find((s) => s.name === positionals[0]);
  if (suite === undefined || positionals.length > 1) {
    const known = suites.map((s) => `  ${s.name}: ${s.summary}`).join("\n");
    throw new Refusal(`name one suite:\n${known}`, exitCodes.usage);
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
  const { only, json, "install-peers": installPeers } = values;
  return { suite, target, threads, only, json, installPeers };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        target: { type: "string" },
        threads: { type: "string", default: "1" },
        only: { type: "string", multiple: true, default: [] },
        json: { type: "boolean", default: false },
        "install-peers": { type: "boolean", default: false },
      },
    });
  } catch (error) {
    if (error instanceof TypeError) throw new Refusal(error.message, exitCodes.usage);
    throw error;
  }
}
