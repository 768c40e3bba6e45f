/**
 * Coverage by sets of places along each axis: a store of tiled kernels writes the product of what its index takes
 * along one axis, along the next, and so on, as no variable's digit (digits.ts) moves two of them. Such sets are
 * listed, products that differ along one axis alone are joined, and those left must be the whole buffer together. In:
 * statements of constant sizes that lead to stores. Out: whether every element was written. Exact for what it
 * looks at; a store that it cannot read counts as none. For long axes with ragged ends and for parts that
 * interleave, as of the phases of a transposed convolution.
 */
import type { Condition } from "../../semantics/condition.ts";
import {
  add,
  constantValue,
  type IndexExpr,
  sub,
  variable,
  variablesOf,
} from "../../semantics/index-expr.ts";
import { rangeOf } from "../../semantics/index-range.ts";
import type { Buffer } from "../program.ts";
import type { Statement } from "../statement.ts";
import { negations } from "./cover.ts";
import { type Digit, type DigitSum, digitSums, digitsOf, sumAt, type Variables } from "./digits.ts";

/** Places that are listed at most, of all stores together, and elements of all their sets. */
const [mostListed, mostMarks] = [1 << 20, 1 << 25] as const;

export function coversByAxes(
  body: readonly Statement[],
  { name, shape, lanes }: Pick<Buffer, "name" | "shape" | "lanes">,
): boolean {
  const sizes = shape.map(constantValue);
  if (sizes.includes(undefined)) return false;
  const places: Place[] = [];
  collect(body, { buffer: name, lanes, variables: new Map(), conditions: [], places });
  if (places.length === 0) return false;
  return new AxisSets(sizes as readonly number[], places).isWhole();
}

/** One store: where it writes, and what holds there. */
interface Place {
  readonly index: readonly DigitSum[];
  readonly conditions: readonly { readonly kind: Condition["kind"]; readonly sum: DigitSum }[];
  /** Elements along the last axis. */
  readonly span: number;
}

interface Inside {
  readonly buffer: string;
  readonly lanes: number;
  /** Undefined: one whose values are not known. */
  readonly variables: Variables;
  readonly conditions: readonly Condition[];
  readonly places: Place[];
}

function collect(body: readonly Statement[], inside: Inside): void {
  let here = inside;
  for (const s of body) {
    if (s.kind === "letIndex") {
      here = { ...here, variables: new Map(here.variables).set(s.name, undefined) };
    } else if (s.kind === "if") {
      for (const { body: way, conditions } of waysOf(s))
        collect(way, { ...here, conditions: [...here.conditions, ...conditions] });
    } else if (s.kind === "for") {
      const trips = tripsOf(s, here);
      if (trips) collect(s.body, trips);
    } else if (s.kind === "store" && s.buffer === here.buffer) {
      const place = placeOf(s, here);
      if (place) here.places.push(place);
    }
  }
}

/** A branch as bodies whose conditions all hold: the first that fails tells the ways beside it apart. */
function waysOf(s: Extract<Statement, { kind: "if" }>): readonly {
  readonly body: readonly Statement[];
  readonly conditions: readonly Condition[];
}[] {
  const ways = [{ body: s.then, conditions: s.conditions }];
  if (s.else.length === 0) return ways;
  for (const [i, condition] of s.conditions.entries()) {
    for (const expr of negations([condition])) {
      const fails: Condition = { kind: "nonNegative", expr };
      ways.push({ body: s.else, conditions: [...s.conditions.slice(0, i), fails] });
    }
  }
  return ways;
}

/** The body of a loop with its variable; where another one ends it, a condition says so. */
function tripsOf(
  { variable: name, extent }: Extract<Statement, { kind: "for" }>,
  inside: Inside,
): Inside | undefined {
  // Conditions say of a name that is bound twice what holds of the first.
  if (inside.variables.has(name)) return undefined;
  const ranges = new Map(
    [...inside.variables].flatMap(([v, n]) => (n ? [[v, { min: 0, max: n.extent - 1 }]] : [])),
  );
  const known = [...variablesOf(extent)].every((v) => ranges.has(v));
  const most = known ? rangeOf(extent, ranges).max : 0;
  if (most < 1 || !Number.isSafeInteger(most)) return undefined;
  const variables = new Map(inside.variables).set(name, { extent: most });
  if (constantValue(extent) !== undefined) return { ...inside, variables };
  const ends = leastOf(extent).filter((e) => constantValue(e) === undefined);
  const within = ends.map(
    (end): Condition => ({ kind: "nonNegative", expr: sub(sub(end, 1), variable(name)) }),
  );
  return { ...inside, variables, conditions: [...inside.conditions, ...within] };
}

