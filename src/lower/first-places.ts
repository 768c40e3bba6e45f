/**
 * The places of the first of each line (Selection in region/nest.ts): a tournament of two levels. Elements of a line
 * stand in rows of groups; of each group the first in order is kept with its place. A result is the first of
 * those, and its group's next first is looked for among its rows. Of a line of n elements in g groups k results take
 * about n + k (g + n / g) steps, whatever the elements are, and all but the rows of one group run in lanes.
 */
import {
  applyExpr,
  exprOfScalar,
  extractExpr,
  forLoop,
  indexValue,
  letValue,
  literalExpr,
  loadExpr,
  localExpr,
  overGrid,
  serial,
  splatExpr,
  storeTo,
} from "../program/expr.ts";
import type { Buffer, Kernel } from "../program/program.ts";
import type { Expr, Statement, ValueType } from "../program/statement.ts";
import type { NestProgram, NestTensor, Routine, Selection } from "../region/nest.ts";
import { type DType, dtypes } from "../semantics/dtype.ts";
import {
  add,
  constant,
  constantValue,
  type IndexExpr,
  mul,
  sub,
  variable,
} from "../semantics/index-expr.ts";
import { identityElement } from "../semantics/monoids.ts";
import { argument } from "../semantics/scalar-expr.ts";
import { exceeds, ties } from "../semantics/total-order.ts";
import { invariant } from "../support/invariant.ts";
import { Names } from "./block.ts";
import { threadAxis, threadGrid } from "./thread-grid.ts";

/** Vectors that are folded side by side. */
const mostChains = 4;
/** Vectors of so few lanes are taken apart. */
const fewLanes = 4;
/** Stands behind every place of a line. */
const nowhere = 2 ** 31 - 1;

interface SelectionSite {
  readonly routine: Routine & { readonly selects: Selection };
  readonly tensorOf: (name: string) => NestTensor;
  /** Symbols of the program, which no loop is called after. */
  readonly symbols: ReadonlySet<string>;
}

export function selectionKernel(
  routine: SelectionSite["routine"],
  { tensors, symbols: given }: NestProgram,
): Kernel {
  const symbols = new Set(given.map((s) => s.name));
  const tensorOf = (name: string): NestTensor => tensors.get(name)!;
  return new SelectionLowering({ routine, tensorOf, symbols }).kernel();
}

interface Found {
  readonly key: Expr;
  readonly place: Expr;
}

class SelectionLowering {
  readonly #site: SelectionSite;
  readonly #names: Names;
  readonly #keys: NestTensor;
  readonly #places: NestTensor;
  readonly #lanes: number;
  readonly #rows: IndexExpr;
  readonly #groups: number;
  /** Of groups. */
  readonly #vectors: number;
  readonly #buffers: Buffer[] = [];
  readonly #firstKeys: string;
  readonly #firstPlaces: string;
  #body: Statement[] = [];

  constructor(site: SelectionSite) {
    const { routine, tensorOf } = site;
    this.#site = site;
    this.#names = new Names(new Set([...routine.reads, ...routine.writes]));
    this.#keys = tensorOf(routine.reads[0]!);
    this.#places = tensorOf(routine.writes[0]!);
    const [, rows, groups] = this.#keys.shape;
    this.#rows = rows!;
    this.#groups = constantValue(groups!)!;
    this.#lanes = routine.selects.lanes;
    invariant(this.#groups % this.#lanes === 0, () => "lanes divide the groups of a selection");
    this.#vectors = this.#groups / this.#lanes;
    this.#firstKeys = this.#buffer("first", "local", this.#keys.dtype, this.#groups);
    this.#firstPlaces = this.#buffer("place", "local", "i32", this.#groups);
  }

  kernel(): Kernel {
    const { routine } = this.#site;
    const [lines] = this.#places.shape;
    const isDealt = constantValue(lines!) !== 1;
    const mode = isDealt ? overGrid(threadAxis) : serial;
    const body = this.#inside(() =>
      this.#loop("line", lines!, (line) => this.#selectLine(line), mode),
    );
    return {
      name: routine.name,
      grid: threadGrid(isDealt),
      buffers: this.#buffers,
      counters: [],
      roles: [{ name: "main", copies: 1, threads: 1, body }],
      region: routine.name,
    };
  }

