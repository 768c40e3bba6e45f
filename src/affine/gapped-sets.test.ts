/** Sets whose points lie far apart in their box: every one with few points is counted and listed. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { countPoints, enumeratePoints, type IntegerSet, parseSet } from "./index.ts";
import { known } from "./random-sets.test-support.ts";

function set(text: string): IntegerSet {
  const result = parseSet(text);
  if (!result.ok) throw new Error(`${result.diagnostics[0]!.message} in ${text}`);
  return result.value;
}

/** The text of a piece, and its points by trying all values of what only has to exist. */
interface JudgedPiece {
  readonly text: string;
  readonly points: ReadonlySet<string>;
}

type Values = Readonly<Record<string, number>>;
type Linear = readonly { readonly by: number; readonly of: string }[];

/** How a dimension follows from what only has to exist. */
type Tie =
  | { readonly kind: "equal"; readonly row: Linear; readonly constant: number }
  | { readonly kind: "floor"; readonly row: Linear; readonly divisor: number }
  | {
      readonly kind: "residue";
      readonly row: Linear;
      readonly modulus: number;
      readonly span: number;
    }
  | {
      readonly kind: "strip";
      readonly row: Linear;
      readonly factor: number;
      readonly width: number;
    };

const spell = (row: Linear): string => row.map(({ by, of }) => `(${by})*${of}`).join(" + ") || "0";

const sumOf = (row: Linear, at: Values): number =>
  row.reduce((sum, { by, of }) => sum + by * at[of]!, 0);

function spellTie(x: string, tie: Tie): string {
  const row = spell(tie.row);
  switch (tie.kind) {
    case "equal":
      return `${x} = ${row} + ${tie.constant}`;
    case "floor":
      return `${x} = floor((${row})/${tie.divisor})`;
    case "residue":
      return `(${x} + ${row}) mod ${tie.modulus} = 0 and 0 <= ${x} < ${tie.span}`;
    case "strip":
      return `${row} <= ${tie.factor}${x} <= ${row} + ${tie.width}`;
  }
}

/** The values that the tie allows. */
function allowed(tie: Tie, at: Values): number[] {
  const base = sumOf(tie.row, at);
  const from = (first: number, last: number, step: number): number[] => {
    const out: number[] = [];
    for (let v = first; v <= last; v += step) out.push(v);
    return out;
  };
  switch (tie.kind) {
    case "equal":
      return [base + tie.constant];
    case "floor":
      return [Math.floor(base / tie.divisor)];
    case "residue":
      return from(
        (((-base % tie.modulus) + tie.modulus) % tie.modulus) + 0,
        tie.span - 1,
        tie.modulus,
      );
    case "strip":
      return from(Math.ceil(base / tie.factor), Math.floor((base + tie.width) / tie.factor), 1);
  }
}

const coefficient = fc
  .oneof(...[3, 10, 60, 1000, 1e5, 1e6].map((max) => fc.integer({ min: 1, max })))
  .chain((size) => fc.boolean().map((negative) => (negative ? -size : size)));

function linear(names: readonly string[]): fc.Arbitrary<Linear> {
  const terms = names.map((of) =>
    fc.option(coefficient, { nil: 0, freq: 5 }).map((by) => ({ by, of })),
  );
  return fc.tuple(...terms).map((all) => all.filter((t) => t.by !== 0));
}

function tieTo(names: readonly string[]): fc.Arbitrary<Tie> {
  const row = linear(names);
  const number = (min: number, max: number): fc.Arbitrary<number> => fc.integer({ min, max });
  return fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({ kind: fc.constant("equal" as const), row, constant: number(-9, 9) }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant("floor" as const), row, divisor: number(2, 40) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant("residue" as const),
        row,
        modulus: number(2, 2000),
        span: number(1, 9000),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant("strip" as const),
        row,
        factor: number(1, 3),
        width: number(0, 3),
      }),
    },
  );
}

