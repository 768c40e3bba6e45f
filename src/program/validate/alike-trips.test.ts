/** Coverage by trips that are alike against marking what the statements write. */
import fc from "fast-check";
import { expect, test } from "vitest";
import * as ix from "../../semantics/index-expr.ts";
import { literalExpr } from "../expr.ts";
import type { Statement } from "../statement.ts";
import { coversByTrips } from "./alike-trips.ts";

const [r, t] = [ix.variable("r"), ix.variable("t")];
const options = { lanes: 1, runs: () => false };

function store(...index: readonly ix.IndexLike[]): Statement {
  const value = literalExpr(0, "f32", 1);
  return { kind: "store", buffer: "b", index: index.map(ix.toIndex), value };
}

function loop(variable: string, extent: number, body: readonly Statement[]): Statement {
  return {
    ...{ kind: "for", variable, extent: ix.constant(extent), body },
    mode: { kind: "serial" },
  };
}

function branch(
  kind: "nonNegative" | "zero",
  expr: ix.IndexExpr,
  [then, other]: readonly (readonly Statement[])[],
): Statement {
  return { kind: "if", conditions: [{ kind, expr }], then: then!, else: other ?? [] };
}

function boxOf(...sizes: readonly number[]) {
  return { lo: sizes.map(() => ix.constant(0)), hi: sizes.map((n) => ix.constant(n)) };
}

/** A line in parts of 4·threads elements, guarded where the line may end. */
function lineInParts(elements: number, threads: number, at: ix.IndexLike = 0): Statement {
  const length = 4 * threads;
  const parts = Math.ceil(elements / length);
  const stores = [0, 1, 2, 3].map((turn) => {
    const place = ix.add(ix.mul(length, r), t, turn * threads);
    return branch("nonNegative", ix.sub(elements - 1, place), [[store(ix.add(place, at))]]);
  });
  return loop("r", parts, [loop("t", threads, stores)]);
}

test("parts of lines of any length, which end anywhere, lines beside each other", () => {
  for (const elements of [20_000_000, 20_000_001, 5_000_001, 2_000_000_001, 1000, 5])
    expect(coversByTrips([lineInParts(elements, 64)], boxOf(elements), options)).toBe(true);
  const lines = loop("l", 3, [lineInParts(10_000_001, 64, ix.mul(10_000_001, ix.variable("l")))]);
  expect(coversByTrips([lines], boxOf(30_000_003), options)).toBe(true);
  expect(coversByTrips([lines], boxOf(30_000_004), options)).toBe(false);
});

test("what a guard, a step or the number of trips leaves out is not covered", () => {
  const short = lineInParts(20_000_000, 64);
  expect(coversByTrips([short], boxOf(20_000_001), options)).toBe(false);
  const other = ix.add(ix.mul(4, r), t);
  const only = (kind: "nonNegative" | "zero", expr: ix.IndexExpr): Statement =>
    loop("r", 5_000_000, [loop("t", 4, [branch(kind, expr, [[store(other)]])])]);
  // Of trips from the tenth on, of one alone, and of all.
  expect(coversByTrips([only("nonNegative", ix.sub(r, 10))], boxOf(20_000_000), options)).toBe(
    false,
  );
  expect(coversByTrips([only("zero", ix.sub(r, 4_999_999))], boxOf(20_000_000), options)).toBe(
    false,
  );
  expect(coversByTrips([only("nonNegative", r)], boxOf(20_000_000), options)).toBe(false);
  expect(
    coversByTrips([only("nonNegative", ix.sub(5_000_000, r))], boxOf(20_000_000), options),
  ).toBe(true);
});

/** Elements of a line that the statements write. */
function written(body: readonly Statement[], at: ReadonlyMap<string, number>, into: Set<number>) {
  const numberOf = (e: ix.IndexExpr): number => ix.constantValue(ix.substitute(e, at))!;
  for (const s of body) {
    if (s.kind === "store") into.add(numberOf(s.index[0]!));
    if (s.kind === "for")
      for (let i = 0; i < numberOf(s.extent); i++)
        written(s.body, new Map(at).set(s.variable, i), into);
    if (s.kind !== "if") continue;
    const holds = s.conditions.every(({ kind, expr }) =>
      kind === "zero" ? numberOf(expr) === 0 : numberOf(expr) >= 0,
    );
    written(holds ? s.then : s.else, at, into);
  }
  return into;
}

const linear = fc
  .record({
    r: fc.integer({ min: -4, max: 6 }),
    t: fc.constantFrom(0, 1, 2),
    c: fc.integer({ min: -3, max: 20 }),
  })
  .map((k) => ix.add(ix.mul(k.r, r), ix.mul(k.t, t), k.c));
const place = fc
  .record({
    r: fc.constantFrom(1, 2, 3, 4, 4, 4),
    t: fc.constantFrom(1, 1, 2),
    c: fc.constantFrom(0, 0, 1, 2),
  })
  .map((k) => ix.add(ix.mul(k.r, r), ix.mul(k.t, t), k.c));
const guarded = fc
  .record({
    kind: fc.constantFrom("nonNegative" as const, "nonNegative" as const, "zero" as const),
    expr: linear,
    then: place,
    other: fc.option(place),
  })
  .map(({ kind, expr, then, other }) =>
    branch(kind, expr, [[store(then)], other ? [store(other)] : []]),
  );
const statement = fc.oneof(
  place.map((e) => store(e)),
  guarded,
);

test("what is said to be covered is", () => {
  let yes = 0;
  const body = fc.array(statement, { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(
      body,
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 1, max: 18 }),
      (some, n, size) => {
        const all = [loop("r", n, [loop("t", 2, some)])];
        if (!coversByTrips(all, boxOf(size), options)) return;
        yes++;
        const found = written(all, new Map(), new Set());
        for (let i = 0; i < size; i++) expect(found.has(i)).toBe(true);
      },
    ),
    { numRuns: 4000, seed: 7 },
  );
  expect(yes).toBeGreaterThan(100);
});
