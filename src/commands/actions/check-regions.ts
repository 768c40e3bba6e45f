/**
 * The check of every region that `optimize` makes: each by itself, in a child process, at sampled points
 * against the oracle. What was found is recorded as a trial; a region that is wrong or does not run
 * fails the command.
 */
import type { ArtifactContent } from "../../artifact/write-artifact.ts";
import type { CompiledRegion } from "../../code-price.ts";
import type { ScheduledRegions } from "../../compile.ts";
import { lowerRegionProgram } from "../../lower/region-program.ts";
import { codeClass } from "../../program/code-class.ts";
import { printProgram } from "../../program/program-text.ts";
import { regionClass, regionHash } from "../../region/region-hash.ts";
import { ChildRunner } from "../../runtime/child/child-runner.ts";
import { describeRunner, runsHere } from "../../runtime/create-session.ts";
import { openAppendLog } from "../../runtime/files/append-log.ts";
import type { KernelCounts } from "../../runtime/native/emitted-counts.ts";
import { printSchedule } from "../../schedule/directive-text.ts";
import { isByTf32 } from "../../schedule/products/tf32.ts";
import { tileFactors } from "../../schedule/states/tile-factors.ts";
import { makeTrial, type Trial } from "../../store/trial.ts";
import { TrialStore } from "../../store/trial-store.ts";
import { type Diagnostic, diagnostic, ok, type Result } from "../../support/diagnostic.ts";
import { sha256Text } from "../../support/hash.ts";
import { tf32Error } from "../../target/allowing.ts";
import { targets } from "../../target/index.ts";
import type { Target } from "../../target/target.ts";
import type { Bench, Candidate } from "../../verdict/candidate.ts";
import { CheckBlocks } from "../../verdict/check-candidate.ts";
import { type Evaluation, evaluate } from "../../verdict/evaluate.ts";
import type { Agreement, Verdict } from "../../verdict/verdict.ts";
import { version } from "../version.ts";
import { defaultStorePath } from "./trials.ts";

/** Two: the code that deals work out to threads is checked, and no core is asked for that is not there. */
const threads = 2;
/** A run of one region at its largest shape ends long before. */
const deadlineMs = 60_000;
const protocol = "sampled points, not timed";

export interface RegionReport {
  readonly region: string;
  /** The region that was checked in its place: its code is the same but for names. */
  readonly sameAs?: string;
  readonly verdict: Verdict;
  readonly unchecked: readonly Diagnostic[];
}

export interface CheckedRegions {
  readonly reports: readonly RegionReport[];
  /** Regions that are wrong or were rejected. */
  readonly faults: readonly Diagnostic[];
  /** Regions that were not checked, and a store that could not be written. */
  readonly warnings: readonly Diagnostic[];
}

/** The check of a region as reports have it; null where nothing was compared. */
export function checkOf(report: RegionReport | undefined): Agreement | null {
  const verdict = report?.verdict;
  return (verdict?.kind === "estimated" && verdict.agreement) || null;
}

/** The artifact with what the checks of its regions found. */
export function withChecks(
  artifact: ArtifactContent,
  reports: readonly RegionReport[],
): ArtifactContent {
  const checks = reports.flatMap((report) => {
    const { checked, worst } = checkOf(report) ?? {};
    return checked === undefined || worst === undefined
      ? []
      : [{ region: report.region, checked, worst }];
  });
  return { ...artifact, meta: { ...artifact.meta, checks } };
}

/** One line on all checks. */
export function describeChecks(reports: readonly RegionReport[]): string {
  const found = reports.flatMap((r) => (r.sameAs === undefined ? (checkOf(r) ?? []) : []));
  const same = reports.filter((r) => r.sameAs !== undefined).length;
  const points = found.reduce((n, a) => n + a.checked, 0);
  const worst = Math.max(0, ...found.map((a) => a.worst));
  const open = reports.length - found.length - same;
  const told = [
    ...(found.length > 0
      ? [
          `checked ${points} elements of ${found.length} regions with the oracle, worst at ${worst.toFixed(3)} of its tolerance`,
        ]
      : []),
    ...(same > 0 ? [`${same} regions have the code of one of them`] : []),
    ...(open > 0 ? [`${open} regions not checked`] : []),
  ];
  return told.join("; ");
}

export interface Checking {
  readonly seed: number;
  readonly progress: (text: string) => void;
  /** A child that was started before; default: one of the check's own. It is ended with the check. */
  readonly runner?: ChildRunner;
}

/** The checks of one program's regions, which may begin before the program is whole. */
export class RegionChecking {
  readonly #checking: Required<Checking>;
  #begun:
    | { readonly scheduled: ScheduledRegions; readonly checks: Result<RegionChecks> }
    | undefined;

