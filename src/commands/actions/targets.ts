/** The targets, and one of them with every figure and its source. */
import { diagnostic, fail, ok } from "../../support/diagnostic.ts";
import { targets } from "../../target/index.ts";
import type { Action } from "../command.ts";
import { runnableTargets } from "../library/open-model.ts";
import { printTable } from "./table.ts";

export const targetsAction: Action<{
  readonly action: "list" | "show";
  readonly name?: string | undefined;
}> = async ({ action, name }) => {
  if (action === "list") {
    const here = runnableTargets();
    const rows = [...targets.values()].map((t) => ({
      name: t.name,
      summary: t.summary,
      runsHere: here.includes(t.name),
    }));
    const text = printTable(
      ["target", "here", "what"],
      rows.map((r) => [r.name, r.runsHere ? "yes" : "no", r.summary]),
    );
    return ok({ data: { targets: rows }, text });
  }
  const target = targets.get(name ?? "");
  if (!target) {
    return fail(
      diagnostic("CLI002", `there is no target ${JSON.stringify(name ?? "")}`, {
        help: `use one of ${[...targets.keys()].join(", ")}`,
      }),
    );
  }
  const data = { ...target, capabilities: [...target.capabilities] };
  return ok({ data, text: JSON.stringify(data, null, 2), target: target.name });
};
