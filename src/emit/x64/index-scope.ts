/**
 * Code for index expressions: addresses, conditions, loop bounds, in 64-bit general registers. An
 * expression is a sum of terms, and a term changes with the innermost loop whose variable it mentions;
 * so for each loop the sum of the terms that are settled there is kept in a register. Where those terms
 * are linear in the loop's variable the register is stepped at the end of each trip (strength
 * reduction), else it is computed where the trip begins. Constants stay out of the sums and become
 * displacements, so that all accesses of an unrolled tile share one pointer (Allen and Kennedy,
 * "Optimizing Compilers for Modern Architectures", 2001, on induction variables).
 */
import { growthPerTrip, levelOfTerm, sumOfTerms } from "../../program/index-levels.ts";
import * as ix from "../../semantics/index-expr.ts";
import { type IndexRange, type IndexRanges, rangeOf } from "../../semantics/index-range.ts";
import { invariant } from "../../support/invariant.ts";
import { type FunctionCode, scratchA, scratchD } from "./function-code.ts";
import { gpr, immediate, type Label, type Memory, type Register } from "./operand.ts";

type IndexExpr = ix.IndexExpr;

interface Level {
  /** Sums by key, with the register that holds them. */
  readonly sums: Map<string, Register>;
  readonly variables: string[];
}

interface Variable {
  readonly register: Register;
  readonly level: number;
}

/** Displacements are kept within this; what is beyond goes to the pointer. */
const largestDisplacement = 2 ** 30;

export class IndexScope {
  readonly #f: FunctionCode;
  readonly #levels: Level[] = [{ sums: new Map(), variables: [] }];
  readonly #variables = new Map<string, Variable>();
  readonly #ranges = new Map<string, IndexRange>();
  readonly #makeOuter: (name: string) => Register | undefined;

  /** `makeOuter` loads a variable of the outermost level; undefined for names bound further in. */
  constructor(f: FunctionCode, makeOuter: (name: string) => Register | undefined) {
    this.#f = f;
    this.#makeOuter = makeOuter;
  }

  get ranges(): IndexRanges {
    return this.#ranges;
  }

  /** Loads the variables of the outermost level that occur in `uses`: every expression of the function. */
  open(uses: readonly IndexExpr[]): void {
    for (const name of ix.variablesOf(...uses)) {
      const made = this.#variables.has(name) ? undefined : this.#makeOuter(name);
      if (made) this.#variables.set(name, { register: made, level: 0 });
    }
  }

  /** Computes the sums of `uses` that are settled in the outermost level. */
  settle(uses: readonly IndexExpr[]): void {
    this.#computeSums(this.#collect(uses, 0));
  }

  /** States the range of a variable; of several with one name, a range that holds them all. */
  declare(name: string, range: IndexRange): void {
    const known = this.#ranges.get(name) ?? range;
    const min = Math.min(known.min, range.min);
    this.#ranges.set(name, { min, max: Math.max(known.max, range.max) });
  }

  /** A level whose variable has its value for the whole level. */
  enter(name: string, register: Register, uses: readonly IndexExpr[]): void {
    const level = this.#push(name, register);
    this.#computeSums(this.#collect(uses, level));
  }

