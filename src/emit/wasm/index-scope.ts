/**
 * Code for index expressions: addresses, conditions, loop bounds. An expression is a sum of terms, and
 * a term changes with the innermost loop whose variable it mentions; so for each loop the sum of the
 * terms that are settled there is kept in a local. Where those terms are linear in the loop's variable
 * the local is stepped at the end of each trip (strength reduction), else it is computed where the trip
 * begins. Constants stay out of the sums, so that all accesses of an unrolled tile share one pointer
 * and differ by the immediate offset of their load (Allen and Kennedy, "Optimizing Compilers for Modern
 * Architectures", 2001, on induction variables).
 *
 * Values are 32-bit integers modulo 2^32.
 */
import { growthPerTrip, levelOfTerm, sumOfTerms } from "../../program/index-levels.ts";
import * as ix from "../../semantics/index-expr.ts";
import { type IndexRange, type IndexRanges, rangeOf } from "../../semantics/index-range.ts";
import { invariant } from "../../support/invariant.ts";
import type { FunctionBuilder, Local } from "./function-builder.ts";

type IndexExpr = ix.IndexExpr;

interface Level {
  /** Sums by key, with the local that holds them. */
  readonly sums: Map<string, Local>;
  readonly variables: string[];
}

/** A sum that is stepped at the end of each trip. */
interface Induction {
  readonly local: Local;
  readonly step: number | Local;
}

interface Variable {
  readonly local: Local;
  readonly level: number;
}

/** Where an access goes: the sum to be on the stack and the immediate offset. */
export interface SplitAddress {
  readonly sum: IndexExpr;
  readonly offset: number;
}

/** Negative constants go to the pointer in steps of this, so that few pointers are needed. */
const anchorBytes = 65536;

export class IndexScope {
  readonly #f: FunctionBuilder;
  readonly #levels: Level[] = [{ sums: new Map(), variables: [] }];
  readonly #variables = new Map<string, Variable>();
  readonly #ranges = new Map<string, IndexRange>();
  readonly #addresses = new Map<string, SplitAddress>();
  /** Loads a variable of the outermost level; undefined for names that are bound further in. */
  readonly #makeOuter: (name: string) => Local | undefined;
  /** Bytes below every arena that a pointer may fall short of it before its offset is added. */
  guardBytes = 0;

  constructor(f: FunctionBuilder, makeOuter: (name: string) => Local | undefined) {
    this.#f = f;
    this.#makeOuter = makeOuter;
  }

  get ranges(): IndexRanges {
    return this.#ranges;
  }

  /**
   * Loads the variables of the outermost level that occur in `uses`, which has to be every expression
   * of the function, so that they are set on every path.
   */
  open(uses: readonly IndexExpr[]): void {
    for (const name of ix.variablesOf(...uses)) {
      const made = this.#variables.has(name) ? undefined : this.#makeOuter(name);
      if (!made) continue;
      this.#variables.set(name, { local: made, level: 0 });
    }
  }

  /** Computes the sums of `uses` that are settled in the outermost level. */
  settle(uses: readonly IndexExpr[]): void {
    this.#computeSums(this.#collect(uses, 0));
  }

