/**
 * What evaluating one candidate can find. A latency exists on `measured` alone, an estimate on
 * `estimated` alone, and nothing turns one kind into another: `measured` is made by evaluate.ts from an
 * Agreement, which only the comparison with the oracle (check-candidate.ts) can make. Each verdict is
 * stored as it is (store/trial.ts).
 */
import type { StoredAgreement, StoredTiming, StoredVerdict } from "../store/trial.ts";

/**
 * Proof that outputs were compared with the oracle and agreed. The field without a name that others
 * could write makes the type nominal: no object literal is one.
 */
export class Agreement implements StoredAgreement {
  readonly #compared = true;
  readonly checked: number;
  readonly worst: number;
  readonly worstUlp: number;
  readonly tolerance: string;
  readonly seed: number;

  private constructor(found: StoredAgreement) {
    this.checked = found.checked;
    this.worst = found.worst;
    this.worstUlp = found.worstUlp;
    this.tolerance = found.tolerance;
    this.seed = found.seed;
  }

  /** For check-candidate.ts alone, once it has compared: the tests hold that nobody else calls it. */
  static afterComparison(found: StoredAgreement): Agreement {
    return new Agreement(found);
  }

  get isCompared(): boolean {
    return this.#compared;
  }

  /** Both together: as many elements, the worse error. */
  and(other: Agreement): Agreement {
    return new Agreement({
      checked: this.checked + other.checked,
      worst: Math.max(this.worst, other.worst),
      worstUlp: Math.max(this.worstUlp, other.worstUlp),
      tolerance: this.tolerance,
      seed: this.seed,
    });
  }
}

type Stored<K extends StoredVerdict["kind"]> = Extract<StoredVerdict, { kind: K }>;

export type Rejected = Readonly<Stored<"rejected">>;
export type RejectReason = Rejected["reason"];
export type Wrong = Readonly<Stored<"wrong">>;
export type Mismatch = Wrong["first"];
/** `agreement` is there when the code ran and agreed, and was not timed. */
export type Estimated = Readonly<Omit<Stored<"estimated">, "agreement">> & {
  readonly agreement?: Agreement;
};
export type Estimate = Estimated["estimate"];
export interface Measured {
  readonly kind: "measured";
  readonly agreement: Agreement;
  readonly timing: StoredTiming;
}

export type Verdict = Rejected | Wrong | Estimated | Measured;
