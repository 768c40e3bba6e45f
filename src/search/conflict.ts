/**
 * Why a problem has no solution: a smallest set of constraints (in the sense that each is needed) that exclude
 * each other, in words, and one change that would be enough. QuickXplain (Junker 2004) over the named
 * constraints; each question "do these alone exclude all?" is a search without prices.
 */
import { collapse } from "./collapse.ts";
import {
  type Budget,
  type Exclusion,
  type Problem,
  stateName,
  type Transition,
  usageOf,
} from "./problem.ts";

export interface Conflict {
  /** The constraints that exclude each other, in words. */
  readonly constraints: readonly string[];
  /** One change, in words. */
  readonly change: string;
  /** Whether the whole problem has a solution after the change, or only this conflict is gone. */
  readonly enough: boolean;
}

type Constraint =
  | { readonly kind: "exclusion"; readonly variable: number; readonly at: number }
  | { readonly kind: "transition"; readonly at: number }
  | { readonly kind: "budget"; readonly at: number };

/** undefined: the problem has a solution, or the work was not enough to say. */
export function explainConflict(problem: Problem, work = 2e7): Conflict | undefined {
  return new Explainer(problem, work).explain();
}

class Explainer {
  readonly #problem: Problem;
  readonly #constraints: readonly Constraint[];
  readonly #free: readonly Transition[];
  #work: number;

  constructor(problem: Problem, work: number) {
    this.#problem = problem;
    this.#work = work;
    const exclusions = problem.variables.flatMap((v, variable) =>
      (v.exclusions ?? []).map((_, at): Constraint => ({ kind: "exclusion", variable, at })),
    );
    const hard = problem.transitions.flatMap((t, at): Constraint[] =>
      t.prices.includes(Infinity) ? [{ kind: "transition", at }] : [],
    );
    const budgets = problem.budgets.map((_, at): Constraint => ({ kind: "budget", at }));
    this.#constraints = [...exclusions, ...hard, ...budgets];
    const made = new Map<Float64Array, Float64Array>();
    this.#free = problem.transitions.map((t) => {
      const known = made.get(t.prices) ?? t.prices.map((p) => (p === Infinity ? p : 0));
      made.set(t.prices, known);
      return { ...t, prices: known };
    });
  }

  explain(): Conflict | undefined {
    if (this.#satisfiable(this.#constraints) !== false) return undefined;
    const core = this.#shrink([], [], this.#constraints);
    if (core.length === 0) {
      const constraints = ["a variable has no state with a finite price"];
      return { constraints, change: "give each variable a state with a price", enough: true };
    }
    const change = this.#change(core);
    return { constraints: core.map((c) => this.#words(c)), ...change };
  }

  /** The members of `rest` that, with `base`, are needed for the conflict. */
  #shrink(
    base: readonly Constraint[],
    added: readonly Constraint[],
    rest: readonly Constraint[],
  ): readonly Constraint[] {
    if (added.length > 0 && this.#satisfiable(base) === false) return [];
    if (rest.length <= 1) return rest;
    const half = rest.length >> 1;
    const [left, right] = [rest.slice(0, half), rest.slice(half)];
    const second = this.#shrink([...base, ...left], left, right);
    const first = this.#shrink([...base, ...second], second, left);
    return [...first, ...second];
  }

  /** The problem without prices and with only these constraints. */
  #with(constraints: readonly Constraint[]): Problem {
    const { variables, budgets } = this.#problem;
    const kept: Exclusion[][] = variables.map(() => []);
    const transitions: Transition[] = [];
    const held: Budget[] = [];
    for (const c of constraints) {
      if (c.kind === "exclusion") kept[c.variable]!.push(variables[c.variable]!.exclusions![c.at]!);
      else if (c.kind === "transition") transitions.push(this.#free[c.at]!);
      else held.push(budgets[c.at]!);
    }
    return {
      ...this.#problem,
      variables: variables.map((v, i) => ({
        ...v,
        prices: v.prices.map((p) => (p === Infinity ? p : 0)),
        exclusions: kept[i]!,
      })),
      transitions,
      budgets: held,
    };
  }

  /** undefined: the work ended first. */
  #satisfiable(constraints: readonly Constraint[]): boolean | undefined {
    if (this.#work <= 0) return undefined;
    const outcome = collapse(this.#with(constraints), { work: this.#work });
    this.#work -= outcome.work + 1;
    if (outcome.status === "unknown") return undefined;
    return outcome.status !== "infeasible";
  }

  /** The first member whose relaxation frees the whole problem, else one that ends this conflict. */
  #change(core: readonly Constraint[]): { readonly change: string; readonly enough: boolean } {
    const order = { budget: 0, exclusion: 1, transition: 2 };
    const ranked = [...core].sort((a, b) => order[a.kind] - order[b.kind]);
    const wider = [this.#constraints, core];
    for (const [at, all] of wider.entries()) {
      for (const member of ranked) {
        const change = this.#relaxed(member, all);
        if (change !== undefined) return { change, enough: at === 0 };
      }
    }
    return { change: `drop: ${this.#words(ranked[0]!)}`, enough: false };
  }

  /** How to relax a constraint so that the others hold; undefined when that is not enough. */
  #relaxed(member: Constraint, all: readonly Constraint[]): string | undefined {
    const rest = this.#with(all.filter((c) => c !== member));
    if (member.kind === "budget") return this.#raise(this.#problem.budgets[member.at]!, rest);
    const { solution } = collapse(rest, { work: Math.max(1, this.#work) });
    if (solution === undefined) return undefined;
    const name = (i: number): string => {
      const variable = this.#problem.variables[i]!;
      return `"${stateName(variable, solution[i]!)}" of ${variable.name}`;
    };
    if (member.kind === "exclusion") {
      const variable = this.#problem.variables[member.variable]!;
      const { constraint } = variable.exclusions![member.at]!;
      return `allow ${name(member.variable)} in spite of "${constraint}"`;
    }
    const t = this.#problem.transitions[member.at]!;
    return `allow ${name(t.from)} with ${name(t.to)}${t.constraint ? ` in "${t.constraint}"` : ""}`;
  }

  /** The least capacity with which all other constraints can hold. */
  #raise(budget: Budget, rest: Problem): string | undefined {
    const variables = rest.variables.map((v) => ({ ...v, prices: v.prices.slice() }));
    for (const { variable, amounts } of budget.uses) {
      amounts.forEach((a, s) => {
        variables[variable]!.prices[s]! += a;
      });
    }
    const outcome = collapse({ ...rest, variables, offset: 0 }, { work: Math.max(1, this.#work) });
    if (outcome.solution === undefined) return undefined;
    const least = usageOf(budget, outcome.solution);
    return `raise the capacity of "${budget.name}" from ${budget.capacity} to ${least}`;
  }

  #words(constraint: Constraint): string {
    const { variables, transitions, budgets } = this.#problem;
    if (constraint.kind === "exclusion") {
      const { name, prices, exclusions } = variables[constraint.variable]!;
      const { constraint: rule, states } = exclusions![constraint.at]!;
      return `${name}: "${rule}" excludes ${states.length} of ${prices.length} states`;
    }
    if (constraint.kind === "budget") {
      const { name, capacity, uses } = budgets[constraint.at]!;
      return `budget "${name}": ${uses.length} variables share ${capacity}`;
    }
    const t = transitions[constraint.at]!;
    const ends = `${variables[t.from]!.name} and ${variables[t.to]!.name}`;
    return `"${t.constraint ?? "transition"}" forbids pairs of states of ${ends}`;
  }
}
