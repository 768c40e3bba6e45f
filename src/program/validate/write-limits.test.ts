/** Limits of written elements against running the statements: never too small, and exact where nothing overlaps. */
import fc from "fast-check";
import { expect, test } from "vitest";
import * as ix from "../../semantics/index-expr.ts";
import { literalExpr } from "../expr.ts";
import type { Buffer } from "../program.ts";
import type { Statement } from "../statement.ts";
import { leastElements, mayCover, mostWrittenBy } from "./write-limits.ts";

const names = ["i", "j", "k"] as const;

function store(buffer: string, index: readonly ix.IndexLike[], lanes = 1): Statement {
  return {
    kind: "store",
    buffer,
    index: index.map(ix.toIndex),
    value: literalExpr(0, "f32", lanes),
  };
}

function loop(variable: string, extent: ix.IndexLike, body: readonly Statement[]): Statement {
  return { kind: "for", variable, extent: ix.toIndex(extent), mode: { kind: "serial" }, body };
}

function described(name: string): Buffer {
  const shape = [ix.constant(99), ix.constant(99)];
  return { name, kind: "scratch", scope: "memory", dtype: "f32", lanes: 1, shape };
}

/** Places that a run writes, as text. */
function placesOf(
  body: readonly Statement[],
  buffer: string,
  at: ReadonlyMap<string, number>,
): readonly string[] {
  return body.flatMap((s): readonly string[] => {
    if (s.kind === "store") {
      if (s.buffer !== buffer) return [];
      const index = s.index.map((e) => ix.evaluate(e, at));
      return Array.from({ length: s.value.lanes }, (_, lane) =>
        index.with(-1, index.at(-1)! + lane).join(),
      );
    }
    if (s.kind === "if") {
      const holds = s.conditions.every((c) => ix.evaluate(c.expr, at) >= 0);
      return placesOf(holds ? s.then : s.else, buffer, at);
    }
    if (s.kind !== "for") return [];
    const trips = ix.evaluate(s.extent, at);
    return Array.from({ length: trips }, (_, trip) =>
      placesOf(s.body, buffer, new Map(at).set(s.variable, trip)),
    ).flat();
  });
}

const index = fc
  .tuple(fc.integer({ min: 0, max: 3 }), ...names.map(() => fc.integer({ min: 0, max: 4 })))
  .map(([c, ...steps]) =>
    ix.add(c!, ...names.map((name, i) => ix.mul(ix.variable(name), steps[i]!))),
  );
const leaf = fc
  .tuple(fc.constantFrom("b", "c"), index, index, fc.constantFrom(1, 4))
  .map(([buffer, row, column, lanes]) => store(buffer, [row, column], lanes));

/** Bodies whose indices are bound where they stand: the loops over all names are around them. */
const inner = fc.letrec<{ body: Statement[]; one: Statement }>((tie) => ({
  body: fc.array(tie("one"), { minLength: 1, maxLength: 3 }),
  one: fc.oneof(
    { maxDepth: 3 },
    leaf,
    fc
      .tuple(fc.constantFrom(...names), fc.integer({ min: 0, max: 4 }), tie("body"))
      .map(([name, extent, body]) => loop(name, extent, body)),
    fc
      .tuple(index, fc.integer({ min: 0, max: 6 }), tie("body"), tie("body"))
      .map(([e, least, then, other]): Statement => {
        const conditions = [{ kind: "nonNegative", expr: ix.sub(e, least) }] as const;
        return { kind: "if", conditions, then, else: other };
      }),
  ),
})).body;

test("is never less than what a run writes", () => {
  fc.assert(
    fc.property(
      inner,
      fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 3, maxLength: 3 }),
      (body, extents) => {
        const whole = names.reduce<readonly Statement[]>(
          (b, name, i) => [loop(name, extents[i]!, b)],
          body,
        );
        for (const buffer of ["b", "c"]) {
          const places = new Set(placesOf(whole, buffer, new Map()));
          expect(mostWrittenBy(whole, buffer)).toBeGreaterThanOrEqual(places.size);
          if (places.size === 0) continue;
          // What is written is a box only where every place between its ends was written.
          const at = [...places].map((p) => p.split(",").map(Number));
          const [lo, hi] = [Math.min, Math.max].map((end) =>
            [0, 1].map((axis) => end(...at.map((p) => p[axis]!))),
          );
          const box = { lo: lo!.map(ix.constant), hi: hi!.map((h) => ix.constant(h + 1)) };
          const isBox = places.size > 0 && leastElements(box) === places.size;
          if (isBox) expect(mayCover(whole, described(buffer), box, new Map())).toBe(true);
        }
      },
    ),
  );
});

test("is exact where no store repeats another, and trips that move nothing count once", () => {
  const [i, j] = [ix.variable("i"), ix.variable("j")];
  const rows = loop("i", 5, [loop("j", 2, [store("b", [i, ix.mul(4, j)], 4)])]);
  expect(mostWrittenBy([rows], "b")).toBe(40);
  expect(mostWrittenBy([loop("k", 7, [rows])], "b")).toBe(40);
  expect(mostWrittenBy([rows], "c")).toBe(0);
});

test("is not known where a place is read or a loop's end is not a number", () => {
  const at = ix.variable("at");
  const read: Statement = {
    kind: "letIndex",
    name: "at",
    value: literalExpr(1, "i32", 1),
    extent: ix.constant(9),
    wraps: false,
    range: "checked",
  };
  expect(mostWrittenBy([loop("i", 3, [read, store("b", [0, at])])], "b")).toBe(Infinity);
  const n = loop("i", ix.variable("N"), [store("b", [ix.variable("i"), 0])]);
  expect(mostWrittenBy([n], "b")).toBe(Infinity);
});

test("a box has the product of its widths, an unknown width counts once", () => {
  const [zero, six] = [ix.constant(0), ix.constant(6)];
  expect(leastElements({ lo: [zero, zero], hi: [six, six] })).toBe(36);
  expect(leastElements({ lo: [zero, zero], hi: [six, ix.variable("N")] })).toBe(6);
  expect(leastElements({ lo: [six], hi: [zero] })).toBe(0);
});

test("what ends before the box does not cover it", () => {
  const [i, j] = [ix.variable("i"), ix.variable("j")];
  const body = [
    loop("i", 4, [
      loop("j", 6, [loop("k", 9, [store("b", [ix.add(i, 1), ix.add(j, ix.variable("k"))])])]),
    ]),
  ];
  const may = (lo: number, hi: number): boolean =>
    mayCover(
      body,
      described("b"),
      { lo: [lo, 0].map(ix.constant), hi: [hi, 9].map(ix.constant) },
      new Map(),
    );
  expect(may(1, 5)).toBe(true);
  expect(may(0, 5)).toBe(false);
  expect(may(1, 6)).toBe(false);
});
