/** Whatever the budget, however large the numbers: an answer is right or it is "unknown". */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Answer,
  add,
  affine,
  affineHull,
  applyMap,
  coalesce,
  contains,
  countInParams,
  countPoints,
  DiagnosticError,
  enumeratePoints,
  evaluateAffine,
  fixParams,
  floorDivide,
  hullBoxes,
  type IntegerMap,
  type IntegerSet,
  inverse,
  isEmpty,
  isEqual,
  isSubset,
  lexMax,
  lexMin,
  makeDisjoint,
  maximum,
  minimum,
  parseMap,
  parseSet,
  polyhedralHull,
  projectOut,
  removeRedundancies,
  runLoops,
  samplePoint,
  scale,
  simpleHull,
  subtract,
  type Truth,
} from "./index.ts";
import { arbitrarySet, pointsOf } from "./random-sets.test-support.ts";

function set(text: string): IntegerSet {
  const result = parseSet(text);
  if (!result.ok) throw new Error(result.diagnostics[0]!.message);
  return result.value;
}

/** What every operation has to say about a set; those that give up are counted. */
class Judge {
  readonly #points: readonly string[];
  readonly #limit: number | undefined;
  /** Where results are looked at. */
  readonly #back: IntegerMap | undefined;
  known = 0;
  unknown = 0;

  constructor(points: Iterable<string>, how: { limit?: number; back?: IntegerMap }) {
    this.#points = [...points].sort();
    this.#limit = how.limit;
    this.#back = how.back;
  }

  #listed(value: IntegerSet): readonly string[] {
    return pointsOf(this.#back ? applyMap(this.#back, value) : value);
  }

  #check<T>(found: Answer<T>, compare: (value: T) => void): void {
    if (found.kind === "unknown") this.unknown++;
    else {
      this.known++;
      compare(found.value);
    }
  }

  #truth(found: Truth, expected: boolean): void {
    if (found === "unknown") this.unknown++;
    else {
      this.known++;
      expect(found).toBe(expected ? "yes" : "no");
    }
  }

  judge(value: IntegerSet, other: IntegerSet, others: ReadonlySet<string>): void {
    const [points, limit] = [this.#points, this.#limit];
    const keeps = (v: IntegerSet): void => expect(this.#listed(v)).toEqual(points);
    const numbers = points.map((p) => p.split(",").map(Number));
    const [first, ...rest] = numbers.sort((a, b) => {
      const at = a.findIndex((v, i) => v !== b[i]);
      return at < 0 ? 0 : a[at]! - b[at]!;
    });
    const spelled = (p: readonly number[] | undefined) => (p ? [p.join()] : []);
    this.#check(countPoints(value, limit), (v) => expect(v).toBe(points.length));
    this.#check(lexMin(value, limit), (v) => expect(this.#listed(v)).toEqual(spelled(first)));
    this.#check(lexMax(value, limit), (v) =>
      expect(this.#listed(v)).toEqual(spelled(rest.at(-1) ?? first)),
    );
    this.#check(coalesce(value, limit), keeps);
    this.#check(makeDisjoint(value, limit), keeps);
    this.#check(removeRedundancies(value, limit), keeps);
    this.#check(subtract(value, other, limit), (v) =>
      expect(this.#listed(v)).toEqual(points.filter((p) => !others.has(p))),
    );
    for (const hull of [affineHull, simpleHull, polyhedralHull]) {
      this.#check(hull(value, limit), (v) => expect(isSubset(value, v)).not.toBe("no"));
    }
    this.#check(samplePoint(value, limit), (v) => {
      if (v) expect(contains(value, {}, v.values)).not.toBe("no");
      else expect(points).toEqual([]);
    });
    const inside = points.every((p) => others.has(p));
    this.#truth(isEmpty(value, limit), points.length === 0);
    this.#truth(isSubset(value, other, limit), inside);
    this.#truth(isEqual(value, other, limit), inside && others.size === points.length);
  }
}

/** Decisions about a piece are kept with it: each budget asks about new ones. */
function anew(value: IntegerSet): IntegerSet {
  return { ...value, pieces: value.pieces.map((p) => ({ ...p })) };
}

