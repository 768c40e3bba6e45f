/**
 * Pairs of instances that refused schedules of some statements: a quick "no" to other schedules of the same
 * statements, for who judges many of them. Each pair depends on one another whatever the schedule is, so one
 * that breaks it is illegal; one that breaks none still has to be proved.
 */
import { type FunctionRows, readFunctions } from "./function-rows.ts";
import { marksOf, type TimeSchedule, type Witness } from "./legality.ts";
import { evaluateRow, floorDiv } from "./row.ts";
import type { IntegerMap } from "./types.ts";
import { answer } from "./work.ts";

export class KnownConflicts {
  readonly #pairs = { ordered: [] as Witness[], apart: [] as Witness[] };
  readonly #seen = new Set<string>();
  readonly #onFound: () => void;

  constructor(onFound: () => void = () => {}) {
    this.#onFound = onFound;
  }

  /** Remembers the pair of a refusal, whose dependence may be one that is only to be kept apart. */
  add(witness: Witness): void {
    const { source, sink, params, dependence } = witness;
    const kind = dependence.reassociable ? "apart" : "ordered";
    const key = JSON.stringify([kind, source, sink, params]);
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    this.#pairs[kind].unshift(witness);
  }

  /**
   * A pair that the schedule breaks: `ordered` ones must run one before the other, those to be kept `apart`
   * must only not run at once on threads. What broke the last schedule is tried first.
   */
  find(schedule: TimeSchedule, kind: "ordered" | "apart"): Witness | undefined {
    const pairs = this.#pairs[kind];
    for (const [at, pair] of pairs.entries()) {
      const broken = answer(() => breakingOf(schedule, pair, kind));
      if (broken.kind === "unknown" || !broken.value) continue;
      pairs.copyWithin(1, 0, at);
      pairs[0] = pair;
      this.#onFound();
      return { ...pair, ...broken.value };
    }
    return undefined;
  }
}

/** The pairs known of each nest. */
export class ConflictMemory {
  readonly #known = new WeakMap<object, KnownConflicts>();
  #hits = 0;

  /** Schedules that were refused without a proof. */
  get hits(): number {
    return this.#hits;
  }

  of(nest: object): KnownConflicts {
    const known =
      this.#known.get(nest) ??
      new KnownConflicts(() => {
        this.#hits++;
      });
    this.#known.set(nest, known);
    return known;
  }
}

type Breaking = Pick<Witness, "violation" | "dimension" | "sourceTime" | "sinkTime">;

/** How the schedule breaks the pair; undefined where it does not, or where that takes more than arithmetic. */
function breakingOf(
  schedule: TimeSchedule,
  { source, sink, params, dependence }: Witness,
  kind: "ordered" | "apart",
): Breaking | undefined {
  const early = timeAt(schedule.times.get(source.statement), source.values, params);
  const late = timeAt(schedule.times.get(sink.statement), sink.values, params);
  if (!early || !late) return undefined;
  const depth = Math.max(early.length, late.length);
  const marks = marksOf(schedule, dependence, depth);
  const times = { sourceTime: early, sinkTime: late };
  for (let k = 0; k < depth; k++) {
    const step = (late[k] ?? 0) - (early[k] ?? 0);
    if (step === 0) continue;
    const mark = marks[k];
    if (kind === "apart") {
      return mark === "parallel" ? { violation: mark, dimension: k, ...times } : undefined;
    }
    if (step < 0) return { violation: "reversed", dimension: k, ...times };
    return mark ? { violation: mark, dimension: k, ...times } : undefined;
  }
  return kind === "apart" ? undefined : { violation: "simultaneous", dimension: depth, ...times };
}

/** The time of an instance; undefined unless one function without conditions gives it. */
function timeAt(
  map: IntegerMap | undefined,
  instance: readonly number[],
  params: Readonly<Record<string, number>>,
): readonly number[] | undefined {
  const functions = map && readFunctions(map);
  if (functions?.length !== 1) return undefined;
  const { rows } = functions[0]!;
  if (rows.equalities.length > 0 || rows.inequalities.length > 0) return undefined;
  const values = [...map!.params.map((p) => params[p] ?? Number.NaN), ...instance];
  if (!addLocals(values, rows)) return undefined;
  return rows.outputs.map((r) => evaluateRow(r, values));
}

/** Appends the values of the floors, each of which stands behind those it is made of. */
function addLocals(values: number[], { locals }: FunctionRows): boolean {
  if (values.some(Number.isNaN)) return false;
  const first = values.length;
  for (const [k, division] of locals.entries()) {
    if (!division) return false;
    const { numerator, divisor } = division;
    for (let other = k; other < locals.length; other++) {
      if (numerator[first + other] !== 0) return false;
    }
    values.push(floorDiv(evaluateRow(numerator, padded(values, numerator.length - 1)), divisor));
  }
  return true;
}

function padded(values: readonly number[], length: number): readonly number[] {
  return values.length === length
    ? values
    : [...values, ...new Array<number>(length - values.length).fill(0)];
}
