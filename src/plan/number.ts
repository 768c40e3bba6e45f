/** Numbers of a plan's input: finite, in their limits, or a diagnostic that names them. */

import { type Diagnostic, diagnostic, fail, ok, type Result } from "../support/diagnostic.ts";
import type { DiagnosticCode } from "../support/diagnostic-codes.ts";

export interface NumberLimits {
  readonly least: number;
  readonly most: number;
  readonly integer?: boolean;
}

/** Undefined when the number is usable. */
export function checkNumber(
  code: DiagnosticCode,
  name: string,
  value: number,
  { least, most, integer = false }: NumberLimits,
): Diagnostic | undefined {
  const fits = value >= least && value <= most && (!integer || Number.isSafeInteger(value));
  if (fits) return undefined;
  const kind = integer ? "a whole number" : "a number";
  return diagnostic(code, `${name} is ${value}, not ${kind} from ${least} to ${most}`, {
    at: name,
    help: `give ${kind} from ${least} to ${most}`,
  });
}

/** A count as people write it; what is none is refused as it was written. */
export function readCount(option: string, text: string): Result<number> {
  const count = parseCount(text);
  if (count >= 1) return ok(count);
  const what = Number.isNaN(count) ? "no number" : "no positive number";
  const help = "write a count above 0: 70B, 8.03b, 350M or 1234567";
  return fail(
    diagnostic("PLN001", `${option} ${JSON.stringify(text)} is ${what}`, { at: option, help }),
  );
}

/** 70B, 8.03b, 350M or a plain number; NaN when it is none. */
export function parseCount(text: string): number {
  const match = /^\s*(-?\d+(?:\.\d+)?(?:e\d+)?)\s*([kmbt]?)\s*$/i.exec(text);
  if (!match) return Number.NaN;
  const units: Readonly<Record<string, number>> = { "": 1, k: 1e3, m: 1e6, b: 1e9, t: 1e12 };
  return Math.round(Number(match[1]) * units[match[2]!.toLowerCase()]!);
}
