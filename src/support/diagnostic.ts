/**
 * Diagnostics: what a user is told when the input (a model, a schedule, flags, an artifact) is at
 * fault. They are values: collected, returned, never thrown through a public door. The stable codes
 * with their titles stand in diagnostic-codes.ts; causes and cures in docs/error-codes.md.
 * Our own bugs are InternalError (invariant.ts) and ordinary outcomes are union members.
 */
import { type DiagnosticCode, diagnosticCodes } from "./diagnostic-codes.ts";

export type Severity = "error" | "warning" | "info";

/** One thing that is wrong with an input: where, what was found, what is allowed, and the cure. */
export interface Diagnostic {
  readonly code: DiagnosticCode;
  readonly severity: Severity;
  /** Names the object, the value found and the values allowed. */
  readonly message: string;
  /** The place: `node "Conv_3" (Conv) attribute "pads"`, `line 4`, `--shape W`. */
  readonly at?: string;
  readonly notes: readonly string[];
  /** The cure, as an instruction. */
  readonly help?: string;
}

/** Fields of a diagnostic that a caller may give beside code and message. */
export interface DiagnosticDetail {
  readonly severity?: Severity;
  readonly at?: string;
  readonly notes?: readonly string[];
  readonly help?: string;
}

/** Either a value (perhaps with warnings) or the diagnostics that explain why there is none. */
export type Result<T> =
  | { readonly ok: true; readonly value: T; readonly warnings: readonly Diagnostic[] }
  | { readonly ok: false; readonly diagnostics: readonly Diagnostic[] };

export function diagnostic(
  code: DiagnosticCode,
  message: string,
  detail: DiagnosticDetail = {},
): Diagnostic {
  return { code, severity: "error", notes: [], message, ...detail };
}

export function ok<T>(value: T, warnings: readonly Diagnostic[] = []): Result<T> {
  return { ok: true, value, warnings };
}

export function fail<T = never>(...diagnostics: readonly Diagnostic[]): Result<T> {
  return { ok: false, diagnostics };
}

/**
 * Carries diagnostics out of a deep parser or importer to the boundary of the same folder, which
 * turns it into a Result with `attempt`. The readers of weights throw it through every folder that reads
 * some: a file may be gone at any time. Each public door holds it with `contain` or `containLater`.
 */
export class DiagnosticError extends Error {
  readonly diagnostics: readonly Diagnostic[];
  constructor(diagnostics: readonly Diagnostic[]) {
    super(diagnostics.map((d) => `${d.code}: ${d.message}`).join("\n"));
    this.name = "DiagnosticError";
    this.diagnostics = diagnostics;
  }
}

/** Throws one diagnostic to the nearest `attempt`. */
export function reject(
  code: DiagnosticCode,
  message: string,
  detail: DiagnosticDetail = {},
): never {
  throw new DiagnosticError([diagnostic(code, message, detail)]);
}

/** Runs `body`; a DiagnosticError becomes a failed Result, every other throw passes through. */
export function attempt<T>(body: (warn: (d: Diagnostic) => void) => T): Result<T> {
  const warnings: Diagnostic[] = [];
  try {
    return ok(
      body((d) => warnings.push(d)),
      warnings,
    );
  } catch (error) {
    if (error instanceof DiagnosticError) return fail(...error.diagnostics, ...warnings);
    throw error;
  }
}

/** The answer of `body`; a DiagnosticError that leaves it is a refusal too. */
export function contain<T>(body: () => Result<T>): Result<T> {
  try {
    return body();
  } catch (error) {
    return refusalOf(error);
  }
}

/** As `contain`, of an answer that comes later. */
export async function containLater<T>(body: () => Promise<Result<T>>): Promise<Result<T>> {
  try {
    return await body();
  } catch (error) {
    return refusalOf(error);
  }
}

function refusalOf(error: unknown): Result<never> {
  if (error instanceof DiagnosticError) return fail(...error.diagnostics);
  throw error;
}

/** Plain text of a diagnostic, several lines, no colour. */
export function formatDiagnostic(d: Diagnostic): string {
  const lines = [`${d.severity} ${d.code} (${diagnosticCodes[d.code]}): ${d.message}`];
  if (d.at !== undefined) lines.push(`  at ${d.at}`);
  for (const note of d.notes) lines.push(`  note: ${note}`);
  if (d.help !== undefined) lines.push(`  help: ${d.help}`);
  return lines.join("\n");
}
