/** Solves a problem file and prints the states chosen, the price, the bound and the gap. */
import { readLayerProblem } from "../../layers/layer-file.ts";
import { gapPicture } from "../../report/gap-picture.ts";
import { writeAtomically } from "../../runtime/files/files.ts";
import { readWhole } from "../../runtime/files/plain-file.ts";
import { SearchTrace } from "../../schedule/choice/search-trace.ts";
import { checkOutcome } from "../../search/check.ts";
import { explainConflict } from "../../search/conflict.ts";
import type { MilpSolver } from "../../search/milp.ts";
import type { Outcome } from "../../search/outcome.ts";
import { type Problem, readable, stateName, usageOf } from "../../search/problem.ts";
import { readProblem } from "../../search/problem-file.ts";
import { kBest, paretoFront } from "../../search/several.ts";
import { type SolverName, solvers } from "../../search/solvers.ts";
import { printWcsp, readWcsp } from "../../search/wcsp.ts";
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import type { Action, CommandContext } from "../command.ts";
import { loadHighs } from "../library/highs.ts";
import { printTable } from "./table.ts";

interface ScheduleArgs {
  readonly problem: string;
  readonly solver: SolverName;
  readonly seconds?: number | undefined;
  readonly work?: number | undefined;
  readonly best?: number | undefined;
  readonly pareto?: string | undefined;
  readonly wcsp?: string | undefined;
  readonly svg?: string | undefined;
  readonly seed: number;
}

export const scheduleProblem: Action<ScheduleArgs> = async (args, context) => {
  const read = readProblemFile(args.problem);
  if (!read.ok) return read;
  const problem = read.value;
  if (args.wcsp !== undefined) {
    const written = writeWcsp(problem, args.wcsp);
    if (!written.ok) return written;
  }
  const tools = args.solver === "milp" ? { milp: await loadHighs() } : {};
  const trace = new SearchTrace();
  const outcome = solve(problem, { ...args, ...tools, trace }, context);
  const faults = checkOutcome(problem, outcome);
  invariant(faults.length === 0, () => `${args.solver} on ${problem.name}: ${faults.join("; ")}`);
  if (outcome.solution === undefined) {
    const failed = [whyNone(problem, outcome)];
    return ok({ data: describe(problem, outcome), text: print(problem, outcome), failed });
  }
  if (args.svg !== undefined) {
    const drawn = drawGap(problem, trace, args.svg);
    if (!drawn.ok) return drawn;
  }
  const more = listMore(problem, args);
  if (!more.ok) return more;
  const data = { ...describe(problem, outcome), ...more.value.data };
  return ok({ data, text: [print(problem, outcome), ...more.value.lines].join("\n") });
};

interface Listing {
  readonly data: Readonly<Record<string, unknown>>;
  readonly lines: readonly string[];
}

/** The further solutions that were asked for. */
function listMore(problem: Problem, { best, pareto, work }: ScheduleArgs): Result<Listing> {
  const limit = work === undefined ? {} : { work };
  const data: Record<string, unknown> = {};
  const lines: string[] = [];
  const differences = (solution: Int32Array): string =>
    Object.values(choices(problem, solution)).join(", ");
  if (best !== undefined) {
    const { solutions, proven } = kBest(problem, best, limit);
    const listed = solutions.map((s) => ({
      objective: readable(problem, s.objective),
      solution: choices(problem, s.solution),
    }));
    data.best = { proven, solutions: listed };
    const rows = solutions.map((s) => [
      String(readable(problem, s.objective)),
      differences(s.solution),
    ]);
    lines.push("", printTable([`the ${best} best`, "states"], rows));
  }
  if (pareto !== undefined) {
    const names = [...new Set(problem.budgets.map((b) => b.name.replace(/ at \d+$/, "")))];
    if (!names.includes(pareto)) {
      const help = names.length > 0 ? { help: `use one of ${names.join(", ")}` } : {};
      return fail(
        diagnostic("PRB004", `there is no budget "${pareto}"`, { at: "--pareto", ...help }),
      );
    }
    const front = paretoFront(problem, pareto, limit);
    data.pareto = front.map((p) => ({
      objective: readable(problem, p.objective),
      bound: readable(problem, p.bound),
      amount: p.amount,
      solution: choices(problem, p.solution),
    }));
    const rows = front.map((p) => [String(p.amount), String(readable(problem, p.objective))]);
    lines.push("", printTable([pareto, problem.unit?.name ?? "price"], rows));
  }
  return ok({ data, lines });
}

/** A problem in any of the forms: problem, layers, .wcsp. */
export function readProblemFile(path: string): Result<Problem> {
  const bytes = readWhole(path);
  if (!bytes.ok) return bytes;
  const text = new TextDecoder().decode(bytes.value);
  if (path.endsWith(".wcsp")) return readWcsp(text);
  return /"schema"\s*:\s*"wavetile\/layers\//.test(text)
    ? readLayerProblem(text)
    : readProblem(text);
}

