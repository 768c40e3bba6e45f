/**
 * Equality saturation: in each iteration every rule searches the same graph, then the matches are
 * applied in the order of the rules, then the graph is rebuilt. Rules see only news (compile-matcher.ts).
 * Phases run one after the other. Budgets are counted in units of work (nodes looked at, rows applied,
 * uses repaired), so that the same input ends at the same place on every machine; the node limit holds
 * inside applying. The report says why it stopped, what each rule did, and carries a diagnostic
 * when the stop is no success (EGR003, EGR004).
 */
import { type Diagnostic, diagnostic } from "../support/diagnostic.ts";
import { Backoff, type BackoffOptions } from "./backoff.ts";
import { compileApplier } from "./compile-applier.ts";
import { compileMatcher, type Matcher } from "./compile-matcher.ts";
import { mayCompile } from "./compile-text.ts";
import type { EGraph } from "./e-graph.ts";
import { type Applier, interpretApplier } from "./interpret-applier.ts";
import { interpretMatcher } from "./interpret-matcher.ts";
import { hasNodes, type NeededNode, neededNodes, planMatch } from "./match-plan.ts";
import { RowBuffer } from "./row-buffer.ts";
import type { Rule } from "./rule.ts";
import { type Snapshot, takeSnapshot } from "./snapshot.ts";

/** Limits from 0 on, Infinity for none; NaN allows nothing. */
export interface Budget {
  /** Nodes in the graph. */
  readonly nodes: number;
  /** Units of work over all phases. */
  readonly work: number;
}

export const defaultBudget: Budget = { nodes: 100_000, work: 50_000_000 };

export interface Phase<D> {
  readonly name: string;
  readonly rules: readonly Rule<D>[];
  /** Iterations at most; without it the phase runs until it is saturated. */
  readonly iterations?: number;
  /** Absent: rules are never banned. */
  readonly backoff?: BackoffOptions;
  /** Nodes and work that this phase may use, within the whole budget. */
  readonly budget?: Partial<Budget>;
}

export interface SaturateOptions<D> {
  readonly budget?: Partial<Budget>;
  /** Ends saturation when it holds; asked after each iteration. */
  readonly until?: (graph: EGraph<D>) => boolean;
  /** Asked after each iteration: whether to give up (a clock, a signal). */
  readonly aborted?: () => boolean;
  /** Default: compiled, where code from text is allowed. Both give the same graph. */
  readonly matchers?: "compiled" | "interpreted";
  /** Search everything in every iteration, instead of the news: for tests of delta matching. */
  readonly fullSearch?: boolean;
}

export type StopReason =
  | "saturated"
  | "goal"
  | "iterations"
  | "nodes"
  | "work"
  | "inconsistent"
  | "aborted";

export interface RuleReport {
  readonly phase: string;
  readonly rule: string;
  readonly searches: number;
  readonly matches: number;
  /** Matches that changed the graph. */
  readonly changes: number;
  readonly work: number;
  readonly bans: number;
}

export interface IterationReport {
  readonly phase: string;
  readonly nodes: number;
  readonly classes: number;
  readonly matches: number;
  readonly work: number;
}

export interface SaturationReport {
  readonly stop: StopReason;
  /** What ended it, when that was no success. */
  readonly diagnostics: readonly Diagnostic[];
  readonly iterations: readonly IterationReport[];
  readonly rules: readonly RuleReport[];
  readonly work: number;
}

/** Runs phases, or rules as one phase, on a graph that it changes in place. */
export function saturate<D>(
  graph: EGraph<D>,
  phases: readonly Phase<D>[],
  options: SaturateOptions<D> = {},
): SaturationReport {
  return new Saturation(graph, options).run(phases);
}

/** The code of a rule. */
interface Machine {
  readonly search: Matcher;
  readonly apply: Applier;
}

/** A rule at work. */
interface Worker {
  readonly phase: string;
  readonly name: string;
  /** What a graph must have for a match: no rule is compiled for a graph that lacks it. */
  readonly needs: readonly NeededNode[];
  readonly machine: () => Machine;
  readonly rows: RowBuffer;
  readonly backoff: Backoff;
  /** The stamp up to which this rule has seen the graph. */
  seen: number;
  readsGraph: boolean;
  searches: number;
  matches: number;
  changes: number;
  work: number;
}

interface Limits {
  readonly nodes: number;
  readonly work: number;
}

/** What is absent is as in `others`. What is no number allows nothing: no comparison with it would end anything. */
function within(given: Partial<Budget> | undefined, others: Limits): Limits {
  const limit = (of: "nodes" | "work"): number => {
    const value = given?.[of] ?? others[of];
    return Number.isNaN(value) ? 0 : value;
  };
  return { nodes: limit("nodes"), work: limit("work") };
}

