/**
 * The tasks in program order: each launch's kernel is checked where it stands, with what is known of
 * repeat variables and which buffers are fully written by then. At every end of the program all
 * outputs must be written. Buffers written piecewise by several launches count once their bodies
 * together cover the buffer. Order between launches that run at once is task-order.ts; lifetimes for
 * placements are recorded here and judged by placement.ts.
 */

import { add, constant, constantValue, type IndexExpr } from "../../semantics/index-expr.ts";
import type { Buffer, Kernel, Program, Task } from "../program.ts";
import type { Statement } from "../statement.ts";
import { visitStatements } from "../walk.ts";
import { covers } from "./cover.ts";
import type { Facts } from "./facts.ts";
import {
  KnownLaunches,
  type LaunchQuestion,
  type ProvedLaunch,
  type ProvedLaunches,
} from "./known-launches.ts";
import {
  coverageBody,
  isCooperative,
  type LaunchView,
  namedBuffers,
  parameterFacts,
  rootOf,
  viewLaunch,
} from "./launch-view.ts";
import { memoryPart } from "./memory-part.ts";
import { coversByAxes } from "./product-cover.ts";
import { checkProtocol } from "./protocol.ts";
import type { Report } from "./report.ts";
import { checkSequential, type Footprint } from "./sequential.ts";
import {
  type Place,
  partsCover,
  partsCoverByAxes,
  placesOf,
  runsWritten,
  type WrittenRuns,
} from "./slabs.ts";
import { tilesExactly } from "./tiling.ts";
import type { Part } from "./views.ts";
import { leastElements, mostWrittenBy } from "./write-limits.ts";

/** One launch statement of the text, at its position in program order. */
export interface LaunchRecord {
  readonly position: number;
  readonly view: LaunchView;
  readonly footprint: Footprint;
  /** Roots that are fully written once it has run and were not before. */
  readonly completes: ReadonlySet<string>;
}

/** Positions [from, to) of the launches inside one repeat or while. */
export interface LoopRecord {
  readonly from: number;
  readonly to: number;
}

export interface TaskRecords {
  readonly launches: readonly LaunchRecord[];
  readonly loops: readonly LoopRecord[];
  /** Roots read by task conditions, at the position of the next launch. */
  readonly conditions: readonly { readonly root: string; readonly position: number }[];
}

/** Which roots are ready, and the parts of the others that have been written. */
interface State {
  readonly ready: Set<string>;
  readonly partial: Map<string, Written>;
}

/** Of a buffer that is not ready what was written, with how much of it that is at most. */
interface Written {
  readonly parts: readonly Part[];
  /** Elements; Infinity: not known. */
  readonly most: number;
  /** Elements that the smallest of the views has at least through which the parts were written. */
  readonly least: number;
}

interface Around {
  readonly facts: Facts;
  readonly tables: ReadonlyMap<string, readonly string[]>;
}

export interface TaskProofs {
  readonly stepsRunWhole: number;
  /** What was proved of other programs, and is added to. */
  readonly proved?: ProvedLaunches | undefined;
}

export function checkTasks(program: Program, report: Report, proofs: TaskProofs): TaskRecords {
  return new TaskCheck(program, report, proofs).run();
}

class TaskCheck {
  readonly #program: Program;
  readonly #report: Report;
  readonly #stepsRunWhole: number;
  readonly #facts: Facts;
  readonly #kernels: ReadonlyMap<string, Kernel>;
  readonly #known: KnownLaunches;
  readonly #launches: LaunchRecord[] = [];
  readonly #loops: LoopRecord[] = [];
  readonly #conditions: { root: string; position: number }[] = [];
  readonly #places = new Map<string, readonly Place[]>();
  readonly #runs = new WeakMap<readonly Part[], { readonly runs: WrittenRuns | undefined }>();

  constructor(program: Program, report: Report, { stepsRunWhole, proved }: TaskProofs) {
    this.#program = program;
    this.#report = report;
    this.#stepsRunWhole = stepsRunWhole;
    this.#facts = parameterFacts(program);
    this.#kernels = new Map(program.kernels.map((k) => [k.name, k]));
    this.#known = new KnownLaunches(program, proved);
  }

  run(): TaskRecords {
    const isEmpty = (b: Buffer): boolean => b.shape.some((e) => constantValue(e) === 0);
    const given = this.#program.buffers.filter(
      (b) => ["input", "weight", "state"].includes(b.kind) || isEmpty(b),
    );
    const state: State = { ready: new Set(given.map((b) => b.name)), partial: new Map() };
    const around = { facts: this.#facts, tables: new Map() };
    if (this.#list(this.#program.tasks, state, around)) this.#checkOutputs(state, "the end");
    return { launches: this.#launches, loops: this.#loops, conditions: this.#conditions };
  }

  #checkOutputs(state: State, where: string): void {
    for (const buffer of this.#program.buffers) {
      const root = rootOf(this.#program.buffers, buffer.name);
      if (buffer.kind !== "output" || state.ready.has(root)) continue;
      this.#report.add("PRG020", `output ${buffer.name} at ${where}`, {
        notes: ["not proved: every element has been written, whatever the parameters"],
        help: "let the stores of a nest cover the whole shape, tails included",
      });
    }
  }

