/**
 * What ends a bench or a campaign before it has a result: a wrong command line or something missing
 * from the machine, with the exit code of the design's table. `runToExit` is the only place that
 * turns it into text.
 */
import { DiagnosticError, formatDiagnostic } from "../src/support/diagnostic.ts";

export const exitCodes = {
  failed: 1,
  usage: 2,
  mismatch: 3,
  unsupported: 4,
  environment: 6,
} as const;

/** `exitCode` 0: what was asked for is the message (help). */
export class Refusal extends Error {
  readonly exitCode: number;
  constructor(message: string, exitCode: number) {
    super(message);
    this.name = "Refusal";
    this.exitCode = exitCode;
  }
}

/** What there is to choose from, a line each. */
export function listed(
  all: readonly { readonly name: string; readonly summary: string }[],
): string {
  return all.map(({ name, summary }) => `  ${name}: ${summary}`).join("\n");
}

/** Reads an option as an integer of a range. */
export function readInteger(
  option: string,
  text: string,
  [low, high]: readonly [number, number],
): number {
  const value = Number(text);
  if (text.trim() !== "" && Number.isInteger(value) && value >= low && value <= high) return value;
  throw new Refusal(`${option} takes ${low} to ${high}, found "${text}"`, exitCodes.usage);
}

/** Runs `main` and sets the process's exit code; refusals and diagnostics go to stderr. */
export async function runToExit(main: () => Promise<number>): Promise<void> {
  try {
    process.exitCode = await main();
  } catch (error) {
    if (error instanceof Refusal) {
      const out = error.exitCode === 0 ? process.stdout : process.stderr;
      out.write(`${error.message}\n`);
      process.exitCode = error.exitCode;
    } else if (error instanceof DiagnosticError) {
      for (const d of error.diagnostics) process.stderr.write(`${formatDiagnostic(d)}\n`);
      process.exitCode = exitCodes.environment;
    } else throw error;
  }
}
