/**
 * What is known about index variables at a point of a program, and a prover of `e >= 0` from it.
 *
 * Known are: each variable's lower bound 0 and its extent (an expression over variables bound outside),
 * parameters' constant ranges, and conditions of enclosing branches. The prover looks for a proof by
 * replacing parts of `e` by something not larger: a variable in which `e` is monotone by the end of its range (innermost first),
 * a floorDiv or mod by its bounds, a min or max by one operand (or by each in turn), or by adding a
 * multiple of a condition. It is sound and incomplete; its effort is bounded by a count of steps, so
 * that "not proved" is also the answer for what is too large.
 */
import type { Condition } from "../../semantics/condition.ts";
import {
  add,
  constant,
  constantValue,
  type IndexAtom,
  type IndexExpr,
  type IndexLike,
  mul,
  sub,
  substitute,
  toIndex,
  variable,
  variablesOf,
} from "../../semantics/index-expr.ts";
import { type IndexRange, rangeOf, simplify } from "../../semantics/index-range.ts";
import {
  fewestVariables,
  hasProducts,
  mentions,
  productOf,
  replaceTerm,
  roomOf,
  soleAtom,
  termsKey,
  valueAt,
  withoutDivision,
} from "./index-terms.ts";
import { type Assignment, type Decision, type FactParts, LinearFacts } from "./linear-facts.ts";
import { cofactor, multiplied } from "./multiplied-facts.ts";
import { chosenValue, sampleCount } from "./sample-draws.ts";

interface Effort {
  readonly depth: number;
  readonly steps: number;
  /** Which replacement is tried first: proofs differ in what leads straight to the end. */
  readonly first: "variable" | "condition";
}

/** The quick tries at one proof; the integer solver comes after them. */
const efforts: readonly Effort[] = [
  { depth: 4, steps: 20, first: "variable" },
  { depth: 4, steps: 20, first: "condition" },
];

/** Work units of a question with multiplied facts: some ten milliseconds. */
const workOfProducts = 40_000;

interface Known {
  /** Exclusive upper end; undefined for parameters, whose range is constant. */
  readonly extent: IndexExpr | undefined;
  readonly lower: IndexExpr;
  /** Order of binding: later ones are replaced first. */
  readonly rank: number;
}

/** How one set of facts comes from a smaller one. */
type Growth =
  | { readonly kind: "binding"; readonly name: string }
  | { readonly kind: "conditions"; readonly exprs: readonly IndexExpr[] };

/** What is known of expressions that differ by a constant only: from where on they are >= 0. */
interface Verdict {
  /** The least constant for which it is proved. */
  proved: number;
  /** The greatest constant for which it is not. */
  failed: number;
}

/** An immutable set of facts; the `with…` methods give larger ones. */
export class Facts {
  readonly #known: ReadonlyMap<string, Known>;
  readonly ranges: ReadonlyMap<string, IndexRange>;
  /** Expressions known to be >= 0. */
  readonly conditions: readonly IndexExpr[];
  readonly #parent: Facts | undefined;
  readonly #growth: Growth | undefined;
  readonly #verdicts = new Map<string, Verdict>();
  /** The same verdicts by the terms of two expressions, which saves forming their difference. */
  readonly #compared = new Map<string, Verdict>();
  #samples: Assignment[] | undefined;
  #linear: LinearFacts | undefined;
  #givens: ReadonlyMap<string, number> | undefined;
  readonly #grown = new Map<string, Facts>();
  /** The upper ends of variables, once they were asked for. */
  readonly #ends = new Map<string, readonly IndexExpr[]>();
  #impossible: boolean | undefined;

  private constructor(
    known: ReadonlyMap<string, Known>,
    ranges: ReadonlyMap<string, IndexRange>,
    conditions: readonly IndexExpr[],
    from?: { readonly parent: Facts; readonly growth: Growth },
  ) {
    this.#known = known;
    this.ranges = ranges;
    this.conditions = conditions;
    this.#parent = from?.parent;
    this.#growth = from?.growth;
  }

