/**
 * Random kernels (campaign/random-kernel.ts), each compiled for the device and run on several random inputs,
 * outputs poisoned before: every region against float64 at sampled points, by the same judge that
 * `wavetile optimize` uses, with tolerances from types and lengths of sums. Kernels are dealt out to
 * processes. Ends with `N passed, N failed`.
 * Usage: node random-kernels.mjs [--count N] [--first SEED] [--inputs N] [--processes N] [--target NAME]
 */
import { spawn } from "node:child_process";
import { randomKernel } from "../../campaign/random-kernel.ts";
import { type CompiledRegion, compileModel } from "../../src/compile.ts";
import { noWeights } from "../../src/interp/graph.ts";
import { lowerRegionProgram } from "../../src/lower/region-program.ts";
import { CandidateHost } from "../../src/runtime/child/candidate-host.ts";
import type { CandidateRunner } from "../../src/runtime/child/child-runner.ts";
import { probeCuda } from "../../src/runtime/cuda/features.ts";
import { printSchedule } from "../../src/schedule/directive-text.ts";
import { tileFactors } from "../../src/schedule/states/tile-factors.ts";
import { ok } from "../../src/support/diagnostic.ts";
import { targets } from "../../src/target/index.ts";
import type { Target } from "../../src/target/target.ts";
import type { Bench, Candidate } from "../../src/verdict/candidate.ts";
import { CandidateSession } from "../../src/verdict/candidate-session.ts";
import { CheckBlocks, checkCandidate } from "../../src/verdict/check-candidate.ts";
import { take } from "./ptx-launch.ts";

const given = new Map<string, string>();
for (let i = 2; i + 1 < process.argv.length; i += 2)
  given.set(process.argv[i]!, process.argv[i + 1]!);
const number = (name: string, otherwise: number): number => Number(given.get(name) ?? otherwise);
const [count, first] = [number("--count", 1000), number("--first", 0)];
const [inputs, processes] = [number("--inputs", 10), number("--processes", 8)];

if (given.has("--part")) await runPart(number("--part", 0));
else await runAll();

/** Each process has every N-th kernel. */
async function runAll(): Promise<void> {
  let [passed, failed] = [0, 0];
  const begin = performance.now();
  await Promise.all(
    Array.from({ length: processes }, async (_, part) => {
      const rest = [...process.argv.slice(2), "--part", String(part)];
      const child = spawn(process.execPath, [process.argv[1]!, ...rest]);
      const hear = (text: string): void => {
        for (const line of text.split("\n").filter((l) => l !== "")) {
          if (line === "ok") passed++;
          else if (line.startsWith("FAIL")) failed++;
          if (line !== "ok") console.log(line);
        }
      };
      let begun = "";
      child.stdout.on("data", (data) => {
        const lines = (begun + String(data)).split("\n");
        begun = lines.pop()!;
        hear(lines.join("\n"));
      });
      child.stderr.on("data", (data) => console.log(String(data).trimEnd()));
      await new Promise((resolve) => child.on("close", resolve));
      hear(begun);
    }),
  );
  const seconds = ((performance.now() - begin) / 1000).toFixed(0);
  console.log(`${count} kernels x ${inputs} inputs in ${seconds} s`);
  console.log(`${passed} passed, ${count - passed} failed`);
  process.exitCode = passed === count && failed === 0 ? 0 : 1;
}

async function runPart(part: number): Promise<void> {
  const name = given.get("--target") ?? take(probeCuda()).targets[0]!;
  const target = targets.get(name)!;
  const host = new CandidateHost(() => performance.now() * 1e6);
  const runner = inProcess(host);
  for (let seed = first + part; seed < first + count; seed += processes) {
    const kernel = randomKernel(seed);
    try {
      const fault = await faultOf(kernel.graph, target, runner);
      console.log(fault === undefined ? "ok" : `FAIL ${kernel.name}: ${fault}`);
    } catch (error) {
      console.log(`FAIL ${kernel.name}: ${String(error).slice(0, 500).replaceAll("\n", " | ")}`);
    }
  }
}

/** A fault takes the rest of the part along, which then counts as failed. */
function inProcess(host: CandidateHost): CandidateRunner {
  return {
    generation: 1,
    request: async (request) => {
      const reply = await host.handle(request);
      return reply.kind === "failed"
        ? { kind: "refused", diagnostics: reply.diagnostics }
        : { kind: "answered", reply };
    },
    dispose: async () => {},
  };
}

async function faultOf(
  graph: ReturnType<typeof randomKernel>["graph"],
  target: Target,
  runner: CandidateRunner,
): Promise<string | undefined> {
  const compiled = take(compileModel({ graph, weights: noWeights }, { target }));
  for (const region of compiled.regions) {
    const { program } = take(lowerRegionProgram(region.scheduled, target, compiled.regionRequires));
    const fault = await regionFault(candidateOf(region, program), runner);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function candidateOf({ scheduled }: CompiledRegion, program: Candidate["program"]): Candidate {
  const { region, schedule } = scheduled;
  return { region, program, schedule: printSchedule(schedule), tiles: tileFactors(schedule) };
}

async function regionFault(
  candidate: Candidate,
  runner: CandidateRunner,
): Promise<string | undefined> {
  const bench: Bench = {
    ...{ runner, threads: 1, deadlineMs: 60_000, seed: 0 },
    validate: (program) => ok(program),
  };
  const session = new CandidateSession(candidate, bench);
  const loaded = await session.load();
  if (loaded.kind !== "done") return describe(candidate, loaded.diagnostics);
  try {
    for (let input = 0; input < inputs; input++) {
      const shared = new CheckBlocks();
      const outcome = await checkCandidate(candidate, session, { ...bench, seed: input }, shared);
      if (outcome.kind === "agrees") continue;
      if (outcome.kind !== "wrong") return describe(candidate, outcome.diagnostics);
      const { worst } = outcome;
      const place = `${worst.tensor}[${worst.index.join(", ")}]`;
      const how = candidate.schedule.trim().split("\n").at(-1);
      return `${outcome.wrong} of ${outcome.checked} differ, ${place} is ${worst.found}, not ${worst.expected} +- ${worst.tolerance.toExponential(1)}: ${how}`;
    }
    return undefined;
  } finally {
    await session.unload();
  }
}

function describe(
  { schedule }: Candidate,
  diagnostics: readonly Readonly<Record<"code" | "message", string>>[],
): string {
  const words = diagnostics.map(({ code, message }) => `${code} ${message}`).join("; ");
  return `${words}: ${schedule.trim().split("\n").at(-1)}`;
}
