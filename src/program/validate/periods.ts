/**
 * How a loop comes round: after how many trips of it everything that its body does to shared scope and to
 * counters is the same again, and in which trips at the two ends it is not. Indices into rings of stages
 * are remainders (periodic), phases to be awaited count by their parity, conditions that compare the loop's
 * variable change their truth once. In: the statements of a body reduced to what matters (shared-part.ts).
 */
import type { Condition } from "../../semantics/condition.ts";
import {
  atomOperands,
  constant,
  constantValue,
  fromTerms,
  type IndexExpr,
  mod,
  splitLinear,
  variablesOf,
} from "../../semantics/index-expr.ts";
import { type IndexRanges, rangeOf } from "../../semantics/index-range.ts";
import { findTileIntrinsic } from "../intrinsic-table.ts";
import type { Statement } from "../statement.ts";
import { childBodies, completionIndices, exprIndices, ownExprs, visitExpr } from "../walk.ts";
import type { Facts } from "./facts.ts";
import type { LaunchView } from "./launch-view.ts";

/** Trips [0, head) and the last `tail` ones differ; between them the body repeats every `period`. */
export interface LoopPeriod {
  readonly period: number;
  readonly head: number;
  readonly tail: number;
}

const mostPeriod = 64;

type Loop = Extract<Statement, { kind: "for" }>;

/**
 * How the serial loops of a kernel come round by their variable and number of trips: loops of one variable run
 * side by side in several roles, and repeat together.
 */
export class LoopPeriods {
  readonly #loops = new Map<string, { readonly loop: Loop; readonly ranges: IndexRanges }[]>();
  readonly #known = new Map<string, LoopPeriod | undefined>();

  constructor({ kernel, facts }: Pick<LaunchView, "kernel" | "facts">) {
    for (const role of kernel.roles) {
      let around = facts;
      for (const [name, count] of [
        [role.copyVariable, role.copies],
        [role.threadVariable, role.threads],
      ] as const) {
        if (name !== undefined) around = around.withVariable(name, constant(count));
      }
      this.#visit(role.body, around);
    }
  }

  #visit(body: readonly Statement[], around: Facts): void {
    for (const s of body) {
      const inside = s.kind === "for" ? around.withVariable(s.variable, s.extent) : around;
      if (s.kind === "for" && s.mode.kind === "serial") {
        const known = this.#loops.get(s.variable) ?? [];
        this.#loops.set(s.variable, [...known, { loop: s, ranges: inside.ranges }]);
      }
      for (const child of childBodies(s)) this.#visit(child, inside);
    }
  }

  /** Undefined where one of them has none. */
  of(variable: string, trips: number): LoopPeriod | undefined {
    const key = `${variable} < ${trips}`;
    if (this.#known.has(key)) return this.#known.get(key);
    const all = (this.#loops.get(variable) ?? []).map(({ loop, ranges }) =>
      periodOfLoop(loop, trips, ranges),
    );
    const found = all.reduce((a, b) => a && b && together(a, b));
    this.#known.set(key, found);
    return found;
  }

  /** Variables of the loops of an extent. */
  variablesOf(extent: IndexExpr): readonly string[] {
    return [...this.#loops].flatMap(([name, loops]) =>
      loops.some(({ loop }) => loop.extent.key === extent.key) ? [name] : [],
    );
  }

  /**
   * The least number of trips from which on everything goes as with so many: periods in the middle are left
   * out, of which enough stay that their state is seen to come back.
   */
  alike(variable: string, trips: number): number {
    const found = this.of(variable, trips);
    if (!found) return trips;
    const { period, head, tail } = found;
    const least = head + tail + (jumpPeriods + 1) * period;
    const fewer = least + ((trips - least) % period);
    const other = trips > fewer && fewer >= least ? this.of(variable, fewer) : undefined;
    const same = other && other.period === period && other.head === head && other.tail === tail;
    return same ? fewer : trips;
  }
}

/** Periods that are run before the rest is left out: the state is the same after the last of them. */
export const jumpPeriods = 2;

/** The period of a loop's body, or undefined where none is found. */
export function periodOfLoop(
  loop: Loop,
  trips: number,
  ranges: IndexRanges,
): LoopPeriod | undefined {
  const search = new PeriodSearch(loop.variable, trips, ranges);
  return search.list(loop.body) ? search.found() : undefined;
}

/** One loop that repeats as both do. */
function together(a: LoopPeriod, b: LoopPeriod): LoopPeriod {
  const [head, tail] = [Math.max(a.head, b.head), Math.max(a.tail, b.tail)];
  return { period: lcm(a.period, b.period), head, tail };
}

class PeriodSearch {
  readonly #name: string;
  readonly #trips: number;
  readonly #ranges: IndexRanges;
  #period = 1;
  #head = 0;
  #tail = 0;

  constructor(name: string, trips: number, ranges: IndexRanges) {
    this.#name = name;
    this.#trips = trips;
    this.#ranges = ranges;
  }

