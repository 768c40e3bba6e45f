/**
 * Statements as closures. What cannot block becomes a plain function; what contains a wait, a
 * barrier or a collective becomes a generator that yields to the scheduler (program-machine.ts).
 * Names are resolved to slots once per role.
 */
import type { Kernel, Role } from "../program/program.ts";
import type { Statement } from "../program/statement.ts";
import type { IndexExpr } from "../semantics/index-expr.ts";
import type { ScalarValue } from "../semantics/scalar-meaning.ts";
import { invariant } from "../support/invariant.ts";
import { compileSync } from "./program-effects.ts";
import {
  compileConditions,
  compileExpr,
  compileIndex,
  compileOne,
  type Load,
  type ScalarCode,
  type ValueCode,
} from "./program-expr.ts";
import { raise } from "./program-fault.ts";
import type { Block, Runnable } from "./program-machine.ts";
import type { View } from "./program-memory.ts";
import type { Thread } from "./program-thread.ts";

export type Steps = Generator<Block<Runnable>, void>;

/** Exactly one of the two is there. */
export interface Code {
  readonly run?: (thread: Thread) => void;
  readonly steps?: (thread: Thread) => Steps;
}

/** Slots by name; inner scopes are made by `inner`. */
export class NameSlots {
  readonly #ints: Map<string, number>;
  readonly #values: Map<string, number>;
  readonly #counts: { ints: number; values: number };
  readonly buffers: ReadonlyMap<string, number>;
  readonly kernel: Kernel;

  constructor(kernel: Kernel, buffers: ReadonlyMap<string, number>, outer?: NameSlots) {
    this.kernel = kernel;
    this.buffers = buffers;
    this.#ints = new Map(outer ? outer.#ints : []);
    this.#values = new Map(outer ? outer.#values : []);
    this.#counts = outer ? outer.#counts : { ints: 0, values: 0 };
  }

  inner(): NameSlots {
    return new NameSlots(this.kernel, this.buffers, this);
  }

  bindInt(name: string): number {
    const slot = this.#counts.ints++;
    this.#ints.set(name, slot);
    return slot;
  }

  bindValue(name: string): number {
    const slot = this.#counts.values++;
    this.#values.set(name, slot);
    return slot;
  }

  readonly int = (name: string): number => {
    const slot = this.#ints.get(name);
    invariant(slot !== undefined, () => `index variable ${name} is unbound`);
    return slot;
  };

  readonly value = (name: string): number => {
    const slot = this.#values.get(name);
    invariant(slot !== undefined, () => `value ${name} is unbound`);
    return slot;
  };

  buffer(name: string): number {
    const slot = this.buffers.get(name);
    invariant(slot !== undefined, () => `buffer ${name} is unknown`);
    return slot;
  }

  readonly load = (load: Load): ValueCode<Thread> => {
    const slot = this.buffer(load.buffer);
    const { lanes } = load;
    const place = compileOffset(load.index, lanes, this.int);
    const guard = compileConditions(load.guard, this.int);
    const fill = new Array<ScalarValue>(lanes).fill(load.fill);
    return (thread) => {
      const { ints } = thread;
      if (!guard(ints)) return fill;
      const view = thread.views[slot]!;
      const offset = place(view, ints);
      view.note(thread.agent, "read", offset, lanes);
      const result = new Array<ScalarValue>(lanes);
      for (let l = 0; l < lanes; l++) result[l] = view.readAt(offset + l);
      return result;
    };
  };

  readonly loadOne = (load: Load): ScalarCode<Thread> => {
    const slot = this.buffer(load.buffer);
    const place = compileOffset(load.index, 1, this.int);
    const guard = compileConditions(load.guard, this.int);
    const { fill } = load;
    return (thread) => {
      const { ints } = thread;
      if (!guard(ints)) return fill;
      const view = thread.views[slot]!;
      const offset = place(view, ints);
      view.note(thread.agent, "read", offset, 1);
      return view.readAt(offset);
    };
  };
}

/** Number of the first scalar at an index, as `View.offsetOf` gives it, checked. */
function compileOffset(
  index: readonly IndexExpr[],
  lanes: number,
  int: (name: string) => number,
): (view: View, ints: readonly number[]) => number {
  const codes = index.map((e) => compileIndex(e, int));
  const last = codes.length - 1;
  return (view, ints) => {
    const { shape } = view;
    const span = view.lanes === 1 ? lanes : 1;
    let offset = 0;
    for (let axis = 0; axis <= last; axis++) {
      const i = codes[axis]!(ints);
      const extent = shape[axis]!;
      if (i < 0 || i + (axis === last ? span : 1) > extent) {
        const at = codes.map((code) => code(ints));
        view.outOfBounds(at, lanes);
      }
      offset = offset * extent + i;
    }
    return offset * view.lanes;
  };
}

/**
 * The coroutine of a role's body; index slots of parameters and grid are bound by the caller
 * beforehand.
 */
export function compileRole(role: Role, names: NameSlots): (thread: Thread) => Steps {
  const code = compileBody(role.body, names.inner());
  return function* (thread) {
    if (code.run) code.run(thread);
    else yield* code.steps!(thread);
  };
}

