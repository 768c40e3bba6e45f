/** The integer-program solver HiGHS as extraction's tests and campaigns inject it. */
import { createRequire } from "node:module";
import type { LegacyHighs } from "highs";
import type { SolveMilp } from "../src/egraph/extract/milp.ts";

/** @param timeLimit seconds of one program */
export async function loadHighs(timeLimit = 60): Promise<SolveMilp> {
  const load = createRequire(import.meta.url)("highs") as () => Promise<LegacyHighs>;
  const highs = await load();
  return (program) => {
    const answer = highs.solve(program, { mip_rel_gap: 0, time_limit: timeLimit });
    const values = new Map<string, number>();
    for (const [name, column] of Object.entries(answer.Columns)) {
      if ("Primal" in column) values.set(name, column.Primal);
    }
    const finished = { Optimal: "optimal", Infeasible: "infeasible" } as const;
    const status = finished[answer.Status as keyof typeof finished] ?? "unfinished";
    return { status, objective: answer.ObjectiveValue, values };
  };
}
