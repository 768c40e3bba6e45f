/**
 * `npx tsx bench/correlation/rank-shapes.ts --target T --shapes softmax:96x150,norm:72x450 [--count N]
 * [--record FILE | --replay FILE] [--show N]`: how well the analytical price ranks schedules of shapes that are
 * given, none of them fitted to. Prints for each shape the rank correlation, the ceiling of the times and the regret, and
 * with `--show` the candidates whose ranks by price and by time lie furthest apart, with what each is priced by.
 */
import { setFlagsFromString } from "node:v8";
import {
  type Family,
  familyShapes,
  makeWorkload,
} from "../../src/commands/library/calibration-workloads.ts";
import { priceSample } from "../../src/cost/calibrated.ts";
import { type CoreFigures, coreFigures } from "../../src/cost/core-figures.ts";
import { type CodeWork, priceCode, priceRun } from "../../src/cost/mix-price.ts";
import { printDirective } from "../../src/schedule/directive-text.ts";
import { rankCorrelation } from "../../src/support/rank-correlation.ts";
import { targets } from "../../src/target/index.ts";
import { exitCodes, Refusal } from "../refusal.ts";
import { type MeasuredSet, measureCandidates } from "./measured-set.ts";
import { programTimes } from "./program-times.ts";

const seed = 7;

function argument(name: string): string | undefined {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? undefined : process.argv[at + 1];
}

interface AskedShape {
  readonly family: Family;
  readonly dims: readonly number[];
}

function shapesOf(text: string): readonly AskedShape[] {
  return text.split(",").map((one) => {
    const [family = "", dims = ""] = one.split(":");
    const numbers = dims.split("x").map(Number);
    if (!(family in familyShapes) || !numbers.every((n) => Number.isInteger(n) && n > 0)) {
      throw new Refusal(`--shapes ${one}: write FAMILY:AxBxC`, exitCodes.usage);
    }
    return { family: family as Family, dims: numbers };
  });
}

function ranksOf(values: readonly number[]): readonly number[] {
  const order = values.map((_, i) => i).sort((a, b) => values[a]! - values[b]!);
  const ranks: number[] = [];
  for (const [rank, i] of order.entries()) ranks[i] = rank;
  return ranks;
}

/** What a region's code is priced by: its dearest runs of code, and its traffic. */
function terms(work: CodeWork, core: CoreFigures): string {
  const price = priceCode(work, core);
  const runs = work.runs
    .map((run) => ({ run, price: priceRun(run, core) }))
    .sort((a, b) => b.price.total - a.price.total)
    .slice(0, 4)
    .map(({ run: { mix, executions, entries }, price: p }) => {
      const limits = [p.issue, p.arithmetic, p.loads, p.stores, p.chain].map((x) => x.toFixed(2));
      return `\n      ${p.total.toFixed(0)} = ${executions.toFixed(0)} x [${limits}] entries ${entries} ${JSON.stringify(mix)}`;
    });
  const traffic = price.traffic.map((ns) => ns.toFixed(0));
  return `${price.total.toFixed(0)} core ${price.core.toFixed(0)} traffic ${traffic}${runs.join("")}`;
}

function report(
  name: string,
  {
    set,
    core,
    shown,
  }: { readonly set: MeasuredSet; readonly core: CoreFigures; readonly shown: number },
): number {
  const measured = set.samples.map((s) => s.ns);
  const prices = set.samples.map((s) => priceSample(s, core));
  const [first, second] = [0, 1].map((k) => set.halves.map((h) => h[k]!));
  const rho = rankCorrelation(measured, prices);
  const ceiling = rankCorrelation(first!, second!);
  const cheapest = prices.indexOf(Math.min(...prices));
  const regret = measured[cheapest]! / Math.min(...measured) - 1;
  process.stdout.write(
    `${name.padEnd(24)} rho ${rho.toFixed(3)} ceiling ${ceiling.toFixed(3)} regret ${regret.toFixed(3)} n ${measured.length}\n`,
  );
  const [byTime, byPrice] = [ranksOf(measured), ranksOf(prices)];
  const apart = measured.map((_, i) => i);
  apart.sort((a, b) => Math.abs(byTime[b]! - byPrice[b]!) - Math.abs(byTime[a]! - byPrice[a]!));
  for (const i of apart.slice(0, shown)) {
    process.stdout.write(
      `  #${i} rank ${byTime[i]} priced ${byPrice[i]}: ${measured[i]!.toFixed(0)} ns, priced ${prices[i]!.toFixed(0)}\n`,
    );
    for (const [k, work] of set.samples[i]!.regions.entries()) {
      process.stdout.write(
        `    ${set.schedules[i]![k]!.directives.map(printDirective).join("; ")}\n    ${terms(work, core)}\n`,
      );
    }
  }
  return rho;
}

async function main(): Promise<void> {
  setFlagsFromString("--no-liftoff");
  const target = targets.get(argument("target") ?? "x64-avx2")!;
  const count = Number(argument("count") ?? 60);
  const [record, replay] = [argument("record"), argument("replay")];
  const times = programTimes(target.name, { ...(record && { record }), ...(replay && { replay }) });
  const core = coreFigures(target);
  const shown = Number(argument("show") ?? 0);
  const rhos = shapesOf(argument("shapes") ?? "").map(({ family, dims }) => {
    const set = measureCandidates(makeWorkload(family, dims), target, { count, seed, times });
    return report(`${family}/${dims.join("x")}`, { set, core, shown });
  });
  await times.close();
  const mean = rhos.reduce((sum, rho) => sum + rho, 0) / rhos.length;
  process.stdout.write(`mean ${mean.toFixed(3)}, lowest ${Math.min(...rhos).toFixed(3)}\n`);
}

await main();
