/** Coverage against running the statements: what is said to be covered is, for every parameter value. */
import fc from "fast-check";
import { expect, test } from "vitest";
import * as ix from "../../semantics/index-expr.ts";
import { Rng } from "../../support/rng.ts";
import { literalExpr } from "../expr.ts";
import type { Buffer } from "../program.ts";
import type { Statement } from "../statement.ts";
import { substituteStatements } from "../walk.ts";
import { type Box, covers } from "./cover.ts";
import { Facts } from "./facts.ts";

const N = ix.variable("N");
const buffer: Buffer = {
  name: "b",
  kind: "scratch",
  scope: "memory",
  dtype: "f32",
  lanes: 1,
  shape: [N, ix.constant(6)],
};
const whole: Box = { lo: [ix.constant(0), ix.constant(0)], hi: [N, ix.constant(6)] };
const facts = Facts.none().withParameter("N", 1, 9);

function store(row: ix.IndexLike, column: ix.IndexLike, lanes = 1): Statement {
  const value = literalExpr(0, "f32", lanes);
  return { kind: "store", buffer: "b", index: [ix.toIndex(row), ix.toIndex(column)], value };
}

function loop(variable: string, extent: ix.IndexLike, body: readonly Statement[]): Statement {
  return { kind: "for", variable, extent: ix.toIndex(extent), mode: { kind: "serial" }, body };
}

function branch(
  least: ix.IndexLike,
  then: readonly Statement[],
  other: readonly Statement[],
): Statement {
  const conditions = [{ kind: "nonNegative", expr: ix.toIndex(least) }] as const;
  return { kind: "if", conditions, then, else: other };
}

/** One row by stores that lie apart, the others' places between them: as transposed convolutions do. */
function interleavedWays(row: ix.IndexLike): readonly (readonly Statement[])[] {
  const [j, k] = [ix.variable("j"), ix.variable("k")];
  const at = (stride: number, offset: ix.IndexLike): Statement =>
    store(row, ix.add(ix.mul(stride, j), offset));
  return [
    [loop("j", 3, [at(2, 0)]), loop("j", 3, [at(2, 1)])],
    [loop("j", 2, [at(3, 2)]), loop("j", 2, [at(3, 0)]), loop("j", 2, [at(3, 1)])],
    [loop("k", 2, [loop("j", 3, [at(2, k)])])],
    [loop("k", 3, [loop("j", 2, [at(3, ix.sub(2, k))])])],
    [loop("k", 2, [loop("j", 1, [at(6, k), at(6, ix.add(k, 2)), at(6, ix.add(k, 4))])])],
    [loop("j", 2, [loop("k", 3, [at(3, k)])])],
  ];
}

/** One row in the ways that lowering writes it. */
function rowWays(row: ix.IndexLike): readonly (readonly Statement[])[] {
  const j = ix.variable("j");
  return [
    [store(row, 0, 4), store(row, 4, 2)],
    [loop("j", 6, [store(row, j)])],
    [loop("j", 6, [store(row, ix.sub(5, j))])],
    [loop("j", 3, [store(row, j), store(row, ix.add(j, 3))])],
    [loop("j", 2, [store(row, j), store(row, ix.add(j, 2)), store(row, ix.add(j, 4))])],
    [
      loop("j", 2, [
        branch(
          ix.sub(2, ix.mul(4, j)),
          [store(row, ix.mul(4, j), 4)],
          [
            loop("jj", ix.sub(6, ix.mul(4, j)), [
              store(row, ix.add(ix.mul(4, j), ix.variable("jj"))),
            ]),
          ],
        ),
      ]),
    ],
    [loop("j", 3, [branch(ix.sub(j, 1), [store(row, ix.mul(2, j), 2)], [store(row, 0, 2)])])],
  ];
}

/** All rows: one by one, backwards, in tiles with a tail, in halves, row by row of pairs. */
function bodies(rng: Rng): readonly Statement[] {
  const i = ix.variable("i");
  const row = (at: ix.IndexLike): readonly Statement[] => rng.pick(rowWays(at));
  const tile = rng.integer(2, 3);
  const first = ix.mul(tile, i);
  const rows = Array.from({ length: tile }, (_, n) => row(ix.add(first, n)));
  const left = ix.min(tile, ix.max(0, ix.sub(N, first)));
  const tiled = branch(ix.sub(N, ix.add(first, tile)), rows.flat(), [
    loop("r", left, row(ix.add(first, ix.variable("r")))),
  ]);
  return rng.pick<() => readonly Statement[]>([
    () => [loop("i", N, row(i))],
    () => [loop("i", N, row(ix.sub(ix.sub(N, 1), i)))],
    () => [loop("i", ix.ceilDiv(N, tile), [tiled])],
    () => [loop("i", N, [branch(ix.sub(i, 2), row(i), row(i))])],
    () => [loop("i", 1, row(i)), loop("i", ix.sub(N, 1), row(ix.add(i, 1)))],
    () => [loop("i", 6, [loop("k", N, [store(ix.variable("k"), i)])])],
  ])();
}