  static none(): Facts {
    return new Facts(new Map(), new Map(), []);
  }

  has(name: string): boolean {
    return this.#known.has(name);
  }

  /** Whether it has one value in the whole run. */
  isParameter(name: string): boolean {
    const known = this.#known.get(name);
    return known !== undefined && known.extent === undefined;
  }

  /** A parameter: min <= name <= max. */
  withParameter(name: string, min: number, max: number): Facts {
    const known = new Map(this.#known);
    known.set(name, { extent: undefined, lower: constant(min), rank: known.size });
    return new Facts(known, new Map(this.ranges).set(name, { min, max }), this.conditions, {
      parent: this,
      growth: { kind: "binding", name },
    });
  }

  /** 0 <= name < extent, and so extent >= 1. */
  withVariable(name: string, extent: IndexExpr): Facts {
    const known = new Map(this.#known);
    known.set(name, { extent, lower: constant(0), rank: known.size });
    const max = Math.max(0, rangeOf(extent, this.ranges).max - 1);
    const ranges = new Map(this.ranges).set(name, { min: 0, max });
    const atLeastOne = sub(extent, 1);
    const growth = { kind: "binding", name } as const;
    const bound = new Facts(known, ranges, this.conditions, { parent: this, growth });
    return bound.withNonNegative(atLeastOne);
  }

  withCondition(condition: Condition): Facts {
    const both = condition.kind === "zero" ? [sub(0, condition.expr)] : [];
    return this.withNonNegative(condition.expr, ...both);
  }

  withConditions(conditions: readonly Condition[]): Facts {
    return conditions.reduce<Facts>((facts, c) => facts.withCondition(c), this);
  }

  withNonNegative(...exprs: readonly IndexExpr[]): Facts {
    const key = exprs.map((e) => e.key).join(";");
    const known = this.#grown.get(key);
    if (known) return known;
    const all = exprs.flatMap((e) => this.#consequences(e));
    const news = this.#beyond(all.filter((e) => rangeOf(e, this.ranges).min < 0));
    const grown =
      news.length === 0
        ? this
        : new Facts(this.#known, this.ranges, [...this.#besides(news), ...news], {
            parent: this,
            growth: { kind: "conditions", exprs: news },
          });
    this.#grown.set(key, grown);
    return grown;
  }

  /** Those that say more than a condition of the same terms does: a proof tries each. */
  #beyond(news: readonly IndexExpr[]): readonly IndexExpr[] {
    const given = this.#given();
    return news.filter((e) => e.constant < (given.get(termsKey(e)) ?? Infinity));
  }

  /** The conditions but those of which new ones say more. */
  #besides(news: readonly IndexExpr[]): readonly IndexExpr[] {
    const more = new Set(news.map(termsKey));
    return this.conditions.filter((c) => !more.has(termsKey(c)));
  }

  /**
   * What e >= 0 means without min and max where that can be said: a least operand bounds all of them,
   * a greatest one bounds the only one that can be large enough.
   */
  #consequences(e: IndexExpr): readonly IndexExpr[] {
    for (const term of e.terms) {
      const atom = soleAtom(term);
      if (!atom || !("operands" in atom)) continue;
      const parts = atom.operands.map((p) => replaceTerm(e, term, mul(term.coefficient, p)));
      if (term.coefficient > 0 === (atom.kind === "min")) {
        return parts.flatMap((p) => this.#consequences(p));
      }
      const able = parts.filter((p) => rangeOf(p, this.ranges).max >= 0);
      if (able.length === 1) return this.#consequences(able[0]!);
    }
    return [e, ...withoutDivision(e)];
  }

