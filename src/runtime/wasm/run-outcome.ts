/** What a finished run's control block says: success, or the diagnostic for why it was given up. */
import { abortCodes, controlBlock } from "../../emit/wasm/control-block.ts";
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import { indexOutOfRange } from "../index-out-of-range.ts";

export function cancelled(): Diagnostic {
  return diagnostic("RUN004", "the run was cancelled by its AbortSignal");
}

export function threadFailed(reason: string): Diagnostic {
  return diagnostic("RUN003", `a compute thread failed: ${reason}`, {
    help: "report it with the model: a validated program does not trap",
  });
}

/**
 * @param failure what the first thread that failed said
 * @param checks what the statement numbers of failed checks stand for
 */
export function programOutcome(
  words: Int32Array,
  failure: string,
  checks: readonly string[],
): Result<void> {
  const code = Atomics.load(words, controlBlock.abort / 4);
  // Asked after every run.
  if (code === abortCodes.none) return ok(undefined);
  const read = (byteAddress: number) => Atomics.load(words, byteAddress / 4);
  const subject = checks[read(controlBlock.faultStatement)] ?? "a check";
  switch (code) {
    case abortCodes.cancelled:
      return fail(cancelled());
    case abortCodes.trapped:
      return fail(threadFailed(failure));
    case abortCodes.stalled:
      return fail(
        diagnostic("RUN005", "a compute thread did not reach a barrier in time", {
          help: "use fewer threads than the machine has idle cores, or raise the stall limit",
        }),
      );
    case abortCodes.outOfRange:
      return fail(
        indexOutOfRange(
          [read(controlBlock.faultValue), read(controlBlock.faultValue + 4)],
          subject,
        ),
      );
    case abortCodes.tooManyTrips:
      return fail(diagnostic("RUN007", "a loop made more trips than it may", { at: subject }));
  }
  invariant(false, () => `abort code ${code}`);
}