  /**
   * A level for the body of a loop; `register` holds the first value already. Call before the loop;
   * then `begin` where a trip begins and `step` where it ends, and `leave` after the loop.
   */
  enterLoop(
    name: string,
    register: Register,
    uses: readonly IndexExpr[],
  ): { readonly begin: () => void; readonly step: () => void } {
    const level = this.#push(name, register);
    const steps: (() => void)[] = [];
    const computed: IndexExpr[] = [];
    for (const sum of this.#collect(uses, level)) {
      const step = this.#stepOf(sum, name, level);
      if (step) steps.push(this.#startInduction(sum, step));
      else computed.push(sum);
    }
    return {
      begin: () => this.#computeSums(computed),
      step: () => {
        for (const step of steps) step();
      },
    };
  }

  leave(): void {
    const level = this.#levels.pop();
    invariant(level && this.#levels.length > 0, () => "no index level to leave");
    for (const name of level.variables) this.#variables.delete(name);
  }

  /** A register with the value; it may be one that is kept, so it must not be written. */
  value(expr: IndexExpr): Register {
    const varying = ix.withoutConstant(expr);
    if (varying.terms.length === 0) return this.#constant(expr.constant);
    const whole = this.#kept(expr);
    if (whole) return whole;
    const sum = this.#varying(varying);
    return expr.constant === 0 ? sum : this.#plus(sum, expr.constant);
  }

  /** As an operand that may also be an immediate. */
  operand(expr: IndexExpr): Register | ReturnType<typeof immediate> {
    const constant = ix.constantValue(expr);
    if (constant !== undefined && Math.abs(constant) < 2 ** 31) return immediate(constant);
    return this.value(expr);
  }

  /** Jumps to `target` unless the condition holds. */
  branchUnless(kind: "nonNegative" | "zero", expr: IndexExpr, target: Label): void {
    const varying = ix.withoutConstant(expr);
    const holds = (value: number): boolean => (kind === "zero" ? value === 0 : value >= 0);
    if (varying.terms.length === 0) {
      if (!holds(expr.constant)) this.#f.emit("jmp", target);
      return;
    }
    this.#f.emit("cmp", this.value(varying), this.#limit(-expr.constant));
    this.#f.emit(kind === "zero" ? "jne" : "jl", target);
  }

  /** Where an access goes, as the memory operand of an instruction. */
  address(address: IndexExpr): Memory {
    const { sum, disp } = splitAddress(address);
    return { kind: "memory", base: this.value(sum), scale: 1, disp };
  }

  #limit(value: number): Register | ReturnType<typeof immediate> {
    return Math.abs(value) < 2 ** 31 ? immediate(value) : this.#constant(value);
  }

  #constant(value: number): Register {
    const r = this.#f.gpr();
    if (value === 0) this.#f.emit("xor", { ...r, bits: 32 }, { ...r, bits: 32 });
    else if (value > 0 && value < 2 ** 31) this.#f.emit("mov", { ...r, bits: 32 }, value);
    else if (Math.abs(value) < 2 ** 31) this.#f.emit("mov", r, value);
    else this.#f.emit("movabs", r, immediate(BigInt(value)));
    return r;
  }