  constructor({ runner = new ChildRunner(), ...checking }: Checking) {
    this.#checking = { ...checking, runner };
  }

  /** The child is asked for as much as it is sent at once; what was begun before for other regions is dropped. */
  begin(scheduled: ScheduledRegions, target: Target): void {
    if (!runsHere(target)) return;
    const { seed, runner } = this.#checking;
    // The validator has the whole program: compile.ts.
    const bench: Bench = { runner, validate: (p) => ok(p), threads, seed, deadlineMs };
    const checks = new RegionChecks(bench);
    this.#drop();
    this.#begun = { scheduled, checks: addAll(checks, scheduled, target) };
  }

  async finish(compiled: ScheduledRegions, target: Target): Promise<Result<CheckedRegions>> {
    const { progress } = this.#checking;
    try {
      if (!runsHere(target)) return ok(notHere(compiled.regions, target));
      if (this.#begun?.scheduled.regions !== compiled.regions) this.begin(compiled, target);
      const { checks } = this.#begun!;
      if (!checks.ok) return checks;
      await checks.value.settle(progress);
      return ok(reportOf(checks.value));
    } finally {
      await this.end();
    }
  }

  /** Ends the child, and what was begun. */
  async end(): Promise<void> {
    this.#drop();
    await this.#checking.runner.dispose();
  }

  #drop(): void {
    if (this.#begun?.checks.ok) this.#begun.checks.value.drop();
    this.#begun = undefined;
  }
}

export function checkRegions(
  compiled: ScheduledRegions,
  target: Target,
  checking: Checking,
): Promise<Result<CheckedRegions>> {
  return new RegionChecking(checking).finish(compiled, target);
}

function addAll(
  checks: RegionChecks,
  { regions, regionRequires }: ScheduledRegions,
  target: Target,
): Result<RegionChecks> {
  for (const region of regions) {
    const lowered = lowerRegionProgram(region.scheduled, target, regionRequires);
    if (!lowered.ok) return lowered;
    checks.add(region, lowered.value.program);
  }
  return ok(checks);
}

function reportOf(checks: RegionChecks): CheckedRegions {
  const { reports, trials } = checks.found();
  const recorded = new TrialStore(openAppendLog(defaultStorePath())).record(trials);
  const lost = recorded.ok ? [] : recorded.diagnostics;
  return {
    reports,
    faults: reports.flatMap(faultsOf),
    warnings: [...reports.flatMap((r) => r.unchecked), ...lost].map((d) => ({
      ...d,
      severity: "warning",
    })),
  };
}

interface RegionCheck {
  readonly region: CompiledRegion;
  readonly candidate: Candidate;
  /** An earlier check of the same code. */
  readonly sameAs?: RegionCheck;
  evaluation?: Evaluation;
}

/**
 * Regions whose answers are waited for at a time. The child has one of them in memory, the others are the
 * texts of their programs in its queue: it is never idle while there is one.
 */
const atOnce = 64;

/**
 * Code that was checked under other names is not run again, unless something was wrong with it.
 */
class RegionChecks {
  readonly #bench: Bench;
  readonly #shared = new CheckBlocks();
  readonly #checks: RegionCheck[] = [];
  readonly #first = new Map<string, RegionCheck>();
  /** In the order in which they are asked for. */
  readonly #open: RegionCheck[] = [];
  readonly #running = new Set<Promise<void>>();
  #done = 0;

  constructor(bench: Bench) {
    this.#bench = bench;
  }

  add(region: CompiledRegion, program: Candidate["program"]): void {
    const key = `${regionClass(region.scheduled.region).key}\n${codeClass(program)}`;
    const sameAs = this.#first.get(key);
    const check = { region, candidate: candidateOf(region, program), ...(sameAs && { sameAs }) };
    this.#checks.push(check);
    if (sameAs) return;
    this.#first.set(key, check);
    this.#open.push(check);
    if (this.#running.size < atOnce) this.#next();
  }

  /** Every check has its evaluation behind this. */
  async settle(progress: (text: string) => void): Promise<void> {
    while (this.#running.size > 0) {
      await Promise.race(this.#running);
      const all = this.#first.size;
      progress(`check ${Math.min(this.#done + 1, all)} of ${all}`);
    }
    for (const check of this.#checks) {
      const evaluation = check.sameAs ? check.sameAs.evaluation! : check.evaluation!;
      const { verdict, unchecked } = evaluation;
      const isShared = check.sameAs && verdict.kind === "estimated" && unchecked.length === 0;
      // What ended a child ended what ran beside it too: by itself it shows whose fault it is.
      const isDoubtful = verdict.kind === "rejected";
      if (isShared || !(check.sameAs || isDoubtful)) check.evaluation = evaluation;
      else await this.#evaluate(check);
    }
  }

  found(): { readonly reports: readonly RegionReport[]; readonly trials: readonly Trial[] } {
    const isShared = ({ sameAs, evaluation }: RegionCheck): boolean =>
      sameAs?.evaluation === evaluation;
    const reports = this.#checks.map((check): RegionReport => {
      const { verdict, unchecked } = check.evaluation!;
      const sameAs = isShared(check) ? check.sameAs!.region.name : undefined;
      const region = check.region.name;
      return { region, verdict, unchecked, ...(sameAs !== undefined && { sameAs }) };
    });
    const own = this.#checks.filter((check) => !isShared(check));
    return { reports, trials: own.map((c) => trialOf(c.candidate, c.evaluation!)) };
  }

