/**
 * The judge of proofs. It knows rules as pairs of patterns, terms and nothing of e-graphs: every lemma must
 * follow from earlier ones, every rule lemma must be an instance of its rule under the substitution
 * that it states. What the patterns do not say (side conditions, computed payloads, built right sides) is
 * asked of `accepts`, or listed as assumed.
 */
import type { Pattern } from "./pattern.ts";
import type { Lemma, Link, Proof, ProofTerm, RuleLemma, StatedLemma } from "./proof.ts";

/** A rule as far as the judge knows it; Rule has this form. */
export interface CheckableRule {
  readonly name: string;
  readonly left: readonly Pattern[];
  readonly right?: readonly Pattern[];
  readonly when?: unknown;
  readonly compute: Readonly<Record<string, unknown>>;
}

export interface CheckOptions {
  readonly rules: readonly CheckableRule[];
  /** Whether a stated fact or computation holds; without it none does. */
  readonly holds?: (lemma: StatedLemma, terms: readonly ProofTerm[]) => boolean;
  /** Whether a conditional or computed step is right; without it such rules are assumed. */
  readonly accepts?: (lemma: RuleLemma, terms: readonly ProofTerm[]) => boolean;
}

export type CheckResult =
  | { readonly ok: true; readonly assumed: readonly string[] }
  | { readonly ok: false; readonly fault: string };

export function checkProof(proof: Proof, options: CheckOptions): CheckResult {
  const check = new Check(proof, options);
  const fault = check.run();
  return fault === undefined ? { ok: true, assumed: check.assumed } : { ok: false, fault };
}

class Check {
  readonly #proof: Proof;
  readonly #options: CheckOptions;
  readonly #rules: ReadonlyMap<string, CheckableRule>;
  readonly #assumed = new Set<string>();

  constructor(proof: Proof, options: CheckOptions) {
    this.#proof = proof;
    this.#options = options;
    this.#rules = new Map(options.rules.map((rule) => [rule.name, rule]));
  }

  get assumed(): string[] {
    return [...this.#assumed].sort();
  }

  run(): string | undefined {
    const { terms, lemmas, left, right, by } = this.#proof;
    for (const [i, term] of terms.entries()) {
      if (!term.children.every((child) => child >= 0 && child < i)) return `term ${i} is circular`;
    }
    for (const [i, lemma] of lemmas.entries()) {
      const fault = this.#lemmaFault(lemma, i);
      if (fault !== undefined) return `lemma ${i}: ${fault}`;
    }
    return this.#links([by], left, right, lemmas.length) ? undefined : "the goal does not follow";
  }

  #lemmaFault(lemma: Lemma, index: number): string | undefined {
    switch (lemma.kind) {
      case "rule":
        return this.#ruleFault(lemma);
      case "given":
      case "evaluated":
        return this.#options.holds?.(lemma, this.#proof.terms)
          ? undefined
          : `"${lemma.name}" is not known to hold`;
      case "congruence":
        return this.#isCongruent(lemma.left, lemma.right, lemma.children, index)
          ? undefined
          : "the terms are not congruent";
      case "chain":
        return this.#links(lemma.links, lemma.left, lemma.right, index)
          ? undefined
          : "the chain does not join";
    }
  }

  /** Whether the links lead from one term to the other, by lemmas before `limit`. */
  #links(links: readonly Link[], from: number, to: number, limit: number): boolean {
    let at = from;
    for (const { lemma, reversed } of links) {
      if (lemma === -1) continue;
      const used = lemma < limit ? this.#proof.lemmas[lemma] : undefined;
      if (!used) return false;
      const [start, end] = reversed ? [used.right, used.left] : [used.left, used.right];
      if (start !== at) return false;
      at = end;
    }
    return at === to;
  }

  #isCongruent(left: number, right: number, links: readonly Link[], limit: number): boolean {
    const [a, b] = [this.#proof.terms[left], this.#proof.terms[right]];
    if (!a || !b || a.op !== b.op || a.payload !== b.payload) return false;
    if (a.children.length !== b.children.length || links.length !== a.children.length) return false;
    return links.every((link, i) => this.#links([link], a.children[i]!, b.children[i]!, limit));
  }

  #ruleFault(lemma: RuleLemma): string | undefined {
    const rule = this.#rules.get(lemma.rule);
    if (!rule) return `there is no rule "${lemma.rule}"`;
    const left = rule.left[lemma.side];
    if (!left || !this.#isInstance(left, lemma.left, lemma))
      return "left is no instance of the rule";
    if (rule.right && !this.#isInstance(rule.right[lemma.side]!, lemma.right, lemma)) {
      return "right is no instance of the rule";
    }
    const isPlain = rule.right && !rule.when && Object.keys(rule.compute).length === 0;
    if (isPlain) return undefined;
    if (!this.#options.accepts) this.#assumed.add(rule.name);
    else if (!this.#options.accepts(lemma, this.#proof.terms)) return "its condition does not hold";
    return undefined;
  }

  #isInstance(pattern: Pattern, term: number, lemma: RuleLemma): boolean {
    if (pattern.name !== undefined && lemma.classes[pattern.name] !== term) return false;
    if (pattern.kind === "variable") return true;
    const at = this.#proof.terms[term];
    if (!at || at.op !== pattern.op) return false;
    const { payload } = pattern;
    if (payload.kind === "key" && at.payload !== payload.key) return false;
    if (payload.kind === "variable" && lemma.payloads[payload.name] !== at.payload) return false;
    const { children } = pattern;
    const fits = pattern.open
      ? at.children.length >= children.length
      : at.children.length === children.length;
    return fits && children.every((child, i) => this.#isInstance(child, at.children[i]!, lemma));
  }
}

/** Replays single rewrites on the left term; whether each applies where it says and the end is right. */
export function replaySteps(
  proof: Proof,
  steps: readonly { position: readonly number[]; lemma: Lemma; reversed: boolean }[],
): boolean {
  const terms = [...proof.terms];
  const places = new Map(terms.map((term, i) => [keyOf(term), i]));
  const intern = (term: ProofTerm): number => {
    const known = places.get(keyOf(term));
    if (known !== undefined) return known;
    places.set(keyOf(term), terms.length);
    return terms.push(term) - 1;
  };
  const rewrite = (at: number, position: readonly number[], from: number, to: number): number => {
    const [first, ...rest] = position;
    if (first === undefined) return at === from ? to : -1;
    const term = terms[at]!;
    const child = term.children[first];
    const changed = child === undefined ? -1 : rewrite(child, rest, from, to);
    if (changed < 0) return -1;
    return intern({ ...term, children: term.children.map((c, i) => (i === first ? changed : c)) });
  };
  let now = proof.left;
  for (const { position, lemma, reversed } of steps) {
    const [from, to] = reversed ? [lemma.right, lemma.left] : [lemma.left, lemma.right];
    now = rewrite(now, position, from, to);
    if (now < 0) return false;
  }
  return now === proof.right;
}

function keyOf({ op, payload, children }: ProofTerm): string {
  return JSON.stringify([op, payload, children]);
}
