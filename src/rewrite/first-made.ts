/** Several graphs of one model, of which the first that is not refused is taken. */
import {
  type Diagnostic,
  diagnostic,
  formatDiagnostic,
  ok,
  type Result,
} from "../support/diagnostic.ts";

/** What the first graph makes that is not refused; the last one's refusal is the answer. */
export function firstMade<G, T>(graphs: readonly G[], make: (graph: G) => Result<T>): Result<T> {
  const warnings: Diagnostic[] = [];
  for (const graph of graphs.slice(0, -1)) {
    const made = make(graph);
    if (made.ok) return ok(made.value, [...warnings, ...made.warnings]);
    warnings.push(leftOut(made.diagnostics));
  }
  const made = make(graphs.at(-1)!);
  return made.ok ? ok(made.value, [...warnings, ...made.warnings]) : made;
}

/** The warning about a graph that was refused. */
export function leftOut(refusals: readonly Diagnostic[]): Diagnostic {
  const found = diagnostic("GRF016", "a cheaper graph that rewriting found is not used", {
    notes: refusals.slice(0, 3).map(formatDiagnostic),
    help: "the model runs as it was given; report it, or compile with --rewrite off",
  });
  return { ...found, severity: "warning" };
}
