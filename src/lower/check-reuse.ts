/**
 * Whether a memory plan keeps every value: reuse of storage creates dependences, and affine/ decides
 * whether the order of the tasks holds them (checkStorage). The planner only proposes.
 *
 * Two questions, each about two tenants of the same bytes. Places that meet in memory: no task may
 * touch both, nor one of them while a value of the other is still needed; nothing is known of the order
 * inside a task. Buffers that take over one place in turn (in-place writes): the same, but a launch
 * may write the new one while it reads the old one for the last time (storage.ts has asked that
 * element by element).
 *
 * Of places that meet, neighbours in time are enough: if all of a is done before any of b, and all of b
 * before any of c, so is a before c. A step that only repeats the one before tells nothing new and is
 * left out, so that a model asks few different questions.
 */
import {
  affine,
  checkStorage,
  type FilterNode,
  type NestAccess,
  type NestStatement,
  type ScheduleTree,
  within,
} from "../affine/index.ts";
import type { Buffer, Program, Task } from "../program/program.ts";
import { kernelUses, taskUses, type Uses } from "./task-uses.ts";

/** Two tenants of the same bytes of which one would lose a value. */
export interface LostValue {
  readonly earlier: string;
  readonly later: string;
}

/** Bytes of the scratch arena, with the buffers that own them in turn. */
export interface Place {
  readonly tenants: readonly Buffer[];
  readonly from: number;
  readonly to: number;
}

type Tenant = "a" | "b";

/** What a task does with the two tenants. */
interface Step {
  readonly reads: readonly Tenant[];
  readonly writes: readonly Tenant[];
  /** All its reads come before its writes. */
  readonly atOnce: boolean;
}

/** The first pair that shares bytes while both are needed; undefined when the plan is proved right. */
export function findLostValue(program: Program, places: readonly Place[]): LostValue | undefined {
  const check = new ReuseCheck(program);
  for (const { tenants } of places) {
    const lost = check.inTurn(tenants);
    if (lost) return lost;
  }
  return check.whereTheyMeet(places);
}

class ReuseCheck {
  readonly #tasks: readonly Task[];
  readonly #uses: readonly Uses[];
  readonly #ordered: boolean;
  readonly #touching = new Map<string, number[]>();
  readonly #answers = new Map<string, boolean>();

  constructor({ buffers, kernels, tasks }: Program) {
    const owners = new Map(buffers.map((b) => [b.name, b.viewOf ?? b.name]));
    const owned = (names: ReadonlySet<string>): ReadonlySet<string> =>
      new Set([...names].map((n) => owners.get(n) ?? n));
    const used = kernelUses(kernels);
    this.#tasks = tasks;
    this.#ordered = !tasks.some(waitsForCounters);
    this.#uses = tasks.map((task) => {
      const { reads, writes } = taskUses(task, used);
      return { reads: owned(reads), writes: owned(writes) };
    });
    this.#uses.forEach(({ reads, writes }, time) => {
      for (const name of new Set([...reads, ...writes])) {
        const times = this.#touching.get(name) ?? [];
        this.#touching.set(name, times);
        times.push(time);
      }
    });
  }

  /** Every pair: one task may read the first tenant and write the last. */
  inTurn(tenants: readonly Buffer[]): LostValue | undefined {
    for (const [i, later] of tenants.entries()) {
      for (const earlier of tenants.slice(0, i)) {
        if (!this.#keeps([earlier], [later], true)) {
          return { earlier: earlier.name, later: later.name };
        }
      }
    }
    return undefined;
  }

  whereTheyMeet(places: readonly Place[]): LostValue | undefined {
    const byTime = places
      .map((place) => ({ place, first: this.#timesOf(place.tenants)[0] ?? 0 }))
      .sort((x, y) => x.first - y.first);
    let held: (Pick<Place, "from" | "to"> & { readonly place: Place })[] = [];
    for (const { place } of byTime) {
      const { from, to, tenants } = place;
      const below = held.filter((s) => s.from < to && from < s.to);
      for (const earlier of new Set(below.map((s) => s.place))) {
        if (this.#keeps(earlier.tenants, tenants, false)) continue;
        return { earlier: earlier.tenants[0]!.name, later: tenants[0]!.name };
      }
      const beside = held.flatMap((s) => [
        { ...s, to: Math.min(s.to, from) },
        { ...s, from: Math.max(s.from, to) },
      ]);
      held = [...beside, { from, to, place }].filter((s) => s.from < s.to);
    }
    return undefined;
  }

  #timesOf(tenants: readonly Buffer[]): readonly number[] {
    const times = tenants.flatMap((b) => this.#touching.get(b.name) ?? []);
    return [...new Set(times)].sort((x, y) => x - y);
  }

  #keeps(earlier: readonly Buffer[], later: readonly Buffer[], inTurn: boolean): boolean {
    const [a, b] = [earlier, later].map((list) => new Set(list.map((x) => x.name)));
    const role = (names: ReadonlySet<string>): readonly Tenant[] => [
      ...([...names].some((n) => a!.has(n)) ? (["a"] as const) : []),
      ...([...names].some((n) => b!.has(n)) ? (["b"] as const) : []),
    ];
    const steps = this.#timesOf([...earlier, ...later]).map((time): Step => {
      const { reads, writes } = this.#uses[time]!;
      if (inTurn && this.#tasks[time]!.kind === "launch")
        return { reads: role(reads), writes: role(writes), atOnce: true };
      const touched = role(new Set([...reads, ...writes]));
      return { reads: touched, writes: touched, atOnce: false };
    });
    const asked = this.#ordered ? withoutRepeats(steps) : steps;
    const question = JSON.stringify(asked);
    const known = this.#answers.get(question) ?? keepsValues(asked, this.#ordered);
    this.#answers.set(question, known);
    return known;
  }
}

/** Launches that wait for counters run in no order of the text. */
function waitsForCounters(task: Task): boolean {
  switch (task.kind) {
    case "launch":
      return task.after === "counters";
    case "if":
      return [...task.then, ...task.else].some(waitsForCounters);
    case "while":
    case "repeat":
      return task.body.some(waitsForCounters);
    case "stop":
      return false;
  }
}

function withoutRepeats(steps: readonly Step[]): readonly Step[] {
  const texts = steps.map((s) => JSON.stringify(s));
  return steps.filter((_, i) => texts[i] !== texts[i - 1]);
}

/** Whether both tenants may lie in one cell: every use may be of any element, every write of none. */
function keepsValues(steps: readonly Step[], ordered: boolean): boolean {
  const loop = "i";
  const statements = steps.map(({ reads, writes, atOnce }, at): NestStatement => {
    const access = (kind: NestAccess["kind"]) => (array: Tenant) =>
      ({ kind, array, index: [{ low: 0, end: 2 }] }) as const;
    return {
      name: `task${at}`,
      dims: [loop],
      domain: within(0, loop, atOnce ? 1 : 2),
      accesses: [...reads.map(access("read")), ...writes.map(access("write"))],
    };
  });
  const children = statements.map(({ name }): FilterNode => {
    const members = [{ loop, values: new Map([[name, affine(loop)]]), coincident: false }];
    const child = { kind: "band", members, permutable: false, child: { kind: "leaf" } } as const;
    return { kind: "filter", statements: [name], child };
  });
  const tree: ScheduleTree = { kind: ordered ? "sequence" : "set", children };
  const nest = { statements, tree, given: new Set<string>(), kept: new Set<string>() };
  const found = checkStorage({ nest, tree }, (_, access) => ({ ...access, array: "cell" }));
  return found.kind === "legal";
}
