/**
 * Coverage by listing: the stores of statements without parameters are run, and the elements of a box that
 * they write are marked. In: statements that lead to stores into one buffer, and a box. Out: whether every
 * element of the box was written; false where a place hangs on a parameter or on data, or there is too much
 * to run. Exact, and for what the symbolic proof (cover.ts) leaves open: overlapping pieces of constant sizes.
 */
import type { Condition } from "../../semantics/condition.ts";
import { constantValue, type IndexExpr, variablesOf } from "../../semantics/index-expr.ts";
import { invariant } from "../../support/invariant.ts";
import type { Statement } from "../statement.ts";
import { compileIndex, type IndexReader } from "./compile-index.ts";

interface ListedBox {
  readonly lo: readonly IndexExpr[];
  readonly hi: readonly IndexExpr[];
}

/** Elements of a box, and statements run, at most. */
const mostElements = 1 << 22;
const mostSteps = 1 << 21;

export interface ListingOptions {
  /** Of one element of the buffer. */
  readonly lanes: number;
  /** Whether a loop of that extent, which may be a parameter, runs at least once. */
  readonly runs: (extent: IndexExpr) => boolean;
}

export function coversByListing(
  body: readonly Statement[],
  { lo, hi }: ListedBox,
  options: ListingOptions,
): boolean {
  const from = lo.map(constantValue);
  const to = hi.map(constantValue);
  if (from.includes(undefined) || to.includes(undefined)) return false;
  const marks = new Marks(from as number[], to as number[]);
  if (marks.left === 0) return true;
  if (marks.left > mostElements) return false;
  const run = runnable(body, new Set(), { marks, ...options });
  const state = { env: new Map<string, number>(), steps: mostSteps };
  return run?.(state) === true && marks.left === 0;
}

interface State {
  readonly env: Map<string, number>;
  steps: number;
}

/** False once too many steps were run. */
type Run = (state: State) => boolean;

interface Into extends ListingOptions {
  readonly marks: Marks;
}

/** Undefined where a statement cannot be listed. */
function runnable(
  body: readonly Statement[],
  bound: ReadonlySet<string>,
  into: Into,
): Run | undefined {
  const runs = body.map((s) => runOf(s, bound, into));
  if (runs.includes(undefined)) return undefined;
  return (state) => runs.every((run) => run!(state));
}

function runOf(s: Statement, bound: ReadonlySet<string>, into: Into): Run | undefined {
  switch (s.kind) {
    case "store":
      return runOfStore(s, bound, into);
    case "for":
      return runOfLoop(s, bound, into);
    case "if": {
      const holds = s.conditions.map((c) => condition(c, bound));
      const [then, otherwise] = [s.then, s.else].map((b) => runnable(b, bound, into));
      if (holds.includes(undefined) || !then || !otherwise) return undefined;
      return (state) => (holds.every((h) => h!(state.env)) ? then(state) : otherwise(state));
    }
    default:
      return undefined;
  }
}

function runOfLoop(
  { variable, extent: given, body }: Extract<Statement, { kind: "for" }>,
  bound: ReadonlySet<string>,
  into: Into,
): Run | undefined {
  const inner = new Set(bound);
  const extent = reader(given, bound);
  if (extent) {
    const inside = runnable(body, inner.add(variable), into);
    return inside && loop(variable, extent, inside);
  }
  // Of any number of trips, as threads make them, one is enough where what they write does not depend on it.
  inner.delete(variable);
  return into.runs(given) ? runnable(body, inner, into) : undefined;
}

function loop(variable: string, extent: IndexReader, inside: Run): Run {
  return (state) => {
    const { env } = state;
    const outer = env.get(variable);
    const trips = extent(env);
    for (let trip = 0; trip < trips; trip++) {
      env.set(variable, trip);
      if (state.steps-- <= 0 || !inside(state)) return false;
    }
    if (outer !== undefined) env.set(variable, outer);
    return true;
  };
}

function runOfStore(
  s: Extract<Statement, { kind: "store" }>,
  bound: ReadonlySet<string>,
  { marks, lanes }: Into,
): Run | undefined {
  const index = s.index.map((e) => reader(e, bound));
  const span = s.value.lanes / lanes;
  if (index.includes(undefined) || !Number.isInteger(span)) return undefined;
  return (state) => {
    marks.take(index as IndexReader[], state.env, span);
    return state.steps-- > 0;
  };
}

function condition(
  { kind, expr }: Condition,
  bound: ReadonlySet<string>,
): ((env: ReadonlyMap<string, number>) => boolean) | undefined {
  const value = reader(expr, bound);
  if (!value) return undefined;
  return kind === "zero" ? (env) => value(env) === 0 : (env) => value(env) >= 0;
}

function reader(e: IndexExpr, bound: ReadonlySet<string>): IndexReader | undefined {
  for (const name of variablesOf(e)) if (!bound.has(name)) return undefined;
  return compileIndex(e, (name) => invariant(false, () => `${name} is bound`) as never);
}

/** Elements of a box that are written. */
class Marks {
  left: number;
  readonly #lo: readonly number[];
  readonly #size: readonly number[];
  readonly #written: Uint8Array;

  constructor(lo: readonly number[], hi: readonly number[]) {
    this.#lo = lo;
    this.#size = lo.map((from, axis) => Math.max(0, hi[axis]! - from));
    this.left = this.#size.reduce((n, size) => n * size, 1);
    this.#written = new Uint8Array(this.left > mostElements ? 0 : this.left);
  }

  /** Elements from an index on along the last axis. */
  take(index: readonly IndexReader[], env: ReadonlyMap<string, number>, span: number): void {
    const last = index.length - 1;
    let row = 0;
    for (let axis = 0; axis < last; axis++) {
      const at = index[axis]!(env) - this.#lo[axis]!;
      if (at < 0 || at >= this.#size[axis]!) return;
      row = row * this.#size[axis]! + at;
    }
    const width = last < 0 ? 1 : this.#size[last]!;
    const start = last < 0 ? 0 : index[last]!(env) - this.#lo[last]!;
    for (let lane = Math.max(0, -start); lane < span && start + lane < width; lane++) {
      const at = row * width + start + lane;
      this.left -= 1 - this.#written[at]!;
      this.#written[at] = 1;
    }
  }
}