function arbitraryPiece(dims: readonly string[], most: number): fc.Arbitrary<JudgedPiece> {
  return fc.integer({ min: 1, max: 3 }).chain((hidden) => {
    const names = ["a", "b", "c"].slice(0, hidden);
    const range = fc
      .tuple(fc.integer({ min: -4, max: 4 }), fc.integer({ min: 0, max: most }))
      .map(([low, length]) => [low, low + length] as const);
    const condition = fc
      .tuple(linear([...dims, ...names]), fc.integer({ min: -1000, max: 100_000 }))
      .map(([row, constant]) => ({ row, constant }));
    return fc
      .record({
        ranges: fc.tuple(...names.map(() => range)),
        ties: fc.tuple(...dims.map(() => tieTo(names))),
        conditions: fc.array(condition, { maxLength: 2 }),
      })
      .map((parts) => judged(dims, names, parts));
  });
}

interface Parts {
  readonly ranges: readonly (readonly [number, number])[];
  readonly ties: readonly Tie[];
  /** Each at least 0. */
  readonly conditions: readonly { readonly row: Linear; readonly constant: number }[];
}

function judged(
  dims: readonly string[],
  names: readonly string[],
  { ranges, ties, conditions }: Parts,
): JudgedPiece {
  const where = [
    ...names.map((n, i) => `${ranges[i]![0]} <= ${n} <= ${ranges[i]![1]}`),
    ...dims.map((x, i) => spellTie(x, ties[i]!)),
    ...conditions.map(({ row, constant }) => `${spell(row)} + ${constant} >= 0`),
  ];
  let hidden: Values[] = [{}];
  names.forEach((n, i) => {
    const [low, high] = ranges[i]!;
    const values = Array.from({ length: high - low + 1 }, (_, k) => low + k);
    hidden = hidden.flatMap((at) => values.map((v) => ({ ...at, [n]: v })));
  });
  const points = new Set<string>();
  for (const at of hidden) {
    let all: Values[] = [at];
    dims.forEach((x, i) => {
      const values = allowed(ties[i]!, at);
      all = all.flatMap((a) => values.map((v) => ({ ...a, [x]: v })));
    });
    for (const a of all) {
      if (!conditions.every(({ row, constant }) => sumOf(row, a) + constant >= 0)) continue;
      points.add(dims.map((x) => a[x]!).join());
    }
  }
  const text = `[${dims.join(", ")}] : exists (${names.join(", ")}: ${where.join(" and ")})`;
  return { text, points };
}

/** One to three pieces over the same dimensions. */
function arbitraryGappedSet(most: number): fc.Arbitrary<JudgedPiece> {
  return fc.integer({ min: 1, max: 3 }).chain((count) => {
    const dims = ["x", "y", "z"].slice(0, count);
    return fc.array(arbitraryPiece(dims, most), { minLength: 1, maxLength: 3 }).map((pieces) => ({
      text: `{ ${pieces.map((p) => p.text).join("; ")} }`,
      points: new Set(pieces.flatMap((p) => [...p.points])),
    }));
  });
}