export function compileBody(body: readonly Statement[], names: NameSlots): Code {
  const codes = body.map((s) => compileStatement(s, names));
  if (codes.every((c) => c.run)) {
    const runs = codes.map((c) => c.run!);
    return {
      run: (thread) => {
        for (const run of runs) run(thread);
      },
    };
  }
  return {
    *steps(thread) {
      for (const code of codes) {
        if (code.run) code.run(thread);
        else yield* code.steps!(thread);
      }
    },
  };
}

function compileStatement(s: Statement, names: NameSlots): Code {
  switch (s.kind) {
    case "for":
      return compileFor(s, names);
    case "if": {
      const test = compileConditions(s.conditions, names.int);
      return compileBranch((thread) => test(thread.ints), s, names);
    }
    case "when": {
      const test = compileOne(s.condition, names);
      return compileBranch((thread) => test(thread) !== 0, s, names);
    }
    case "let": {
      const value = compileExpr(s.value, names);
      const slot = names.bindValue(s.name);
      return {
        run: (thread) => {
          thread.values[slot] = value(thread);
        },
      };
    }
    case "letIndex":
      return { run: compileLetIndex(s, names) };
    case "store":
      return { run: compileStore(s, names) };
    default:
      return compileSync(s, names);
  }
}

function compileFor(s: Extract<Statement, { kind: "for" }>, names: NameSlots): Code {
  const extent = compileIndex(s.extent, names.int);
  const inner = names.inner();
  const range = compileRange(s, names);
  const slot = inner.bindInt(s.variable);
  const body = compileBody(s.body, inner);
  const { run, steps } = body;
  if (run) {
    return {
      run: (thread) => {
        const [from, to] = range(thread, extent(thread.ints));
        for (let i = from; i < to; i++) {
          thread.ints[slot] = i;
          run(thread);
        }
      },
    };
  }
  return {
    *steps(thread) {
      const [from, to] = range(thread, extent(thread.ints));
      for (let i = from; i < to; i++) {
        thread.ints[slot] = i;
        yield* steps!(thread);
      }
    },
  };
}

type RangeCode = (thread: Thread, extent: number) => readonly [number, number];

/** The iterations that this instance runs: contiguous chunks over a grid axis. */
function compileRange(s: Extract<Statement, { kind: "for" }>, names: NameSlots): RangeCode {
  if (s.mode.kind !== "grid") return (_, extent) => [0, extent];
  const { axis } = s.mode;
  const place = names.int(axis);
  const extentExpr = names.kernel.grid.axes.find((a) => a.name === axis)!.extent;
  const instances = compileIndex(extentExpr, names.int);
  return (thread, extent) => {
    const chunk = Math.ceil(extent / instances(thread.ints));
    const from = chunk * thread.ints[place]!;
    return [from, Math.min(extent, from + chunk)];
  };
}

function compileBranch(
  test: (thread: Thread) => boolean,
  s: Extract<Statement, { kind: "if" | "when" }>,
  names: NameSlots,
): Code {
  const yes = compileBody(s.then, names.inner());
  const no = compileBody(s.else, names.inner());
  if (yes.run && no.run) {
    const [then, otherwise] = [yes.run, no.run];
    return { run: (thread) => (test(thread) ? then(thread) : otherwise(thread)) };
  }
  return {
    *steps(thread) {
      const code = test(thread) ? yes : no;
      if (code.run) code.run(thread);
      else yield* code.steps!(thread);
    },
  };
}

function compileLetIndex(
  s: Extract<Statement, { kind: "letIndex" }>,
  names: NameSlots,
): (thread: Thread) => void {
  const value = compileOne(s.value, names);
  const extent = compileIndex(s.extent, names.int);
  const slot = names.bindInt(s.name);
  return (thread) => {
    const end = extent(thread.ints);
    const found = value(thread);
    const given = Number(found);
    const index = s.wraps && given < 0 ? given + end : given;
    if (!(index >= 0 && index < end)) {
      raise("indexOutOfRange", `${s.name} = ${found}, allowed 0 to ${end - 1} (${s.range})`);
    }
    thread.ints[slot] = index;
  };
}

function compileStore(
  s: Extract<Statement, { kind: "store" }>,
  names: NameSlots,
): (thread: Thread) => void {
  const slot = names.buffer(s.buffer);
  const { lanes } = s.value;
  const place = compileOffset(s.index, lanes, names.int);
  if (lanes === 1) {
    const value = compileOne(s.value, names);
    return (thread) => {
      const given = value(thread);
      const view = thread.views[slot]!;
      const offset = place(view, thread.ints);
      view.note(thread.agent, "write", offset, 1);
      view.writeAt(offset, given);
    };
  }
  const value = compileExpr(s.value, names);
  return (thread) => {
    const given = value(thread);
    const view = thread.views[slot]!;
    const offset = place(view, thread.ints);
    view.note(thread.agent, "write", offset, lanes);
    for (let l = 0; l < lanes; l++) view.writeAt(offset + l, given[l]!);
  };
}
