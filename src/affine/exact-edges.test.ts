/** Numbers near 2^53 and depths near the limit: exact answers, `unknown`, or a diagnostic, never a wrong one. */
import { describe, expect, it } from "vitest";
import { readKernel } from "../../campaign/schedule-legality/kernel-text.ts";
import { Rng } from "../support/rng.ts";
import {
  contains,
  countInParams,
  countPoints,
  enumeratePoints,
  evaluateCount,
  formatSet,
  type IntegerMap,
  type IntegerSet,
  isEmpty,
  isLegal,
  makeDependence,
  parseMap,
  parseSet,
  parseTree,
  scheduleNest,
} from "./index.ts";
import { floorDiv } from "./row.ts";

function set(text: string): IntegerSet {
  const read = parseSet(text);
  if (!read.ok) throw new Error(read.diagnostics[0]!.message);
  return read.value;
}

function map(text: string): IntegerMap {
  const read = parseMap(text);
  if (!read.ok) throw new Error(read.diagnostics[0]!.message);
  return read.value;
}

describe("numbers near 2^53", () => {
  it("are divided exactly", () => {
    const rng = new Rng(4);
    const top = Number.MAX_SAFE_INTEGER;
    for (let trial = 0; trial < 2000; trial++) {
      const a = rng.integer(0, 1) === 0 ? -top + rng.integer(0, 50) : top - rng.integer(0, 50);
      const b = rng.integer(0, 2) === 0 ? top - rng.integer(0, 50) : rng.integer(1, 1000);
      const exact = BigInt(a) / BigInt(b);
      const wanted = exact * BigInt(b) > BigInt(a) ? exact - 1n : exact;
      expect(floorDiv(a, b), `${a} / ${b}`).toBe(Number(wanted));
    }
  });

  it("bound sets that have a point", () => {
    const narrow = set("{ [i] : 5i >= 9007199254740991 and i <= 1801439850948199 }");
    expect(contains(narrow, {}, [1801439850948199])).toBe("yes");
    expect(isEmpty(narrow)).toBe("no");
    expect(countPoints(narrow)).toEqual({ kind: "known", value: 1 });
    const third = set("{ [i] : 3i >= 9007199254740991 and i <= 3002399751580333 }");
    expect(countPoints(third)).toEqual({ kind: "known", value: 3 });
    expect(isEmpty(set(formatSet(third)))).toBe("no");
    const apart = "-4*x - 1*y + 7881299347898391 >= 0";
    const [low, high] = ["2251799813685247 <= x <= 2251799813685253", "-1125899906842618 <= y"];
    const triangle = set(`{ [x, y] : ${low} and ${high} <= -1125899906842612 and ${apart} }`);
    expect(countPoints(triangle)).toEqual({ kind: "known", value: 36 });
    const strided = set("{ [i] : (3i) mod 9007199254740991 = 1 and 0 <= i <= 100 }");
    expect(isEmpty(strided)).toBe("yes");
  });

  it("are summed exactly where points are listed", () => {
    const line = "9007199254740989i + 9007199254740990j = -3";
    const points = enumeratePoints(set(`{ [i, j] : -3 <= i, j <= 3 and ${line} }`));
    expect(points).toEqual({ kind: "known", value: [{ tuple: "", values: [3, -3] }] });
  });

  it("do not make two instances at one time look ordered", () => {
    const dependence = makeDependence(map("{ S[i] -> T[j] : 3 <= i <= 4 and 3 <= j <= 4 }"));
    const times = new Map([
      ["S", map("{ S[i] -> [3000000000000000i - 9007199254740988] }")],
      ["T", map("{ T[j] -> [4000000000000001j - 9007199254740991] }")],
    ]);
    expect(isLegal({ times }, [dependence]).kind).not.toBe("legal");
  });

  it("are refused where they are no integers", () => {
    const count = countInParams(set("[N] -> { [i] : 0 <= i < N }"));
    if (count.kind !== "known") throw new Error(count.reason);
    expect(() => evaluateCount(count.value, { N: 2.5 })).toThrow("AFF002");
  });
});

describe("schedules at an edge", () => {
  it("change the storage of what no statement touches", () => {
    const nest = readKernel(`
      for i in 0..1 {
        for j in 1..i + 1 {
          S: C[i] =
        }
      }
      T: D[0] =`);
    const fold = { kind: "fold" as const, array: "C", axis: 0, modulus: 2 };
    expect(scheduleNest(nest, [fold]).kind).toBe("legal");
  });

  it("overwrite what lies beside a range of places, not what lies in it", () => {
    const writing = (first: number) =>
      readKernel(`
        for l in 0..2 {
          S0: t[${first}:${first + 2}] = C[l]
        }`);
    const overwrite = { kind: "overwrite" as const, array: "C", over: "t" };
    expect(scheduleNest(writing(10), [overwrite]).kind).toBe("legal");
    expect(scheduleNest(writing(0), [overwrite]).kind).toBe("clash");
  });

  it("have trees of any line end, and of no boundless depth", () => {
    const nested = (depth: number): string =>
      [
        'domain "{ S[i] : 0 <= i < 4 }"',
        ...Array.from({ length: depth }, (_, d) => `${"  ".repeat(d + 1)}mark unroll`),
        `${"  ".repeat(depth + 1)}leaf`,
      ].join("\r\n");
    expect(parseTree(nested(3)).ok).toBe(true);
    const deep = parseTree(nested(3000));
    expect(deep.ok || deep.diagnostics[0]!.code).toBe("TXT001");
  });
});
