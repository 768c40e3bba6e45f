/**
 * Samples for a calibration: states of the regions of small workloads, drawn uniformly by a seed from the legal
 * ones that use the lanes, each compared with the oracle in a child process and timed in turns with the others
 * of its region. In: a target and how much to measure. Out: the code of each as figures, with its time.
 */
import type { StoredSample } from "../../cost/calibration-file.ts";
import { type CodeWork, codeWork } from "../../cost/mix-price.ts";
import { priceRegion } from "../../cost/region-price.ts";
import { lowerRegion } from "../../lower/lower-region.ts";
import { lowerRegionProgram } from "../../lower/region-program.ts";
import { validateProgram } from "../../program/validate/validate.ts";
import type { Region } from "../../region/nest.ts";
import { regionHash } from "../../region/region-hash.ts";
import { ChildRunner } from "../../runtime/child/child-runner.ts";
import { describeProtocol } from "../../runtime/measure/sampling.ts";
import { emittedCounts, type KernelCounts } from "../../runtime/native/emitted-counts.ts";
import { applySchedule } from "../../schedule/apply.ts";
import type { Schedule } from "../../schedule/directive.ts";
import { printSchedule } from "../../schedule/directive-text.ts";
import { decideSchedule } from "../../schedule/legality/legality.ts";
import { drawStates } from "../../schedule/states/draw-states.ts";
import { tileFactors } from "../../schedule/states/tile-factors.ts";
import { TileSpace } from "../../schedule/states/tile-space.ts";
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { Rng } from "../../support/rng.ts";
import type { Target } from "../../target/target.ts";
import type { Bench, Candidate } from "../../verdict/candidate.ts";
import { CheckBlocks } from "../../verdict/check-candidate.ts";
import { measureSet } from "../../verdict/measure-set.ts";
import { measurePeaks } from "../../verdict/peaks.ts";
import type { CommandContext } from "../command.ts";
import { type Family, familyShapes, makeWorkload } from "./calibration-workloads.ts";

const protocol = { rounds: 9, warmUp: 3, leastSampleNs: 1e6 };
const deadlineMs = 20_000;

export interface MeasuredSamples {
  readonly samples: readonly StoredSample[];
  /** Candidates without a time, by what was found instead. */
  readonly left: Readonly<Record<string, number>>;
  readonly protocol: string;
}

export interface Sampling {
  readonly count: number;
  readonly seconds: number;
  readonly seed: number;
}

/** A region that is sampled, and its workload's name. */
interface Sampled {
  readonly family: string;
  readonly workload: string;
  readonly region: Region;
}

export async function measureSamples(
  target: Target,
  { count, seconds, seed }: Sampling,
  { now, progress }: Pick<CommandContext, "now" | "progress">,
): Promise<Result<MeasuredSamples>> {
  const end = now() + seconds * 1000;
  const runner = new ChildRunner();
  const bench: Bench = { runner, validate: validateProgram, threads: 1, seed, deadlineMs };
  try {
    const peaks = await measurePeaks(target, bench);
    if (peaks.kind !== "done") {
      const help = "measure again on an idle machine";
      return fail(diagnostic("CAL003", "the machine's peaks could not be measured", { help }));
    }
    const regions = sampledRegions(target);
    const rng = new Rng(seed);
    const samples: StoredSample[] = [];
    const left: Record<string, number> = {};
    const measuring = { protocol, peaks: peaks.value, shared: new CheckBlocks() };
    for (const [at, one] of regions.entries()) {
      if (now() >= end) break;
      progress(`measure ${one.workload}`);
      // What small superpositions do not give is drawn from those that follow.
      const each = Math.ceil((count - samples.length) / (regions.length - at));
      const drawn = candidatesOf(one, target, { count: each, rng });
      const members = await measureSet(
        drawn.map((d) => d.candidate),
        bench,
        measuring,
      );
      for (const [i, { verdict, leastNs }] of members.entries()) {
        const kind = verdict?.kind === "rejected" ? verdict.reason : (verdict?.kind ?? "unchecked");
        if (leastNs === undefined) left[kind] = (left[kind] ?? 0) + 1;
        else samples.push({ ...drawn[i]!.sample, ns: leastNs });
      }
    }
    return ok({ samples, left, protocol: describeProtocol(protocol) });
  } finally {
    await runner.dispose();
  }
}

