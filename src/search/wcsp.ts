/**
 * The .wcsp form of toulbar2 (one line a variable count, domains, then cost functions of any arity as a
 * default cost and tuples). Writing shifts prices so that all are non-negative; reading turns functions over
 * three and more variables into groups, `sgcc` into such a table and `salldiff` into pairs. The form knows no
 * classes: where a thousand states share some dozens, the class becomes a variable behind those of the problem.
 */
import { diagnostic, fail, ok, type Result } from "../support/diagnostic.ts";
import { groupParts } from "./groups.ts";
import { identity } from "./network.ts";
import type { Problem, Transition, Variable } from "./problem.ts";

export interface WcspText {
  readonly text: string;
  /** Added to the file's optimum to have the problem's price. */
  readonly shift: number;
}

/** Budgets have no form that all versions of the format share: such a problem is refused. */
export function printWcsp(problem: Problem): Result<WcspText> {
  if (problem.budgets.length > 0) {
    const message = `budget "${problem.budgets[0]!.name}" has no .wcsp form`;
    return fail(diagnostic("PRB011", message, { help: "remove the budgets, or use --json" }));
  }
  const writer = new WcspWriter(problem);
  return ok(writer.write());
}

/** Pairs of states that are written one by one, although they share classes. */
const mostPairs = 10_000;

/** A variable of the file that a transition is written over, and the class of each of its states. */
interface WrittenEnd {
  readonly variable: number;
  readonly classes: ArrayLike<number>;
}

class WcspWriter {
  readonly #problem: Problem;
  readonly #functions: string[] = [];
  readonly #sizes: number[];
  /** Variables that stand for the class of another's state, by that variable and its classes. */
  readonly #classVariables = new Map<string, number>();
  #shift: number;
  #most = 0;

  constructor(problem: Problem) {
    this.#problem = problem;
    this.#sizes = problem.variables.map((v) => v.prices.length);
    this.#shift = problem.offset;
  }

  write(): WcspText {
    const { variables, transitions } = this.#problem;
    // Two passes: what is forbidden costs more than all else together.
    for (const v of variables) this.#measure(v.prices);
    for (const t of transitions) this.#measure(t.prices);
    const top = this.#most + 1;
    variables.forEach((v, i) => {
      this.#unary(v, i, top);
    });
    for (const t of transitions) this.#binary(t, top);
    const sizes = this.#sizes;
    const name = this.#problem.name.replace(/\s+/g, "_") || "problem";
    const largest = sizes.reduce((a, b) => Math.max(a, b), 0);
    const head = `${name} ${sizes.length} ${largest} ${this.#functions.length} ${top}`;
    return {
      text: `${[head, sizes.join(" "), ...this.#functions].join("\n")}\n`,
      shift: this.#shift,
    };
  }

  #measure(prices: Float64Array): void {
    const finite = prices.filter((p) => p !== Infinity);
    const least = finite.reduce((a, b) => Math.min(a, b), Infinity);
    if (least === Infinity) return;
    this.#most += finite.reduce((a, b) => Math.max(a, b), 0) - least;
  }

  #least(prices: Float64Array): number {
    const least = prices.reduce((a, b) => Math.min(a, b), Infinity);
    if (least === Infinity) return 0;
    this.#shift += least;
    return least;
  }

  #unary(variable: Variable, i: number, top: number): void {
    const least = this.#least(variable.prices);
    const excluded = new Set((variable.exclusions ?? []).flatMap((x) => x.states));
    const tuples = Array.from(variable.prices, (p, s) =>
      excluded.has(s) || p === Infinity ? `${s} ${top}` : p === least ? "" : `${s} ${p - least}`,
    ).filter((t) => t !== "");
    if (tuples.length > 0)
      this.#functions.push([`1 ${i} 0 ${tuples.length}`, ...tuples].join("\n"));
  }

  #binary(t: Transition, top: number): void {
    const least = this.#least(t.prices);
    const [from, to] = [this.#end(t, "from", top), this.#end(t, "to", top)];
    const tuples: string[] = [];
    for (let a = 0; a < from.classes.length; a++) {
      for (let b = 0; b < to.classes.length; b++) {
        const price = t.prices[from.classes[a]! * t.columns + to.classes[b]!]!;
        if (price !== least) tuples.push(`${a} ${b} ${price === Infinity ? top : price - least}`);
      }
    }
    const head = `2 ${from.variable} ${to.variable} 0 ${tuples.length}`;
    this.#functions.push([head, ...tuples].join("\n"));
  }

  /** One end of a transition: the variable itself, or one that stands for its class. */
  #end(t: Transition, side: "from" | "to", top: number): WrittenEnd {
    const variable = t[side];
    const states = this.#sizes[variable]!;
    const classes = side === "from" ? t.fromClass : t.toClass;
    if (classes === undefined) return { variable, classes: identity(states) };
    const count = side === "from" ? t.prices.length / t.columns : t.columns;
    const pairs = this.#sizes[t.from]! * this.#sizes[t.to]!;
    if (pairs <= mostPairs || count * 2 > states) return { variable, classes };
    return {
      variable: this.#classVariable(variable, classes, { count, top }),
      classes: identity(count),
    };
  }

  #classVariable(
    of: number,
    classes: Int32Array,
    { count, top }: { readonly count: number; readonly top: number },
  ): number {
    const key = `${of} ${classes.join(" ")}`;
    const known = this.#classVariables.get(key);
    if (known !== undefined) return known;
    const variable = this.#sizes.push(count) - 1;
    this.#classVariables.set(key, variable);
    const tuples = Array.from(classes, (c, s) => `${s} ${c} 0`);
    this.#functions.push([`2 ${of} ${variable} ${top} ${tuples.length}`, ...tuples].join("\n"));
    return variable;
  }
}

