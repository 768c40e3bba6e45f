/**
 * The choice for a whole model as a factor graph: a variable per region whose states are what is left of
 * its superposition, and a transition between every producer and reader of a tensor that prices how its
 * parts lie in the caches of the cores. A reader that is dealt out to threads as its producer was finds
 * its part in its own core's cache; one that is dealt out otherwise fetches the others' parts. In:
 * states of the regions, who shares which tensor. Out: a search problem in integer picoseconds.
 */
import type { Problem, Transition, Variable } from "../../search/problem.ts";
import type { Target } from "../../target/target.ts";
import type { AccessFigures, NestFigures } from "../states/nest-figures.ts";
import { picoseconds, type RegionState, type RegionStates } from "../states/region-states.ts";

export interface ModelRegion {
  readonly name: string;
  readonly states: RegionStates;
}

export interface SharingOptions {
  readonly target: Target;
  readonly threads: number;
  /** The tensor whose storage a name stands for. */
  readonly rootOf: (tensor: string) => string;
}

/** Producer and reader of one tensor, by the numbers of their regions. */
interface SharedTensor {
  readonly from: number;
  readonly to: number;
  readonly written: AccessFigures;
  readonly read: AccessFigures;
}

export function modelProblem(
  name: string,
  regions: readonly ModelRegion[],
  options: SharingOptions,
): Problem {
  const variables = regions.map(
    (r): Variable => ({
      name: r.name,
      prices: Float64Array.from(r.states.states, (s) => picoseconds(s.priceNs)),
    }),
  );
  const transitions = sharedTensors(
    regions.map((r) => r.states.figures),
    options.rootOf,
  ).map((shared) => transitionOf(shared, regions, options));
  return {
    name,
    variables,
    transitions: transitions.filter((t) => t.prices.some((p) => p > 0)),
    budgets: [],
    offset: 0,
    unit: { name: "ps", perPrice: 1 },
  };
}

/** The most that the transitions of a region can differ by, whatever its neighbours choose. */
export function refundNs(figures: NestFigures, options: SharingOptions): number {
  return figures.accesses.reduce((sum, a) => sum + fetchNs(a, options), 0);
}

function sharedTensors(
  all: readonly NestFigures[],
  rootOf: SharingOptions["rootOf"],
): readonly SharedTensor[] {
  const writers = new Map<string, { readonly from: number; readonly written: AccessFigures }>();
  const found: SharedTensor[] = [];
  for (const [at, { accesses }] of all.entries()) {
    const seen = new Set<number>();
    for (const read of accesses) {
      if (read.use === "write") continue;
      const writer = writers.get(rootOf(read.tensor));
      if (!writer || seen.has(writer.from)) continue;
      seen.add(writer.from);
      found.push({ ...writer, to: at, read });
    }
    for (const written of accesses) {
      if (written.use === "write") writers.set(rootOf(written.tensor), { from: at, written });
    }
  }
  return found;
}

function transitionOf(
  { from, to, written, read }: SharedTensor,
  regions: readonly ModelRegion[],
  options: SharingOptions,
): Transition {
  const [writer, reader] = [regions[from]!.states, regions[to]!.states];
  const rows = classesOf(writer, written);
  const columns = classesOf(reader, read);
  const fetch = fetchNs(written, options);
  const prices = rows.names.flatMap((row) =>
    columns.names.map((column) => picoseconds(fetch * shareFetched(row, column, options.threads))),
  );
  return {
    from,
    to,
    fromClass: rows.classes,
    toClass: columns.classes,
    columns: columns.names.length,
    prices: Float64Array.from(prices),
  };
}

/** Time for one core to fetch all that the others have of a tensor. */
function fetchNs(a: AccessFigures, { target, threads }: SharingOptions): number {
  if (threads < 2 || !target.capabilities.has("threads")) return 0;
  const [, own, shared] = target.memory;
  if (!own?.capacityBytes || !shared || a.role === "weight") return 0;
  const bytes = a.axes.reduce((n, x) => n * x.extent, a.bytes);
  // What does not stay in a core's own cache is fetched from behind it in any case.
  if (bytes > own.capacityBytes.value) return 0;
  const each = 1 / shared.bytesPerNsPerCore.value - 1 / own.bytesPerNsPerCore.value;
  return bytes * Math.max(0, each) * ((threads - 1) / threads);
}

const oneThread = "one thread";
const everyThread = "all of it";

/** Part of the fetch that the slowest thread does. */
function shareFetched(row: string, column: string, threads: number): number {
  if (row === column && row !== everyThread) return 0;
  const dealtTwice = ![oneThread, everyThread].includes(row) && column !== oneThread;
  return dealtTwice && column !== everyThread ? 1 / threads : 1;
}

interface StateClasses {
  readonly classes: Int32Array;
  readonly names: readonly string[];
}

/** How each state deals a tensor out: by which block of its elements. */
function classesOf({ states, figures }: RegionStates, access: AccessFigures): StateClasses {
  const names: string[] = [];
  const classes = Int32Array.from(states, (state) => {
    const name = dealing(state, figures, access);
    if (!names.includes(name)) names.push(name);
    return names.indexOf(name);
  });
  return { classes, names };
}

/** Elements before the axis that the threads share: equal numbers are equal parts. */
function dealing(state: RegionState, figures: NestFigures, access: AccessFigures): string {
  const loop = state.choice?.parallel ?? state.parallel;
  if (loop === undefined || figures.loops[loop] === undefined) return oneThread;
  const axis = access.axes.findIndex((x) => x.steps[loop] !== 0);
  if (axis < 0) return everyThread;
  return String(access.axes.slice(0, axis).reduce((n, x) => n * x.extent, 1));
}