  #selectLine(line: IndexExpr): void {
    this.#findFirsts(line);
    this.#loop("result", this.#places.shape[1]!, (result) => this.#takeFirst(line, result));
  }

  /** The first of each group, row by row: a later one has to exceed it. */
  #findFirsts(line: IndexExpr): void {
    const chains = Math.min(mostChains, this.#vectors);
    const type = { dtype: this.#keys.dtype, lanes: this.#lanes };
    const key = this.#register(type, chains);
    const place = this.#register({ dtype: "i32", lanes: this.#lanes }, chains);
    this.#eachBlock(0, chains, (groups) => this.#foldRows(line, groups, { key, place }));
  }

  #foldRows(
    line: IndexExpr,
    groups: readonly IndexExpr[],
    { key, place }: { readonly key: string; readonly place: string },
  ): void {
    const type = { dtype: this.#keys.dtype, lanes: this.#lanes };
    const placeType = { ...type, dtype: "i32" as const };
    const [keys] = this.#site.routine.reads as [string];
    for (const [chain, group] of groups.entries()) {
      this.#body.push(
        storeTo(key, [chain], loadExpr(keys, [line, 0, group], type)),
        storeTo(place, [chain], this.#placesFrom(group)),
      );
    }
    this.#loop("row", sub(this.#rows, 1), (before) => {
      const row = add(before, 1);
      for (const [chain, group] of groups.entries()) {
        const own = this.#let(loadExpr(keys, [line, row, group], type));
        const old = this.#let(this.#load(key, type, chain));
        const isFirst = this.#let(this.#precedes(own, old));
        const at = this.#placesFrom(add(mul(row, this.#groups), group));
        const oldPlace = this.#load(place, placeType, chain);
        this.#body.push(
          storeTo(key, [chain], this.#first(old, own)),
          storeTo(place, [chain], applyExpr("select", isFirst, at, oldPlace)),
        );
      }
    });
    for (const [chain, group] of groups.entries()) {
      this.#body.push(
        storeTo(this.#firstKeys, [group], this.#load(key, type, chain)),
        storeTo(this.#firstPlaces, [group], this.#load(place, placeType, chain)),
      );
    }
  }

  /** Vectors of groups from one on, so many side by side as there are chains, by their first groups. */
  #eachBlock(from: number, chains: number, fill: (groups: readonly IndexExpr[]) => void): void {
    const whole = Math.floor((this.#vectors - from) / chains);
    const blockAt = (first: IndexExpr, count: number): readonly IndexExpr[] =>
      Array.from({ length: count }, (_, chain) => mul(add(first, chain), this.#lanes));
    this.#loop("block", constant(whole), (block) =>
      fill(blockAt(add(mul(block, chains), from), chains)),
    );
    const rest = this.#vectors - from - whole * chains;
    if (rest > 0) fill(blockAt(constant(this.#vectors - rest), rest));
  }

  /** The first of the firsts is the next result; its group gets another. */
  #takeFirst(line: IndexExpr, result: IndexExpr): void {
    const { routine } = this.#site;
    const { dtype } = this.#keys;
    const isFirst = (a: Expr, b: Expr): Expr => this.#first(a, b);
    const key = this.#folded(this.#last(1), isFirst, (group, lanes) =>
      loadExpr(this.#firstKeys, [group], { dtype, lanes }),
    );
    const everywhere = this.#let(splatExpr(key, this.#lanes));
    const least = (a: Expr, b: Expr): Expr => applyExpr("min", a, b);
    const place = this.#folded(literalExpr(nowhere, "i32"), least, (group, lanes) => {
      const own = loadExpr(this.#firstKeys, [group], { dtype, lanes });
      const at = loadExpr(this.#firstPlaces, [group], { dtype: "i32", lanes });
      const isIt = this.#ties(own, everywhere);
      return applyExpr("select", isIt, at, literalExpr(nowhere, "i32", lanes));
    });
    this.#body.push(storeTo(routine.writes[0]!, [line, result], place));
    const vector = this.#names.fresh("vector");
    this.#body.push({
      kind: "letIndex",
      ...{ name: vector, value: this.#vectorOf(place), extent: constant(this.#vectors) },
      ...{ wraps: false, range: "proved" },
    });
    this.#findNext(line, variable(vector), { key, place });
  }

  /** Which vector of groups a place is in. */
  #vectorOf(place: Expr): Expr {
    const group = applyExpr("mod", place, literalExpr(this.#groups, "i32"));
    const shift = Math.log2(this.#lanes);
    if (shift === 0) return group;
    return applyExpr("shiftRight", group, literalExpr(shift, "i32"));
  }

  /**
   * The firsts of a vector of groups among what comes behind the last result, which is what is left of every group.
   * From the last row on, so that of equal elements the first stays.
   */
  #findNext(line: IndexExpr, vector: IndexExpr, last: Found): void {
    const lanes = this.#lanes;
    const keyType = { dtype: this.#keys.dtype, lanes };
    const placeType = { dtype: "i32" as const, lanes };
    const [key, place] = [this.#register(keyType, 1), this.#register(placeType, 1)];
    const group = mul(vector, lanes);
    const none = literalExpr(nowhere, "i32", lanes);
    this.#body.push(storeTo(key, [0], this.#last(lanes)), storeTo(place, [0], none));
    const lastKey = this.#let(splatExpr(last.key, lanes));
    const lastPlace = this.#let(splatExpr(last.place, lanes));
    this.#loop("row", this.#rows, (done) => {
      const row = sub(sub(this.#rows, 1), done);
      const own = this.#let(loadExpr(this.#site.routine.reads[0]!, [line, row, group], keyType));
      const at = this.#let(this.#placesFrom(add(mul(row, this.#groups), group)));
      const old = this.#let(this.#load(key, keyType, 0));
      const behind = applyExpr("and", this.#ties(own, lastKey), applyExpr("less", lastPlace, at));
      const isLeft = this.#let(applyExpr("or", this.#precedes(lastKey, own), behind));
      const isFirst = applyExpr("not", this.#precedes(old, own));
      const taken = applyExpr("and", isLeft, isFirst);
      // What is no candidate counts as the last element: the comparison is no part of the chain of keys.
      const candidate = this.#let(applyExpr("select", isLeft, own, this.#last(lanes)));
      this.#body.push(
        storeTo(key, [0], this.#first(old, candidate)),
        storeTo(place, [0], applyExpr("select", taken, at, this.#load(place, placeType, 0))),
      );
    });
    this.#body.push(
      storeTo(this.#firstKeys, [group], this.#load(key, keyType, 0)),
      storeTo(this.#firstPlaces, [group], this.#load(place, placeType, 0)),
    );
  }

  #placesFrom(first: IndexExpr): Expr {
    return indexValue(first, "i32", this.#lanes, this.#lanes > 1 ? 1 : 0);
  }

  /** What a fold of one value for each group gives, as a scalar. */
  #folded(
    identity: Expr,
    combine: (a: Expr, b: Expr) => Expr,
    valueAt: (group: IndexExpr, lanes: number) => Expr,
  ): Expr {
    const chains = Math.min(mostChains, this.#vectors);
    const type = { dtype: identity.dtype, lanes: this.#lanes };
    const sums = this.#register(type, chains);
    const each = Array.from({ length: chains }, (_, chain) => chain);
    for (const chain of each) {
      const value = valueAt(constant(chain * this.#lanes), this.#lanes);
      this.#body.push(storeTo(sums, [chain], value));
    }
    this.#eachBlock(chains, chains, (groups) => {
      for (const [chain, group] of groups.entries()) {
        const value = this.#let(valueAt(group, this.#lanes));
        const old = this.#let(this.#load(sums, type, chain));
        this.#body.push(storeTo(sums, [chain], combine(old, value)));
      }
    });
    const parts = each.map((chain) => this.#let(this.#load(sums, type, chain)));
    return this.#acrossLanes(this.#pairwise(parts, combine), combine);
  }

  #pairwise(parts: readonly Expr[], combine: (a: Expr, b: Expr) => Expr): Expr {
    if (parts.length === 1) return parts[0]!;
    const half = Math.ceil(parts.length / 2);
    const next = parts.slice(0, half).map((part, i) => {
      const other = parts[i + half];
      return other ? this.#let(combine(part, other)) : part;
    });
    return this.#pairwise(next, combine);
  }

  /** Both halves of a vector from memory while it has many lanes, then its lanes. */
  #acrossLanes(vector: Expr, combine: (a: Expr, b: Expr) => Expr): Expr {
    let whole = vector;
    while (whole.lanes > fewLanes) {
      const { dtype } = whole;
      const lanes = whole.lanes / 2;
      const cell = this.#buffer("half", "local", dtype, whole.lanes);
      this.#body.push(storeTo(cell, [0], whole));
      const [low, high] = [0, lanes].map((at) => this.#let(loadExpr(cell, [at], { dtype, lanes })));
      whole = this.#let(combine(low!, high!));
    }
    const lanes = Array.from({ length: whole.lanes }, (_, l) => this.#let(extractExpr(whole, l)));
    return whole.lanes === 1 ? whole : this.#pairwise(lanes, combine);
  }

  /** Whether a stands before b, whatever their places. */
  #precedes(a: Expr, b: Expr): Expr {
    const [x, y] = [0, 1].map((i) => argument(i, a.dtype)) as [
      ReturnType<typeof argument>,
      ReturnType<typeof argument>,
    ];
    const { largest } = this.#site.routine.selects;
    return exprOfScalar(largest ? exceeds(x, y) : exceeds(y, x), [a, b], a.lanes);
  }

  #ties(a: Expr, b: Expr): Expr {
    const [x, y] = [argument(0, a.dtype), argument(1, a.dtype)];
    return exprOfScalar(ties(x, y), [a, b], a.lanes);
  }

  #first(a: Expr, b: Expr): Expr {
    if (a.dtype === "i32")
      return applyExpr(this.#site.routine.selects.largest ? "max" : "min", a, b);
    return applyExpr("select", this.#precedes(b, a), b, a);
  }

  /** The last element in order that the type has. */
  #last(lanes: number): Expr {
    const { dtype } = this.#keys;
    const { largest } = this.#site.routine.selects;
    const { format } = dtypes[dtype];
    if (!largest && format && format.nan !== "none") return literalExpr(Number.NaN, dtype, lanes);
    return literalExpr(identityElement(largest ? "max" : "min", dtype), dtype, lanes);
  }

  #let(value: Expr): Expr {
    const name = this.#names.fresh("x");
    this.#body.push(letValue(name, value));
    return localExpr(name, value);
  }

  #load(buffer: string, type: ValueType, at: number): Expr {
    return loadExpr(buffer, [at], type);
  }

  #loop(stem: string, extent: IndexExpr, fill: (at: IndexExpr) => void, mode = serial): void {
    if (constantValue(extent) === 0) return;
    let name = this.#names.fresh(stem);
    while (this.#site.symbols.has(name)) name += "_";
    const body = this.#inside(() => fill(variable(name)));
    this.#body.push(forLoop(name, extent, body, mode));
  }

  #inside(fill: () => void): readonly Statement[] {
    const outer = this.#body;
    this.#body = [];
    fill();
    const made = this.#body;
    this.#body = outer;
    return made;
  }

  #register({ dtype, lanes }: ValueType, count: number): string {
    return this.#buffer("acc", "register", dtype, count, lanes);
  }

  #buffer(
    stem: string,
    scope: "local" | "register",
    dtype: DType,
    count: number,
    lanes = 1,
  ): string {
    const name = this.#names.freshBuffer(stem);
    this.#buffers.push({
      ...{ name, scope, dtype, lanes },
      kind: "scratch",
      shape: [constant(count)],
    });
    return name;
  }
}
