/** Counts of written elements against running the statements: never too small, and exact where nothing overlaps. */
import fc from "fast-check";
import { expect, test } from "vitest";
import * as ix from "../../semantics/index-expr.ts";
import { literalExpr } from "../expr.ts";
import type { Statement } from "../statement.ts";
import { leastElements, mostWrittenBy } from "./write-counts.ts";

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
