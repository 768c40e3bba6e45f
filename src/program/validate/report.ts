/** Collects the diagnostics of the validator; the first few of each code are enough. */
import { type Diagnostic, type DiagnosticDetail, diagnostic } from "../../support/diagnostic.ts";
import type { DiagnosticCode } from "../../support/diagnostic-codes.ts";

const mostPerCode = 5;

export class Report {
  readonly diagnostics: Diagnostic[] = [];
  readonly #count = new Map<DiagnosticCode, number>();

  add(code: DiagnosticCode, message: string, detail: DiagnosticDetail = {}): void {
    const seen = (this.#count.get(code) ?? 0) + 1;
    this.#count.set(code, seen);
    if (seen <= mostPerCode) this.diagnostics.push(diagnostic(code, message, detail));
  }

  get isClean(): boolean {
    return this.diagnostics.length === 0;
  }
}
