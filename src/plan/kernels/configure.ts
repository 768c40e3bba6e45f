/**
 * From a problem and a machine to the kernel that is expected to be fastest: candidates are enumerated from
 * the machine's data, those that it cannot take are dropped, the rest are priced (price.ts), and the
 * cheapest is taken with what it won by. What lost is kept with the reason: slower, or over a limit.
 */
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { Target } from "../../target/target.ts";
import { type Candidate, type KernelConfiguration, limitFaults } from "./configuration.ts";
import { countKernel, type KernelCounts } from "./counts.ts";
import { cpuCandidates } from "./cpu-candidates.ts";
import { codeOf, isEmitted, whyNotEmitted } from "./emitted.ts";
import { productCandidates } from "./gpu-candidates.ts";
import { passCandidates } from "./gpu-passes.ts";
import { isPass, type KernelProblem, readProblem } from "./problem.ts";

/** A kernel that was not taken, with the reason. */
export interface RejectedKernel extends KernelConfiguration {
  /** How much slower it is predicted to be, or the limits of the machine that it breaks. */
  readonly why: string;
}

export interface KernelChoice {
  readonly problem: KernelProblem;
  readonly target: string;
  readonly chosen: KernelConfiguration;
  /** Tiles, iterations and elements of the chosen one. */
  readonly counts: KernelCounts;
  /** The fastest that Wavetile writes today, with the code that does; else why there is none. */
  readonly today:
    | { readonly kernel: KernelConfiguration; readonly code: readonly string[] }
    | { readonly none: string };
  /** The next best of the same implementation, and the best of every other. */
  readonly rejected: readonly RejectedKernel[];
  /** Of every implementation the fastest that the machine cannot take. */
  readonly overLimit: readonly RejectedKernel[];
  /** Candidates that were made, and that the machine can take. */
  readonly made: number;
  readonly possible: number;
}

export function configureKernel(asked: KernelProblem, target: Target): Result<KernelChoice> {
  const read = readProblem(asked);
  if (!read.ok) return read;
  const problem = read.value;
  const { machine } = target;
  if (!machine) {
    return fail(
      diagnostic("PLN002", `target ${target.name} cannot be planned for: no data sheet`, {
        at: target.name,
        help: "choose a machine with a data sheet (wavetile targets), or give a target file",
      }),
    );
  }
  const made =
    machine.kind === "cpu"
      ? cpuCandidates(problem, target)
      : isPass(problem)
        ? passCandidates(problem, machine)
        : productCandidates(problem, machine);
  const sorted = [...made].sort((a, b) => a.estimateNs - b.estimateNs);
  const faultsOf = new Map(sorted.map((c) => [c, limitFaults(c, target)]));
  const possible = sorted.filter((c) => faultsOf.get(c)!.length === 0);
  const [chosen] = possible;
  if (!chosen) return fail(noneFits(made, target));
  const written = possible.find((c) => isEmitted(problem, target, c));
  const told = (candidate: Candidate): KernelConfiguration => {
    const { why, plain: _, ...launch } = candidate;
    return { ...launch, emitted: isEmitted(problem, target, candidate), reasons: why() };
  };
  const next = possible.find((c) => c !== chosen && c.implementation === chosen.implementation);
  const others = firstOfEach(possible).filter((c) => c.implementation !== chosen.implementation);
  const broken = firstOfEach(sorted.filter((c) => faultsOf.get(c)!.length > 0));
  const slower = (c: Candidate): string => slowerBy(c.estimateNs / chosen.estimateNs);
  return ok({
    problem,
    target: target.name,
    chosen: told(chosen),
    counts: countKernel(problem, chosen),
    today: written
      ? { kernel: told(written), code: codeOf[target.emitter!] }
      : { none: whyNotEmitted(problem, target) ?? "what is written fits no limit of the machine" },
    rejected: [...(next ? [next] : []), ...others].map((c) => ({ ...told(c), why: slower(c) })),
    overLimit: broken.map((c) => ({ ...told(c), why: faultsOf.get(c)!.join("; ") })),
    made: made.length,
    possible: possible.length,
  });
}

/** The fastest of every implementation. */
function firstOfEach(sorted: readonly Candidate[]): readonly Candidate[] {
  const first = new Map<string, Candidate>();
  for (const c of sorted) if (!first.has(c.implementation)) first.set(c.implementation, c);
  return [...first.values()];
}

function slowerBy(ratio: number): string {
  if (ratio < 1.0005) return "as fast, and made after it";
  return ratio < 2
    ? `${((ratio - 1) * 100).toFixed(1)} % slower`
    : `${ratio.toFixed(1)} times as long`;
}

/** A machine that no launch fits: only a target file can describe one. */
function noneFits(made: readonly Candidate[], target: Target): Diagnostic {
  const faults = new Set(made.flatMap((c) => limitFaults(c, target)));
  return diagnostic("PLN021", `no kernel fits the limits of ${target.name}`, {
    at: target.name,
    notes: [...faults].slice(0, 5),
    help: "compare the limits of the target file's architecture with its source",
  });
}