class Saturation<D> {
  readonly #graph: EGraph<D>;
  readonly #options: SaturateOptions<D>;
  readonly #workers: Worker[] = [];
  readonly #iterations: IterationReport[] = [];
  #work = 0;
  /** Nodes to expect for each row: those of the last iteration, fewer where they were falling. */
  #expected = 1.4;
  #lastYield = 1.4;
  readonly #compiles: boolean;
  /** Stamp of the latest change of the graph: who has seen it has seen all. */
  #lastChange: number;

  constructor(graph: EGraph<D>, options: SaturateOptions<D>) {
    this.#graph = graph;
    this.#options = options;
    this.#compiles =
      (options.matchers ?? (mayCompile() ? "compiled" : "interpreted")) === "compiled";
    this.#lastChange = graph.store.now;
  }

  run(phases: readonly Phase<D>[]): SaturationReport {
    this.#work += this.#graph.rebuild();
    let stop: StopReason = "saturated";
    for (const phase of phases) {
      stop = this.#runPhase(phase);
      if (stop !== "saturated" && stop !== "iterations") break;
    }
    return this.#report(stop);
  }

  #runPhase(phase: Phase<D>): StopReason {
    const workers = phase.rules.map((rule) => this.#employ(phase, rule));
    this.#workers.push(...workers);
    const whole = within(this.#options.budget, defaultBudget);
    const own = within(phase.budget, whole);
    const limits = {
      nodes: Math.min(whole.nodes, own.nodes),
      work: Math.min(whole.work, this.#work + own.work),
    };
    const most = phase.iterations ?? Number.POSITIVE_INFINITY;
    for (let iteration = 0; iteration < most; iteration++) {
      const stop = this.#iterate({ name: phase.name, workers, iteration, limits });
      if (stop) return this.#endsPhaseOnly(stop, whole) ? "iterations" : stop;
    }
    return "iterations";
  }

  /** A budget of one phase ends that phase; the whole budget ends it all. */
  #endsPhaseOnly(stop: StopReason, whole: Limits): boolean {
    if (stop === "nodes") return this.#graph.nodeCount < whole.nodes;
    if (stop === "work") return this.#work < whole.work;
    return false;
  }

  #employ(phase: Phase<D>, rule: Rule<D>): Worker {
    let machine: Machine | undefined;
    return {
      phase: phase.name,
      name: rule.name,
      needs: neededNodes(rule.left, this.#graph.vocabulary),
      machine: () => {
        machine ??= this.#makeMachine(rule);
        return machine;
      },
      rows: new RowBuffer(),
      backoff: new Backoff(phase.backoff),
      seen: 0,
      readsGraph: false,
      searches: 0,
      matches: 0,
      changes: 0,
      work: 0,
    };
  }

  #makeMachine(rule: Rule<D>): Machine {
    const graph = this.#graph;
    const needsNodes = graph.forest !== undefined || rule.when || rule.build;
    const computes = Object.keys(rule.compute).length > 0;
    const plan = planMatch(rule.left, graph.vocabulary, Boolean(needsNodes || computes));
    const compiled = this.#compiles;
    const apply = compiled ? compileApplier(graph, rule, plan) : undefined;
    return {
      search: compiled ? compileMatcher(plan) : interpretMatcher(plan),
      apply: apply ?? interpretApplier(graph, rule, plan),
    };
  }

