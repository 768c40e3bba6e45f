/**
 * A program as it is believed when it comes from a file. Indices that come from data are checked when they are
 * used, whatever the file says of them: that they are in range is known to who made the program, and no proof of
 * the program's text alone shows it.
 */
import type { Program } from "../program/program.ts";
import type { Statement } from "../program/statement.ts";
import { mapStatements } from "../program/walk.ts";

export function checkedIndices(program: Program): Program {
  const body = (statements: readonly Statement[]): readonly Statement[] =>
    mapStatements(statements, (s) => [s.kind === "letIndex" ? { ...s, range: "checked" } : s]);
  const kernels = program.kernels.map((kernel) => ({
    ...kernel,
    roles: kernel.roles.map((role) => ({ ...role, body: body(role.body) })),
  }));
  return { ...program, kernels };
}
