/** The exit code of a failure, from its diagnostic: one table. */
import type { DiagnosticCode } from "../support/diagnostic-codes.ts";

export const exitCodes = {
  ok: 0,
  failed: 1,
  usage: 2,
  mismatch: 3,
  unsupported: 4,
  noCandidate: 5,
  environment: 6,
  slower: 7,
  internal: 70,
  interrupted: 130,
} as const;

type Exit = (typeof exitCodes)[keyof typeof exitCodes];

/** Codes whose exit is not that of their prefix. */
const byCode: Readonly<Partial<Record<DiagnosticCode, Exit>>> = {
  ONX003: exitCodes.unsupported,
  ONX007: exitCodes.unsupported,
  ONX009: exitCodes.unsupported,
  ONX012: exitCodes.unsupported,
  ONX013: exitCodes.unsupported,
  ONX014: exitCodes.unsupported,
  ONX015: exitCodes.usage,
  ONX018: exitCodes.unsupported,
  SCH015: exitCodes.unsupported,
  SCH032: exitCodes.unsupported,
  SCH046: exitCodes.unsupported,
  EMT001: exitCodes.unsupported,
  ART006: exitCodes.unsupported,
  CLI002: exitCodes.unsupported,
  CLI003: exitCodes.environment,
  CLI004: exitCodes.mismatch,
  VER006: exitCodes.mismatch,
  CLI006: exitCodes.environment,
  CLI007: exitCodes.slower,
  CLI008: exitCodes.interrupted,
  CLI009: exitCodes.mismatch,
  CLI010: exitCodes.failed,
  PRB010: exitCodes.noCandidate,
  CUD001: exitCodes.environment,
  CUD002: exitCodes.environment,
  CUD003: exitCodes.environment,
  RUN002: exitCodes.environment,
  RUN004: exitCodes.interrupted,
  RUN040: exitCodes.environment,
  FFI001: exitCodes.environment,
};

const byPrefix: Readonly<Record<string, Exit>> = { CLI: exitCodes.usage };

export function exitCodeOf(code: DiagnosticCode): Exit {
  return byCode[code] ?? byPrefix[code.slice(0, 3)] ?? exitCodes.failed;
}