function writeWcsp(problem: Problem, path: string): Result<void> {
  const printed = printWcsp(problem);
  return printed.ok ? writeAtomically(path, printed.value.text) : printed;
}

function drawGap(problem: Problem, trace: SearchTrace, path: string): Result<void> {
  const inUnits = (price: number | null): number | null => price && readable(problem, price);
  const points = trace.points().map(({ work, objective, bound }) => {
    return { work, objective: inUnits(objective), bound: inUnits(bound) };
  });
  const unit = problem.unit?.name ?? "price";
  const svg = gapPicture({ name: problem.name, unit, points });
  if (svg !== undefined) return writeAtomically(path, svg);
  const help = "use a solver that proves bounds: --solver collapse";
  return fail(diagnostic("CLI001", "there is no bound to draw", { at: "--svg", help }));
}

type SolveArgs = ScheduleArgs & { readonly milp?: MilpSolver; readonly trace: SearchTrace };

function solve(problem: Problem, args: SolveArgs, context: CommandContext): Outcome {
  const end = args.seconds === undefined ? Infinity : context.now() + args.seconds * 1000;
  return solvers[args.solver](problem, {
    seed: args.seed,
    ...(args.work !== undefined && { work: args.work }),
    ...(args.milp && { milp: args.milp }),
    ...(args.seconds !== undefined && {
      seconds: args.seconds,
      expired: () => context.now() >= end,
    }),
    observe: (snapshot) => {
      const { objective, gap } = snapshot;
      args.trace.observe(snapshot);
      if (objective !== undefined) context.progress(`gap ${(gap * 100).toFixed(3)} %`);
    },
  });
}

function whyNone(problem: Problem, outcome: Outcome): Diagnostic {
  if (outcome.status === "infeasible") {
    const conflict = explainConflict(problem);
    if (conflict === undefined) return diagnostic("PRB009", outcome.reason);
    const help = conflict.enough ? conflict.change : `${conflict.change}; other conflicts remain`;
    const message = `${conflict.constraints.length} constraints exclude each other`;
    return diagnostic("PRB009", message, { notes: conflict.constraints, help });
  }
  return diagnostic("PRB010", outcome.reason, { help: "use --solver collapse, or more time" });
}

/** Finite numbers for JSON; null for an infinite bound. */
function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}

function describe(problem: Problem, outcome: Outcome): Record<string, unknown> {
  const { solver, status, solution, objective, bound, gap, nodes, work, reason, counts } = outcome;
  const sizes = problem.variables.map((v) => v.prices.length);
  return {
    problem: problem.name,
    unit: problem.unit?.name ?? "price",
    variables: sizes.length,
    states: sizes.reduce((a, b) => a + b, 0),
    solver,
    status,
    objective: objective === undefined ? null : readable(problem, objective),
    bound: finite(readable(problem, bound)),
    gap: finite(gap),
    nodes,
    work,
    reason,
    counts,
    removedBy: removedBy(problem),
    solution: solution && choices(problem, solution),
    budgets: problem.budgets.map((b) => ({
      name: b.name,
      capacity: b.capacity,
      used: solution ? usageOf(b, solution) : null,
    })),
  };
}

function choices(problem: Problem, solution: Int32Array): Record<string, string> {
  return Object.fromEntries(
    problem.variables.map((v, i) => [v.name, stateName(v, solution[i]!)] as const),
  );
}

/** States that each constraint excludes, all variables together: the funnel. */
function removedBy(problem: Problem): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const v of problem.variables) {
    for (const { constraint, states } of v.exclusions ?? []) {
      counts[constraint] = (counts[constraint] ?? 0) + states.length;
    }
  }
  return counts;
}

const mostRows = 120;

function print(problem: Problem, outcome: Outcome): string {
  const { solver, status, solution, objective, bound, gap, nodes, reason } = outcome;
  const unit = problem.unit?.name ?? "price";
  const round = (price: number): string => String(Number(readable(problem, price).toPrecision(12)));
  const lines = [
    `${problem.name}: ${status} by ${solver} (${reason})`,
    `${unit} ${objective === undefined ? "-" : round(objective)}, bound ${round(bound)}, gap ${(gap * 100).toFixed(4)} %, ${nodes} nodes`,
  ];
  if (solution !== undefined) {
    const rows = problem.variables.map((v, i) => {
      const state = solution[i]!;
      const left = v.prices.length - new Set((v.exclusions ?? []).flatMap((x) => x.states)).size;
      return [
        v.name,
        stateName(v, state),
        round(v.prices[state]!),
        `${v.prices.length} -> ${left}`,
      ];
    });
    lines.push("", printTable(["variable", "state", unit, "states"], rows.slice(0, mostRows)));
    if (rows.length > mostRows) lines.push(`and ${rows.length - mostRows} more: see --json`);
  }
  for (const b of problem.budgets.slice(0, mostRows)) {
    if (solution) lines.push(`budget ${b.name}: ${usageOf(b, solution)} of ${b.capacity}`);
  }
  return lines.join("\n");
}