/** What an extent is the least of; of none or more trips, those that there are. */
function leastOf(extent: IndexExpr): readonly IndexExpr[] {
  const [only, ...others] = extent.terms;
  const [atom, ...more] = only?.atoms ?? [];
  const isSole = others.length === 0 && more.length === 0 && only?.coefficient === 1;
  if (!isSole || (atom?.kind !== "min" && atom?.kind !== "max")) return [extent];
  const operands = atom.operands.map((e) => add(e, extent.constant));
  if (atom.kind === "min") return operands.flatMap(leastOf);
  const some = operands.filter((e) => (constantValue(e) ?? 1) > 0);
  return some.length === 1 ? leastOf(some[0]!) : [extent];
}

function placeOf(
  { index, value }: Extract<Statement, { kind: "store" }>,
  { lanes, variables, conditions }: Inside,
): Place | undefined {
  const span = value.lanes / lanes;
  const found = digitSums([...index, ...conditions.map((c) => c.expr)], variables);
  if (!found || !Number.isInteger(span)) return undefined;
  const { sums, within } = found;
  return {
    index: sums.slice(0, index.length),
    conditions: [
      ...conditions.map(({ kind }, i) => ({ kind, sum: sums[index.length + i]! })),
      ...within.map((sum) => ({ kind: "nonNegative", sum }) as const),
    ],
    span,
  };
}

/** The sets of all stores, axes that some store moves together as one. */
class AxisSets {
  readonly #sizes: readonly number[];
  readonly #places: readonly Place[];
  /** Axes in groups; each has its sets, told apart by their numbers in the list. */
  readonly #groups: readonly (readonly number[])[];
  readonly #sets: readonly Uint8Array[][];
  #left = mostListed;

  constructor(sizes: readonly number[], places: readonly Place[]) {
    this.#sizes = sizes;
    this.#places = places;
    const axes = new Union<number>();
    for (const place of places) for (const group of groupsOf(place)) axes.join(group.axes);
    this.#groups = axes.groups(sizes.map((_, axis) => axis));
    this.#sets = this.#groups.map(() => []);
  }

  isWhole(): boolean {
    const marks = this.#groups.reduce((sum, group) => sum + this.#sizeOf(group), 0);
    if (marks * this.#places.length > mostMarks) return false;
    let products: (readonly number[])[] = [];
    for (const place of this.#places) {
      const product = this.#productOf(place);
      if (this.#left < 0) return false;
      if (product) products.push(product);
    }
    for (let before = Number.POSITIVE_INFINITY; products.length < before; ) {
      before = products.length;
      for (const at of this.#groups.keys()) products = this.#joined(products, at);
    }
    return this.#areWhole(products, 0, new Map());
  }

  /**
   * Whether the products have all elements of the axes from a group on: places of its axes that the same products
   * have are one question about the rest.
   */
  #areWhole(
    products: readonly (readonly number[])[],
    at: number,
    known: Map<string, boolean>,
  ): boolean {
    if (products.length === 0 || at === this.#groups.length) return products.length > 0;
    const key = `${at} ${products.map((p) => p.slice(at).join()).join(" ")}`;
    const found = known.get(key);
    if (found !== undefined) return found;
    if (this.#left-- < 0) return false;
    const isWhole = this.#alike(products, at).every((place) => {
      const those = products.filter((p) => this.#sets[at]![p[at]!]![place] === 1);
      return this.#areWhole(those, at + 1, known);
    });
    known.set(key, isWhole);
    return isWhole;
  }

  /** A place of each kind that the products' sets tell apart. */
  #alike(products: readonly (readonly number[])[], at: number): readonly number[] {
    const kinds = new Uint32Array(this.#sizeOf(this.#groups[at]!));
    for (const number of new Set(products.map((p) => p[at]!))) {
      const set = this.#sets[at]![number]!;
      const next = new Map<number, number>();
      for (let place = 0; place < kinds.length; place++) {
        const kind = 2 * kinds[place]! + set[place]!;
        if (!next.has(kind)) next.set(kind, next.size);
        kinds[place] = next.get(kind)!;
      }
    }
    const first = new Map<number, number>();
    kinds.forEach((kind, place) => {
      if (!first.has(kind)) first.set(kind, place);
    });
    return [...first.values()];
  }

  #sizeOf(group: readonly number[]): number {
    return group.reduce((n, axis) => n * this.#sizes[axis]!, 1);
  }

  /** The numbers of a store's sets; undefined where it never runs. */
  #productOf(place: Place): readonly number[] | undefined {
    const parts = groupsOf(place, this.#groups);
    const sets = this.#groups.map((group) => new Uint8Array(this.#sizeOf(group)));
    for (const part of parts) {
      const at = this.#groups.findIndex((g) => g.includes(part.axes[0] ?? -1));
      const axes = this.#groups[at] ?? [];
      let runs = false;
      this.#each(part.digits, (values) => {
        if (!part.conditions.every((c) => holds(place.conditions[c]!, values))) return true;
        runs = true;
        if (axes.length > 0) this.#mark(sets[at]!, { axes, place, values });
        return axes.length > 0;
      });
      if (!runs) return undefined;
    }
    return sets.map((set, at) => this.#numberOf(set, at));
  }

  /** All values of some digits, until `visit` wants no more. */
  #each(digits: readonly Digit[], visit: (values: ReadonlyMap<Digit, number>) => boolean): void {
    const values = new Map(digits.map((d) => [d, 0]));
    for (let at = 0; at < digits.length || digits.length === 0; ) {
      if (this.#left-- < 0 || !visit(values) || digits.length === 0) return;
      for (at = 0; at < digits.length; at++) {
        const next = values.get(digits[at]!)! + 1;
        values.set(digits[at]!, next < digits[at]!.count ? next : 0);
        if (next < digits[at]!.count) break;
      }
    }
  }

  #mark(
    set: Uint8Array,
    at: {
      readonly axes: readonly number[];
      readonly place: Place;
      readonly values: ReadonlyMap<Digit, number>;
    },
  ): void {
    const { axes, place, values } = at;
    const last = this.#sizes.length - 1;
    let first = 0;
    let width = 1;
    for (const axis of axes) {
      const size = this.#sizes[axis]!;
      const index = sumAt(place.index[axis]!, values);
      const span = axis === last ? place.span : 1;
      if (index < 0 || index + span > size) return;
      first = first * size + index;
      width = span;
    }
    set.fill(1, first, first + width);
  }

  /** Which of the sets of its axes it is. */
  #numberOf(set: Uint8Array, at: number): number {
    const known = this.#sets[at]!;
    const found = known.findIndex((k) => k.every((mark, i) => mark === set[i]));
    if (found >= 0) return found;
    known.push(set);
    return known.length - 1;
  }