  /** Whether a >= b is proved. */
  atLeast(a: IndexLike, b: IndexLike): boolean {
    const [more, less] = [toIndex(a), toIndex(b)];
    const apart = more.constant - less.constant;
    if (more.terms.length === 0 && less.terms.length === 0)
      return apart >= 0 || this.isImpossible();
    const key = `${termsKey(more)} >= ${termsKey(less)}`;
    const known = this.#compared.get(key);
    if (known && apart >= known.proved) return true;
    if (known && apart <= known.failed) return false;
    const difference = sub(more, less);
    const holds = this.nonNegative(difference);
    const verdict = this.#verdicts.get(termsKey(difference));
    if (verdict) this.#compared.set(key, verdict);
    return holds;
  }

  equal(a: IndexLike, b: IndexLike): boolean {
    const difference = simplify(sub(a, b), this.ranges);
    return difference.key === "0" || (this.nonNegative(difference) && this.atLeast(b, a));
  }

  /** Whether the condition is proved to hold. */
  holds(c: Condition): boolean {
    return c.kind === "zero" ? this.equal(c.expr, 0) : this.nonNegative(c.expr);
  }

  /** Whether the condition is proved to fail. */
  fails(c: Condition): boolean {
    const negative = this.nonNegative(sub(-1, c.expr));
    return negative || (c.kind === "zero" && this.nonNegative(sub(c.expr, 1)));
  }

  /** Whether the facts contradict each other: the point is never reached. */
  isImpossible(): boolean {
    if (this.conditions.length === 0) return false;
    this.#impossible ??= this.samples().length === 0 && this.#decide(constant(-1)) === "proved";
    return this.#impossible;
  }

  /** Whether e >= 0 is proved. */
  nonNegative(e: IndexExpr): boolean {
    if (e.terms.length === 0) return e.constant >= 0 || this.isImpossible();
    const key = termsKey(e);
    for (let facts: Facts | undefined = this; facts; facts = facts.#parent) {
      const known = facts.#verdicts.get(key);
      if (known && e.constant >= known.proved) return true;
    }
    let verdict = this.#verdicts.get(key);
    if (!verdict) {
      verdict = { proved: Infinity, failed: -Infinity };
      this.#verdicts.set(key, verdict);
    }
    if (e.constant <= verdict.failed) return false;
    this.#settle(e, verdict);
    return e.constant >= verdict.proved;
  }

  /**
   * Decides e, and with it most expressions that differ by a constant: the least that the terms reach
   * at a sample is tried as their bound first.
   */
  #settle(e: IndexExpr, verdict: Verdict): void {
    const range = rangeOf(e, this.ranges);
    const given = this.#given().get(termsKey(e));
    if (range.min >= 0) verdict.proved = e.constant - range.min;
    else if (range.max < 0) verdict.failed = e.constant;
    if (given !== undefined) verdict.proved = Math.min(verdict.proved, given);
    for (let attempt = 0; attempt < 3 && verdict.proved > e.constant; attempt++) {
      const least = this.#leastAt(e);
      if (least < 0) {
        verdict.failed = Math.max(verdict.failed, e.constant - least - 1);
        return;
      }
      const tightest = attempt < 2 && least < Infinity ? least : 0;
      const tried = sub(e, tightest);
      if (tried.constant > verdict.failed && this.#isProved(tried)) verdict.proved = tried.constant;
      else verdict.failed = Math.max(verdict.failed, tried.constant);
      if (tightest === 0) return;
    }
  }

  /** The constants of the conditions, by their terms. */
  #given(): ReadonlyMap<string, number> {
    if (this.#givens) return this.#givens;
    const givens = new Map<string, number>();
    for (const c of this.conditions) {
      const key = termsKey(c);
      givens.set(key, Math.min(c.constant, givens.get(key) ?? Infinity));
    }
    this.#givens = givens;
    return givens;
  }

