/**
 * Random small sets and maps for the property tests, each built twice: as a value of the library and
 * as the plain list of its points, found by trying every point of a box. The list is the judge.
 */
import fc from "fast-check";
import { evaluateAffine } from "./expression.ts";
import {
  type Affine,
  type Answer,
  add,
  type Constraint,
  enumeratePoints,
  floorDivide,
  type IntegerMap,
  type IntegerSet,
  makeRelation,
  makeSet,
  projectOut,
  scale,
  union,
  within,
} from "./index.ts";

/** Every variable lies in [-reach, reach]. */
export const reach = 3;

export interface JudgedSet {
  readonly set: IntegerSet;
  readonly points: ReadonlySet<string>;
}

export interface JudgedMap {
  readonly map: IntegerMap;
  /** `x0,x1>y0` for every pair. */
  readonly pairs: ReadonlySet<string>;
}

const names = ["a", "b", "c", "d"];

/** An expression in the first `count` names, sometimes with a floor. */
function arbitraryAffine(count: number): fc.Arbitrary<Affine> {
  const linear = fc
    .tuple(
      fc.array(fc.integer({ min: -4, max: 4 }), { minLength: count, maxLength: count }),
      fc.integer({ min: -6, max: 6 }),
    )
    .map(([c, k]) => add(k, ...c.map((v, i) => scale(v, names[i]!))));
  const floored = fc
    .tuple(linear, linear, fc.integer({ min: 2, max: 4 }), fc.integer({ min: -2, max: 2 }))
    .map(([x, y, m, k]) => add(x, scale(k, floorDivide(y, m))));
  return fc.oneof({ weight: 3, arbitrary: linear }, { weight: 1, arbitrary: floored });
}

function arbitraryConstraint(count: number): fc.Arbitrary<Constraint> {
  return fc
    .tuple(
      fc.oneof(
        { weight: 4, arbitrary: fc.constant("inequality" as const) },
        { weight: 1, arbitrary: fc.constant("equality" as const) },
      ),
      arbitraryAffine(count),
    )
    .map(([kind, expression]) => ({ kind, expression }));
}

function holds(c: Constraint, values: Readonly<Record<string, number>>): boolean {
  const v = evaluateAffine(c.expression, values);
  return c.kind === "equality" ? v === 0 : v >= 0;
}

/** All points of [-reach, reach]^count that satisfy the constraints. */
function tryAll(count: number, where: readonly Constraint[]): number[][] {
  let points: number[][] = [[]];
  for (let i = 0; i < count; i++) {
    points = points.flatMap((p) =>
      Array.from({ length: 2 * reach + 1 }, (_, v) => [...p, v - reach]),
    );
  }
  return points.filter((p) => {
    const values = Object.fromEntries(p.map((v, i) => [names[i]!, v]));
    return where.every((c) => holds(c, values));
  });
}

function box(count: number): Constraint[] {
  return names.slice(0, count).flatMap((n) => within(-reach, n, reach + 1));
}

/** One piece over `dims` dimensions, with `hidden` further ones projected away. */
function arbitraryPiece(dims: number): fc.Arbitrary<JudgedSet> {
  return fc.integer({ min: 0, max: Math.min(2, 4 - dims) }).chain((hidden) => {
    const count = dims + hidden;
    return fc.array(arbitraryConstraint(count), { minLength: 1, maxLength: 4 }).map((where) => {
      const full = makeSet({ dims: names.slice(0, count), where: [...where, ...box(count)] });
      const hiddenPositions = Array.from({ length: hidden }, (_, i) => dims + i);
      const points = tryAll(count, where).map((p) => p.slice(0, dims).join());
      return { set: projectOut(full, hiddenPositions), points: new Set(points) };
    });
  });
}

/** A union of one or two pieces. */
export function arbitrarySet(dims: number): fc.Arbitrary<JudgedSet> {
  return fc.array(arbitraryPiece(dims), { minLength: 1, maxLength: 2 }).map((pieces) => ({
    set: pieces.map((p) => p.set).reduce(union),
    points: new Set(pieces.flatMap((p) => [...p.points])),
  }));
}

/** A map between tuples of one or two dimensions, with the box as its domain and range. */
export function arbitraryMap(inputs: number, outputs: number): fc.Arbitrary<JudgedMap> {
  const count = inputs + outputs;
  return fc.array(arbitraryConstraint(count), { minLength: 1, maxLength: 3 }).map((where) => ({
    map: makeRelation({
      from: { dims: names.slice(0, inputs) },
      to: { dims: names.slice(inputs, count) },
      where: [...where, ...box(count)],
    }),
    pairs: new Set(
      tryAll(count, where).map((p) => `${p.slice(0, inputs).join()}>${p.slice(inputs).join()}`),
    ),
  }));
}

/** The library's points in the judge's spelling. */
export function pointsOf(set: IntegerSet): string[] {
  return known(enumeratePoints(set))
    .map((p) => p.values.join())
    .sort();
}

/** The library's pairs in the judge's spelling, through the set of concatenated tuples. */
export function pairsIn(map: IntegerMap): string[] {
  const flat: IntegerSet = {
    kind: "set",
    params: map.params,
    pieces: map.pieces.map((p) => ({
      ...p,
      input: undefined,
      output: { name: `${p.input!.dims.length}`, dims: [...p.input!.dims, ...p.output.dims] },
    })),
  };
  return known(enumeratePoints(flat))
    .map((p) => {
      const n = Number(p.tuple);
      return `${p.values.slice(0, n).join()}>${p.values.slice(n).join()}`;
    })
    .sort();
}

export function known<T>(value: Answer<T>): T {
  if (value.kind === "unknown") throw new Error(`unknown: ${value.reason}`);
  return value.value;
}