/** The statements with one number, branch or statement changed. */
function damaged(body: readonly Statement[], rng: Rng): readonly Statement[] {
  const at = rng.integer(0, body.length - 1);
  const s = body[at]!;
  if (rng.integer(0, 7) === 0) return body.toSpliced(at, 1);
  return body.toSpliced(at, 1, damagedOne(s, rng));
}

function damagedOne(s: Statement, rng: Rng): Statement {
  const nudge = (e: ix.IndexExpr): ix.IndexExpr => ix.add(e, rng.pick([-1, 1]));
  const here = rng.integer(0, 2) === 0;
  if (s.kind === "store") {
    const axis = rng.integer(0, 1);
    return { ...s, index: s.index.with(axis, nudge(s.index[axis]!)) };
  }
  if (s.kind === "for") {
    if (here || s.body.length === 0) return { ...s, extent: nudge(s.extent) };
    return { ...s, body: damaged(s.body, rng) };
  }
  if (s.kind !== "if") return s;
  if (here) {
    const [c] = s.conditions;
    return { ...s, conditions: [{ ...c!, expr: nudge(c!.expr) }] };
  }
  return rng.integer(0, 1) === 0
    ? { ...s, then: damaged(s.then, rng) }
    : { ...s, else: damaged(s.else, rng) };
}

/** Elements that running the statements writes. */
function run(body: readonly Statement[], env: Map<string, number>, written: Set<string>): void {
  for (const s of body) {
    if (s.kind === "store") {
      const [row, column] = s.index.map((e) => ix.evaluate(e, env));
      for (let l = 0; l < s.value.lanes; l++) written.add(`${row},${column! + l}`);
    } else if (s.kind === "for") {
      const extent = ix.evaluate(s.extent, env);
      for (let i = 0; i < extent; i++) run(s.body, new Map(env).set(s.variable, i), written);
    } else if (s.kind === "if") {
      const holds = s.conditions.every((c) => ix.evaluate(c.expr, env) >= 0);
      run(holds ? s.then : s.else, env, written);
    }
  }
}

function isCoveredFor(body: readonly Statement[], n: number): boolean {
  const written = new Set<string>();
  run(body, new Map([["N", n]]), written);
  for (let row = 0; row < n; row++) {
    for (let column = 0; column < 6; column++) if (!written.has(`${row},${column}`)) return false;
  }
  return true;
}

function isCovered(body: readonly Statement[]): boolean {
  return [1, 2, 3, 4, 5, 6, 7, 8, 9].every((n) => isCoveredFor(body, n));
}

test("what lowering writes is covered, and nothing is said to be that is not", () => {
  fc.assert(
    fc.property(fc.integer(), (seed) => {
      const rng = new Rng(seed);
      const body = bodies(rng);
      expect(isCovered(body)).toBe(true);
      expect(covers(body, buffer, whole, facts)).toBe(true);
      const changed = damaged(body, rng);
      if (covers(changed, buffer, whole, facts)) expect(isCovered(changed)).toBe(true);
    }),
    { numRuns: 150 },
  );
});

test("stores that interleave cover together, and nothing is said to be that is not", () => {
  fc.assert(
    fc.property(fc.integer(), (seed) => {
      const rng = new Rng(seed);
      const i = ix.variable("i");
      const body = [loop("i", N, rng.pick(interleavedWays(i)))];
      expect(isCovered(body)).toBe(true);
      expect(covers(body, buffer, whole, facts)).toBe(true);
      const changed = damaged(body, rng);
      if (covers(changed, buffer, whole, facts)) expect(isCovered(changed)).toBe(true);
    }),
    { numRuns: 100 },
  );
});

test("of constant sizes it is decided exactly, however the pieces overlap", () => {
  fc.assert(
    fc.property(fc.integer(), (seed) => {
      const rng = new Rng(seed);
      const n = rng.integer(1, 9);
      const size = new Map([["N", n]]);
      const pieces = Array.from({ length: rng.integer(1, 3) }, () => damaged(bodies(rng), rng));
      const body = substituteStatements(pieces.flat(), size);
      const box = { lo: whole.lo, hi: [ix.constant(n), ix.constant(6)] };
      expect(covers(body, buffer, box, Facts.none())).toBe(isCoveredFor(body, n));
    }),
    { numRuns: 30 },
  );
});

test("any number of threads around constant sizes changes nothing, where there is one at least", () => {
  const threads = ix.variable("threads");
  const [some, perhaps] = [1, 0].map((least) => Facts.none().withParameter("threads", least, 8));
  fc.assert(
    fc.property(fc.integer(), (seed) => {
      const rng = new Rng(seed);
      const n = rng.integer(1, 9);
      const pieces = Array.from({ length: rng.integer(1, 3) }, () => damaged(bodies(rng), rng));
      const body = substituteStatements(pieces.flat(), new Map([["N", n]]));
      const box = { lo: whole.lo, hi: [ix.constant(n), ix.constant(6)] };
      const dealt = [loop("thread", threads, body)];
      expect(covers(dealt, buffer, box, some!)).toBe(isCoveredFor(body, n));
      expect(covers(dealt, buffer, box, perhaps!)).toBe(false);
    }),
    { numRuns: 30 },
  );
});