  #plus(base: Register, constant: number): Register {
    const r = this.#f.gpr();
    if (Math.abs(constant) < 2 ** 31) {
      return this.#emitted("lea", r, { kind: "memory", base, scale: 1, disp: constant });
    }
    this.#f.emit("mov", r, base).emit("add", r, this.#constant(constant));
    return r;
  }

  #emitted(op: string, r: Register, from: Register | Memory): Register {
    this.#f.emit(op, r, from);
    return r;
  }

  #push(name: string, register: Register): number {
    const level = this.#levels.length;
    this.#levels.push({ sums: new Map(), variables: [name] });
    this.#variables.set(name, { register, level });
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
    for (const sum of sums) this.#levels.at(-1)!.sums.set(sum.key, this.#fresh(sum));
  }

  /** The sum in a register of its own. */
  #fresh(sum: IndexExpr): Register {
    const r = this.#f.gpr();
    this.#f.emit("mov", r, this.value(sum));
    return r;
  }

  #startInduction(sum: IndexExpr, step: IndexExpr): () => void {
    const register = this.#fresh(sum);
    this.#levels.at(-1)!.sums.set(sum.key, register);
    const constant = ix.constantValue(step);
    const by =
      constant !== undefined && Math.abs(constant) < 2 ** 31
        ? immediate(constant)
        : this.value(step);
    return () => void this.#f.emit("add", register, by);
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

  #kept(sum: IndexExpr): Register | undefined {
    for (let i = this.#levels.length - 1; i >= 0; i--) {
      const register = this.#levels[i]!.sums.get(sum.key);
      if (register) return register;
    }
    return undefined;
  }

  /** A sum without constant: a kept one, or what is settled further out plus its own terms. */
  #varying(sum: IndexExpr): Register {
    const kept = this.#kept(sum);
    if (kept) return kept;
    const levels = sum.terms.map((t) => this.#levelOf(t));
    const deepest = Math.max(...levels);
    const outer = sum.terms.filter((_, i) => levels[i]! < deepest);
    const own = sum.terms.filter((_, i) => levels[i]! === deepest);
    const parts = own.map((term) => this.#term(term));
    if (outer.length > 0) parts.unshift(this.#varying(sumOfTerms(outer, 0)));
    return parts.reduce((left, right) => {
      const r = this.#f.gpr();
      this.#f.emit("lea", r, { kind: "memory", base: left, index: right, scale: 1, disp: 0 });
      return r;
    });
  }

  #term({ coefficient, atoms }: ix.IndexTerm): Register {
    const product = atoms
      .map((a) => this.#atom(a))
      .reduce((left, right) => {
        const r = this.#f.gpr();
        this.#f.emit("mov", r, left).emit("imul", r, right);
        return r;
      });
    if (coefficient === 1) return product;
    const r = this.#f.gpr();
    const shift = Math.log2(coefficient);
    if (Number.isInteger(shift)) this.#f.emit("mov", r, product).emit("shl", r, shift);
    else if (Math.abs(coefficient) < 2 ** 31) this.#f.emit("imul", r, product, coefficient);
    else this.#f.emit("mov", r, product).emit("imul", r, this.#constant(coefficient));
    return r;
  }

  #atom(atom: ix.IndexAtom): Register {
    switch (atom.kind) {
      case "variable":
        return this.#variable(atom.name).register;
      case "min":
      case "max":
        return this.#extremum(atom.kind, atom.operands);
      default:
        return this.#division(atom.kind, atom.numerator, atom.denominator);
    }
  }

  #extremum(kind: "min" | "max", operands: readonly IndexExpr[]): Register {
    const r = this.#f.gpr();
    this.#f.emit("mov", r, this.value(operands[0]!));
    for (const operand of operands.slice(1)) {
      const other = this.value(operand);
      this.#f.emit("cmp", other, r).emit(kind === "min" ? "cmovl" : "cmovg", r, other);
    }
    return r;
  }

  /** floorDiv and mod: shifts and masks for powers of two, else the hardware's division. */
  #division(kind: "floorDiv" | "mod", numerator: IndexExpr, denominator: IndexExpr): Register {
    const f = this.#f;
    const divisor = ix.constantValue(denominator);
    const shift = divisor === undefined ? Number.NaN : Math.log2(divisor);
    const value = this.value(numerator);
    const r = f.gpr();
    if (Number.isInteger(shift) && divisor! <= 2 ** 30) {
      f.emit("mov", r, value);
      if (kind === "floorDiv") f.emit("sar", r, shift);
      else f.emit("and", r, divisor! - 1);
      return r;
    }
    const by = this.value(denominator);
    const small = this.#isSmall(numerator) && this.#isSmall(denominator);
    f.emit("mov", scratchA, value);
    if (rangeOf(numerator, this.#ranges).min >= 0) {
      // The 32-bit division is several times faster on older cores.
      f.emit("xor", gpr(2, 32), gpr(2, 32)).emit("div", small ? { ...by, bits: 32 } : by);
      f.emit("mov", r, kind === "floorDiv" ? scratchA : scratchD);
      return r;
    }
    return this.#signedDivision(kind, by, r);
  }

  #isSmall(expr: IndexExpr): boolean {
    const { min, max } = rangeOf(expr, this.#ranges);
    return min >= 0 && max < 2 ** 31;
  }

  /** Of rax: quotient rounded down, or remainder with the divisor's sign. Divisors are positive. */
  #signedDivision(kind: "floorDiv" | "mod", by: Register, r: Register): Register {
    const f = this.#f;
    f.emit("cqo").emit("idiv", by);
    const sign = f.gpr();
    f.emit("mov", sign, scratchD).emit("sar", sign, 63);
    if (kind === "floorDiv") return this.#sum(r, scratchA, sign);
    f.emit("and", sign, by);
    return this.#sum(r, scratchD, sign);
  }

  #sum(r: Register, a: Register, b: Register): Register {
    this.#f.emit("lea", r, { kind: "memory", base: a, index: b, scale: 1, disp: 0 });
    return r;
  }
}

/** The pointer that accesses share, and the displacement from it. */
export function splitAddress(address: IndexExpr): { sum: IndexExpr; disp: number } {
  const far = Math.round(address.constant / largestDisplacement) * largestDisplacement;
  return { sum: ix.add(ix.withoutConstant(address), far), disp: address.constant - far };
}

/** Whether the expression is a single variable: its register holds it already. */
function isVariable(expr: IndexExpr): boolean {
  const [term] = expr.terms;
  if (!term || expr.terms.length > 1 || expr.constant !== 0) return false;
  return term.coefficient === 1 && term.atoms.length === 1 && term.atoms[0]!.kind === "variable";
}
