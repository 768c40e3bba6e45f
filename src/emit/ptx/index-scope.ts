/**
 * Code for index expressions: addresses, conditions, loop bounds. An expression is a sum of terms; for
 * each loop the part of a sum that is settled there is kept in a register, stepped from trip to trip
 * where it is linear in the loop's variable (strength reduction) and computed where a trip begins
 * otherwise. Constants stay out of kept sums, so that the accesses of an unrolled tile share a pointer
 * and differ by the offset in their instruction. What a straight stretch of code computes is remembered
 * until the stretch ends.
 *
 * Sums are computed modulo 2^32 where their range fits 32 bits (or an address of shared memory is
 * wanted), modulo 2^64 elsewhere; arguments of divisions, minima and conditions are exact in the width
 * that their own range asks for.
 */
import { growthPerTrip, levelOfTerm, sumOfTerms } from "../../program/index-levels.ts";
import * as ix from "../../semantics/index-expr.ts";
import { type IndexRange, type IndexRanges, rangeOf } from "../../semantics/index-range.ts";
import { invariant } from "../../support/invariant.ts";
import { branch, type Operand, type PtxCode } from "./ptx-code.ts";

type IndexExpr = ix.IndexExpr;
export type Bits = 32 | 64;

/** A variable in a register; `level` is the layer of code that binds it. */
interface Variable {
  readonly register: Operand;
  readonly bits: Bits;
  readonly level: number;
}

/** A stretch of code that its registers do not outlive. */
interface Layer {
  readonly sums: Map<string, Operand>;
  readonly variables: string[];
}

/** An expression that code further in will ask for, in the width in which it will. */
export interface IndexUse {
  readonly expr: IndexExpr;
  readonly bits: Bits;
}

interface Induction {
  readonly register: Operand;
  readonly bits: Bits;
  readonly step: Operand;
}

export class IndexScope {
  readonly #code: PtxCode;
  readonly #layers: Layer[] = [{ sums: new Map(), variables: [] }];
  readonly #variables = new Map<string, Variable>();
  readonly #ranges = new Map<string, IndexRange>();

  constructor(code: PtxCode) {
    this.#code = code;
  }

  get ranges(): IndexRanges {
    return this.#ranges;
  }