/** Statements of a chain that write the parts of a concatenation, a piece of rows at a time, ragged both ways. */
function ragged(parts: readonly number[]): Statement {
  const [p, o, c, lane] = ["p", "o", "c", "lane"].map(ix.variable);
  const at = (part: number, row: number, column: ix.IndexExpr, lanes: number): Statement => ({
    kind: "store",
    buffer: "b",
    index: [ix.constant(part), ix.add(ix.mul(32, p!), ix.mul(6, o!), row), column],
    value: literalExpr(0, "f32", lanes),
  });
  const tile = (part: number, rows: number): Statement => {
    const all = Array.from({ length: rows }, (_, row) => row);
    const first = ix.mul(4, c!);
    const rest = all.map((row) => at(part, row, ix.add(first, lane!), 1));
    return branch(
      ix.sub(3, first),
      all.map((row) => at(part, row, first, 4)),
      [loop("lane", ix.min(4, ix.sub(7, first)), rest)],
    );
  };
  const rows = (part: number): Statement =>
    loop("c", 2, [
      loop("o", 6, [branch(ix.sub(26, ix.mul(6, o!)), [tile(part, 6)], [tile(part, 2)])]),
    ]);
  return loop("thread", ix.variable("threads"), [loop("p", 2, parts.map(rows))]);
}

test("ragged pieces of several parts, dealt out to any number of threads", () => {
  const shape = [2, 64, 7].map(ix.constant);
  const parts = { ...buffer, shape };
  const all: Box = { lo: shape.map(() => ix.constant(0)), hi: shape };
  const some = Facts.none().withParameter("threads", 1, 8);
  expect(covers([ragged([0, 1])], parts, all, some)).toBe(true);
  expect(covers([ragged([0, 0])], parts, all, some)).toBe(false);
});

test("one of any number of threads has only what is its own", () => {
  const box = { lo: [ix.constant(0), ix.constant(0)], hi: [ix.constant(8), ix.constant(6)] };
  const some = Facts.none().withParameter("threads", 1, 8);
  const own = loop("thread", ix.variable("threads"), [store(ix.variable("thread"), 0, 6)]);
  expect(covers([own], buffer, box, some)).toBe(false);
});

test("lanes beyond a row are no elements of the next", () => {
  const row = { lo: [ix.constant(0), ix.constant(0)], hi: [ix.constant(2), ix.constant(6)] };
  const body = [store(0, 4, 4), store(0, 0, 4), store(1, 2, 4)];
  expect(covers(body, buffer, row, Facts.none())).toBe(false);
  expect(covers([...body, store(1, -2, 4)], buffer, row, Facts.none())).toBe(true);
});

test("both ways through a branch have to cover", () => {
  const some = branch(ix.sub(N, 5), [], [loop("i", N, [store(ix.variable("i"), 0, 6)])]);
  expect(covers([some], buffer, whole, facts)).toBe(false);
  expect(covers([some], buffer, whole, facts.withNonNegative(ix.sub(4, N)))).toBe(true);
});

test("rows of three writers: two unrolled, tiles with a tail between, two unrolled behind", () => {
  const i = ix.variable("i");
  const rows = (first: ix.IndexLike, count: number): readonly Statement[] =>
    Array.from({ length: count }, (_, n) =>
      loop("j", 6, [store(ix.add(first, n), ix.variable("j"))]),
    );
  const stores = (first: ix.IndexLike): Statement =>
    loop("j", 6, [store(first, ix.variable("j")), store(ix.add(first, 1), ix.variable("j"))]);
  const at = ix.add(ix.mul(3, i), 2);
  const left = ix.min(3, ix.max(0, ix.sub(N, ix.mul(3, i))));
  const tail = loop("r", left, [...rows(ix.add(at, ix.variable("r")), 1)]);
  const middle = loop("i", ix.ceilDiv(N, 3), [
    branch(ix.sub(N, ix.add(ix.mul(3, i), 3)), rows(at, 3), [tail]),
  ]);
  const wide = { ...buffer, shape: [ix.add(N, 4), ix.constant(6)] };
  const all: Box = { lo: whole.lo, hi: [ix.add(N, 4), ix.constant(6)] };
  const [first, last] = [stores(0), stores(ix.add(N, 2))];
  expect(covers([first, middle, last], wide, all, facts)).toBe(true);
  expect(covers([first, middle], wide, all, facts)).toBe(false);
  expect(covers([first, last], wide, all, facts)).toBe(false);
  expect(covers([middle, last], wide, all, facts)).toBe(false);
});
