/**
 * How the library says no. Commands return Results; a call like `model.run(feeds)` gives its outputs
 * directly, so there the diagnostics travel in an error of a class of its own.
 */
import { type Diagnostic, formatDiagnostic, type Result } from "../../support/diagnostic.ts";

export class WavetileError extends Error {
  readonly diagnostics: readonly Diagnostic[];
  constructor(diagnostics: readonly Diagnostic[]) {
    super(diagnostics.map(formatDiagnostic).join("\n"));
    this.name = "WavetileError";
    this.diagnostics = diagnostics;
  }
}

/** The value of a result, or its diagnostics thrown. */
export function unwrap<T>(result: Result<T>): T {
  if (!result.ok) throw new WavetileError(result.diagnostics);
  return result.value;
}
