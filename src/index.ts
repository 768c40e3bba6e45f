/** The public door: explicit named exports only. */
export { type Diagnostic, formatDiagnostic, type Result } from "./support/diagnostic.ts";
