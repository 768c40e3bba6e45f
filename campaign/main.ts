/**
 * `npm run campaign -- NAME [--target T] [--seed N] [--count N] [--json]`: runs one campaign, reports
 * each failure with the command that runs it again, and ends with `N passed, N failed`. stdout
 * carries the result, stderr progress. Exit codes: 0 all passed, 1 some failed, 2 usage.
 */
import { exitCodes, runToExit } from "../bench/refusal.ts";
import { type CampaignCommandLine, readCampaignCommandLine } from "./command-line.ts";
import { campaigns } from "./registry.ts";
import { closingLine, type Failure, runCampaign, type Tally } from "./run-campaign.ts";

/** Progress without a terminal: one line in this many milliseconds. */
const quietMs = 10_000;

function describeFailure(line: CampaignCommandLine, { seed, reason }: Failure): string {
  const { campaign, target } = line;
  const command = `npm run campaign -- ${campaign.name} --target ${target} --seed ${seed} --count 1`;
  return `FAILED seed ${seed}: ${reason}\n  again: ${command}`;
}

function progress(line: CampaignCommandLine): (done: number) => void {
  let last = performance.now();
  return (done) => {
    if (performance.now() - last < quietMs) return;
    last = performance.now();
    process.stderr.write(`${line.campaign.name}: ${done} of ${line.count}\n`);
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
    meta: { seed: line.seed, count: line.count, durationMs, target: line.target },
  };
  process.stdout.write(`${JSON.stringify(envelope, null, 2)}\n`);
}

async function main(): Promise<number> {
  const start = performance.now();
  const line = readCampaignCommandLine(process.argv.slice(2), campaigns);
  const out = line.json ? process.stderr : process.stdout;
  const tally = await runCampaign({
    trial: await line.campaign.open(line.target),
    seed: line.seed,
    count: line.count,
    atOnce: line.campaign.atOnce ?? 1,
    onFailure: (failure) => out.write(`${describeFailure(line, failure)}\n`),
    onTrial: progress(line),
  });
  for (const [reason, times] of tally.skips) out.write(`skipped ${times}: ${reason}\n`);
  if (line.json) printJson(line, tally, Math.round(performance.now() - start));
  out.write(`${closingLine(tally)}\n`);
  return tally.failed > 0 ? exitCodes.failed : 0;
}

await runToExit(main);