describe("sets with large gaps", () => {
  it("agree with trying all values of what only has to exist", () => {
    fc.assert(
      fc.property(arbitraryGappedSet(9), ({ text, points }) => {
        const value = set(text);
        expect(countPoints(value), text).toEqual({ kind: "known", value: points.size });
        if (points.size > 2000) return;
        const listed = known(enumeratePoints(value)).map((p) => p.values.join());
        expect(new Set(listed), text).toEqual(points);
        expect(listed.length).toBe(points.size);
      }),
      { numRuns: 60, seed: 5 },
    );
  });

  it("are counted up to a million points, in any number of dimensions and pieces", () => {
    const check = (text: string, count: number): void => {
      expect(known(countPoints(set(text))), text).toBe(count);
    };
    check("{ [x] : exists (a, b: x = 999983a + 1000003b and 0 <= a, b < 2) }", 4);
    check("{ [x] : exists a: x = 1000003a and 0 <= a < 1000 }", 1000);
    check("{ [x] : x mod 1000003 = 0 and 0 <= x < 100000000000 }", 100_000);
    check("{ [x] : exists (a, b: x = 999983a + 1000003b and 0 <= a, b < 1000) }", 1_000_000);
    check("{ [x, y] : 0 <= 1000003x - 999983y <= 10 and 0 <= x < 1000000000 }", 11_001);
    check(
      "{ [x, y, z] : exists (a, b, c: x = 1003a + 17b and y = 1009b - 19c and z = 1013c + a and 0 <= a, b, c < 100) }",
      1_000_000,
    );
    const residues = Array.from({ length: 1e6 }, (_, x) => x).filter((x) => x % 3 === 1);
    const listed = new Set(residues);
    for (let a = 0; a < 1000; a++) listed.add(1000003 * a);
    for (let a = -5; a < 1000; a++) listed.add(999983 * a);
    check(
      "{ [x] : exists a: x = 1000003a and 0 <= a < 1000; [x] : exists a: x = 999983a and -5 <= a < 1000; [x] : 0 <= x < 1000000 and x mod 3 = 1 }",
      listed.size,
    );
  });

  it("are counted where using up the equalities takes numbers beyond doubles", () => {
    const text = `{ [x, y] : exists (a, b, c: -2 <= a <= 4 and 1 <= b <= 2 and -1 <= c <= 2
      and x = -50a + 7b - 261783c + 9 and y = -764495a + 30b - c - 3
      and 870498x - 35983y + 338998a - 6b + 57c + 88028 >= 0) }`;
    let expected = 0;
    for (let a = -2; a <= 4; a++) {
      for (let b = 1; b <= 2; b++) {
        for (let c = -1; c <= 2; c++) {
          const [x, y] = [-50 * a + 7 * b - 261783 * c + 9, -764495 * a + 30 * b - c - 3];
          if (870498 * x - 35983 * y + 338998 * a - 6 * b + 57 * c + 88028 >= 0) expected++;
        }
      }
    }
    expect(known(countPoints(set(text)))).toBe(expected);
    expect(known(enumeratePoints(set(text))).length).toBe(expected);
  });

  it("are counted where a point has many reasons to exist", () => {
    const sums = (of: readonly (readonly [number, number])[]): number => {
      let all = new Set([0]);
      for (const [by, count] of of) {
        const values = Array.from({ length: count }, (_, k) => k * by);
        all = new Set([...all].flatMap((s) => values.map((v) => s + v)));
      }
      return all.size;
    };
    const check = (terms: readonly (readonly [number, number])[]): void => {
      const names = ["a", "b", "c", "d"].slice(0, terms.length);
      const sum = names.map((n, i) => `${terms[i]![0]}${n}`).join(" + ");
      const ranges = names.map((n, i) => `0 <= ${n} < ${terms[i]![1]}`).join(" and ");
      const text = `{ [x] : exists (${names.join(", ")}: x = ${sum} and ${ranges}) }`;
      expect(known(countPoints(set(text))), text).toBe(sums(terms));
    };
    check([
      [6000018, 30],
      [10000030, 30],
      [15000045, 30],
    ]);
    check([
      [1e9, 10],
      [1, 200],
      [-1, 200],
    ]);
    check([
      [999983, 40],
      [999983, 40],
      [1000003, 40],
      [1000003, 40],
    ]);
    check([
      [1000003, 30],
      [1, 30],
      [2, 30],
      [3, 30],
    ]);
  });

  it("are unknown beyond", () => {
    const unknown = { kind: "unknown", reason: "budget" };
    const many = set("{ [x] : exists (a, b: x = 999983a + 1000003b and 0 <= a, b < 1000000) }");
    expect(countPoints(many)).toEqual(unknown);
    expect(enumeratePoints(many, 1000)).toEqual(unknown);
    const open = set("{ [x] : exists (a, b: x = 999983a + 1000003b and 0 <= a < 5 and b >= 0) }");
    expect(countPoints(open)).toEqual({ kind: "unknown", reason: "unbounded" });
    expect(enumeratePoints(open)).toEqual({ kind: "unknown", reason: "unbounded" });
  });
});