  /**
   * States the range of a variable; of several with one name, a range that holds them all. Ahead of
   * `open`, because how addresses are split depends on the ranges of all their variables.
   */
  declare(name: string, range: IndexRange): void {
    const known = this.#ranges.get(name) ?? range;
    this.#ranges.set(name, {
      min: Math.min(known.min, range.min),
      max: Math.max(known.max, range.max),
    });
  }

  /** A level whose variable has its value for the whole level. */
  enter(name: string, local: Local, uses: readonly IndexExpr[]): void {
    const level = this.#push(name, local);
    this.#computeSums(this.#collect(uses, level));
  }

  /**
   * A level for the body of a loop; `local` holds the first value already. Call before the loop; then
   * `begin` where a trip begins and `step` where it ends, and `leave` after the loop.
   */
  enterLoop(
    name: string,
    local: Local,
    uses: readonly IndexExpr[],
  ): { readonly begin: () => void; readonly step: () => void } {
    const level = this.#push(name, local);
    const inductions: Induction[] = [];
    const computed: IndexExpr[] = [];
    for (const sum of this.#collect(uses, level)) {
      const step = this.#stepOf(sum, name, level);
      if (!step) computed.push(sum);
      else inductions.push(this.#startInduction(sum, step));
    }
    return {
      begin: () => this.#computeSums(computed),
      step: () => {
        for (const { local: sum, step } of inductions) {
          this.#f.get(sum);
          if (typeof step === "number") this.#f.i32Const(step);
          else this.#f.get(step);
          this.#f.op("i32.add").set(sum);
        }
      },
    };
  }

  leave(): void {
    const level = this.#levels.pop();
    invariant(level && this.#levels.length > 0, () => "no index level to leave");
    for (const name of level.variables) this.#variables.delete(name);
    this.#f.release(...level.sums.values());
  }

  /** Pushes the value. */
  push(expr: IndexExpr): void {
    const varying = ix.withoutConstant(expr);
    if (varying.terms.length === 0) {
      this.#f.i32Const(expr.constant);
      return;
    }
    this.#pushVarying(varying);
    if (expr.constant !== 0) this.#f.i32Const(expr.constant).op("i32.add");
  }

  /** Pushes 1 where the condition holds, else 0. */
  pushCondition(kind: "nonNegative" | "zero", expr: IndexExpr): void {
    this.push(ix.withoutConstant(expr));
    this.#f.i32Const(-expr.constant).op(kind === "zero" ? "i32.eq" : "i32.ge_s");
  }

  /** Pushes the sum of an address and returns the immediate offset to use. */
  pushAddress(address: IndexExpr): number {
    const { sum, offset } = this.splitAddress(address);
    this.#pushSum(sum);
    return offset;
  }

  /**
   * How an address is spelled. The hardware adds the offset without wrapping, so the sum itself must
   * not be negative: how far below its arena it can fall is noted in guardBytes, and where that is
   * not known the whole address is the sum.
   */
  splitAddress(address: IndexExpr): SplitAddress {
    const known = this.#addresses.get(address.key);
    if (known) return known;
    const anchor = Math.min(0, Math.floor(address.constant / anchorBytes) * anchorBytes);
    const sum = ix.add(ix.withoutConstant(address), anchor);
    const lowest = rangeOf(sum, this.#ranges).min;
    const bounded = Number.isFinite(lowest);
    const split = bounded
      ? { sum, offset: address.constant - anchor }
      : { sum: address, offset: 0 };
    if (bounded) this.guardBytes = Math.max(this.guardBytes, -lowest);
    this.#addresses.set(address.key, split);
    return split;
  }

  #push(name: string, local: Local): number {
    const level = this.#levels.length;
    this.#levels.push({ sums: new Map(), variables: [name] });
    this.#variables.set(name, { local, level });
    return level;
  }

  #variable(name: string): Variable {
    const known = this.#variables.get(name);
    invariant(known, () => `index variable ${name} is not bound`);
    return known;
  }

  /** The distinct sums of `uses` that become settled at this level. */
  #collect(uses: readonly IndexExpr[], level: number): IndexExpr[] {
    const sums = new Map<string, IndexExpr>();
    for (const use of uses) {
      const settled = use.terms.filter((t) => this.#levelOf(t) <= level);
      if (!settled.some((t) => this.#levelOf(t) === level)) continue;
      const open = settled.length < use.terms.length;
      const sum = sumOfTerms(settled, open ? 0 : use.constant);
      if (!isVariable(sum)) sums.set(sum.key, sum);
    }
    return [...sums.values()].filter((sum) => !this.#levels[level]!.sums.has(sum.key));
  }

  #computeSums(sums: readonly IndexExpr[]): void {
    for (const sum of sums) {
      this.#pushSum(sum);
      const local = this.#f.local("i32");
      this.#f.set(local);
      this.#levels.at(-1)!.sums.set(sum.key, local);
    }
  }

  #startInduction(sum: IndexExpr, step: IndexExpr): Induction {
    this.#pushSum(sum);
    const local = this.#f.local("i32");
    this.#f.set(local);
    this.#levels.at(-1)!.sums.set(sum.key, local);
    const constant = ix.constantValue(step);
    if (constant !== undefined) return { local, step: constant };
    const stepLocal = this.#f.local("i32");
    this.push(step);
    this.#f.set(stepLocal);
    // Kept with the sums so that `leave` gives it back; no expression has this key.
    this.#levels.at(-1)!.sums.set(`step of ${sum.key}`, stepLocal);
    return { local, step: stepLocal };
  }

  /** The growth of `sum` per trip, if it is the same in all trips. */
  #stepOf(sum: IndexExpr, name: string, level: number): IndexExpr | undefined {
    return growthPerTrip(sum, name, level, this.#levelOfVariable);
  }

  #levelOf(term: ix.IndexTerm): number {
    return levelOfTerm(term, this.#levelOfVariable);
  }

  readonly #levelOfVariable = (name: string): number | undefined =>
    this.#variables.get(name)?.level;

  /** Pushes a sum with its constant, which may be part of a kept one. */
  #pushSum(sum: IndexExpr): void {
    const kept = this.#kept(sum);
    if (kept) this.#f.get(kept);
    else this.push(sum);
  }

  #kept(sum: IndexExpr): Local | undefined {
    for (let i = this.#levels.length - 1; i >= 0; i--) {
      const local = this.#levels[i]!.sums.get(sum.key);
      if (local) return local;
    }
    return undefined;
  }

  /** A sum without constant: a kept one, or what is settled further out plus its own terms. */
  #pushVarying(sum: IndexExpr): void {
    const kept = this.#kept(sum);
    if (kept) {
      this.#f.get(kept);
      return;
    }
    const levels = sum.terms.map((t) => this.#levelOf(t));
    const deepest = Math.max(...levels);
    const outer = sum.terms.filter((_, i) => levels[i]! < deepest);
    const own = sum.terms.filter((_, i) => levels[i]! === deepest);
    if (outer.length > 0) this.#pushVarying(sumOfTerms(outer, 0));
    own.forEach((term, i) => {
      this.#pushTerm(term);
      if (outer.length > 0 || i > 0) this.#f.op("i32.add");
    });
  }

  #pushTerm(term: ix.IndexTerm): void {
    term.atoms.forEach((atom, i) => {
      this.#pushAtom(atom);
      if (i > 0) this.#f.op("i32.mul");
    });
    if (term.coefficient === 1) return;
    const shift = Math.log2(term.coefficient);
    if (Number.isInteger(shift)) this.#f.i32Const(shift).op("i32.shl");
    else this.#f.i32Const(term.coefficient).op("i32.mul");
  }

  #pushAtom(atom: ix.IndexAtom): void {
    switch (atom.kind) {
      case "variable":
        this.#f.get(this.#variable(atom.name).local);
        return;
      case "min":
      case "max":
        this.#pushExtremum(atom.kind, atom.operands);
        return;
      default:
        this.#pushDivision(atom.kind, atom.numerator, atom.denominator);
    }
  }

  #pushExtremum(kind: "min" | "max", operands: readonly IndexExpr[]): void {
    const [a, b] = [this.#f.local("i32"), this.#f.local("i32")];
    this.push(operands[0]!);
    for (const operand of operands.slice(1)) {
      this.#f.set(a);
      this.push(operand);
      this.#f.tee(b).get(a).get(b).get(a);
      this.#f.op(kind === "min" ? "i32.lt_s" : "i32.gt_s").op("select");
    }
    this.#f.release(a, b);
  }

  /** floorDiv and mod: shifts and masks for powers of two, unsigned division where nothing is negative. */
  #pushDivision(kind: "floorDiv" | "mod", numerator: IndexExpr, denominator: IndexExpr): void {
    const f = this.#f;
    const divisor = ix.constantValue(denominator);
    const shift = divisor === undefined ? Number.NaN : Math.log2(divisor);
    this.push(numerator);
    if (Number.isInteger(shift)) {
      if (kind === "floorDiv") f.i32Const(shift).op("i32.shr_s");
      else f.i32Const(divisor! - 1).op("i32.and");
      return;
    }
    if (rangeOf(numerator, this.#ranges).min >= 0) {
      this.push(denominator);
      f.op(kind === "floorDiv" ? "i32.div_u" : "i32.rem_u");
      return;
    }
    this.#pushSignedDivision(kind, denominator);
  }

  /** Of the numerator on the stack: quotient rounded down, or remainder with the divisor's sign. */
  #pushSignedDivision(kind: "floorDiv" | "mod", denominator: IndexExpr): void {
    const f = this.#f;
    const [a, b, r] = [f.local("i32"), f.local("i32"), f.local("i32")];
    f.set(a);
    this.push(denominator);
    f.set(b).get(a).get(b).op("i32.rem_s").set(r);
    if (kind === "mod") {
      f.get(r).get(b).i32Const(0).get(r).i32Const(0).op("i32.lt_s").op("select").op("i32.add");
    } else {
      f.get(a).get(b).op("i32.div_s").get(r).i32Const(0).op("i32.lt_s").op("i32.sub");
    }
    f.release(a, b, r);
  }
}

/** Whether the expression is a single variable: its local holds it already. */
function isVariable(expr: IndexExpr): boolean {
  const [term] = expr.terms;
  if (!term || expr.terms.length > 1 || expr.constant !== 0) return false;
  return term.coefficient === 1 && term.atoms.length === 1 && term.atoms[0]!.kind === "variable";
}