/** Rows of a table that a hidden variable may hold. */
const mostTuples = 200_000;

export function readWcsp(text: string): Result<Problem> {
  const reader = new WcspReader(text);
  const problem = reader.read();
  return typeof problem === "string" ? fail(diagnostic("PRB011", problem)) : ok(problem);
}

interface Tuple {
  readonly states: readonly number[];
  readonly cost: number;
}

class WcspReader {
  readonly #words: readonly string[];
  #at = 0;
  #top = 0;
  #sizes: number[] = [];
  #variables: Variable[] = [];
  readonly #transitions: Transition[] = [];
  #offset = 0;

  constructor(text: string) {
    this.#words = text.split(/\s+/).filter((w) => w !== "");
  }

  /** The problem, or what is wrong. */
  read(): Problem | string {
    const name = this.#words[this.#at++] ?? "";
    const [count, , functions] = [this.#integer(), this.#integer(), this.#integer()];
    this.#top = this.#integer();
    this.#sizes = Array.from({ length: count }, () => this.#integer());
    if (!this.#sizes.every((s) => s >= 1)) return "the header or a domain size is not readable";
    this.#variables = this.#sizes.map((size, i) => ({
      name: `x${i}`,
      prices: new Float64Array(size),
    }));
    for (let f = 0; f < functions; f++) {
      const fault = this.#function();
      if (fault !== undefined) return `cost function ${f}: ${fault}`;
    }
    const [variables, transitions] = [this.#variables, this.#transitions];
    return { name, variables, transitions, budgets: [], offset: this.#offset };
  }

  #integer(): number {
    const value = Number(this.#words[this.#at++]);
    return Number.isSafeInteger(value) ? value : -2;
  }

  #cost(): number {
    const cost = this.#integer();
    return cost >= this.#top ? Infinity : cost;
  }

