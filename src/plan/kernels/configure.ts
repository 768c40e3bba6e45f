/**
 * From a problem and a machine to the kernel that is expected to be fastest: candidates are enumerated from
 * the machine's data, those that it cannot take are dropped, the rest are priced (price.ts), and the
 * cheapest is taken with what it won by. The first of equals wins.
 */
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { Target } from "../../target/target.ts";
import { type Candidate, type KernelConfiguration, limitFaults } from "./configuration.ts";
import { countKernel, type KernelCounts } from "./counts.ts";
import { cpuCandidates } from "./cpu-candidates.ts";
import { isEmitted } from "./emitted.ts";
import { productCandidates } from "./gpu-candidates.ts";
import { passCandidates } from "./gpu-passes.ts";
import { isPass, type KernelProblem, readProblem } from "./problem.ts";

export interface KernelChoice {
  readonly problem: KernelProblem;
  readonly target: string;
  readonly chosen: KernelConfiguration;
  /** Tiles, iterations and elements of the chosen one. */
  readonly counts: KernelCounts;
  /** The best of every other implementation, with what it would cost. */
  readonly rejected: readonly KernelConfiguration[];
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
  const possible = made.filter((c) => limitFaults(c, target).length === 0);
  const sorted = [...possible].sort((a, b) => a.estimateNs - b.estimateNs);
  const [chosen] = sorted;
  if (!chosen) return fail(noneFits(made, target));
  const told = ({ why, streams = false, ...c }: Candidate): KernelConfiguration => ({
    ...c,
    emitted: isEmitted(problem, target, { ...c, streams }),
    reasons: why(),
  });
  const others = new Map<string, KernelConfiguration>();
  for (const c of sorted) {
    if (c.implementation !== chosen.implementation && !others.has(c.implementation)) {
      others.set(c.implementation, told(c));
    }
  }
  return ok({
    problem,
    target: target.name,
    chosen: told(chosen),
    counts: countKernel(problem, chosen),
    rejected: [...others.values()],
    made: made.length,
    possible: possible.length,
  });
}

/** A machine that no launch fits: only a target file can describe one. */
function noneFits(made: readonly Candidate[], target: Target): Diagnostic {
  const faults = new Set(made.flatMap((c) => limitFaults(c, target)));
  return diagnostic("PLN021", `no kernel fits the limits of ${target.name}`, {
    at: target.name,
    notes: [...faults].slice(0, 5).map((f) => `too much: ${f}`),
    help: "compare the limits of the target file's architecture with its source",
  });
}