describe("answers are right or unknown", () => {
  it("with any budget", () => {
    const tally = { known: 0, unknown: 0 };
    const dims = fc.integer({ min: 1, max: 2 });
    const drawn = dims.chain((d) =>
      fc.tuple(arbitrarySet(d), arbitrarySet(d), fc.integer({ min: 0, max: 11 })),
    );
    fc.assert(
      fc.property(drawn, ([a, b, size]) => {
        const judge = new Judge(a.points, { limit: 2 ** size });
        judge.judge(anew(a.set), anew(b.set), b.points);
        tally.known += judge.known;
        tally.unknown += judge.unknown;
      }),
      { numRuns: 50, seed: 37 },
    );
    expect(Math.min(tally.known, tally.unknown)).toBeGreaterThan(100);
  });

  it("with numbers near the end of the range", () => {
    const far = fc.integer({ min: 20, max: 52 });
    const drawn = fc.tuple(arbitrarySet(2), arbitrarySet(2), far, fc.boolean());
    const tally = { known: 0, unknown: 0 };
    fc.assert(
      fc.property(drawn, ([a, b, size, stretched]) => {
        const by = 2 ** size - 1;
        const step = stretched ? 2 ** (size - 20) + 1 : 1;
        const map = parseMap(`{ [a, b] -> [a + ${by}, ${step}b] }`);
        if (!map.ok) throw new Error(map.diagnostics[0]!.message);
        const judge = new Judge(a.points, { back: inverse(map.value) });
        judge.judge(applyMap(map.value, a.set), applyMap(map.value, b.set), b.points);
        tally.known += judge.known;
        tally.unknown += judge.unknown;
      }),
      { numRuns: 25, seed: 41 },
    );
    expect(tally.known).toBeGreaterThan(200);
  });

  it("without an end to the set", () => {
    const open = set("{ [i, j] : i >= 0 and 3j <= i }");
    const unbounded = { kind: "unknown", reason: "unbounded" };
    expect(countPoints(open)).toEqual(unbounded);
    expect(lexMax(open)).toEqual(unbounded);
    expect(lexMin(open)).toEqual(unbounded);
    expect(enumeratePoints(open)).toEqual(unbounded);
    expect(countInParams(set("[N] -> { [i] : i <= N }"))).toEqual(unbounded);
    expect(minimum(open, "i")).toEqual({ kind: "known", value: { kind: "value", value: 0 } });
    expect(maximum(open, "i")).toEqual({ kind: "known", value: { kind: "unbounded" } });
    expect(isEmpty(open)).toBe("no");
    expect(isSubset(open, set("{ [i, j] : j <= i }"))).toBe("yes");
    expect(isEqual(open, set("{ [i, j] : j <= i and i >= 0 }"))).toBe("no");
    expect(lexMin(set("{ [i, j] : i >= 0 and j >= i }"))).toMatchObject({ kind: "known" });
    const [box] = (hullBoxes(open) as { readonly value: readonly { readonly dims: unknown }[] })
      .value;
    expect(box!.dims).toMatchObject([{ upper: [] }, { lower: [], upper: [] }]);
  });
});

describe("questions about what is not there", () => {
  const loop = set("[N] -> { [i] : 0 <= i < N }");

  it("one number for all parameters is unknown", () => {
    const unknown = { kind: "unknown", reason: "parametric" };
    expect(countPoints(loop)).toEqual(unknown);
    expect(enumeratePoints(loop)).toEqual(unknown);
    expect(contains(loop, {}, [0])).toBe("unknown");
    expect(contains(loop, { N: 1 }, [0])).toBe("yes");
    expect(contains(loop, { N: 1 }, [0, 0])).toBe("no");
  });

  it("a name that the set does not have is a parameter of its own", () => {
    const box = set("{ [i] : 2 <= i <= 5 }");
    expect(minimum(box, "q")).toEqual({ kind: "known", value: { kind: "unbounded" } });
    expect(maximum(loop, add("i", "q"))).toEqual({ kind: "known", value: { kind: "unbounded" } });
    expect(minimum(box, floorDivide("i", 2))).toEqual({
      kind: "known",
      value: { kind: "value", value: 1 },
    });
    expect(minimum(set("{ [i] : i > i }"), "q")).toEqual({
      kind: "known",
      value: { kind: "empty" },
    });
  });

  it("dimensions that no tuple has are a mistake of the caller", () => {
    for (const [position, text] of [
      [1, "1"],
      [-1, "-1"],
      [0.5, "0.5"],
    ] as const) {
      expect(() => projectOut(loop, [position])).toThrow(`AFF004: no dimension ${text}`);
      expect(() => projectOut(loop, [position])).toThrow(DiagnosticError);
    }
  });

  it("values that are no integers are a mistake of the caller", () => {
    for (const value of [Infinity, NaN, 0.5, 2 ** 53]) {
      const code = `AFF002: ${value} is not an integer`;
      expect(() => contains(loop, { N: 4 }, [value])).toThrow(code);
      expect(() => contains(loop, { N: value }, [0])).toThrow(DiagnosticError);
      expect(() => fixParams(loop, { N: value })).toThrow(code);
      expect(() => add("i", value)).toThrow(code);
    }
    expect(() => floorDivide("i", 0)).toThrow("AFF001: division by 0");
  });

  it("values beyond what numbers hold exactly are exact or refused", () => {
    const most = Number.MAX_SAFE_INTEGER;
    const far = add(scale(most, "i"), "j");
    expect(() => evaluateAffine(far, { i: 5, j: 2 })).toThrow(
      "AFF002: a value of 45035996273704957",
    );
    // Parts beyond it that cancel.
    expect(evaluateAffine(add(far, scale(-most, "k")), { i: 5, j: 2, k: 5 })).toBe(2);
  });

  it("loops whose values leave them are refused, not walked without end", () => {
    const i = scale(Number.MAX_SAFE_INTEGER, "i");
    const run = { kind: "run", statement: "S", dims: ["t"], values: [affine("t")] } as const;
    const inner = {
      kind: "for",
      loop: "t",
      low: i,
      high: add(i, 15),
      marks: [],
      body: run,
    } as const;
    const outer = { kind: "for", loop: "i", low: affine(0), high: affine(5), marks: [] } as const;
    expect(() => runLoops({ ...outer, body: inner }, {})).toThrow("AFF002");
  });
});