  /** Whether the end of the list can be reached. */
  #list(tasks: readonly Task[], state: State, around: Around): boolean {
    for (const task of tasks) if (!this.#task(task, state, around)) return false;
    return true;
  }

  #task(task: Task, state: State, around: Around): boolean {
    switch (task.kind) {
      case "stop":
        this.#checkOutputs(state, "a stop");
        return false;
      case "launch":
        this.#launch(task, state, around);
        return true;
      case "if":
        return this.#branch(task, state, around);
      case "while": {
        this.#condition(task.condition, state, around);
        const from = this.#launches.length;
        this.#list(task.body, copyState(state), around);
        this.#loops.push({ from, to: this.#launches.length });
        return true;
      }
      case "repeat":
        return this.#repeat(task, state, around);
    }
  }

  #condition(
    condition: Extract<Task, { kind: "if" | "while" }>["condition"],
    state: State,
    { facts }: Around,
  ): void {
    if (condition.kind === "index") return;
    const buffer = this.#program.buffers.find((b) => b.name === condition.buffer)!;
    const root = rootOf(this.#program.buffers, buffer.name);
    this.#conditions.push({ root, position: this.#launches.length });
    if (!state.ready.has(root)) {
      this.#report.add("PRG021", `${buffer.name} in a task condition`);
    }
    for (const [axis, e] of condition.index.entries()) {
      const inside = facts.atLeast(e, 0) && facts.atLeast(buffer.shape[axis]!, add(e, 1));
      if (!inside) this.#report.add("PRG010", `axis ${axis} of ${buffer.name} in a task condition`);
    }
  }

  #branch(task: Extract<Task, { kind: "if" }>, state: State, around: Around): boolean {
    this.#condition(task.condition, state, around);
    const conditions = task.condition.kind === "index" ? task.condition.conditions : [];
    const yes = copyState(state);
    const no = copyState(state);
    const inside = { ...around, facts: around.facts.withConditions(conditions) };
    const ends = [
      this.#list(task.then, yes, inside) ? yes : undefined,
      this.#list(task.else, no, around) ? no : undefined,
    ].filter((s) => s !== undefined);
    const [first] = ends;
    if (!first) return false;
    for (const root of first.ready) if (ends.every((s) => s.ready.has(root))) state.ready.add(root);
    return true;
  }

  #repeat(task: Extract<Task, { kind: "repeat" }>, state: State, around: Around): boolean {
    const facts = around.facts.withVariable(task.variable, task.count);
    const tables = new Map(around.tables);
    for (const { name, rows } of task.tables) {
      tables.set(name, rows);
      if (!facts.atLeast(rows.length, task.count)) {
        this.#report.add(
          "PRG010",
          `table ${name} has ${rows.length} rows for ${task.count.key} trips`,
        );
      }
    }
    const from = this.#launches.length;
    const inside = copyState(state);
    const ends = this.#list(task.body, inside, { facts, tables });
    this.#loops.push({ from, to: this.#launches.length });
    this.#gather(task, { inside, state, around });
    if (!around.facts.atLeast(task.count, 1)) return true;
    for (const root of inside.ready) state.ready.add(root);
    return ends;
  }

  /** Buffers of which each trip writes a part, and all trips together the whole. */
  #gather(
    { variable, count }: Extract<Task, { kind: "repeat" }>,
    at: { readonly inside: State; readonly state: State; readonly around: Around },
  ): void {
    const { inside, state, around } = at;
    for (const [root, { parts }] of inside.partial) {
      if (inside.ready.has(root)) continue;
      const before = state.partial.get(root)?.parts ?? [];
      const isWhole = parts.slice(before.length).some(({ body, buffer }) => {
        const trips: Statement = {
          ...{ kind: "for", variable, extent: count, body },
          mode: { kind: "serial" },
        };
        return covers([trips], buffer, wholeOf(buffer), around.facts);
      });
      if (isWhole) this.#makeReady(root, state);
    }
  }

  #makeReady(root: string, state: State): void {
    const { buffers } = this.#program;
    state.ready.add(root);
    for (const b of namedBuffers(buffers).sharing.get(root) ?? []) state.ready.add(b.name);
  }

  #launch(task: Extract<Task, { kind: "launch" }>, state: State, around: Around): void {
    const kernel = this.#kernels.get(task.kernel)!;
    const view = viewLaunch({
      program: this.#program,
      kernel,
      bindings: task.bindings,
      tables: around.tables,
      facts: around.facts,
    });
    const question = this.#questionOf(task, state, around);
    const known = question && this.#known.find(question);
    const proved = known ?? this.#prove(view, state, around);
    const { footprint, completes } = proved;
    const isWhole = [...footprint.writes].every((r) => state.ready.has(r) || completes.has(r));
    if (question && !known && isWhole && this.#report.isClean) this.#known.keep(question, proved);
    for (const root of completes) this.#makeReady(root, state);
    this.#launches.push({ position: this.#launches.length, view, footprint, completes });
  }

  #prove(view: LaunchView, state: State, around: Around): ProvedLaunch {
    const footprint = isCooperative(view.kernel)
      ? checkProtocol(view, state.ready, {
          report: this.#report,
          stepsRunWhole: this.#stepsRunWhole,
        })
      : checkSequential(
          view,
          { ready: state.ready, runsOf: (root) => this.#runsOf(root, state, around) },
          this.#report,
        );
    const completes = new Set(footprint.covered);
    if (footprint.storesTo) {
      for (const root of footprint.writes) {
        if (state.ready.has(root) || completes.has(root)) continue;
        if (this.#completes(root, { view, footprint, state, around })) completes.add(root);
      }
    }
    return { footprint, completes };
  }

  /** How far a root is written that is not ready. */
  #runsOf(root: string, { partial }: State, { facts }: Around): WrittenRuns | undefined {
    const parts = partial.get(root)?.parts;
    if (!parts) return undefined;
    const known = this.#runs.get(parts);
    if (known) return known.runs;
    const runs = runsWritten(parts, this.#placesOf(root), facts);
    this.#runs.set(parts, { runs });
    return runs;
  }

  /** Where stores begin, of whatever launch. */
  #placesOf(root: string): readonly Place[] {
    const known = this.#places.get(root);
    if (known) return known;
    const views = namedBuffers(this.#program.buffers).sharing.get(root) ?? [];
    const found = views.flatMap((buffer) =>
      this.#program.kernels.flatMap((kernel) =>
        placesOf(
          buffer,
          kernel.roles.flatMap((role) => storesInto(role.body, buffer.name)),
        ),
      ),
    );
    this.#places.set(root, found);
    return found;
  }

  /** Of launches of which all that is known is what holds from the start, by themselves. */
  #questionOf(
    task: Extract<Task, { kind: "launch" }>,
    state: State,
    { facts, tables }: Around,
  ): LaunchQuestion | undefined {
    const isPlain = task.bindings.length === 0 && tables.size === 0 && facts === this.#facts;
    if (!isPlain) return undefined;
    const isReady = (root: string): boolean => state.ready.has(root);
    const question = this.#known.questionOf(this.#kernels.get(task.kernel)!, isReady);
    const isPartly = question.roots.some((r) => state.partial.has(r) && !isReady(r));
    return isPartly ? undefined : question;
  }

  /** Whether this launch, with parts written before, leaves no element of the root unwritten. */
  #completes(
    root: string,
    at: {
      readonly view: LaunchView;
      readonly footprint: Footprint;
      readonly state: State;
      readonly around: Around;
    },
  ): boolean {
    const { view, state, around } = at;
    const { buffers } = this.#program;
    for (const buffer of namedBuffers(buffers).sharing.get(root) ?? []) {
      const stores = at.footprint.storesTo?.(buffer.name) ?? [];
      if (stores.length === 0) continue;
      const { facts } = around;
      const { kernel } = at.footprint.stores ?? view;
      const body = coverageBody(kernel, buffer.name);
      if (coversByAxes(body, buffer)) return true;
      if (covers(body, buffer, wholeOf(buffer), facts)) return true;
      const [role, ...others] = view.kernel.roles;
      if (others.length === 0 && tilesExactly(memoryPart(view, role!), buffer)) return true;
      state.partial.set(root, withPart(state.partial.get(root), { body, buffer, stores }));
    }
    const { parts, most, least } = state.partial.get(root) ?? nothingWritten;
    // Of most lists of parts some are still missing.
    if (parts.length < 2 || most < least) return false;
    return partsCoverByAxes(parts) || partsCover(parts, around.facts);
  }
}

/** The indices of plain stores into a buffer. */
function storesInto(body: readonly Statement[], buffer: string): readonly (readonly IndexExpr[])[] {
  const found: (readonly IndexExpr[])[] = [];
  visitStatements(body, (s) => {
    if (s.kind === "store" && s.buffer === buffer) found.push(s.index);
  });
  return found;
}

const nothingWritten: Written = { parts: [], most: 0, least: Infinity };

function withPart({ parts, most, least }: Written = nothingWritten, part: Part): Written {
  const { body, buffer } = part;
  return {
    parts: [...parts, part],
    most: most + mostWrittenBy(body, buffer.name) / buffer.lanes,
    least: Math.min(least, leastElements(wholeOf(buffer))),
  };
}

function wholeOf(buffer: Buffer): { lo: readonly IndexExpr[]; hi: readonly IndexExpr[] } {
  return { lo: buffer.shape.map(() => constant(0)), hi: buffer.shape };
}

function copyState(state: State): State {
  return { ready: new Set(state.ready), partial: new Map(state.partial) };
}
