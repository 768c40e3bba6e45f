/**
 * invariant(): the one way to say "this can only fail through a bug of ours". Exit code 70 at the
 * command line. Bad input is a Diagnostic instead (diagnostic.ts).
 */

/** A bug in Wavetile itself, with the pass that noticed it and the value it noticed it on. */
export class InternalError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "InternalError";
  }
}

/** Throws InternalError with the lazily built text unless `condition` holds. */
export function invariant(condition: unknown, text: () => string): asserts condition {
  if (!condition) throw new InternalError(text());
}

/** Closes an exhaustive switch: reaching it is a bug. */
export function unreachable(value: never, what: string): never {
  throw new InternalError(`${what}: unexpected ${JSON.stringify(value)}`);
}
