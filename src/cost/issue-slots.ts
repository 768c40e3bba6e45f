/**
 * Instructions of a warp that expressions over elements become on a machine of blocks of threads, by what executes
 * them. A multiprocessor starts an instruction of each of its four warps a cycle, and multiplies and adds floats at
 * that rate; comparisons, selections, logic and integers have half the lanes, so that what is made of them (extremes
 * with their places, counts) takes two slots each. In: expressions. Out: counts, and the slots that they come to.
 */
import { dtypes, isFloatDType } from "../semantics/dtype.ts";
import type { Monoid } from "../semantics/monoids.ts";
import {
  type ScalarExpr,
  type ScalarOp,
  scalarCost,
  scalarOperands,
} from "../semantics/scalar-expr.ts";

/** Instructions of a thread, which are its warp's. */
export interface Issue {
  /** All. */
  readonly issued: number;
  /** Of those, comparisons, selections, logic and integers. */
  readonly logic: number;
}

export const noIssue: Issue = { issued: 0, logic: 0 };

/**
 * Slots of such an instruction: 64 of a multiprocessor's results a cycle, of 128 that it may start (CUDA C++
 * Programming Guide, "Throughput of Native Arithmetic Instructions", compute capabilities 8.0 to 10.0).
 */
const logicSlots = 2;

export function slotsOf({ issued, logic }: Issue): number {
  return Math.max(issued, logicSlots * logic);
}

export function sumOf(...parts: readonly Issue[]): Issue {
  return parts.reduce(
    (sum, p) => ({ issued: sum.issued + p.issued, logic: sum.logic + p.logic }),
    noIssue,
  );
}

export function times(n: number, { issued, logic }: Issue): Issue {
  return { issued: n * issued, logic: n * logic };
}

/** Instructions that nothing slower than a multiply-add is made of. */
export function plainIssue(issued: number): Issue {
  return { issued, logic: 0 };
}

/** Of an operator on a pair of narrow floats, for each of them; of their rounding, widening; of their functions. */
const pairSlots = { arithmetic: 0.5, round: 0.5, widen: 1, function: 6 } as const;
/** Functions of narrow floats that are cheaper: a product and the power, a product or two with a reciprocal. */
const narrowSlots: Partial<Record<ScalarOp, number>> = { exp: 3, div: 3 };
/** Of narrow floats that are widened, every other one is a mask instead of a product. */
const masked = 0.5;
/** Operators on f32 that are cheaper or dearer than they say: the quotient of two, the reduced exponential. */
const slotsOf32: Partial<Record<ScalarOp, number>> = { div: 9, exp: 8, tanh: 26 };
/** Operators that pairs of narrow floats have in one instruction. */
const paired: ReadonlySet<ScalarOp> = new Set(["add", "sub", "mul", "min", "max", "neg"]);
const compares: ReadonlySet<ScalarOp> = new Set(["equal", "less", "lessEqual", "isNan"]);
/** One instruction each where half the lanes are. */
const selects: ReadonlySet<ScalarOp> = new Set(["select", "min", "max", "relu"]);
const joins: ReadonlySet<ScalarOp> = new Set(["and", "or"]);
const arithmetic: ReadonlySet<ScalarOp> = new Set(["add", "sub"]);

/** For one element of a vector of so many; what expressions share is computed once. */
export function issueOf(exprs: readonly ScalarExpr[], lanes: number): Issue {
  return new IssueCount(exprs, lanes).total();
}

/** A step of a fold: an element and what is combined with it; a product that is summed is one multiply-add. */
export function foldIssue(
  body: readonly ScalarExpr[],
  { name, combine }: Pick<Monoid, "name" | "combine">,
  lanes: number,
): Issue {
  const [element] = body;
  const isFused = name === "sum" && element?.kind === "apply" && element.op === "mul";
  return sumOf(issueOf(body, lanes), isFused ? noIssue : issueOf(combine, lanes));
}

class IssueCount {
  readonly #exprs: readonly ScalarExpr[];
  readonly #lanes: number;
  readonly #done = new Set<ScalarExpr>();
  /** How often an expression is an operand. */
  readonly #uses = new Map<ScalarExpr, number>();

  constructor(exprs: readonly ScalarExpr[], lanes: number) {
    this.#exprs = exprs;
    this.#lanes = lanes;
    const seen = new Set<ScalarExpr>();
    const visit = (e: ScalarExpr): void => {
      if (seen.has(e)) return;
      seen.add(e);
      for (const o of scalarOperands(e)) {
        this.#uses.set(o, (this.#uses.get(o) ?? 0) + 1);
        visit(o);
      }
    };
    exprs.forEach(visit);
  }

  total(): Issue {
    return sumOf(...this.#exprs.map((e) => this.#of(e)));
  }

  #of(e: ScalarExpr): Issue {
    if (this.#done.has(e)) return noIssue;
    this.#done.add(e);
    const inside = scalarOperands(e).map((o) => this.#of(o));
    return sumOf(this.#own(e), ...inside);
  }

  #own(e: ScalarExpr): Issue {
    // Places are a sum of the first one's and the lane.
    if (e.kind === "index") return e.expr.terms.length === 0 ? noIssue : { issued: 1, logic: 1 };
    if (e.kind === "cast") return this.#cast(e);
    if (e.kind !== "apply") return noIssue;
    // What tests give is a predicate, whatever bool has in memory; narrow integers are computed in 32 bits.
    if (isFloatDType(e.dtype) && dtypes[e.dtype].bits < 32) return this.#narrow(e.op);
    const isPredicate = e.dtype === "bool";
    // A predicate is read either way.
    if (isPredicate && e.op === "not") return noIssue;
    if (isPredicate && joins.has(e.op))
      return e.operands.some((o) => this.#isTested(o)) ? noIssue : { issued: 1, logic: 1 };
    const cost = slotsOf32[e.op] ?? scalarCost({ ...e, operands: [] });
    const isInteger = !isFloatDType(e.dtype) && arithmetic.has(e.op);
    const isLogic = compares.has(e.op) || selects.has(e.op) || isInteger;
    return { issued: cost, logic: isLogic ? cost : 0 };
  }

  /** A comparison that only this reads takes the other predicate with it. */
  #isTested(e: ScalarExpr): boolean {
    if (e.kind !== "apply" || (this.#uses.get(e) ?? 0) > 1) return false;
    return e.op === "not" ? this.#isTested(e.operands[0]!) : compares.has(e.op);
  }

  #cast(e: Extract<ScalarExpr, { readonly kind: "cast" }>): Issue {
    const { dtype } = e.operand;
    const { bits } = dtypes[dtype];
    if (dtype === "bool") return { issued: 1, logic: 1 };
    const isRounded = isFloatDType(e.dtype) && dtypes[e.dtype].bits < 32;
    const own = isRounded ? pairSlots.round : bits < 32 ? pairSlots.widen : 1;
    const issued = this.#lanes > 1 ? own : 2 * own;
    const isWidened = isFloatDType(dtype) && bits === 16 && !isRounded;
    return { issued, logic: isWidened ? masked * issued : 0 };
  }

  #narrow(op: ScalarOp): Issue {
    const around = pairSlots.widen + pairSlots.round;
    if (!paired.has(op)) return plainIssue((narrowSlots[op] ?? pairSlots.function) + around);
    const issued = this.#lanes > 1 ? pairSlots.arithmetic : 2 * around;
    return { issued, logic: op === "min" || op === "max" ? issued : 0 };
  }
}
