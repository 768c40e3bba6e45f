/**
 * How well prices rank measured times: within one workload, candidates (a state of each region) drawn
 * uniformly by seed from the legal ones that use the lanes, each timed in turns with the others. The price is
 * that of the code a candidate becomes. It is calibrated on other shapes of all families with as many samples
 * as `wavetile calibrate` takes, and judged on a shape that it has not seen; `analytical` is the same without any
 * measurement, `coarse` the price that needs no code. A row's ratio is rho as a share of the noise ceiling: how
 * well a second loading of the same candidates ranks the first.
 */
import { setFlagsFromString } from "node:v8";
import {
  type Family,
  familyShapes,
  makeWorkload,
} from "../../src/commands/library/calibration-workloads.ts";
import { priceSample } from "../../src/cost/calibrated.ts";
import { type Calibration, calibrate, priceCalibrated } from "../../src/cost/calibration.ts";
import { type CoreFigures, coreFigures } from "../../src/cost/core-figures.ts";
import { runnableTargets } from "../../src/runtime/create-session.ts";
import { targets } from "../../src/target/index.ts";
import type { Target } from "../../src/target/target.ts";
import { judgePrices } from "../correlation/judge-prices.ts";
import { measureCandidates } from "../correlation/measured-set.ts";
import { type ProgramTimes, programTimes } from "../correlation/program-times.ts";
import type { BenchRow, SuiteSummary } from "../report.ts";
import type { ForeignCase, Suite } from "./suite.ts";

const seed = 1;
const trainingCount = 11;
const manyCount = 200;
const fewCount = 60;
const manyFamilies: readonly Family[] = ["gemm", "convolution"];

export const correlationSuite: Suite = {
  name: "correlation",
  summary: "rank correlation of prices with measured times, held out by shape",
  targets: ["wasm", "cpu", "x64-avx512", "x64-avx2"],
  peers: [],
  recordsTimes: true,
  load: async ({ target: asked, record, replay }) => {
    // Code is what the engine makes of hot functions, from the first run on.
    setFlagsFromString("--no-liftoff");
    const name = asked === "cpu" ? (runnableTargets().names[0] ?? asked) : asked;
    const target = targets.get(name)!;
    const start = coreFigures(target);
    const times = programTimes(name, { ...(record && { record }), ...(replay && { replay }) });
    const families = Object.keys(familyShapes) as Family[];
    const training = families.flatMap((family) =>
      familyShapes[family].slice(0, -1).flatMap((dims) => {
        const workload = makeWorkload(family, dims);
        return measureCandidates(workload, target, { count: trainingCount, seed, times }).samples;
      }),
    );
    const calibration = calibrate(training, start);
    return {
      versions: {
        [name]: `calibrated on ${training.length} candidates of other shapes`,
        times: times.origin,
      },
      cases: families.map((family) =>
        correlationCase(family, target, { start, calibration, times }),
      ),
      close: times.close,
      summarise,
    };
  },
};

/** What a case prices with, and where its times are from. */
interface Judging {
  readonly start: CoreFigures;
  readonly calibration: Calibration;
  readonly times: ProgramTimes;
}

function correlationCase(
  family: Family,
  target: Target,
  { start, calibration, times }: Judging,
): ForeignCase {
  const workload = makeWorkload(family, familyShapes[family].at(-1)!);
  const name = `${family}/${workload.shape}`;
  const peerName = "noise ceiling";
  return {
    case: name,
    peerName,
    measure: async (): Promise<BenchRow> => {
      const count = manyFamilies.includes(family) ? manyCount : fewCount;
      const set = measureCandidates(workload, target, { count, seed, times });
      const { samples, coarse } = set;
      const timed = { measured: samples.map((s) => s.ns), halves: set.halves };
      const found = judgePrices(
        timed,
        samples.map((s) => priceCalibrated(s.regions, calibration).ns),
      );
      const plain = judgePrices(
        timed,
        samples.map((s) => priceSample(s, start)),
      );
      const { rho, low, high, ceiling } = found as Record<string, number>;
      return {
        case: name,
        ours: rho!,
        peer: ceiling!,
        peerName,
        ratio: rho! / ceiling!,
        low: low! / ceiling!,
        high: high! / ceiling!,
        n: samples.length,
        detail: {
          ...found,
          analytical: plain.rho!,
          analyticalRegret1: plain.regret1!,
          coarse: judgePrices(timed, coarse).rho!,
        },
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
    coarseMeanRho: mean("coarse"),
  };
}
