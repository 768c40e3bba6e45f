/** `wavetile schedule`: its arguments; the work is in actions/schedule.ts. */
import { z } from "zod";
import { solverNames } from "../search/solvers.ts";
import { argument, command, shared } from "./command.ts";

export const schedule = command({
  name: "schedule",
  summary: "search the best states of a problem file, with a bound",
  args: z.strictObject({
    problem: argument(z.string(), {
      description: "a problem file (docs/collapse.md), or a .wcsp file",
      value: "PROBLEM",
      positional: true,
    }),
    solver: argument(z.enum(solverNames).default("collapse"), {
      description: `one of ${solverNames.join(", ")}`,
      value: "NAME",
    }),
    seconds: argument(z.coerce.number().positive().optional(), {
      description: "stop after this time with what is known",
      value: "S",
    }),
    work: argument(z.coerce.number().int().positive().optional(), {
      description: "stop after touching this many table entries: ends at the same place every time",
      value: "N",
    }),
    best: argument(z.coerce.number().int().min(1).max(1000).optional(), {
      description: "also list the N cheapest solutions",
      value: "N",
    }),
    pareto: argument(z.string().optional(), {
      description: "also list price against the amount that this budget takes",
      value: "BUDGET",
    }),
    wcsp: argument(z.string().optional(), {
      description: "also write the problem in toulbar2's form",
      value: "FILE",
    }),
    svg: argument(z.string().optional(), {
      description: "also draw solution and bound over work into this file",
      value: "FILE.svg",
    }),
    seed: shared.seed,
  }),
  load: async () => (await import("./actions/schedule.ts")).scheduleProblem,
});
