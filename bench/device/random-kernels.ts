/**
 * Random kernels (campaign/random-kernel.ts), each compiled for the device and run on several random inputs,
 * outputs poisoned before: every region against float64 at sampled points, by the same judge that
 * `wavetile optimize` uses, with tolerances from types and lengths of sums. Kernels are dealt out to
 * processes, bound by the judge. Ends with `N passed, N failed`.
 * Usage: node random-kernels.mjs [--count N] [--first SEED] [--inputs N] [--processes N] [--target NAME]
 */
import { fork } from "node:child_process";
import { randomKernel } from "../../campaign/random-kernel.ts";
import type { CompiledRegion } from "../../src/code-price.ts";
import { compileModel } from "../../src/compile.ts";
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
import { needDevice, take } from "./ptx-launch.ts";

const given = new Map<string, string>();
for (let i = 2; i + 1 < process.argv.length; i += 2)
  given.set(process.argv[i]!, process.argv[i + 1]!);
const number = (name: string, otherwise: number): number => Number(given.get(name) ?? otherwise);
const [count, first] = [number("--count", 1000), number("--first", 0)];
const [inputs, processes] = [number("--inputs", 10), number("--processes", 8)];

/** Milliseconds that a process spent on its last kernel. */
const spentHere = { compiling: 0, checking: 0 };

if (given.has("--part")) runPart();
else {
  needDevice();
  await runAll();
}

type Answer = { readonly fault?: string } & typeof spentHere;

/** Processes ask for the next kernel when they have judged one; ended early, it says what is under way. */
async function runAll(): Promise<void> {
  let [next, passed, failed] = [first, 0, 0];
  const spent = { compiling: 0, checking: 0 };
  const underWay = new Map<number, number>();
  const begin = performance.now();
  const report = (): void => {
    const seconds = ((performance.now() - begin) / 1000).toFixed(0);
    const [compiling, checking] = Object.values(spent).map((ms) => Math.round(ms / 1000));
    console.log(
      `${passed + failed} of ${count} kernels x ${inputs} inputs in ${seconds} s; in all processes ${compiling} s compiling, ${checking} s assembling, running and judging`,
    );
    console.log(`${passed} passed, ${count - passed} failed`);
  };
  process.on("SIGTERM", () => {
    console.log(`under way: ${[...underWay.values()].join(", ")}`);
    report();
    process.exit(1);
  });
  const runOne = async (part: number): Promise<void> => {
    while (next < first + count) {
      const child = fork(process.argv[1]!, [...process.argv.slice(2), "--part", String(part)]);
      const give = (): void => {
        if (next >= first + count) {
          underWay.delete(part);
          child.disconnect();
          return;
        }
        underWay.set(part, next);
        child.send(next++);
      };
      child.on("message", ({ fault, compiling, checking }: Answer) => {
        if (fault === undefined) passed++;
        else {
          failed++;
          console.log(`FAIL ${randomKernel(underWay.get(part)!).name}: ${fault}`);
        }
        spent.compiling += compiling;
        spent.checking += checking;
        give();
      });
      give();
      const code = await new Promise((resolve) => child.on("exit", resolve));
      const seed = underWay.get(part);
      if (seed === undefined) continue;
      failed++;
      console.log(`FAIL ${randomKernel(seed).name}: its process ended with ${String(code)}`);
      underWay.delete(part);
    }
  };
  await Promise.all(Array.from({ length: processes }, (_, part) => runOne(part)));
  report();
  process.exitCode = passed === count && failed === 0 ? 0 : 1;
}

function runPart(): void {
  const name = given.get("--target") ?? take(probeCuda()).targets[0]!;
  const target = targets.get(name)!;
  const runner = inProcess(new CandidateHost(() => performance.now() * 1e6));
  process.on("message", async (seed: number) => {
    Object.assign(spentHere, { compiling: 0, checking: 0 });
    const { graph } = randomKernel(seed);
    const fault = await faultOf(graph, target, runner).catch((error) =>
      String(error).slice(0, 500).replaceAll("\n", " | "),
    );
    process.send!({ ...spentHere, ...(fault !== undefined && { fault }) } satisfies Answer);
  });
}

/** A fault of the device ends this process, and with it this kernel alone. */
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
  const begin = performance.now();
  const compiled = take(compileModel({ graph, weights: noWeights }, { target }));
  const made = performance.now();
  spentHere.compiling += made - begin;
  try {
    for (const region of compiled.regions) {
      const { scheduled } = region;
      const { program } = take(lowerRegionProgram(scheduled, target, compiled.regionRequires));
      const fault = await regionFault(candidateOf(region, program), runner);
      if (fault !== undefined) return fault;
    }
    return undefined;
  } finally {
    spentHere.checking += performance.now() - made;
  }
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
