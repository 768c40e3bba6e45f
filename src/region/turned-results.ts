/**
 * Folds whose results are turned behind them: a fold leaves its results in the order in which its lanes run, and
 * a map brings them into the order in which they are wanted. In: a region that folds, a loop for its lanes. Out:
 * the fold and the maps, each a region of its own. Whether that is cheaper than a fold whose lanes meet elements
 * that lie apart is decided elsewhere (schedule/choice/choose-turns.ts).
 */
import type { DType } from "../semantics/dtype.ts";
import { constantValue, type IndexExpr, variable, variablesOf } from "../semantics/index-expr.ts";
import { argument, type ScalarExpr } from "../semantics/scalar-expr.ts";
import { printScalar } from "../semantics/scalar-text.ts";
import { invariant } from "../support/invariant.ts";
import { finishOf, pruneFinishReads, pruneReads } from "./compose-epilogue.ts";
import type { Access, Loop, Region, RegionTensor, Statement, Write } from "./nest.ts";
import { itemTensors } from "./prune.ts";

/** Where what a map reads is computed: with the fold, or by the map itself from what is folded. */
export type TurnedFrom = "results" | "sums";

/** Whether the results of a region can be turned behind it: of a fold alone, each written once, wherever. */
export function mayTurn({ statements: [statement, other] }: Region): boolean {
  if (!statement?.reduction || other || statement.guard.length > 0) return false;
  const { loops, indirects, writes } = statement;
  const names = new Set(loops.map((l) => l.name));
  const isBox = loops.every((l) => l.kind !== "scan" && !meets(l.extent, names));
  return isBox && indirects.length === 0 && writes.every((w) => w.combine === "overwrite");
}

function meets(index: IndexExpr, names: ReadonlySet<string>): boolean {
  return [...variablesOf(index)].some((name) => names.has(name));
}

/**
 * The fold with lanes along `lane`, and the maps behind it; undefined where no write is in another order, or
 * where there is nothing between what is folded and the results.
 */
export function turnResults(
  region: Region,
  lane: string,
  from: TurnedFrom,
): readonly Region[] | undefined {
  const [statement] = region.statements;
  invariant(statement, () => `${region.name} has no statement`);
  const turner = new Turner(region, statement, lane);
  return from === "results" ? turner.behindResults() : turner.behindSums();
}

/** Whether neighbours along the loop are neighbours in memory where this is written. */
export function liesAlong(write: Write, lane: string, tensors: Region["tensors"]): boolean {
  const { last, others } = wideAxes(write, tensors);
  const isApart = others.some((e) => variablesOf(e).has(lane));
  return !isApart && last?.terms.find((t) => t.key === lane)?.coefficient === 1;
}

/** Where an access is on the axes of more than one element: on the innermost, and on those around it. */
export function wideAxes(
  { tensor, index }: Pick<Write, "tensor" | "index">,
  tensors: Region["tensors"],
): { readonly last: IndexExpr | undefined; readonly others: readonly IndexExpr[] } {
  const { shape } = tensors.get(tensor)!;
  const wide = index.filter((_, axis) => constantValue(shape[axis]!) !== 1);
  return { last: wide.at(-1), others: wide.slice(0, -1) };
}

class Turner {
  readonly #region: Region;
  readonly #statement: Statement;
  readonly #lane: string;
  /** Loops over results, the lanes' last. */
  readonly #loops: readonly Loop[];

