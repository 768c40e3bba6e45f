/**
 * How well prices rank measured times: within one workload, states drawn uniformly by seed from the legal
 * ones that use the lanes, each timed in turns with the others. The model is calibrated on other shapes of all
 * families, and judged on a shape that it has not seen; `analytical` is the same without any measurement. A
 * row's ratio is rho as a share of the noise ceiling: the rank correlation of two halves of the rounds.
 */
import { setFlagsFromString } from "node:v8";
import { type CostSample, fitCore } from "../../src/cost/calibrated.ts";
import { type CoreFigures, coreFigures } from "../../src/cost/core-figures.ts";
import { NestPricer } from "../../src/cost/nest-price.ts";
import { runnableTargets } from "../../src/runtime/create-session.ts";
import { rankCorrelation, rankCorrelationInterval } from "../../src/runtime/measure/statistics.ts";
import { drawStates } from "../../src/schedule/draw-states.ts";
import { nestFigures } from "../../src/schedule/nest-figures.ts";
import { choiceLoops } from "../../src/schedule/tile-choice.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";
import type { Target } from "../../src/target/target.ts";
import { programOf, timeSchedules } from "../correlation/sample-set.ts";
import {
  type Family,
  familyShapes,
  makeWorkload,
  type Workload,
} from "../correlation/workloads.ts";
import type { BenchRow, SuiteSummary } from "../report.ts";
import type { ForeignCase, Suite } from "./suite.ts";

const seed = 1;
const trainingCount = 24;
const manyCount = 200;
const fewCount = 60;
const manyFamilies: readonly Family[] = ["gemm", "convolution"];
const timing = { rounds: 10, sampleNs: 150_000 };
const fit = { most: 4, rounds: 4 } as const;

interface MeasuredSet {
  readonly samples: readonly CostSample[];
  readonly halves: readonly (readonly [number, number])[];
}

/** Draws, times and describes states of a workload; what a state's program is refused for is an error. */
function measureStates(workload: Workload, target: Target, count: number): MeasuredSet {
  const { region } = workload;
  const figures = nestFigures(region, region.statements[0]!);
  const lanes = target.vectorBytes / 4;
  const drawing = { count, rng: new Rng(seed), parallel: false, inLanes: true };
  const drawn = drawStates(region, target, drawing);
  const programs = drawn.map(({ schedule }) => {
    const program = programOf(region, schedule, target);
    if (typeof program === "string") throw new Error(program);
    return { schedule, program };
  });
  const timed = timeSchedules(programs, timing);
  const samples = drawn.map(
    ({ choice }, i): CostSample => ({
      figures,
      loops: choiceLoops(figures, choice, lanes),
      packed: choice.packed,
      ns: timed[i]!.ns,
    }),
  );
  return { samples, halves: timed.map((t) => t.halves) };
}

function predict(samples: readonly CostSample[], target: Target, core: CoreFigures): number[] {
  const pricer = new NestPricer(samples[0]!.figures, target, core);
  return samples.map((s) => pricer.price(s.loops, s.packed).total);
}

function judge({ samples, halves }: MeasuredSet, predicted: readonly number[]): SuiteSummary {
  const measured = samples.map((s) => s.ns);
  const byPrice = predicted.map((_, i) => i).sort((a, b) => predicted[a]! - predicted[b]!);
  const byTime = measured.map((_, i) => i).sort((a, b) => measured[a]! - measured[b]!);
  const best = measured[byTime[0]!]!;
  const regret = (k: number): number =>
    Math.min(...byPrice.slice(0, k).map((i) => measured[i]!)) / best - 1;
  const fastest = byTime.slice(0, Math.max(6, Math.ceil(measured.length / 10)));
  const ceiling = rankCorrelation(
    halves.map((h) => h[0]),
    halves.map((h) => h[1]),
  );
  const { rho, low, high } = rankCorrelationInterval(measured, predicted, new Rng(seed));
  const rhoTop = rankCorrelation(
    fastest.map((i) => measured[i]!),
    fastest.map((i) => predicted[i]!),
  );
  return { rho, low, high, ceiling, rhoTop, regret1: regret(1), regret10: regret(10) };
}

export const correlationSuite: Suite = {
  name: "correlation",
  summary: "rank correlation of prices with measured times, held out by shape",
  targets: ["wasm", "cpu", "x64-avx512", "x64-avx2"],
  peers: [],
  load: async ({ target: asked }) => {
    // Code is what the engine makes of hot functions, from the first run on.
    setFlagsFromString("--no-liftoff");
    const name = asked === "cpu" ? (runnableTargets().names[0] ?? asked) : asked;
    const target = targets.get(name)!;
    const start = coreFigures(target);
    const families = Object.keys(familyShapes) as Family[];
    const training = families.flatMap((family) =>
      familyShapes[family]
        .slice(0, -1)
        .flatMap(
          (dims) => measureStates(makeWorkload(family, dims), target, trainingCount).samples,
        ),
    );
    const core = fitCore(training, { target, start, ...fit });
    return {
      versions: { [name]: `calibrated on ${training.length} states of other shapes` },
      cases: families.map((family) => correlationCase(family, target, { start, core })),
      summarise,
    };
  },
};

function correlationCase(
  family: Family,
  target: Target,
  { start, core }: { readonly start: CoreFigures; readonly core: CoreFigures },
): ForeignCase {
  const workload = makeWorkload(family, familyShapes[family].at(-1)!);
  const name = `${family}/${workload.shape}`;
  const peerName = "noise ceiling";
  return {
    case: name,
    peerName,
    measure: async (): Promise<BenchRow> => {
      const count = manyFamilies.includes(family) ? manyCount : fewCount;
      const set = measureStates(workload, target, count);
      const found = judge(set, predict(set.samples, target, core));
      const plain = judge(set, predict(set.samples, target, start));
      const { rho, low, high, ceiling } = found as Record<string, number>;
      return {
        case: name,
        ours: rho!,
        peer: ceiling!,
        peerName,
        ratio: rho! / ceiling!,
        low: low! / ceiling!,
        high: high! / ceiling!,
        n: set.samples.length,
        detail: { ...found, analytical: plain.rho! },
      };
    },
  };
}

function summarise(rows: readonly BenchRow[]): SuiteSummary {
  const all = (name: string): number[] => rows.map((row) => row.detail![name]!);
  const mean = (name: string): number => all(name).reduce((sum, x) => sum + x, 0) / rows.length;
  return {
    meanRho: mean("rho"),
    minRho: Math.min(...all("rho")),
    rhoTop: mean("rhoTop"),
    regret1: mean("regret1"),
    regret10: mean("regret10"),
    ceiling: mean("ceiling"),
    analyticalMeanRho: mean("analytical"),
    analyticalMinRho: Math.min(...all("analytical")),
  };
}