  /** The least value at the samples. */
  #leastAt(e: IndexExpr): number {
    let least = Infinity;
    const missing = this.#unknownIn(e);
    for (const at of this.samples()) {
      const value = valueAt(e, at, missing);
      if (value < 0) return value;
      if (value < least) least = value;
    }
    return least;
  }

  #isProved(e: IndexExpr): boolean {
    const goal = simplify(e, this.ranges);
    const decision = this.#decide(goal);
    if (decision !== "unknown") return decision === "proved";
    return this.#byProducts(goal) || efforts.some((effort) => this.#try(goal, effort));
  }

  /** By the integer solver, with facts multiplied so that they say something of the products in `e`. */
  #byProducts(e: IndexExpr): boolean {
    if (!hasProducts(e)) return false;
    const rows = multiplied(e, [...this.conditions, ...this.#rooms(e)], this.ranges);
    if (rows.length === 0) return false;
    const parts = this.#parts();
    const facts = new LinearFacts(
      { ...parts, conditions: [...parts.conditions, ...rows] },
      workOfProducts,
    );
    return facts.decide(e).kind === "proved";
  }

  /** A point where the facts hold and e < 0, if one is known. */
  counterexample(e: IndexExpr): Assignment | undefined {
    const missing = this.#unknownIn(e);
    return this.samples().find((at) => valueAt(e, at, missing) < 0);
  }

  /** By the integer solver; a counterexample is kept as a sample. */
  #decide(e: IndexExpr): Decision["kind"] {
    this.#linear ??= new LinearFacts(this.#parts());
    const decision = this.#linear.decide(e);
    if (decision.kind === "refuted") this.samples().push(decision.point);
    return decision.kind;
  }

  #parts(): FactParts {
    const below = new Map<string, readonly IndexExpr[]>();
    for (const [name, { extent }] of this.#known) {
      if (extent) below.set(name, this.#consequences(roomOf(name, extent)));
    }
    return { ranges: this.ranges, below, conditions: this.conditions };
  }

  /** Some points where all facts hold: what is negative at one of them is not worth a proof. */
  samples(): Assignment[] {
    this.#samples ??= this.#sample();
    return this.#samples;
  }

  /** Variables that nothing is known of, and that samples have no value for. */
  #unknownIn(e: IndexExpr): readonly string[] {
    const names = variablesOf(e);
    for (const name of names) if (this.#known.has(name)) names.delete(name);
    return names.size === 0 ? none : [...names];
  }

  #sample(): Assignment[] {
    const growth = this.#growth;
    if (!growth) return Array.from({ length: sampleCount }, () => new Map());
    const parent = this.#parent!.samples();
    if (growth.kind === "conditions") {
      const exprs = growth.exprs.map((e) => [e, this.#unknownIn(e)] as const);
      return parent.filter((at) => exprs.every(([e, missing]) => valueAt(e, at, missing) >= 0));
    }
    const { name } = growth;
    const { extent } = this.#known.get(name)!;
    const { min, max } = this.ranges.get(name)!;
    const missing = extent ? this.#unknownIn(extent) : [];
    return parent.flatMap((at, i) => {
      const end = extent ? valueAt(extent, at, missing) - 1 : max;
      return end < min ? [] : [new Map(at).set(name, chosenValue(i, this.#known.size, min, end))];
    });
  }

  #try(goal: IndexExpr, { depth, steps, first }: Effort): boolean {
    const search = { first, seen: new Map<string, number>() };
    // The integer solver knows nothing of products: a variable of each takes a step.
    return hasProducts(goal)
      ? this.#search(goal, { ...search, steps: 5 * steps }, depth + 3)
      : this.#search(goal, { ...search, steps }, depth);
  }

  #search(e: IndexExpr, search: Search, depth: number): boolean {
    const range = rangeOf(e, this.ranges);
    if (range.min >= 0) return true;
    if (range.max < 0 || depth === 0 || (search.seen.get(e.key) ?? 0) >= depth) return false;
    if (search.steps-- <= 0) return false;
    search.seen.set(e.key, depth);
    const next = (p: IndexExpr): boolean => this.#search(p, search, depth - 1);
    const [equivalent] = withoutDivision(e);
    if (equivalent && search.first === "condition" && next(equivalent)) return true;
    if (this.#byExtremum(e, next)) return true;
    const byVariable = (): boolean => this.#byVariable(e, next);
    const byCondition = (): boolean => this.#byCondition(e, next);
    const [one, other] =
      search.first === "variable" ? [byVariable, byCondition] : [byCondition, byVariable];
    return (
      one() ||
      other() ||
      (equivalent !== undefined && next(equivalent)) ||
      this.#byDivision(e, next)
    );
  }

  /** A min or max in a term, alone or beside what is not negative: one operand will do, or all must. */
  #byExtremum(e: IndexExpr, next: Next): boolean {
    for (const term of e.terms) {
      const atom = term.atoms.find((a) => "operands" in a);
      if (!atom || !("operands" in atom)) continue;
      const others = term.atoms.filter((a) => a !== atom);
      const beside = others.length === 0 ? one : productOf(1, others);
      if (rangeOf(beside, this.ranges).min < 0) continue;
      const anyWill = term.coefficient > 0 === (atom.kind === "max");
      const put = (p: IndexExpr): boolean =>
        next(replaceTerm(e, term, mul(term.coefficient, beside, p)));
      return anyWill ? atom.operands.some(put) : atom.operands.every(put);
    }
    return false;
  }

  /** The innermost variable in which e is monotone, at the end of its range that makes e smallest. */
  #byVariable(e: IndexExpr, next: Next): boolean {
    const names = [...variablesOf(e)].filter((name) => this.#known.has(name));
    names.sort((a, b) => this.#known.get(b)!.rank - this.#known.get(a)!.rank);
    for (const name of names.slice(0, 2)) {
      const slope = this.#slope(e, name);
      if (slope === undefined) continue;
      const ends = slope > 0 ? [this.#known.get(name)!.lower] : this.#uppers(name);
      const left = ends.map((end) => substitute(e, new Map([[name, end]])));
      if (fewestVariables(left).some(next)) return true;
    }
    return false;
  }

  /** What a variable is at most: each operand of a least one by itself. */
  #uppers(name: string): readonly IndexExpr[] {
    const known = this.#ends.get(name);
    if (known) return known;
    const upper = this.#upper(name);
    const { extent } = this.#known.get(name)!;
    const rooms = extent ? this.#consequences(roomOf(name, extent)) : [];
    const each = rooms
      .map((room) => add(room, variable(name)))
      .filter((end) => !variablesOf(end).has(name));
    const ends = each.length > 0 ? each : upper ? [upper] : [];
    this.#ends.set(name, ends);
    return ends;
  }

  /** `e` where it is least, as far as that is evident, over the variables that `outside` knows. */
  lowerEnd(e: IndexExpr, outside: Facts): IndexExpr {
    const inner = [...variablesOf(e)].filter((n) => this.#known.has(n) && !outside.has(n));
    inner.sort((a, b) => this.#known.get(b)!.rank - this.#known.get(a)!.rank);
    const [name] = inner;
    if (name === undefined) return simplify(e, outside.ranges);
    const end = this.#slope(e, name) === -1 ? this.#upper(name) : this.#known.get(name)!.lower;
    return this.lowerEnd(substitute(e, new Map([[name, end ?? 0]])), outside);
  }

  #upper(name: string): IndexExpr | undefined {
    const { extent } = this.#known.get(name)!;
    if (extent) return sub(extent, 1);
    const { max } = this.ranges.get(name)!;
    return Number.isSafeInteger(max) ? constant(max) : undefined;
  }

  /** 1 where e never falls as `name` grows, -1 where it never rises, else undefined. */
  #slope(e: IndexExpr, name: string): 1 | -1 | undefined {
    let slope: 1 | -1 | undefined;
    for (const term of e.terms) {
      const moving = term.atoms.filter((a) => mentions(a, name));
      if (moving.length === 0) continue;
      const others = term.atoms.filter((a) => !mentions(a, name));
      const sign = rangeOf(productOf(term.coefficient, others), this.ranges);
      const own = moving.length === 1 ? this.#atomSlope(moving[0]!, name) : undefined;
      if (own === undefined || (sign.min < 0 && sign.max > 0)) return undefined;
      const now = sign.min >= 0 ? own : own === 1 ? -1 : 1;
      if (slope !== undefined && slope !== now) return undefined;
      slope = now;
    }
    return slope;
  }

  #atomSlope(atom: IndexAtom, name: string): 1 | -1 | undefined {
    if (atom.kind === "variable") return 1;
    if (atom.kind === "mod") return undefined;
    if ("numerator" in atom) {
      return constantValue(atom.denominator) === undefined
        ? undefined
        : this.#slope(atom.numerator, name);
    }
    const slopes = atom.operands
      .filter((o) => variablesOf(o).has(name))
      .map((o) => this.#slope(o, name));
    return slopes.every((s) => s === slopes[0]) ? slopes[0] : undefined;
  }

  /**
   * e >= 0 follows from c >= 0 and k e - m f c >= 0 for k, m > 0 that cancel a term, where f is what the term
   * has beside the one of c, and is not negative. What is left without products is for the integer solver.
   */
  #byCondition(e: IndexExpr, next: Next): boolean {
    if (!hasProducts(e)) return this.#cancelled(e, this.conditions, next);
    const left: IndexExpr[] = [];
    this.#cancelled(e, [...this.conditions, ...this.#rooms(e)], (p) => left.push(p) < 0);
    return fewestVariables(left).some((p) =>
      hasProducts(p) ? next(p) : this.#decide(p) === "proved",
    );
  }

  /** What is left of e where a condition cancels a term, until `take` is satisfied. */
  #cancelled(e: IndexExpr, conditions: readonly IndexExpr[], take: Next): boolean {
    for (const condition of conditions) {
      for (const term of e.terms) {
        for (const match of condition.terms) {
          if (match.coefficient > 0 !== term.coefficient > 0) continue;
          const factor = cofactor(term, match, this.ranges);
          if (!factor) continue;
          const k = Math.abs(match.coefficient);
          const m = Math.abs(term.coefficient);
          const left = sub(mul(k, e), mul(m, factor, condition));
          if (left.terms.length <= e.terms.length && take(left)) return true;
        }
      }
    }
    return false;
  }

  /** What the extents of the variables in `e` leave above them: each is >= 0. */
  #rooms(e: IndexExpr): readonly IndexExpr[] {
    return [...variablesOf(e)].flatMap((name) => {
      const extent = this.#known.get(name)?.extent;
      return extent ? this.#consequences(roomOf(name, extent)) : [];
    });
  }

  /** n - d + 1 <= d floorDiv(n, d) <= n, and mod(n, d) = n - d floorDiv(n, d). */
  #byDivision(e: IndexExpr, next: Next): boolean {
    for (const term of e.terms) {
      const atom = soleAtom(term);
      if (!atom || !("numerator" in atom)) continue;
      const { coefficient } = term;
      const { numerator, denominator } = atom;
      const without = replaceTerm(e, term, constant(0));
      if (atom.kind === "mod") {
        if (coefficient > 0) return next(without);
        const most = add(without, mul(coefficient, sub(denominator, 1)));
        const whole = add(without, mul(coefficient, numerator));
        return next(most) || (rangeOf(numerator, this.ranges).min >= 0 && next(whole));
      }
      if (constantValue(denominator) === undefined) continue;
      const scaled = mul(denominator, without);
      const low = coefficient > 0 ? sub(add(numerator, 1), denominator) : numerator;
      if (next(add(scaled, mul(coefficient, low)))) return true;
    }
    return false;
  }
}

const none: readonly string[] = [];
const one = constant(1);

type Next = (e: IndexExpr) => boolean;

interface Search {
  steps: number;
  readonly first: Effort["first"];
  /** How deep the search below an expression went. */
  readonly seen: Map<string, number>;
}