  #iterate(at: {
    name: string;
    workers: readonly Worker[];
    iteration: number;
    limits: Limits;
  }): StopReason | undefined {
    const { workers, iteration, limits } = at;
    const before = this.#work;
    const active = this.#activeWorkers(workers, iteration);
    const snapshot = takeSnapshot(this.#graph.store);
    const inTime = active.every((worker) => this.#search(worker, snapshot, iteration, limits));
    const stop = inTime ? this.#applyAll(active, limits) : "work";
    this.#graph.setCause("rebuilding");
    this.#work += this.#graph.rebuild();
    const { visibleCount: nodes, classCount: classes } = this.#graph;
    const matches = active.reduce((sum, worker) => sum + worker.rows.count, 0);
    const work = this.#work - before;
    this.#iterations.push({ phase: at.name, nodes, classes, matches, work });
    return this.#stopAfter(stop, workers);
  }

  /** Those without a ban; when all are banned, those whose ban ends first. */
  #activeWorkers(workers: readonly Worker[], iteration: number): Worker[] {
    const active = workers.filter((worker) => !worker.backoff.isBanned(iteration));
    if (active.length > 0 || workers.length === 0) return active;
    const first = Math.min(...workers.map((worker) => worker.backoff.bannedUntil));
    const freed = workers.filter((worker) => worker.backoff.bannedUntil === first);
    for (const worker of freed) worker.backoff.release(iteration);
    return freed;
  }

  /** Whether the search ended within the budget of work. */
  #search(worker: Worker, snapshot: Snapshot, iteration: number, limits: Limits): boolean {
    const full = worker.readsGraph || this.#options.fullSearch === true;
    const left = limits.work - this.#work;
    worker.rows.count = 0;
    const work = hasNodes(snapshot, worker.needs)
      ? worker.machine().search(snapshot, worker.rows, {
          since: full ? 0 : worker.seen,
          rows: worker.backoff.rowLimit(),
          work: left,
        })
      : 0;
    this.#charge(worker, work);
    worker.searches++;
    worker.matches += worker.rows.count;
    if (worker.backoff.noteFound(worker.rows.count, iteration)) worker.rows.count = 0;
    else worker.seen = this.#graph.store.now;
    return work <= left;
  }

  #charge(worker: Worker, work: number): void {
    worker.work += work;
    this.#work += work;
  }

  #applyAll(active: readonly Worker[], limits: Limits): StopReason | undefined {
    this.#graph.store.now++;
    const rows = active.reduce((sum, worker) => sum + worker.rows.count, 0);
    this.#makeRoom(rows, limits);
    const { used } = this.#graph.store;
    for (const worker of active) {
      const rows = Math.max(0, limits.work - this.#work);
      if (worker.rows.count === 0) continue;
      const applied = worker.machine().apply(worker.rows, { nodes: limits.nodes, rows });
      this.#charge(worker, applied.rows);
      worker.changes += applied.changes;
      if (applied.changes > 0) this.#lastChange = this.#graph.store.now;
      worker.readsGraph ||= applied.readsGraph;
      if (this.#graph.inconsistency) return "inconsistent";
      if (applied.rows < worker.rows.count) return applied.rows < rows ? "nodes" : "work";
    }
    if (rows > 0) this.#noteYield((this.#graph.store.used - used) / rows);
    return undefined;
  }

  /** Room for what these rows may make: the rows of a growing graph make a node or two each, others fewer. */
  #makeRoom(rows: number, limits: Limits): void {
    const { store, nodeCount } = this.#graph;
    const room = Math.max(0, limits.nodes - nodeCount);
    store.expect(Math.min(room, Math.ceil(rows * this.#expected * 1.1), 4 * nodeCount));
  }

  #noteYield(made: number): void {
    const trend = this.#lastYield > 0 ? made / this.#lastYield : 1;
    this.#expected = made * Math.min(1, trend);
    this.#lastYield = made;
  }

  #stopAfter(stop: StopReason | undefined, workers: readonly Worker[]): StopReason | undefined {
    if (this.#graph.inconsistency) return "inconsistent";
    if (this.#options.until?.(this.#graph)) return "goal";
    if (stop) return stop;
    if (this.#options.aborted?.()) return "aborted";
    const idle = workers.every((worker) => worker.seen >= this.#lastChange);
    return idle ? "saturated" : undefined;
  }

  #report(stop: StopReason): SaturationReport {
    const rules = this.#workers.map(
      ({ phase, name, searches, matches, changes, work, backoff }): RuleReport => ({
        phase,
        rule: name,
        searches,
        matches,
        changes,
        work,
        bans: backoff.timesBanned,
      }),
    );
    const diagnostics = this.#diagnose(stop, rules);
    return { stop, diagnostics, iterations: this.#iterations, rules, work: this.#work };
  }

  #diagnose(stop: StopReason, rules: readonly RuleReport[]): Diagnostic[] {
    if (stop === "inconsistent") {
      const { message, cause } = this.#graph.inconsistency!;
      // Facts may contradict each other far behind the rule that is false.
      const changed = rules.flatMap(({ rule, changes }) => (changes > 0 ? [rule] : []));
      return [
        diagnostic("EGR003", message, {
          at: `rule "${cause}"`,
          notes: [`rules that had changed something: ${[...new Set(changed)].join(", ")}`],
          help: "the rule, or one that it builds on, is false: correct it or guard it",
        }),
      ];
    }
    if (stop !== "nodes" && stop !== "work") return [];
    const message = `${this.#graph.nodeCount} nodes after ${this.#work} units of work`;
    const greedy = rules.reduce((a, b) => (b.changes > a.changes ? b : a), rules[0]!);
    const severity = "warning";
    if (greedy.changes === 0) {
      const notes = ["no rule had changed the graph"];
      return [diagnostic("EGR004", message, { severity, notes, help: "raise the budget" })];
    }
    return [
      diagnostic("EGR004", message, {
        severity,
        at: `rule "${greedy.rule}"`,
        notes: [`this rule changed the graph most often: ${greedy.changes} times`],
        help: "raise the budget, give the phase a back-off, or put the rule in a phase of its own",
      }),
    ];
  }
}
