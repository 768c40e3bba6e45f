/** State of one thread of a grid instance, and of the instance; what compiled statements work on. */
import type { Agent, Knowledge } from "./program-clock.ts";
import type { Frame } from "./program-expr.ts";
import type { Block, Machine, Runnable } from "./program-machine.ts";
import type { View } from "./program-memory.ts";
import type { AsyncOperation, Meeting, MonotoneCell, PhaseCell } from "./program-sync.ts";

/** An array of counters bound to an instance or to the run. */
export interface CounterArray {
  readonly name: string;
  readonly shape: readonly number[];
  readonly monotone: readonly MonotoneCell<Runnable>[];
  readonly phase: readonly PhaseCell<Runnable>[];
}

/** A launch among the others of the run. */
export interface LaunchPlace {
  /** Once all instances have said so or ended, the next launch may begin. */
  readonly launchDependents: (instance: Instance) => void;
  readonly prerequisites: Pick<Block<Runnable>, "queue" | "isReady">;
  /** Adds what earlier launches knew when they ended. */
  readonly learn: (knows: Knowledge) => void;
}

/** One element of the grid. */
export interface Instance {
  readonly label: string;
  readonly index: number;
  readonly launch: LaunchPlace;
  /** All instances of its cluster, itself included, in order of rank. */
  readonly cluster: Instance[];
  readonly shared: ReadonlyMap<string, View>;
  readonly counters: ReadonlyMap<string, CounterArray>;
}

/** Asynchronous work of one thread under one group name. */
export interface GroupState {
  committed: number;
  readonly operations: { readonly batch: number; readonly operation: AsyncOperation }[];
}

export interface Thread extends Frame {
  readonly machine: Machine;
  readonly agent: Agent;
  readonly instance: Instance;
  readonly views: readonly View[];
  readonly groups: Map<string, GroupState>;
  /** Meeting places by barrier scope and for collectives (`warp`). */
  readonly meetings: Readonly<
    Record<"warp" | "copy" | "role" | "instance" | "cluster" | "grid", Meeting<Thread>>
  >;
  /** Slots of asynchronous accesses, by unit and group. */
  readonly groupSlots: Map<string, number>;
  /** Number within the role copy. */
  readonly number: number;
}

/** The counter cell at an index; outside is a fault of the program. */
export function cellNumber(
  counter: CounterArray,
  index: readonly number[],
  fault: () => never,
): number {
  let at = 0;
  for (const [axis, extent] of counter.shape.entries()) {
    const i = index[axis]!;
    if (i < 0 || i >= extent) fault();
    at = at * extent + i;
  }
  return at;
}
