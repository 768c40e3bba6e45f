/**
 * From a problem and a machine to the kernel that is expected to be fastest: candidates are enumerated from
 * the machine's data, those that it cannot take are dropped, the rest are priced (price.ts), and the
 * cheapest is taken with what it won by. The first of equals wins.
 */
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import type { Target } from "../../target/target.ts";
import { type KernelConfiguration, limitFaults } from "./configuration.ts";
import { countKernel, type KernelCounts } from "./counts.ts";
import { cpuCandidates } from "./cpu-candidates.ts";
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
  invariant(chosen, () => `no kernel for ${problem.kind} on ${target.name}`);
  const others = new Map<string, KernelConfiguration>();
  for (const c of sorted) {
    if (c.implementation !== chosen.implementation && !others.has(c.implementation)) {
      others.set(c.implementation, c);
    }
  }
  return ok({
    problem,
    target: target.name,
    chosen,
    counts: countKernel(problem, chosen),
    rejected: [...others.values()],
    made: made.length,
    possible: possible.length,
  });
}
