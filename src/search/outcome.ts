/**
 * What a solver answers, and the recorder through which it answers: the best solution, the best lower
 * bound, the gap between them, the nodes visited and why it stopped, readable at any moment. Budgets are
 * counted in work units (table entries touched); an injected clock may only abort.
 */
import { type Assignment, keepsBudgets, type Problem, priceOf } from "./problem.ts";

/** `optimal`: bound equals objective. `unknown`: neither a solution nor a proof that there is none. */
export type Status = "optimal" | "feasible" | "infeasible" | "unknown";

export interface Snapshot {
  readonly status: Status;
  readonly solution?: Assignment;
  readonly objective?: number;
  /** No solution costs less. Infinity when there is none at all, -Infinity when nothing is known. */
  readonly bound: number;
  /** (objective - bound) / |objective|; 0 when proven, Infinity without a solution. */
  readonly gap: number;
  readonly nodes: number;
  /** Table entries touched. */
  readonly work: number;
}

export interface Outcome extends Snapshot {
  readonly solver: string;
  /** Why it stopped, as a sentence. */
  readonly reason: string;
  /** Counts that only this solver has: removed states, backtracks, nogoods. */
  readonly counts: Readonly<Record<string, number>>;
}

export interface SolveOptions {
  readonly seed?: number;
  /** Work units after which the search stops. */
  readonly work?: number;
  /** True: stop as soon as possible. May only abort, never steer. */
  readonly expired?: () => boolean;
  /** Called whenever solution or bound improve. */
  readonly observe?: (snapshot: Snapshot) => void;
  /** A known solution to start from. */
  readonly start?: Assignment;
  /** Stop once (objective - bound) / |objective| is at most this. */
  readonly gap?: number;
}

export class Recorder {
  readonly problem: Problem;
  nodes = 0;
  work = 0;
  bound = -Infinity;
  objective = Infinity;
  solution: Assignment | undefined;
  readonly counts: Record<string, number> = {};
  readonly #options: SolveOptions;
  #stopped = false;

  constructor(problem: Problem, options: SolveOptions) {
    this.problem = problem;
    this.#options = options;
    if (options.start !== undefined) this.offer(options.start);
  }

  /** Keeps the assignment if it is allowed and cheaper than the best; says whether it was. */
  offer(assignment: Assignment): boolean {
    const price = priceOf(this.problem, assignment);
    if (price >= this.objective || !keepsBudgets(this.problem, assignment)) return false;
    this.objective = price;
    this.solution = assignment.slice();
    this.#options.observe?.(this.snapshot());
    return true;
  }

  /** Raises the lower bound. No bound passes the best solution: that is optimal then. */
  raise(bound: number): void {
    const capped = Math.min(bound, this.objective);
    if (capped <= this.bound) return;
    this.bound = capped;
    this.#options.observe?.(this.snapshot());
  }

  count(name: string, amount = 1): void {
    this.counts[name] = (this.counts[name] ?? 0) + amount;
  }

  /** True once there is nothing left to do or nothing left to do it with. */
  get done(): boolean {
    return this.#stopped || this.stops();
  }

  stops(): boolean {
    const { work, expired, gap } = this.#options;
    if (this.bound >= this.objective) return true;
    if (gap !== undefined && this.gap() <= gap) return true;
    this.#stopped = (work !== undefined && this.work >= work) || expired?.() === true;
    return this.#stopped;
  }

  gap(): number {
    if (this.objective === Infinity) return this.bound === Infinity ? 0 : Infinity;
    if (this.bound >= this.objective) return 0;
    return (this.objective - this.bound) / Math.max(1, Math.abs(this.objective));
  }

  snapshot(): Snapshot {
    const { bound, nodes, work, solution } = this;
    const gap = this.gap();
    if (solution === undefined) {
      return { status: bound === Infinity ? "infeasible" : "unknown", bound, gap, nodes, work };
    }
    const status = bound >= this.objective ? "optimal" : "feasible";
    return { status, solution, objective: this.objective, bound, gap, nodes, work };
  }

  finish(solver: string, reason: string): Outcome {
    return { solver, ...this.snapshot(), reason, counts: this.counts };
  }

  /** A reason that fits how it ended. */
  closing(): string {
    if (this.bound >= this.objective) {
      return this.solution === undefined ? "no solution exists" : "bound meets objective";
    }
    return this.#stopped ? "budget or clock ended the search" : "gap asked for is reached";
  }
}
