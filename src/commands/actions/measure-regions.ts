/**
 * `optimize --budget`: measures the next cheapest schedules of each region against the chosen one, the
 * dearest regions first, until the time is over. Each is a verdict: compared with the oracle, then timed
 * in turns with the best so far; a schedule replaces it only where the whole interval of the ratio says
 * so. All verdicts are kept as trials. Regions that compute the same are measured once.
 */
import type { CompiledRegion } from "../../code-price.ts";
import type { CompiledModel } from "../../compile.ts";
import { lowerRegionProgram } from "../../lower/region-program.ts";
import type { Program } from "../../program/program.ts";
import { validateProgram } from "../../program/validate/validate.ts";
import { regionHash } from "../../region/region-hash.ts";
import { ChildRunner } from "../../runtime/child/child-runner.ts";
import { openAppendLog } from "../../runtime/files/append-log.ts";
import { describeProtocol } from "../../runtime/measure/sampling.ts";
import { emittedCounts } from "../../runtime/native/emitted-counts.ts";
import { applySchedule } from "../../schedule/apply.ts";
import type { Schedule } from "../../schedule/directive.ts";
import { decideSchedule } from "../../schedule/legality/legality.ts";
import type { Trial } from "../../store/trial.ts";
import { TrialStore } from "../../store/trial-store.ts";
import { type Diagnostic, diagnostic } from "../../support/diagnostic.ts";
import type { Target } from "../../target/target.ts";
import type { Bench, Candidate } from "../../verdict/candidate.ts";
import { CheckBlocks } from "../../verdict/check-candidate.ts";
import {
  type Evaluation,
  evaluate,
  type Incumbent,
  type Measuring,
} from "../../verdict/evaluate.ts";
import { measurePeaks } from "../../verdict/peaks.ts";
import type { CommandContext } from "../command.ts";
import { candidateOf, estimateOf, trialOf } from "./check-regions.ts";
import { defaultStorePath } from "./trials.ts";

const protocol = { rounds: 9, warmUp: 3, leastSampleNs: 2e6 };
const deadlineMs = 60_000;

export interface MeasuredRegions {
  /** Regions for which another schedule than the chosen one was faster. */
  readonly better: ReadonlyMap<string, Schedule>;
  readonly measured: number;
  readonly regions: number;
  readonly warnings: readonly Diagnostic[];
}

export async function measureRegions(
  compiled: CompiledModel,
  target: Target,
  options: { readonly seconds: number; readonly threads: number; readonly seed: number },
  { now, progress }: Pick<CommandContext, "now" | "progress">,
): Promise<MeasuredRegions> {
  const end = now() + options.seconds * 1000;
  const runner = new ChildRunner();
  const { threads, seed } = options;
  const bench: Bench = { runner, validate: onceEach(validateProgram), threads, seed, deadlineMs };
  try {
    const peaks = await measurePeaks(target, bench);
    if (peaks.kind !== "done") {
      const warning = diagnostic("VER004", "the machine's peaks could not be measured", {
        severity: "warning",
        help: "measure again on an idle machine",
      });
      return { better: new Map(), measured: 0, regions: 0, warnings: [warning] };
    }
    const contest = new Contest(compiled, target, bench, peaks.value);
    const order = [...compiled.regions].sort((a, b) => b.price.estimateNs - a.price.estimateNs);
    for (const region of order) {
      if (now() >= end) break;
      progress(`measure ${region.name}`);
      await contest.measure(region, () => now() >= end);
    }
    return contest.finish();
  } finally {
    await runner.dispose();
  }
}

class Contest {
  readonly #compiled: CompiledModel;
  readonly #target: Target;
  readonly #bench: Bench;
  readonly #peaks: Measuring["peaks"];
  readonly #shared = new CheckBlocks();
  readonly #trials: Trial[] = [];
  readonly #better = new Map<string, Schedule>();
  readonly #seen = new Set<string>();
  #measured = 0;

  constructor(compiled: CompiledModel, target: Target, bench: Bench, peaks: Measuring["peaks"]) {
    this.#compiled = compiled;
    this.#target = target;
    this.#bench = bench;
    this.#peaks = peaks;
  }

  async measure(region: CompiledRegion, isOver: () => boolean): Promise<void> {
    const hash = regionHash(region.scheduled.region);
    if (this.#seen.has(hash)) return;
    this.#seen.add(hash);
    const schedules = [region.scheduled.schedule, ...region.alternatives];
    let best: Incumbent | undefined;
    let next = this.#candidate(region, schedules[0]!);
    for (const [i, schedule] of schedules.entries()) {
      if (isOver()) break;
      const candidate = next;
      const evaluating = candidate && this.#evaluate(region, candidate, best);
      // The child has enough to do until this is ready: nothing is timed meanwhile.
      next = this.#prepared(region, schedules[i + 1]);
      const { session, verdict } = (await evaluating) ?? {};
      if (!candidate || !session || verdict?.kind !== "measured") continue;
      const isFaster = (verdict.timing.paired?.low ?? 0) > 1;
      if (best && isFaster) this.#better.set(region.name, schedule);
      await (best && !isFaster ? session : best?.session)?.unload();
      if (!best || isFaster) best = { candidate, session };
    }
    await best?.session.unload();
  }

  /** The verdict on a candidate, which is a trial. */
  async #evaluate(
    region: CompiledRegion,
    candidate: Candidate,
    incumbent: Incumbent | undefined,
  ): Promise<Evaluation> {
    const measuring = { protocol, peaks: this.#peaks, ...(incumbent && { incumbent }) };
    const estimate = () => estimateOf(region);
    const shared = this.#shared;
    const evaluation = await evaluate(candidate, this.#bench, { estimate, measuring, shared });
    const { threads } = this.#bench;
    const emitted = emittedCounts(candidate.program, this.#target);
    const how = { threads, protocol: describeProtocol(protocol), emitted };
    this.#trials.push(trialOf(candidate, evaluation, how));
    if (evaluation.verdict.kind === "measured") this.#measured++;
    return evaluation;
  }

  /** A candidate with its program proved. */
  #prepared(region: CompiledRegion, schedule: Schedule | undefined): Candidate | undefined {
    const candidate = schedule && this.#candidate(region, schedule);
    if (candidate) this.#bench.validate(candidate.program);
    return candidate;
  }

  #candidate(region: CompiledRegion, schedule: Schedule): Candidate | undefined {
    const applied = applySchedule(region.scheduled.region, schedule);
    const legal = applied.ok ? decideSchedule(applied.value) : applied;
    if (!legal.ok) return undefined;
    const { regionRequires } = this.#compiled;
    const lowered = lowerRegionProgram(legal.value, this.#target, regionRequires);
    if (!lowered.ok) return undefined;
    return candidateOf({ ...region, scheduled: legal.value }, lowered.value.program);
  }

  finish(): MeasuredRegions {
    const recorded = new TrialStore(openAppendLog(defaultStorePath())).record(this.#trials);
    const warnings = recorded.ok ? [] : recorded.diagnostics;
    return {
      better: this.#better,
      measured: this.#measured,
      regions: this.#seen.size,
      warnings: warnings.map((d) => ({ ...d, severity: "warning" as const })),
    };
  }
}

/** A check that says of a program again what it said before. */
function onceEach(validate: Bench["validate"]): Bench["validate"] {
  const known = new WeakMap<Program, ReturnType<Bench["validate"]>>();
  return (program) => {
    const found = known.get(program) ?? validate(program);
    known.set(program, found);
    return found;
  };
}