/** Families whose regions those of others are not; attention is products and a softmax. */
const families = Object.keys(familyShapes).filter((f) => f !== "attention") as Family[];
const shapesEach = 3;
/** Regions of a workload that are sampled: those that seem to take longest. */
const regionsEach = 2;

/** One shape of every family after the other, so that measuring that is cut short has seen each. */
function sampledRegions(target: Target): readonly Sampled[] {
  const found: Sampled[] = [];
  const seen = new Set<string>();
  for (let at = 0; at < shapesEach; at++) {
    for (const family of families) {
      const { shape, program } = makeWorkload(family, familyShapes[family][at]!);
      const { regions } = program;
      for (const i of dearest(regions, target)) {
        const region = regions[i]!;
        const hash = regionHash(region);
        if (seen.has(hash)) continue;
        seen.add(hash);
        const part = regions.length > 1 ? `${family} part ${i + 1}` : family;
        found.push({ family: part, workload: `${part} ${shape}`, region });
      }
    }
  }
  return found;
}

/** Positions of the regions with a choice whose loops, as they stand, are priced highest; in their order. */
function dearest(regions: readonly Region[], target: Target): readonly number[] {
  const priced = regions.flatMap((region, at) => {
    const plain = { region: region.name, target: target.name, directives: [] };
    const applied = applySchedule(region, plain);
    if (!applied.ok || !TileSpace.applies(region)) return [];
    return [{ at, ns: priceRegion(applied.value, target).estimateNs }];
  });
  priced.sort((a, b) => b.ns - a.ns || a.at - b.at);
  return priced
    .slice(0, regionsEach)
    .map((p) => p.at)
    .sort((a, b) => a - b);
}

interface Drawn {
  readonly candidate: Candidate;
  readonly sample: Omit<StoredSample, "ns">;
}

function candidatesOf(
  { family, workload, region }: Sampled,
  target: Target,
  { count, rng }: { readonly count: number; readonly rng: Rng },
): readonly Drawn[] {
  const drawing = { count, rng, parallel: false, inLanes: true };
  return drawStates(region, target, drawing).flatMap(({ schedule }) => {
    const made = makeCandidate(region, schedule, target);
    if (!made) return [];
    const { candidate, work } = made;
    const text = candidate.schedule;
    return [{ candidate, sample: { family, workload, schedule: text, regions: [work] } }];
  });
}

function makeCandidate(region: Region, schedule: Schedule, target: Target) {
  const applied = applySchedule(region, schedule);
  const legal = applied.ok ? decideSchedule(applied.value) : applied;
  if (!legal.ok) return undefined;
  const kernels = lowerRegion(legal.value, target);
  const lowered = lowerRegionProgram(legal.value, target, []);
  if (!kernels.ok || !lowered.ok) return undefined;
  const candidate: Candidate = {
    region,
    program: lowered.value.program,
    schedule: printSchedule(schedule),
    tiles: tileFactors(schedule),
  };
  const work = codeWork(legal.value, kernels.value, target);
  return { candidate, work: withCounts(work, emittedCounts(candidate.program, target)) };
}

/** Of floats and vectors: what an address costs that left its register is not what the fit asks about. */
function withCounts(work: CodeWork, kernels: readonly KernelCounts[]): CodeWork {
  if (kernels.length === 0) return work;
  const sum = (of: "vectorSpills" | "reloads"): number => kernels.reduce((n, k) => n + k[of], 0);
  return { ...work, counted: { spills: sum("vectorSpills"), reloads: sum("reloads") } };
}