  /** Products that are the same along all other axes, as one. */
  #joined(products: readonly (readonly number[])[], at: number): (readonly number[])[] {
    const like = new Map<string, (readonly number[])[]>();
    for (const product of products) {
      const key = product.with(at, -1).join();
      const others = like.get(key);
      if (others) others.push(product);
      else like.set(key, [product]);
    }
    return [...like.values()].map((some) => {
      if (some.length === 1) return some[0]!;
      const union = Uint8Array.from(this.#sets[at]![some[0]![at]!]!);
      for (const other of some.slice(1)) {
        for (const [i, mark] of this.#sets[at]![other[at]!]!.entries()) union[i]! |= mark;
      }
      return some[0]!.with(at, this.#numberOf(union, at));
    });
  }
}

function holds(
  { kind, sum }: Place["conditions"][number],
  values: ReadonlyMap<Digit, number>,
): boolean {
  const value = sumAt(sum, values);
  return kind === "zero" ? value === 0 : value >= 0;
}

/** Axes that go with digits that no other axes go with, and conditions on these. */
interface Group {
  readonly axes: readonly number[];
  readonly digits: readonly Digit[];
  /** By number. */
  readonly conditions: readonly number[];
}

function groupsOf(
  { index, conditions }: Place,
  together: readonly (readonly number[])[] = [],
): readonly Group[] {
  const union = new Union<number | Digit | string>();
  const nameOf = (condition: number): string => `c${condition}`;
  for (const axes of together) union.join(axes);
  for (const [axis, sum] of index.entries()) union.join([axis, ...digitsOf(sum)]);
  for (const [n, { sum }] of conditions.entries()) union.join([nameOf(n), ...digitsOf(sum)]);
  const digits = [...index, ...conditions.map((c) => c.sum)].flatMap(digitsOf);
  const all = [...index.keys(), ...new Set(digits), ...[...conditions.keys()].map(nameOf)];
  return union.groups(all).map((group) => ({
    axes: group.filter((x) => typeof x === "number"),
    digits: group.filter((x) => typeof x === "object"),
    conditions: [...conditions.keys()].filter((n) => group.includes(nameOf(n))),
  }));
}

/** Disjoint sets. */
class Union<T> {
  readonly #above = new Map<T, T>();

  #rootOf(x: T): T {
    let root = x;
    for (let up = this.#above.get(root); up !== undefined; up = this.#above.get(root)) root = up;
    return root;
  }

  join([first, ...others]: readonly T[]): void {
    for (const other of others) {
      const [a, b] = [this.#rootOf(first!), this.#rootOf(other)];
      if (a !== b) this.#above.set(b, a);
    }
  }

  groups(all: readonly T[]): readonly (readonly T[])[] {
    const groups = new Map<T, T[]>();
    for (const x of all) {
      const root = this.#rootOf(x);
      const group = groups.get(root);
      if (group) group.push(x);
      else groups.set(root, [x]);
    }
    return [...groups.values()];
  }
}
