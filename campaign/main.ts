/**
 * `npm run campaign -- NAME [--target T] [--seed N] [--count N] [--only TEXT …] [--json]`: runs one
 * campaign, or its trials whose names hold a text, tells each trial that has a name, reports each failure with the command that runs it again, and ends with `N passed, N failed`. stdout
 * carries the result, stderr progress. Exit codes: 0 all passed, 1 some failed, 2 usage.
 */
import { exitCodes, runToExit } from "../bench/refusal.ts";
import type { Finding } from "./campaign.ts";
import { type CampaignCommandLine, nameOf, readCampaignCommandLine } from "./command-line.ts";
import { loadCampaigns } from "./registry.ts";
import { closingLine, type Failure, runCampaign, type Tally } from "./run-campaign.ts";

/** Progress without a terminal: one line in this many milliseconds. */
const quietMs = 10_000;

function describeFailure(line: CampaignCommandLine, { seed, reason }: Failure): string {
  const { campaign, target } = line;
  const command = `npm run campaign -- ${campaign.name} --target ${target} --seed ${seed} --count 1`;
  return `FAILED seed ${seed}: ${reason}\n  again: ${command}`;
}

/** Trials with names are told one by one, so that a run that was ended goes on at the next seed. */
function progress(
  line: CampaignCommandLine,
): (done: number, seed: number, finding: Finding) => void {
  const names = line.campaign.names?.(line.target) ?? [];
  let last = performance.now();
  return (done, seed, finding) => {
    if (names.length > 0) {
      const note = finding.kind === "passed" ? (finding.note ?? "") : finding.reason;
      process.stderr.write(`${finding.kind} ${seed} ${nameOf(names, seed)}  ${note}\n`);
      return;
    }
    if (performance.now() - last < quietMs) return;
    last = performance.now();
    process.stderr.write(`${line.campaign.name}: ${done} of ${line.seeds.length}\n`);
  };
}

function printJson(line: CampaignCommandLine, tally: Tally, durationMs: number): void {
  const { skips, ...counts } = tally;
  const message = `${tally.failed} trials failed`;
  const envelope = {
    ok: tally.failed === 0,
    schema: "wavetile/campaign@1",
    data: { campaign: line.campaign.name, ...counts, skips: Object.fromEntries(skips) },
    ...(tally.failed === 0 ? {} : { error: { code: "campaign-failed", message } }),
    warnings: [],
    meta: { seed: line.seed, count: line.seeds.length, durationMs, target: line.target },
  };
  process.stdout.write(`${JSON.stringify(envelope, null, 2)}\n`);
}

async function main(): Promise<number> {
  const start = performance.now();
  const words = process.argv.slice(2);
  const line = readCampaignCommandLine(words, await loadCampaigns(words));
  const out = line.json ? process.stderr : process.stdout;
  const tally = await runCampaign({
    trial: await line.campaign.open(line.target),
    seeds: line.seeds,
    atOnce: line.campaign.atOnce ?? 1,
    onFailure: (failure) => out.write(`${describeFailure(line, failure)}\n`),
    onTrial: progress(line),
  });
  const closing = line.campaign.closing?.() ?? [];
  for (const finding of closing) {
    const told = finding.kind === "passed" ? (finding.note ?? "") : finding.reason;
    out.write(`${finding.kind === "failed" ? "FAILED " : ""}${told}\n`);
  }
  const isFailed = tally.failed > 0 || closing.some((f) => f.kind === "failed");
  for (const [reason, times] of tally.skips) out.write(`skipped ${times}: ${reason}\n`);
  if (line.json) printJson(line, tally, Math.round(performance.now() - start));
  out.write(`${closingLine(tally)}\n`);
  return isFailed ? exitCodes.failed : 0;
}

await runToExit(main);
