/**
 * `npm run bench -- NAME [--target T] [--threads N] [--only TEXT …] [--rounds N] [--seconds N] [--clock C]
 * [--record F | --replay F] [--json] [--install-peers]`: runs one suite, or its cases that hold a text, and prints machine, versions, a row a
 * case and the summary. stdout carries the result, stderr progress.
 * Exit codes: 0 measured (losses too), 1 a time was refused or is far beyond what is allowed, 2 usage, 3 outputs disagree,
 * 4 a model is not supported, 6 a peer or model is missing.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, platform, release, totalmem } from "node:os";
import { join } from "node:path";
import { DiagnosticError, formatDiagnostic } from "../src/support/diagnostic.ts";
import { lineChartSvg, type NamedChart } from "./chart.ts";
import { type BenchCommandLine, type Clock, readBenchCommandLine } from "./command-line.ts";
import { type Contest, type ContestOutcome, type Protocol, runContest } from "./measure/contest.ts";
import { restFor } from "./measure/rest.ts";
import { installPeers, missingPeers } from "./peers.ts";
import { exitCodes, Refusal, runToExit } from "./refusal.ts";
import {
  type BenchReport,
  type BenchRow,
  describeFailure,
  describeMachine,
  describeRow,
  describeSummary,
  type FailedCase,
  summarise,
} from "./report.ts";
import { PeerLacksKernels } from "./sessions/peer-kernels.ts";
import { suites } from "./suites/registry.ts";
import type { BenchCase, ContestCase } from "./suites/suite.ts";

/** Nanoseconds from a fixed point. */
const clocks: Readonly<Record<Clock, () => number>> = {
  wall: () => performance.now() * 1e6,
  processor: () => {
    const { user, system } = process.cpuUsage();
    return (user + system) * 1e3;
  },
};

const protocol: Omit<Protocol, "rounds" | "longNs" | "clock"> = {
  // An engine compiles the JavaScript of a call after hundreds of calls; long runs share a twentieth of the time.
  warmUp: 1000,
  leastSampleNs: 5e6,
  checks: 2,
  seed: 1,
};

const chartFolder = ".cache/bench";

function requirePeers({ suite, installPeers: mayInstall }: BenchCommandLine): void {
  const refused = suite.preparePeers?.(mayInstall);
  if (refused !== undefined) throw new Refusal(refused, exitCodes.environment);
  const missing = missingPeers(suite.peers);
  if (missing.length === 0) return;
  const names = missing.map((p) => p.name).join(", ");
  if (!mayInstall) {
    throw new Refusal(
      `not installed: ${names}; run again with --install-peers`,
      exitCodes.environment,
    );
  }
  const complaint = installPeers(missing);
  if (complaint !== undefined)
    throw new Refusal(`cannot install ${names}: ${complaint}`, exitCodes.environment);
}

async function runCase(
  benchCase: BenchCase,
  { rounds, seconds, clock, threads }: BenchCommandLine,
): Promise<BenchRow | FailedCase> {
  if ("measure" in benchCase) return benchCase.measure();
  const contest = await openCase(benchCase);
  if ("reason" in contest) return contest;
  const rest = restFor(threads);
  try {
    const row = rowOf(
      benchCase,
      await runContest(contest, {
        ...protocol,
        rounds,
        longNs: 1e9 * seconds,
        clock: clocks[clock],
        ...(rest && { rest }),
      }),
    );
    if (!("ratio" in row && contest.beside)) return row;
    const { beside } = contest;
    return { ...row, beside: typeof beside === "function" ? beside(row.ours) : beside };
  } finally {
    await contest.close();
  }
}

/**
 * A model that we refuse fails its case, one that the peer has no kernels for is skipped; a model that cannot be
 * fetched ends the bench.
 */
async function openCase(benchCase: ContestCase): Promise<Contest | FailedCase> {
  try {
    return await benchCase.open();
  } catch (error) {
    const { case: name, peerName } = benchCase;
    if (error instanceof PeerLacksKernels) {
      return { case: name, peerName, kind: "skipped", reason: error.message };
    }
    const refusal = error instanceof DiagnosticError ? error.diagnostics[0] : undefined;
    if (refusal === undefined || refusal.code.startsWith("FET")) throw error;
    const reason = formatDiagnostic(refusal);
    return { case: name, peerName, kind: "unsupported", reason };
  }
}