  constructor(region: Region, statement: Statement, lane: string) {
    this.#region = region;
    this.#statement = statement;
    this.#lane = lane;
    const space = statement.loops.filter((l) => l.kind === "space");
    this.#loops = [
      ...space.filter((l) => l.name !== lane),
      ...space.filter((l) => l.name === lane),
    ];
  }

  /** Writes along the lanes stay; of each other value there is one tensor, unless a write that stays has it. */
  behindResults(): readonly Region[] | undefined {
    const { writes } = this.#statement;
    const values = finishOf(this.#statement);
    const stays = writes.map((w) => liesAlong(w, this.#lane, this.#region.tensors));
    if (stays.every((is) => is)) return undefined;
    const stored = new Map<string, Access>();
    for (const [i, write] of writes.entries()) {
      if (stays[i]) stored.set(this.#valueKey(values[i]!, write), readOf(write));
    }
    const added: { readonly write: Write; readonly value: ScalarExpr }[] = [];
    const tensors: RegionTensor[] = [];
    const moves = writes.flatMap((write, i): readonly Move[] => {
      if (stays[i]) return [];
      const value = values[i]!;
      const { dtype } = this.#region.tensors.get(write.tensor)!;
      const key = this.#valueKey(value, write);
      let access = stored.get(key);
      if (!access) {
        const tensor = this.#ordered(write.tensor, dtype, added.length);
        const inOrder = this.#inOrder(tensor);
        tensors.push(tensor);
        added.push({ write: inOrder, value });
        access = readOf(inOrder);
        stored.set(key, access);
      }
      return [{ write, reads: [access], body: argument(0, dtype) }];
    });
    const kept = <T>(all: readonly T[]): readonly T[] => all.filter((_, i) => stays[i]);
    const left = pruneFinishReads({
      ...this.#statement,
      writes: [...kept(writes), ...added.map((a) => a.write)],
      finish: [...kept(values), ...added.map((a) => a.value)],
    });
    return this.#regions(withoutFinish(left), moves, tensors);
  }

  /** What is folded is stored along the lanes, and everything behind it is computed by the maps. */
  behindSums(): readonly Region[] | undefined {
    const { finish, ...fold } = this.#statement;
    const { body, writes, finishReads } = fold;
    if (
      !finish ||
      body.length > 1 ||
      writes.every((w) => liesAlong(w, this.#lane, this.#region.tensors))
    )
      return undefined;
    const tensor = this.#ordered(writes[0]!.tensor, body[0]!.dtype);
    const sums = this.#inOrder(tensor);
    const reads = [readOf(sums), ...finishReads];
    const moves = writes.map((write, i): Move => ({ write, reads, body: finish[i]! }));
    return this.#regions({ ...fold, finishReads: [], writes: [sums] }, moves, [tensor]);
  }

  /** Equal for what is stored alike. */
  #valueKey(value: ScalarExpr, { tensor }: Write): string {
    const { dtype } = this.#region.tensors.get(tensor)!;
    return `${dtype} ${printScalar(value, ({ index }) => `_${index}`)}`;
  }

  #ordered(of: string, dtype: DType, number = 0): RegionTensor {
    const name = [of, this.#region.name, ...(number > 0 ? [number] : [])].join(".");
    return { name, dtype, shape: this.#loops.map((l) => l.extent), role: "intermediate" };
  }

  #inOrder({ name }: RegionTensor): Write {
    const index = this.#loops.map((l) => variable(l.name));
    return { tensor: name, index, combine: "overwrite" };
  }

  #regions(
    fold: Statement,
    moves: readonly Move[],
    added: readonly RegionTensor[],
  ): readonly Region[] {
    const { name, tensors, symbols, group } = this.#region;
    const all = new Map([...tensors, ...added.map((t) => [t.name, t] as const)]);
    const touched = (statement: Statement): Region["tensors"] => {
      const names = new Set(itemTensors({ kind: "statement", statement }));
      return new Map([...names].map((t) => [t, all.get(t)!]));
    };
    const maps = moves.map((move, i): Region => {
      const own = i === 0 ? `turn.${name}` : `turn.${name}.${i}`;
      const statement = this.#map(own, move);
      const alone = { name: own, anchor: own, inlined: [], epilogue: [] };
      const statements = [statement];
      return { name: own, group: alone, statements, symbols, tensors: touched(statement) };
    });
    return [{ name, group, statements: [fold], symbols, tensors: touched(fold) }, ...maps];
  }

  /** A map over the results, its loops in the order of the axes that they move. */
  #map(name: string, { write, reads, body }: Move): Statement {
    const axisOf = (l: Loop): number => write.index.findIndex((e) => variablesOf(e).has(l.name));
    return pruneReads({
      name,
      loops: [...this.#loops].sort((a, b) => axisOf(a) - axisOf(b)),
      guard: [],
      indirects: [],
      reads,
      body: [body],
      finishReads: [],
      writes: [write],
      origin: `order of ${write.tensor}`,
    });
  }
}

/** What a map makes of what it reads, and where that goes. */
interface Move {
  readonly write: Write;
  readonly reads: readonly Access[];
  readonly body: ScalarExpr;
}

/** Results that are what is folded need no words. */
function withoutFinish(statement: Statement): Statement {
  const { finish, ...fold } = statement;
  const isPlain =
    finish?.length === fold.body.length &&
    finish.every((e, i) => e.kind === "argument" && e.index === i);
  return isPlain ? fold : statement;
}

function readOf({ tensor, index }: Write): Access {
  return { tensor, index, guard: [], fill: 0 };
}
