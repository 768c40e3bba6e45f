import fc from "fast-check";
import { expect, test } from "vitest";
import * as ix from "../../semantics/index-expr.ts";
import { Rng } from "../../support/rng.ts";
import { Facts } from "./facts.ts";

const [M, i, j] = [ix.variable("M"), ix.variable("i"), ix.variable("j")];

test("bounds of split loops with tails, guards and packed tails", () => {
  const base = Facts.none().withParameter("M", 1, 4096);
  const tail = base
    .withVariable("i", ix.ceilDiv(M, 6))
    .withVariable("j", ix.min(6, ix.sub(M, ix.mul(6, i))));
  const at = ix.add(ix.mul(6, i), j);
  expect(tail.atLeast(ix.sub(M, 1), at)).toBe(true);
  expect(tail.atLeast(ix.sub(M, 2), at)).toBe(false);
  const whole = base.withVariable("i", ix.ceilDiv(M, 6)).withVariable("j", ix.constant(6));
  expect(whole.atLeast(ix.sub(M, 1), at)).toBe(false);
  const guarded = whole.withNonNegative(ix.sub(M, ix.add(ix.mul(6, i), 6)));
  expect(guarded.atLeast(ix.sub(M, 1), at)).toBe(true);
  const floor = base.withVariable("i", ix.floorDiv(M, 6)).withVariable("j", ix.constant(6));
  expect(floor.atLeast(ix.sub(M, 1), at)).toBe(true);
  const split = base.withVariable("i", M);
  expect(split.atLeast(ix.floorDiv(ix.sub(M, 1), 4), ix.floorDiv(i, 4))).toBe(true);
});

// A reversed row-major index, its last loop split with a tail: an end of min(4, rest) has to be tried as `rest`.
test("bounds of products under a split loop whatever the order of the loops", () => {
  const [n, a, b, outer, inner] = ["N", "a", "b", "o", "r"].map(ix.variable) as ix.IndexExpr[];
  const rest = ix.sub(n!, ix.mul(4, outer!));
  const extents: Readonly<Record<string, ix.IndexExpr>> = {
    a: n!,
    b: n!,
    o: ix.ceilDiv(n!, 4),
    r: ix.min(4, ix.max(0, rest)),
  };
  for (const order of ["a b o r", "o a b r", "a o b r", "a o r b", "o r a b"]) {
    const facts = order
      .split(" ")
      .reduce(
        (known, name) => known.withVariable(name, extents[name]!),
        Facts.none().withParameter("N", 1, 16),
      )
      .withNonNegative(ix.sub(3, rest));
    const at = ix.add(ix.mul(n!, b!), inner!, ix.mul(4, outer!), 1);
    for (const channel of [0, 1, 2, 3]) {
      const below = ix.add(ix.mul(4, n!, n!, a!), ix.mul(channel, n!, n!), at);
      expect(facts.atLeast(ix.mul(4, n!, n!, n!), below), `${order}, ${channel}`).toBe(true);
      expect(facts.atLeast(ix.mul(4, n!, n!, n!), ix.add(below, ix.mul(n!, n!)))).toBe(channel < 3);
    }
  }
});

// The same of a loop split twice: the guard of the inner one leads to the end, the outer one's end does not.
test("bounds of products under a loop that is split twice", () => {
  const [n, a, b, outer, inner] = ["N", "a", "b", "o", "u"].map(ix.variable) as ix.IndexExpr[];
  const start = ix.add(ix.mul(8, outer!), ix.mul(4, inner!));
  const facts = Facts.none()
    .withParameter("N", 1, 16)
    .withVariable("o", ix.ceilDiv(n!, 8))
    .withVariable("a", ix.constant(3))
    .withVariable("b", n!)
    .withNonNegative(ix.sub(ix.mul(8, outer!), ix.sub(n!, 7)))
    .withVariable("u", ix.min(2, ix.sub(ix.ceilDiv(n!, 4), ix.mul(2, outer!))))
    .withNonNegative(ix.sub(n!, ix.add(start, 4)));
  const row = ix.sub(ix.mul(3, n!, n!), ix.add(ix.mul(n!, n!, a!), ix.mul(n!, b!)));
  for (const lane of [0, 1, 2, 3])
    expect(facts.atLeast(row, ix.add(start, lane, 1)), `${lane}`).toBe(true);
  expect(facts.atLeast(row, ix.add(start, 5))).toBe(false);
});

