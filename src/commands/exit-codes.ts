/** The exit code of a failure, from its diagnostic: one table. */
import type { DiagnosticCode } from "../support/diagnostic-codes.ts";

export const exitCodes = {
  ok: 0,
  failed: 1,
  usage: 2,
  mismatch: 3,
  unsupported: 4,
  environment: 6,
  internal: 70,
  interrupted: 130,
} as const;

type Exit = (typeof exitCodes)[keyof typeof exitCodes];

/** Codes whose exit is not that of their prefix. */
const byCode: Readonly<Partial<Record<DiagnosticCode, Exit>>> = {
  CLI003: exitCodes.environment,
  CLI004: exitCodes.mismatch,
  CLI006: exitCodes.environment,
  RUN002: exitCodes.environment,
  RUN004: exitCodes.interrupted,
  ART006: exitCodes.unsupported,
  SCH015: exitCodes.unsupported,
  ONX003: exitCodes.unsupported,
};

const byPrefix: Readonly<Record<string, Exit>> = { CLI: exitCodes.usage };

export function exitCodeOf(code: DiagnosticCode): Exit {
  return byCode[code] ?? byPrefix[code.slice(0, 3)] ?? exitCodes.failed;
}
