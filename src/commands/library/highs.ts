/** HiGHS, the linear solver behind `--solver milp`: a WebAssembly package, loaded when it is asked for. */
import type { Highs } from "highs";
import type { MilpSolver } from "../../search/milp.ts";

export async function loadHighs(): Promise<MilpSolver> {
  // The package's types describe its CommonJS form; what is imported is the module.
  const module = (await import("highs")) as unknown as { default: () => Promise<Highs> };
  const highs = await module.default();
  return (text, seconds) => {
    const limit = seconds === undefined ? {} : { time_limit: seconds };
    const solution = highs.solve(text, { ...limit, mip_rel_gap: 0, output_flag: false });
    const values = new Map<string, number>();
    for (const [name, column] of Object.entries(solution.Columns)) {
      if ("Primal" in column && column.Primal > 0.5) values.set(name, column.Primal);
    }
    if (solution.Status === "Optimal") return { status: "optimal", values };
    return { status: solution.Status === "Infeasible" ? "infeasible" : "stopped", values };
  };
}
