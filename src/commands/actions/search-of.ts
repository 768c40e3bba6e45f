/** How a target's schedules were chosen, as an artifact says it; a diagnostic where it says nothing. */
import type { ArtifactMeta, SearchReport } from "../../artifact/artifact.ts";
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { Target } from "../../target/target.ts";

export function searchOf(
  { searches }: Pick<ArtifactMeta, "searches">,
  { name }: Target,
): Result<SearchReport> {
  const search = searches?.find((s) => s.target === name);
  if (search) return ok(search);
  return fail(
    diagnostic("CLI001", `the artifact says nothing of how target ${name} was scheduled`, {
      help: "optimize the model again with this version",
    }),
  );
}
