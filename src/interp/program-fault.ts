/**
 * What can go wrong while a program runs. A fault ends the run; it is an outcome, not an error of the
 * interpreter: runProgram (program.ts) catches it and returns it with the place where it happened.
 */
export type FaultKind =
  | "outOfBounds"
  | "uninitialised"
  | "race"
  | "missingFence"
  | "deadlock"
  | "unwrittenOutput"
  | "indexOutOfRange"
  | "tooManyTrips"
  | "requirement"
  | "divergence";

export interface Fault {
  readonly kind: FaultKind;
  /** Names buffer, element, threads. */
  readonly message: string;
}

/** Carries a fault from a statement to runProgram. */
export class FaultError extends Error {
  readonly fault: Fault;
  constructor(fault: Fault) {
    super(`${fault.kind}: ${fault.message}`);
    this.name = "FaultError";
    this.fault = fault;
  }
}

export function raise(kind: FaultKind, message: string): never {
  throw new FaultError({ kind, message });
}
