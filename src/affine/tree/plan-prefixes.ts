/**
 * Schedules that are tried one after another, many of which begin with the same directives: plans of
 * beginnings are kept, and pairs that refused one schedule refuse others without a proof.
 */
import { ConflictMemory } from "../known-conflicts.ts";
import {
  applyDirective,
  judgePlan,
  startPlan,
  type TreeDirective,
  type Verdict,
} from "./directive.ts";
import type { Nest } from "./nest-program.ts";

/** What the directives on the way here come to, and what follows. */
interface Prefix {
  readonly verdict: Verdict;
  readonly next: Map<TreeDirective, Prefix>;
}

/** Prefixes kept at a time. */
const mostKept = 4000;

/** Like `scheduleNest`, but for the pair that a refusal names: one that refused another schedule may do. */
export class PlanPrefixes {
  readonly #nest: Nest;
  readonly #memory = new ConflictMemory();
  #first: Prefix;
  #kept = 0;

  constructor(nest: Nest) {
    this.#nest = nest;
    this.#first = this.#start();
  }

  /** Schedules that were refused without a proof. */
  get quick(): number {
    return this.#memory.hits;
  }

  schedule(directives: readonly TreeDirective[]): Verdict {
    if (this.#kept > mostKept) this.#first = this.#start();
    let prefix = this.#first;
    for (const [at, d] of directives.entries()) {
      if (prefix.verdict.kind !== "legal") return prefix.verdict;
      prefix = this.#follow(prefix, d, at, at < directives.length - 1);
    }
    const { verdict } = prefix;
    if (verdict.kind !== "legal") return verdict;
    return judgePlan(verdict.plan, directives.length - 1, this.#memory);
  }

  #start(): Prefix {
    this.#kept = 0;
    return { verdict: { kind: "legal", plan: startPlan(this.#nest) }, next: new Map() };
  }

  #follow(prefix: Prefix, d: TreeDirective, at: number, keep: boolean): Prefix {
    const known = prefix.next.get(d);
    if (known || prefix.verdict.kind !== "legal") return known ?? prefix;
    const verdict = applyDirective(prefix.verdict.plan, d, at, this.#memory);
    const made: Prefix = { verdict, next: new Map() };
    if (keep) {
      prefix.next.set(d, made);
      this.#kept++;
    }
    return made;
  }
}
