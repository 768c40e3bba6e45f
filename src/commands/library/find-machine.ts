/** A target by its name or by the path of the user's own target file. */
import { readWhole } from "../../runtime/files/plain-file.ts";
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { targets } from "../../target/index.ts";
import { parseTarget } from "../../target/read-target.ts";
import type { Target } from "../../target/target.ts";

/** What looks like a path is one: a name has neither a slash nor an ending. */
export function looksLikePath(name: string): boolean {
  return /[\\/]|\.json$/i.test(name);
}

export function findMachine(name: string): Result<Target> {
  const known = targets.get(name);
  if (known) return ok(known);
  if (!looksLikePath(name)) {
    return fail(
      diagnostic("CLI002", `there is no target ${JSON.stringify(name)}`, {
        help: `use one of ${[...targets.keys()].join(", ")}, or the path of a target file`,
      }),
    );
  }
  const file = readWhole(name);
  if (!file.ok) return file;
  const read = parseTarget(new TextDecoder().decode(file.value));
  if (read.ok) return read;
  return fail(...read.diagnostics.map((d) => ({ ...d, at: d.at ? `${name}: ${d.at}` : name })));
}