/** Random facts over i < e(M), j < e(M, i) and a guard, with a random goal. */
function checkAgainstEnumeration(seed: number): void {
  const rng = new Rng(seed);
  const small = (names: readonly ix.IndexExpr[]): ix.IndexExpr => {
    const v = rng.pick(names);
    const c = rng.integer(-3, 6);
    return rng.pick([
      () => ix.add(v, c),
      () => ix.min(v, Math.abs(c) + 1),
      () => ix.max(ix.sub(v, 2), c),
      () => ix.floorDiv(ix.add(v, c), 3),
      () => ix.mod(v, 4),
      () => ix.sub(ix.mul(2, v), rng.pick(names)),
    ])();
  };
  const extentI = small([M]);
  const extentJ = small([M, i]);
  const guard = small([M, i, j]);
  const linear = ix.sub(
    small([M, i, j]),
    rng.pick([small([M, i, j]), ix.constant(rng.integer(-4, 4))]),
  );
  const product = ix.mul(rng.integer(-2, 2), rng.pick([M, i, j]), rng.pick([M, i, j]));
  const goal = rng.integer(0, 2) === 0 ? ix.add(linear, product) : linear;
  const facts = Facts.none()
    .withParameter("M", 1, 9)
    .withVariable("i", extentI)
    .withVariable("j", extentJ)
    .withNonNegative(guard);
  if (!facts.nonNegative(goal)) return;
  for (let m = 1; m <= 9; m++) {
    const at = new Map([["M", m]]);
    for (let a = 0; a < ix.evaluate(extentI, at); a++) {
      at.set("i", a);
      for (let b = 0; b < ix.evaluate(extentJ, at); b++) {
        at.set("j", b);
        if (ix.evaluate(guard, at) >= 0) expect(ix.evaluate(goal, at)).toBeGreaterThanOrEqual(0);
      }
    }
  }
}

test("elements of a matrix of unknown size are inside it, row by row and in the last rows", () => {
  const [N, o, r, c] = ["N", "o", "r", "c"].map((name) => ix.variable(name)) as [
    ix.IndexExpr,
    ix.IndexExpr,
    ix.IndexExpr,
    ix.IndexExpr,
  ];
  const outer = Facts.none().withParameter("N", 1, 16).withVariable("o", ix.ceilDiv(N, 8));
  const left = ix.min(8, ix.max(0, ix.sub(N, ix.mul(8, o))));
  const rows = outer.withNonNegative(ix.sub(N, ix.add(ix.mul(8, o), 1))).withVariable("r", left);
  const inside = rows.withVariable("c", N);
  const row = ix.add(ix.mul(8, o), r);
  const last = ix.sub(ix.mul(N, N), ix.add(ix.mul(N, row), c, 1));
  expect(inside.nonNegative(last)).toBe(true);
  expect(inside.nonNegative(ix.sub(last, 1))).toBe(false);
});

test("facts are multiplied to bound products of several variables, whichever of them are weaker", () => {
  const [N, i, o, k] = ["N", "i", "o", "k"].map((name) => ix.variable(name)) as [
    ix.IndexExpr,
    ix.IndexExpr,
    ix.IndexExpr,
    ix.IndexExpr,
  ];
  // A reversed N x N x N x 2: the last rows of a tile of six, of which three are there.
  const cube = Facts.none()
    .withParameter("N", 1, 16)
    .withVariable("i", N)
    .withVariable("o", ix.ceilDiv(N, 6))
    .withNonNegative(ix.sub(ix.add(ix.mul(6, o), 5), N))
    .withNonNegative(ix.sub(ix.add(ix.mul(6, o), 3), N))
    .withNonNegative(ix.sub(N, ix.add(ix.mul(6, o), 2)))
    .withNonNegative(ix.sub(N, ix.add(ix.mul(6, o), 3)))
    .withVariable("k", N);
  const before = ix.add(ix.mul(2, N, N, i), ix.mul(12, N, o), ix.mul(4, N), ix.mul(2, k), 1);
  expect(cube.nonNegative(ix.sub(ix.mul(2, N, N, N), before))).toBe(true);
  expect(cube.nonNegative(ix.sub(ix.mul(2, N, N, N), ix.add(before, 2)))).toBe(false);
  // A reversed 8 x N x (2 N + 2), by three rows and eight columns at a time.
  const columns = ix.add(ix.mul(2, N), 2);
  const rows = Facts.none()
    .withParameter("N", 1, 16)
    .withVariable("i", ix.constant(4))
    .withVariable("o", ix.ceilDiv(N, 3))
    .withNonNegative(ix.sub(N, ix.add(ix.mul(3, o), 3)))
    .withVariable("k", ix.ceilDiv(columns, 8))
    .withNonNegative(ix.sub(columns, ix.add(ix.mul(8, k), 8)));
  const place = ix.add(ix.mul(columns, ix.add(ix.mul(N, i), ix.mul(3, o), 2)), ix.mul(8, k), 7);
  const room = ix.sub(ix.mul(4, N, columns), ix.add(place, 1));
  expect(rows.nonNegative(room)).toBe(true);
  expect(rows.nonNegative(ix.sub(room, 1))).toBe(false);
});

test("what is proved holds at every point", () => {
  fc.assert(fc.property(fc.integer(), checkAgainstEnumeration), { numRuns: 2000 });
});