  /** States the range of a variable; of several with one name, a range that holds them all. */
  declare(name: string, range: IndexRange): void {
    const known = this.#ranges.get(name) ?? range;
    this.#ranges.set(name, {
      min: Math.min(known.min, range.min),
      max: Math.max(known.max, range.max),
    });
  }

  /** The width in which all values of the expression are exact. */
  widthOf(expr: IndexExpr): Bits {
    const { min, max } = rangeOf(expr, this.#ranges);
    return min >= -(2 ** 31) && max < 2 ** 31 ? 32 : 64;
  }

  /** Binds a variable in the innermost layer; its range has been declared. */
  bind(name: string, register: Operand, bits: Bits): void {
    const level = this.#layers.length - 1;
    this.#variables.set(name, { register, bits, level });
    this.#layers[level]!.variables.push(name);
  }

  isBound(name: string): boolean {
    return this.#variables.has(name);
  }

  /** Computes the sums of `uses` that are settled in the innermost layer. */
  settle(uses: readonly IndexUse[]): void {
    for (const use of this.#collect(uses, this.#layers.length - 1)) this.#keep(use);
  }

  /** A layer of code that may not be run: a branch, or what follows a bound index. */
  within(body: () => void): void {
    this.#layers.push({ sums: new Map(), variables: [] });
    body();
    this.#leave();
  }

  /**
   * The body of a loop whose variable holds its first value already. `body` writes one trip, given the code that
   * goes at its begin and the code that steps the kept sums, at its end; or several trips behind each other.
   */
  loop(
    name: string,
    counter: { readonly register: Operand; readonly bits: Bits },
    uses: readonly IndexUse[],
    body: (begin: () => void, step: () => void) => void,
  ): void {
    this.#layers.push({ sums: new Map(), variables: [] });
    this.bind(name, counter.register, counter.bits);
    const level = this.#layers.length - 1;
    const inductions: Induction[] = [];
    const computed: IndexUse[] = [];
    for (const use of this.#collect(uses, level)) {
      const step = this.#stepOf(use.expr, name, level);
      if (!step) computed.push(use);
      else inductions.push(this.#startInduction(use, step));
    }
    const layer = this.#layers[level]!;
    const stepped = new Map(layer.sums);
    body(
      () => {
        for (const use of computed) this.#keep(use);
      },
      () => {
        for (const { register, bits, step } of inductions) {
          this.#code.emit(`add.s${bits} ${register}, ${register}, ${step}`);
        }
        // What else a trip has computed is another value in the next.
        layer.sums.clear();
        for (const [key, kept] of stepped) layer.sums.set(key, kept);
      },
    );
    this.#leave();
  }

  /** The value as a register or immediate of `bits` bits, modulo 2^bits. */
  value(expr: IndexExpr, bits: Bits = this.widthOf(expr)): Operand {
    const constant = ix.constantValue(expr);
    if (constant !== undefined) return String(constant);
    const kept = this.#find(expr, bits);
    if (kept) return kept;
    const sum = this.#sum(withoutConstant(expr), bits);
    if (expr.constant === 0) return sum;
    return this.#remember(
      expr,
      bits,
      this.#code.op(`add.s${bits}`, classOf(bits), sum, String(expr.constant)),
    );
  }

  /** As `value`, never an immediate. */
  register(expr: IndexExpr, bits: Bits = this.widthOf(expr)): Operand {
    const value = this.value(expr, bits);
    return value.startsWith("%") ? value : this.#code.op(`mov.b${bits}`, classOf(bits), value);
  }

  /** What `make` computes of sums, remembered until the stretch of code ends. */
  derived(key: string, make: () => Operand): Operand {
    const kept = this.#layers.findLast((l) => l.sums.has(key))?.sums.get(key);
    if (kept) return kept;
    const made = make();
    this.#layers.at(-1)!.sums.set(key, made);
    return made;
  }

  /** A predicate: all conditions hold; undefined where there are none. */
  conditions(
    conditions: readonly { readonly kind: "nonNegative" | "zero"; readonly expr: IndexExpr }[],
  ): Operand | undefined {
    let all: Operand | undefined;
    for (const { kind, expr } of conditions) {
      const bits = conditionWidth(this, expr);
      const value = this.register(withoutConstant(expr), bits);
      const compare = kind === "zero" ? "eq" : "ge";
      const operands = [value, String(-expr.constant)];
      all = all
        ? this.#code.op(`setp.${compare}.and.s${bits}`, "p", ...operands, all)
        : this.#code.op(`setp.${compare}.s${bits}`, "p", ...operands);
    }
    return all;
  }

  #leave(): void {
    const layer = this.#layers.pop();
    invariant(layer && this.#layers.length > 0, () => "no layer of code to leave");
    for (const name of layer.variables) this.#variables.delete(name);
  }

  /** The distinct partial sums of `uses` that become settled at this level. */
  #collect(uses: readonly IndexUse[], level: number): IndexUse[] {
    const sums = new Map<string, IndexUse>();
    for (const { expr, bits } of uses) {
      const settled = expr.terms.filter((t) => this.#levelOf(t) <= level);
      if (!settled.some((t) => this.#levelOf(t) === level)) continue;
      const sum = sumOfTerms(settled, 0);
      if (!isVariable(sum) || bits === 64) sums.set(keyOf(sum, bits), { expr: sum, bits });
    }
    return [...sums.values()].filter((use) => !this.#find(use.expr, use.bits));
  }

  #keep({ expr, bits }: IndexUse): void {
    this.value(expr, bits);
  }

  #startInduction({ expr, bits }: IndexUse, step: IndexExpr): Induction {
    const first = this.value(expr, bits);
    const register = this.#code.op(`mov.b${bits}`, classOf(bits), first);
    this.#layers.at(-1)!.sums.set(keyOf(expr, bits), register);
    return { register, bits, step: this.value(step, bits) };
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

  #find(expr: IndexExpr, bits: Bits): Operand | undefined {
    const key = keyOf(expr, bits);
    for (let i = this.#layers.length - 1; i >= 0; i--) {
      const register = this.#layers[i]!.sums.get(key);
      if (register) return register;
    }
    return undefined;
  }

  #remember(expr: IndexExpr, bits: Bits, register: Operand): Operand {
    this.#layers.at(-1)!.sums.set(keyOf(expr, bits), register);
    return register;
  }

  /** A sum without constant: what is settled further out plus its own terms. */
  #sum(sum: IndexExpr, bits: Bits): Operand {
    const kept = this.#find(sum, bits);
    if (kept) return kept;
    const levels = sum.terms.map((t) => this.#levelOf(t));
    const deepest = Math.max(...levels);
    const outer = sum.terms.filter((_, i) => levels[i]! < deepest);
    const own = sum.terms.filter((_, i) => levels[i]! === deepest);
    let total = outer.length > 0 ? this.#sum(sumOfTerms(outer, 0), bits) : undefined;
    for (const term of own) {
      const value = this.#term(term, bits);
      total = total ? this.#code.op(`add.s${bits}`, classOf(bits), total, value) : value;
    }
    invariant(total, () => `no terms in ${sum.key}`);
    return this.#remember(sum, bits, total);
  }

  #term(term: ix.IndexTerm, bits: Bits): Operand {
    const product = sumOfTerms([{ ...term, coefficient: 1 }], 0);
    const narrow = bits === 64 && this.widthOf(product) === 32;
    const width = narrow ? 32 : bits;
    const value = this.#product(term, width);
    return this.#scaled(value, term.coefficient, width, bits);
  }

  /** `value` of `width` bits times the coefficient, in `bits` bits. */
  #scaled(value: Operand, coefficient: number, width: Bits, bits: Bits): Operand {
    const kind = classOf(bits);
    if (width < bits) {
      if (coefficient === 1) return this.#code.op("cvt.s64.s32", kind, value);
      if (Math.abs(coefficient) < 2 ** 31) {
        return this.#code.op("mul.wide.s32", kind, value, String(coefficient));
      }
      const wide = this.#code.op("cvt.s64.s32", kind, value);
      return this.#code.op("mul.lo.s64", kind, wide, String(coefficient));
    }
    if (coefficient === 1) return value;
    if (coefficient === -1) return this.#code.op(`neg.s${bits}`, kind, value);
    const shift = Math.log2(coefficient);
    if (Number.isInteger(shift)) return this.#code.op(`shl.b${bits}`, kind, value, String(shift));
    const factor = bits === 32 ? coefficient | 0 : coefficient;
    return this.#code.op(`mul.lo.s${bits}`, kind, value, String(factor));
  }

  #product(term: ix.IndexTerm, bits: Bits): Operand {
    let product: Operand | undefined;
    for (const atom of term.atoms) {
      const value = this.#atom(atom, bits);
      product = product ? this.#code.op(`mul.lo.s${bits}`, classOf(bits), product, value) : value;
    }
    return product!;
  }

  #atom(atom: ix.IndexAtom, bits: Bits): Operand {
    if (atom.kind === "variable") {
      const known = this.#variables.get(atom.name);
      invariant(known, () => `index variable ${atom.name} is not bound`);
      return this.#resized(known.register, known.bits, bits);
    }
    const expr = sumOfTerms([{ coefficient: 1, atoms: [atom], key: atom.key }], 0);
    const parts = ix.atomOperands(atom);
    const wide = parts.some((p) => this.widthOf(p) === 64);
    const width: Bits = wide ? 64 : 32;
    const kept = this.#find(expr, width);
    if (kept) return this.#resized(kept, width, bits);
    const value =
      "operands" in atom
        ? this.#extremum(atom.kind, parts, width)
        : this.#division(atom.kind, parts[0]!, parts[1]!, width);
    return this.#resized(this.#remember(expr, width, value), width, bits);
  }

  #resized(register: Operand, from: Bits, to: Bits): Operand {
    if (from === to) return register;
    return to === 64
      ? this.#code.op("cvt.s64.s32", "d", register)
      : this.#code.op("cvt.u32.u64", "r", register);
  }

  #extremum(kind: "min" | "max", operands: readonly IndexExpr[], bits: Bits): Operand {
    return operands
      .map((o) => this.value(o, bits))
      .reduce((a, b) => {
        // An immediate goes last.
        const pair = a.startsWith("%") ? [a, b] : [b, a];
        return this.#code.op(`${kind}.s${bits}`, classOf(bits), ...pair);
      });
  }

  /** Shifts and masks for powers of two, unsigned division where nothing is negative. */
  #division(kind: "floorDiv" | "mod", a: IndexExpr, b: IndexExpr, bits: Bits): Operand {
    const divisor = ix.constantValue(b);
    const shift = divisor === undefined ? Number.NaN : Math.log2(divisor);
    const value = this.register(a, bits);
    const cls = classOf(bits);
    if (Number.isInteger(shift)) {
      return kind === "floorDiv"
        ? this.#code.op(`shr.s${bits}`, cls, value, String(shift))
        : this.#code.op(`and.b${bits}`, cls, value, String(divisor! - 1));
    }
    const by = this.value(b, bits);
    if (rangeOf(a, this.#ranges).min >= 0) {
      return this.#code.op(`${kind === "floorDiv" ? "div" : "rem"}.u${bits}`, cls, value, by);
    }
    return this.#signedDivision(kind, [value, by], bits);
  }

  /** Quotient rounded down, or remainder with the divisor's sign; divisors are positive. */
  #signedDivision(
    kind: "floorDiv" | "mod",
    [a, b]: readonly [Operand, Operand],
    bits: Bits,
  ): Operand {
    const cls = classOf(bits);
    const rest = this.#code.op(`rem.s${bits}`, cls, a, b);
    const negative = this.#code.op(`setp.lt.s${bits}`, "p", rest, "0");
    if (kind === "mod") {
      const raised = this.#code.op(`add.s${bits}`, cls, rest, b);
      return this.#code.op(`selp.b${bits}`, cls, raised, rest, negative);
    }
    const quotient = this.#code.op(`div.s${bits}`, cls, a, b);
    const lowered = this.#code.op(`add.s${bits}`, cls, quotient, "-1");
    return this.#code.op(`selp.b${bits}`, cls, lowered, quotient, negative);
  }

  /** Runs `body` as a branch where the predicate holds, with a layer of its own. */
  branch(predicate: Operand | undefined, then: () => void, otherwise?: () => void): void {
    if (!predicate) {
      this.within(then);
      return;
    }
    branch(
      this.#code,
      predicate,
      () => this.within(then),
      otherwise && (() => this.within(otherwise)),
    );
  }
}

/** The width in which a condition's sum is compared with its constant. */
export function conditionWidth(scope: IndexScope, expr: IndexExpr): Bits {
  return Math.abs(expr.constant) < 2 ** 31 ? scope.widthOf(withoutConstant(expr)) : 64;
}

function classOf(bits: Bits): "r" | "d" {
  return bits === 32 ? "r" : "d";
}

function keyOf(expr: IndexExpr, bits: Bits): string {
  return `${bits} ${expr.key}`;
}

/** Whether the expression is a single variable: its register holds it already. */
function isVariable(expr: IndexExpr): boolean {
  const [term] = expr.terms;
  if (!term || expr.terms.length > 1 || expr.constant !== 0) return false;
  return term.coefficient === 1 && term.atoms.length === 1 && term.atoms[0]!.kind === "variable";
}

export function withoutConstant(expr: IndexExpr): IndexExpr {
  return expr.constant === 0 ? expr : ix.add(expr, -expr.constant);
}