  found(): LoopPeriod | undefined {
    if (this.#period > mostPeriod) return undefined;
    return { period: this.#period, head: this.#head, tail: this.#tail };
  }

  list(body: readonly Statement[]): boolean {
    return body.every((s) => this.#statement(s));
  }

  #statement(s: Statement): boolean {
    const loads = ownExprs(s).flatMap((e) => {
      const found: IndexExpr[] = [];
      visitExpr(e, (inner) => found.push(...exprIndices(inner)));
      return found;
    });
    if (!loads.every((e) => this.#repeats(e))) return false;
    const inside = childBodies(s).every((b) => this.list(b));
    return inside && this.#own(s);
  }

  #own(s: Statement): boolean {
    switch (s.kind) {
      case "for":
        return this.#repeats(s.extent);
      case "if":
        return s.conditions.every((c) => this.#changesOnce(c));
      case "store":
        return s.index.every((e) => this.#repeats(e));
      case "wait":
        return (
          s.index.every((e) => this.#repeats(e)) && this.#meet(parityPeriod(s.value, this.#name))
        );
      case "signal":
        return [...s.index, s.amount].every((e) => this.#repeats(e));
      case "expect":
        return [...s.index, s.bytes].every((e) => this.#repeats(e));
      case "intrinsic": {
        const { completion } = s;
        const cells = completionIndices(completion);
        const row = findTileIntrinsic(s.intrinsic)!;
        const tiles = s.operands.flatMap((o, i) => {
          const isNear = !row.operands[i]!.scopes.includes("memory");
          return o.kind === "tile" && isNear ? o.index : [];
        });
        return [...cells, ...tiles].every((e) => this.#repeats(e));
      }
      default:
        return true;
    }
  }

  #repeats(e: IndexExpr): boolean {
    return this.#meet(periodOf(e, this.#name));
  }

  #meet(period: number | undefined): boolean {
    if (period === undefined) return false;
    this.#period = lcm(this.#period, period);
    return this.#period <= mostPeriod;
  }

  /** Periodic, or of one truth before some trip and of one after: those trips go to an end. */
  #changesOnce({ kind, expr }: Condition): boolean {
    const period = periodOf(expr, this.#name);
    if (period !== undefined) return this.#meet(period);
    const linear = splitLinear(expr, this.#name);
    if (!linear) return false;
    const { coefficient: c, rest } = linear;
    const { min, max } = rangeOf(rest, this.#ranges);
    if (!Number.isFinite(min) || !Number.isFinite(max)) return false;
    const [from, to] = kind === "zero" ? rootsOf(c, min, max) : turnOf(c, min, max);
    if (to <= from || to <= 0 || from >= this.#trips) return true;
    if (to <= this.#trips - from) this.#head = Math.max(this.#head, to);
    else this.#tail = Math.max(this.#tail, this.#trips - from);
    return true;
  }
}

/** Trips [from, to) in which c * trip + rest >= 0 may turn; before and after it is of one truth. */
function turnOf(c: number, min: number, max: number): readonly [number, number] {
  if (c > 0) return [Math.ceil(-max / c), Math.ceil(-min / c) + (min === max ? 1 : 0)];
  const [from, to] = [Math.floor(min / -c) + 1, Math.floor(max / -c) + 1];
  return [from, from === to ? to + 1 : to];
}

/** Trips [from, to) in which c * trip + rest may be zero. */
function rootsOf(c: number, min: number, max: number): readonly [number, number] {
  if (c > 0) return [Math.ceil(-max / c), Math.floor(-min / c) + 1];
  return [Math.ceil(min / -c), Math.floor(max / -c) + 1];
}

/** The least number of steps of the variable that leaves the expression as it is; undefined: none. */
export function periodOf(e: IndexExpr, name: string): number | undefined {
  if (!variablesOf(e).has(name)) return 1;
  let period = 1;
  for (const atom of e.terms.flatMap((t) => t.atoms)) {
    const own = atom.kind === "variable" ? (atom.name === name ? undefined : 1) : ofAtom(atom);
    if (own === undefined) return undefined;
    period = lcm(period, own);
  }
  return period;

  function ofAtom(atom: Parameters<typeof atomOperands>[0]): number | undefined {
    const operands = atomOperands(atom);
    const divisor = atom.kind === "mod" ? constantValue(operands[1]!) : undefined;
    if (divisor !== undefined) return remainderPeriod(operands[0]!, divisor, name);
    const periods = operands.map((o) => periodOf(o, name));
    return periods.includes(undefined)
      ? undefined
      : periods.reduce<number>((a, b) => lcm(a, b!), 1);
  }
}

/** Of e mod divisor. */
function remainderPeriod(e: IndexExpr, divisor: number, name: string): number | undefined {
  let period = 1;
  for (const term of e.terms) {
    const [atom] = term.atoms;
    const alone = term.atoms.length === 1;
    const steps =
      alone && atom!.kind === "variable" && atom!.name === name
        ? divisor / gcd(term.coefficient, divisor)
        : alone && atom!.kind === "floorDiv"
          ? quotientPeriod(term, divisor, name)
          : periodOf(fromTerms(0, [term]), name);
    if (steps === undefined) return undefined;
    period = lcm(period, steps);
  }
  return period;
}

/** Of (c * floorDiv(a * name + rest, s)) mod divisor. */
function quotientPeriod(
  term: IndexExpr["terms"][number],
  divisor: number,
  name: string,
): number | undefined {
  const [numerator, denominator] = atomOperands(term.atoms[0]!);
  const size = constantValue(denominator!);
  const linear = splitLinear(numerator!, name);
  if (size === undefined || !linear) return undefined;
  const span = size * (divisor / gcd(term.coefficient, divisor));
  return span / gcd(linear.coefficient, span);
}

/** Steps after which a phase's number has its parity again. */
function parityPeriod(e: IndexExpr, name: string): number | undefined {
  return remainderPeriod(e, 2, name) ?? periodOf(mod(e, 2), name);
}

function gcd(a: number, b: number): number {
  let [x, y] = [Math.abs(a), Math.abs(b)];
  while (y > 0) [x, y] = [y, x % y];
  return x;
}

export function lcm(a: number, b: number): number {
  return (a / gcd(a, b)) * b;
}