function rowOf(
  { case: name, peerName }: ContestCase,
  outcome: ContestOutcome,
): BenchRow | FailedCase {
  if (outcome.kind !== "measured") return { case: name, peerName, ...outcome };
  const { oursNs, peerNs, ratio, low, high, n } = outcome.estimate;
  const row = { case: name, ours: oursNs, peer: peerNs, peerName, ratio, low, high, n };
  const { first } = outcome;
  if (first === undefined) return row;
  return { ...row, first: { ratio: first.ratio, low: first.low, high: first.high } };
}

/** Runs the suite; `say` receives the text form line by line. */
async function runSuite(line: BenchCommandLine, say: (text: string) => void): Promise<BenchReport> {
  const load = loadavg()[0]!;
  const { versions, cases, summarise: ownSummary, charts, close } = await line.suite.load(line);
  const wanted = casesWith(cases, line.only);
  const results: BenchRow[] = [];
  const failed: FailedCase[] = [];
  const skipped: FailedCase[] = [];
  const report = {
    machine: {
      processor: cpus()[0]?.model ?? "unknown processor",
      cores: availableParallelism(),
      memoryBytes: totalmem(),
      system: `${platform()} ${release()}`,
      load,
      threads: line.threads,
      clock: line.suite.ownClock ?? line.clock,
    },
    versions: { node: process.versions.node, ...versions },
    results,
    failed,
    skipped,
  };
  say(describeMachine(report));
  for (const benchCase of wanted) {
    const row = await runCase(benchCase, line);
    if (!("reason" in row)) results.push(row);
    else if (row.kind === "skipped") skipped.push(row);
    else failed.push(row);
    say("reason" in row ? describeFailure(row) : describeRow(row));
  }
  await close?.();
  const summary = ownSummary && results.length > 0 ? ownSummary(results) : summarise(results);
  const finished = summary === undefined ? report : { ...report, summary };
  say(describeSummary(finished));
  for (const chart of charts?.(results) ?? []) say(`chart ${writeChart(chart)}`);
  return finished;
}

function casesWith(cases: readonly BenchCase[], only: readonly string[]): readonly BenchCase[] {
  const found = cases.filter(
    (c) => only.length === 0 || only.some((text) => c.case.includes(text)),
  );
  if (found.length > 0) return found;
  throw new Refusal(`no case holds "${only.join('" or "')}"`, exitCodes.usage);
}

function writeChart({ name, chart }: NamedChart): string {
  mkdirSync(chartFolder, { recursive: true });
  const path = join(chartFolder, `${name}.svg`);
  writeFileSync(path, lineChartSvg(chart));
  return path;
}

function printJson(line: BenchCommandLine, report: BenchReport, durationMs: number): void {
  const { failed, ...data } = report;
  const message = `${failed.length} cases have no time: ${failed.map((f) => f.case).join(", ")}`;
  const envelope = {
    ok: failed.length === 0,
    schema: "wavetile/bench@1",
    data,
    ...(failed.length === 0 ? {} : { error: { code: "bench-failed", message, details: failed } }),
    warnings: [],
    meta: { suite: line.suite.name, seed: protocol.seed, durationMs, target: line.target },
  };
  process.stdout.write(`${JSON.stringify(envelope, null, 2)}\n`);
}

async function main(): Promise<number> {
  const start = performance.now();
  const line = readBenchCommandLine(process.argv.slice(2), suites, availableParallelism());
  requirePeers(line);
  const out = line.json ? process.stderr : process.stdout;
  const report = await runSuite(line, (text) => out.write(`${text}\n`));
  if (line.json) printJson(line, report, Math.round(performance.now() - start));
  if (report.failed.some((f) => f.kind === "wrong")) return exitCodes.mismatch;
  if (report.failed.some((f) => f.kind === "unsupported")) return exitCodes.unsupported;
  return report.failed.length > 0 ? exitCodes.failed : 0;
}

await runToExit(main);
