/**
 * Proofs as values: a table of terms and a list of lemmas, each an equality that follows from earlier
 * ones. Shared parts are written once, so a proof is no longer than the work behind it. Made by
 * explain.ts, checked by check-proof.ts, spelled out as single rewrites by `flattenProof`.
 */

/** A term: its children are earlier terms of the table. Equal terms stand once. */
export interface ProofTerm {
  readonly op: string;
  readonly payload: string;
  readonly children: readonly number[];
}

interface Equality {
  /** Terms, by their place in the table. */
  readonly left: number;
  readonly right: number;
}

/** One instance of a rule: left side `side` under the substitution, and what it is rewritten to. */
export interface RuleLemma extends Equality {
  readonly kind: "rule";
  readonly rule: string;
  readonly side: number;
  readonly classes: Readonly<Record<string, number>>;
  readonly payloads: Readonly<Record<string, string>>;
}

/** A fact that was stated, or a computation: an operator over constants and its value. */
export interface StatedLemma extends Equality {
  readonly kind: "given" | "evaluated";
  readonly name: string;
}

/** Equal heads over children that are equal by lemmas, or the same (-1). */
export interface CongruenceLemma extends Equality {
  readonly kind: "congruence";
  readonly children: readonly Link[];
}

export interface ChainLemma extends Equality {
  readonly kind: "chain";
  readonly links: readonly Link[];
}

/** An earlier lemma, read from left to right or back; lemma -1 is `t = t`. */
export interface Link {
  readonly lemma: number;
  readonly reversed: boolean;
}

export type Lemma = RuleLemma | StatedLemma | CongruenceLemma | ChainLemma;

export interface Proof {
  readonly terms: readonly ProofTerm[];
  readonly lemmas: readonly Lemma[];
  /** What is proved. */
  readonly left: number;
  readonly right: number;
  readonly by: Link;
}

/** One rewrite somewhere inside a term. */
export interface RewriteStep {
  /** Child indices from the root down. */
  readonly position: readonly number[];
  readonly lemma: RuleLemma | StatedLemma;
  readonly reversed: boolean;
}

/** The proof as rewrites of the whole term one after the other, or undefined beyond `most` of them. */
export function flattenProof(proof: Proof, most = 10_000): RewriteStep[] | undefined {
  const steps: RewriteStep[] = [];
  const write = ({ lemma, reversed }: Link, position: readonly number[]): boolean => {
    if (lemma < 0) return true;
    const at = proof.lemmas[lemma]!;
    if (at.kind === "chain") {
      const links = reversed ? at.links.map(turned).reverse() : at.links;
      return links.every((link) => write(link, position));
    }
    if (at.kind === "congruence") {
      const links = reversed ? at.children.map(turned) : at.children;
      return links.every((link, i) => write(link, [...position, i]));
    }
    steps.push({ position, lemma: at, reversed });
    return steps.length <= most;
  };
  return write(proof.by, []) ? steps : undefined;
}

export function turned({ lemma, reversed }: Link): Link {
  return { lemma, reversed: !reversed };
}

/** A term as text, like a pattern without variables. */
export function printTerm(terms: readonly ProofTerm[], index: number): string {
  const { op, payload, children } = terms[index]!;
  const head = payload === "" ? op : `${op}[${payload}]`;
  if (children.length === 0) return head;
  return `(${[head, ...children.map((child) => printTerm(terms, child))].join(" ")})`;
}