  /** What was not asked for yet never is. */
  drop(): void {
    this.#open.length = 0;
  }

  /** The next open check, and those behind it as this ends. */
  #next(): void {
    const check = this.#open.shift();
    if (!check) return;
    const running = this.#evaluate(check).then(() => {
      this.#running.delete(running);
      this.#done++;
      this.#next();
    });
    this.#running.add(running);
  }

  async #evaluate(check: RegionCheck): Promise<void> {
    const estimate = () => estimateOf(check.region);
    const how = { estimate, shared: this.#shared };
    check.evaluation = await evaluate(check.candidate, this.#bench, how);
  }
}

/** Code for another machine is compiled here, and checked where it can run. */
function notHere(regions: readonly CompiledRegion[], target: Target): CheckedRegions {
  const message = `target ${target.name} does not run here: no region was checked`;
  const help = "run wavetile verify on the machine that it is for";
  const unchecked = diagnostic("VER004", message, { severity: "warning", help });
  const reports = regions.map((region): RegionReport => {
    const verdict = { kind: "estimated", estimate: estimateOf(region) } as const;
    return { region: region.name, verdict, unchecked: [] };
  });
  return { reports, faults: [], warnings: [unchecked] };
}

export function candidateOf(region: CompiledRegion, program: Candidate["program"]): Candidate {
  const { schedule, products } = region.scheduled;
  return {
    ...(products.some(isByTf32) && { operandError: tf32Error }),
    region: region.scheduled.region,
    program,
    schedule: printSchedule(schedule),
    tiles: tileFactors(schedule),
  };
}

export function estimateOf({ price }: CompiledRegion) {
  return { lowNs: price.boundNs, highNs: price.estimateNs, model: "analytical" };
}

/** How a candidate was run, and what is known of its code. */
interface HowRun {
  readonly threads: number;
  readonly protocol: string;
  readonly emitted?: readonly KernelCounts[];
}

export function trialOf(
  { region, program, schedule }: Candidate,
  { verdict, symbols }: Evaluation,
  how: HowRun = { threads, protocol },
): Trial {
  const { device, engine } = describeRunner(targets.get(program.target)!);
  const types = [...region.tensors.values()].filter((t) => t.role !== "local");
  return makeTrial({
    subject: {
      semantic: regionHash(region),
      shapes: Object.fromEntries(symbols ?? []),
      dtypes: types.map((t) => t.dtype),
      target: program.target,
      device,
      driver: engine,
      threads: how.threads,
      codegen: version,
      protocol: how.protocol,
    },
    region: region.name,
    schedule,
    program: `sha256:${sha256Text(printProgram(program))}`,
    ...(how.emitted && how.emitted.length > 0 && { emitted: [...how.emitted] }),
    verdict,
  });
}

function faultsOf({ region, verdict }: RegionReport): readonly Diagnostic[] {
  if (verdict.kind === "rejected") {
    return verdict.diagnostics.map((d) => ({ ...d, severity: "error" }) as Diagnostic);
  }
  if (verdict.kind !== "wrong") return [];
  const { first, worst, wrong, checked } = verdict;
  const at = (m: typeof first): string => `${m.tensor}[${m.index.join(", ")}]`;
  const difference = (m: typeof first): string =>
    `${at(m)} is ${m.found}, the oracle has ${m.expected} +- ${m.tolerance.toExponential(2)}`;
  return [
    diagnostic("VER006", `${wrong} of ${checked} elements differ; ${difference(first)}`, {
      at: `region ${region}`,
      notes: [`worst: ${difference(worst)}`],
      help: "report it with the model; wavetile inspect MODEL --schedule prints the schedule",
    }),
  ];
}