  #function(): string | undefined {
    const arity = this.#integer();
    if (arity < 0) return "the arity is not a number";
    const scope = Array.from({ length: arity }, () => this.#integer());
    if (scope.some((i) => i < 0 || i >= this.#sizes.length)) return "unknown variable";
    if (this.#words[this.#at] === "-1") {
      this.#at++;
      return this.#global(scope);
    }
    const fallback = this.#cost();
    const tuples = Array.from({ length: this.#integer() }, (): Tuple => {
      const states = scope.map(() => this.#integer());
      return { states, cost: this.#cost() };
    });
    const valid = tuples.every(
      (t) => t.cost >= 0 && t.states.every((s, k) => s >= 0 && s < this.#sizes[scope[k]!]!),
    );
    if (!valid || !(fallback >= 0)) return "a tuple is not readable";
    return this.#table(scope, fallback, tuples);
  }

  #table(scope: readonly number[], fallback: number, tuples: readonly Tuple[]): string | undefined {
    if (scope.length === 0) {
      this.#offset += fallback;
      return undefined;
    }
    if (scope.length === 1) {
      const prices = this.#variables[scope[0]!]!.prices;
      const added = new Float64Array(prices.length).fill(fallback);
      for (const t of tuples) added[t.states[0]!] = t.cost;
      for (let s = 0; s < prices.length; s++) prices[s]! += added[s]!;
      return undefined;
    }
    if (scope.length === 2) {
      const [from, to] = [scope[0]!, scope[1]!];
      const columns = this.#sizes[to]!;
      const prices = new Float64Array(this.#sizes[from]! * columns).fill(fallback);
      for (const t of tuples) prices[t.states[0]! * columns + t.states[1]!] = t.cost;
      this.#transitions.push({ from, to, columns, prices });
      return undefined;
    }
    return this.#hidden(scope, fallback, tuples);
  }

  /** A variable whose states are the rows that are not forbidden. */
  #hidden(
    scope: readonly number[],
    fallback: number,
    tuples: readonly Tuple[],
  ): string | undefined {
    const given = new Map(tuples.map((t) => [t.states.join(), t.cost]));
    const all = fallback === Infinity ? tuples : this.#everyRow(scope, fallback, given);
    if (all === undefined) return `the table over ${scope.length} variables is too large`;
    const rows = all.filter((t) => t.cost !== Infinity);
    if (rows.length === 0) return "no row is allowed";
    const templates = rows.map((t) => ({
      name: t.states.join(),
      price: t.cost,
      allowed: t.states.map((s, k) => ({ variable: scope[k]!, states: [s] })),
    }));
    const name = `row of ${scope.map((i) => `x${i}`).join(" ")}`;
    const parts = groupParts({ name, templates }, this.#variables, this.#variables.length);
    this.#variables.push(parts.variable);
    this.#transitions.push(...parts.transitions);
    return undefined;
  }

  #everyRow(
    scope: readonly number[],
    fallback: number,
    given: ReadonlyMap<string, number>,
  ): Tuple[] | undefined {
    const count = scope.reduce((product, i) => product * this.#sizes[i]!, 1);
    if (count > mostTuples) return undefined;
    return Array.from({ length: count }, (_, row) => {
      const states = new Array<number>(scope.length);
      let rest = row;
      for (let k = scope.length - 1; k >= 0; k--) {
        states[k] = rest % this.#sizes[scope[k]!]!;
        rest = Math.floor(rest / this.#sizes[scope[k]!]!);
      }
      return { states, cost: given.get(states.join()) ?? fallback };
    });
  }

  /** All different: pairs where it is hard, else COST for each variable that would have to change. */
  #allDifferent(scope: readonly number[]): string | undefined {
    const cost = this.#cost();
    if (cost !== Infinity) {
      const rows = this.#everyRow(scope, 0, new Map());
      if (rows === undefined) return "the global function is over too many rows";
      const priced = rows.map(({ states }) => {
        return { states, cost: cost * (states.length - new Set(states).size) };
      });
      return this.#table(scope, 0, priced);
    }
    scope.forEach((from, k) => {
      for (const to of scope.slice(k + 1)) {
        const common = Math.min(this.#sizes[from]!, this.#sizes[to]!);
        const equal = Array.from({ length: common }, (_, s) => ({
          states: [s, s],
          cost: Infinity,
        }));
        this.#table([from, to], 0, equal);
      }
    });
    return undefined;
  }

  /** `sgcc var COST n (value least most)…`: COST for each variable that would have to change. */
  #global(scope: readonly number[]): string | undefined {
    const [kind, measure] = [this.#words[this.#at++], this.#words[this.#at++]];
    if (kind === "salldiff" && measure === "var") return this.#allDifferent(scope);
    if (kind !== "sgcc" || measure !== "var") return `unknown global function ${kind} ${measure}`;
    const cost = this.#integer();
    const ranges = Array.from({ length: this.#integer() }, () => ({
      value: this.#integer(),
      least: this.#integer(),
      most: this.#integer(),
    }));
    const rows = this.#everyRow(scope, 0, new Map());
    if (rows === undefined) return "the global function is over too many rows";
    const priced = rows.map(({ states }) => {
      let [over, under] = [0, 0];
      for (const { value, least, most } of ranges) {
        const found = states.filter((s) => s === value).length;
        over += Math.max(0, found - most);
        under += Math.max(0, least - found);
      }
      return { states, cost: cost * Math.max(over, under) };
    });
    return this.#table(scope, 0, priced);
  }
}
