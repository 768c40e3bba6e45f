import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Result } from "../support/diagnostic.ts";
import {
  enumeratePoints,
  fixParams,
  formatAffine,
  formatSet,
  isEmpty,
  isEqual,
  parseAffine,
  parseMap,
  parseSet,
} from "./index.ts";

function value<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map((d) => d.message).join());
  return result.value;
}

/** Parses, prints as `expected`, and the print parses to an equal set. */
function check(text: string, expected: string): void {
  const set = value(parseSet(text));
  expect(formatSet(set)).toBe(expected);
  expect(isEqual(set, value(parseSet(expected)))).toBe("yes");
}

function checkMap(text: string, expected: string): void {
  const map = value(parseMap(text));
  expect(formatSet(map)).toBe(expected);
  expect(isEqual(map, value(parseMap(expected)))).toBe("yes");
}

function checkRefused(text: string, code: string, message: string): void {
  const result = parseSet(text);
  expect(result).toMatchObject({ ok: false, diagnostics: [{ code }] });
  expect(result.ok || result.diagnostics[0]!.message).toContain(message);
}

describe("notation", () => {
  it("sets", () => {
    check(
      "[N] -> { S[i, j] : 0 <= i < N and 0 <= j <= i }",
      "[N] -> { S[i, j] : 0 <= i < N and 0 <= j <= i }",
    );

    checkMap("{ [t] -> A[t, o1] : o1 = 2 }", "{ [t] -> A[t, 2] }");
    check("{ A[0:9, k = 3]; B[] }", "{ A[o0, k] : k = 3 and 0 <= o0 <= 9; B[] }");
    check("{ [i] : i = 2 or (i >= 5 and not i > 7) }", "{ [i] : i = 2; [i] : 5 <= i <= 7 }");
    check("[N] -> { [] : N >= 1 }", "[N] -> { [] : N >= 1 }");
    check("{ }", "{ }");
    check(
      "[N] -> { P[S[i] -> [A[j] -> B[]]] : i = j + N }",
      "[N] -> { P[S[i] -> [A[j] -> B[]]] : N + j = i }",
    );
    check(
      "{ [i] : exists (e: i = 3e) and 0 <= i, 2i <= 20 }",
      "{ [i] : exists (e0: i = 3e0 and 0 <= i <= 10) }",
    );
    check(
      "{ [i] : i mod 4 = 1 and i % 3 != 0 and floord(i, 5) <= 1 }",
      formatSet(value(parseSet("{ [i] : i mod 4 = 1 and i % 3 != 0 and [i/5] <= 1 }"))),
    );
  });

  it("maps", () => {
    checkMap(
      "[N] -> { S[i, j] -> A[i + 1, floor((j)/2)] : 0 <= i < N and j >= 0 }",
      "[N] -> { S[i, j] -> A[i + 1, floor((j)/2)] : 0 <= i < N and j >= 0 }".replace(
        "1 + i",
        "i + 1",
      ),
    );
    checkMap("{ [i] -> [i'] : i' > i }", "{ [i] -> [i'] : i' >= i + 1 }");
    checkMap("{ [i, j] -> [j, i] }", "{ [i, j] -> [j, i] }");
  });

  it("expressions", () => {
    const again = (text: string): string => formatAffine(value(parseAffine(text)));
    expect(again("2(i + 3j) - i/1")).toBe("i + 6j");
    expect(again("ceil((i + 2j)/4)")).toBe("floor((i + 2j + 3)/4)");
    // As isl reads them: a remainder binds closer than products and signs, not than a number's own sign.
    expect(again("3i mod 4")).toBe(again("3(i mod 4)"));
    expect(again("3*i mod 4")).toBe(again("3(i mod 4)"));
    expect(again("2*(i + 1) % 4")).toBe(again("2((i + 1) mod 4)"));
    expect(again("-i mod 3")).toBe(again("0 - (i mod 3)"));
    expect(again("1 - i mod 4")).toBe(again("1 - (i mod 4)"));
    expect(again("-1 mod 3")).toBe("2");
    expect(again("- -5 mod 3")).toBe("2");
    expect(again("-(1) mod 3")).toBe("-1");
    expect(again("(5i + 7) mod 3")).toBe("-3*floor((2i + 1)/3) + 2i + 1");
  });

  it("refusals", () => {
    checkRefused(`{ [${Array.from({ length: 2000 }, (_, k) => k).join()}] }`, "AFF003", "too many");
    checkRefused("{ [i] : i * i > 3 }", "AFF001", "a product of two variables");
    checkRefused("{ [i] : i / 2 + floor(i / j) }", "AFF003", 'unknown name "j"');
    checkRefused("{ [i] : i > 9007199254740993 }", "AFF002", "9007199254740993");
    checkRefused("{ [i] : not (exists e: i = 2e) }", "AFF003", "negated");
    checkRefused("{ [i] -> [j] }", "AFF003", "expected a set");
    checkRefused("{ [i] : i < }", "TXT001", "expected an expression");
  });
});

describe("classic hard cases", () => {
  it("the Omega nightmare is empty", () => {
    const nightmare = "{ [x, y] : 27 <= 11x + 13y <= 45 and -10 <= 7x - 9y <= 4 }";
    expect(isEmpty(value(parseSet(nightmare)))).toBe("yes");
  });

  it("equalities without common solutions and far away points", () => {
    expect(isEmpty(value(parseSet("{ [x, y] : 6x + 15y = 4 }")))).toBe("yes");
    expect(isEmpty(value(parseSet("{ [x, y] : 12345x - 54321y = 3 }")))).toBe("no");
    const thin = "{ [x, y] : 1000001x - 1000003y = 1 and 0 <= x < 1000003 }";
    expect(isEmpty(value(parseSet(thin)))).toBe("no");
    const big =
      "{ [x, y, z] : 94906267x + 94906249y - 94906297z = 1 and 0 <= x, y, z <= 1000000000 }";
    expect(isEmpty(value(parseSet(big)))).toBe("no");
  });

  it("thin triangles with and without a point", () => {
    const triangle = (n: number): string =>
      `{ [x, y] : ${n}y <= ${n + 1}x and ${n + 1}x <= ${n}y + 1 and 1 <= x < ${n} }`;
    const found = enumeratePoints(value(parseSet(triangle(30))));
    expect(isEmpty(value(parseSet(triangle(30))))).toBe(
      found.kind === "known" && found.value.length > 0 ? "no" : "yes",
    );
  });

  it("parameters can be fixed", () => {
    const set = value(parseSet("[N] -> { [i] : 0 <= i < N and 2i != N }"));
    const points = enumeratePoints(fixParams(set, { N: 4 }));
    expect(points).toMatchObject({
      kind: "known",
      value: [{ values: [0] }, { values: [1] }, { values: [3] }],
    });
  });
});

describe("malformed notation", () => {
  const samples = [
    "[N] -> { S[i, j] : 0 <= i < N and exists (e: j = 2e) }",
    "{ [A[i] -> B[j]] -> [floor((i + 3)/4)] : i mod 7 = 2 or not (j > 3i) }",
    "[N, M = 5] -> { S[i, 0:9, k = 3] -> [ceil(i/2), *] ; T[] -> [] }",
  ];
  const pieces = samples.flatMap((s) => s.match(/\w+|\S/g)!);
  const shuffled = fc.array(fc.constantFrom(...pieces), { maxLength: 30 }).map((p) => p.join(" "));
  const damaged = fc
    .tuple(fc.constantFrom(...samples), fc.nat(60), fc.nat(6), fc.string({ maxLength: 4 }))
    .map(([s, at, cut, put]) => s.slice(0, at) + put + s.slice(at + cut));

  it("of great depth or with great numbers is a diagnostic", () => {
    const big = Number.MAX_SAFE_INTEGER;
    for (const text of [
      `{ [i] : ${big}*9*i >= 0 }`,
      `{ [i] : ${big} + ${big} + i >= 0 }`,
      `{ [i] : i/${big}/9 = 0 }`,
      `{ [i] : ${"(".repeat(30000)} i >= 0 }`,
      `{ [i] : ${"not ".repeat(30000)} i >= 0 }`,
      `{ [i] : ${"- ".repeat(30000)} i >= 0 }`,
      `{ [i] : ${"exists e: ".repeat(30000)} i >= 0 }`,
      `{ ${"[".repeat(20000)}`,
    ]) {
      const result = parseSet(text);
      expect(result.ok ? "accepted" : result.diagnostics[0]!.code).toMatch(/^AFF00[23]$/);
    }
  });

  it("is a diagnostic, never an exception", () => {
    const any = fc.oneof(fc.string(), shuffled, damaged);
    fc.assert(
      fc.property(any, (text) => {
        for (const result of [parseSet(text), parseMap(text), parseAffine(text)]) {
          if (!result.ok) expect(result.diagnostics[0]!.code).toMatch(/^(TXT|AFF)/);
        }
      }),
      { numRuns: 1500, seed: 29 },
    );
  });
});

it("long texts are read in time that grows as they do", () => {
  const many = (text: (k: number) => string, between: string): string =>
    Array.from({ length: 20_000 }, (_, k) => text(k)).join(between);
  const texts = [
    `{ [i] : ${many(() => "i", " + ")} >= 0 }`,
    `{ [i] : ${many((k) => `i >= ${k}`, " and ")} }`,
    `{ [i] : ${many((k) => `not (i <= ${k})`, " and ")} }`,
    `{ [${many((k) => `d${k}`, ", ")}] : ${many((k) => `d${k}`, " + ")} >= 0 }`,
    `[${many((k) => `p${k}`, ", ")}] -> { [i] : i >= ${many((k) => `p${k}`, " - ")} }`,
    `{ [i] : exists (${many((k) => `e${k}`, ", ")}: i >= 2) }`,
  ];
  for (const text of texts) expect(parseSet(text).ok, text.slice(0, 60)).toBe(true);
});

it("min and max are read where conditions can say which they are", () => {
  const check = (text: string, holds: (i: number, j: number) => boolean): void => {
    const set = value(parseSet(`{ [i, j] : -5 <= i, j <= 5 and (${text}) }`));
    const found = enumeratePoints(set);
    const expected: string[] = [];
    for (let i = -5; i <= 5; i++)
      for (let j = -5; j <= 5; j++) if (holds(i, j)) expected.push(`${i},${j}`);
    const points = found.kind === "known" ? found.value.map((p) => p.values.join()) : [];
    expect(points.sort(), text).toEqual(expected.sort());
  };
  const { min, max, floor } = Math;
  check("min(i, 2j) <= 1", (i, j) => min(i, 2 * j) <= 1);
  check("min(i, j, 2) = max(i - 1, -j)", (i, j) => min(i, j, 2) === max(i - 1, -j));
  check("not (2max(i, j) - min(i, 3) < 4)", (i, j) => !(2 * max(i, j) - min(i, 3) < 4));
  check("floor(max(i, j)/2) != min(1, i)", (i, j) => floor(max(i, j) / 2) !== min(1, i));
  check(
    "min(i, max(j, 0)) >= 1 or i = min(j, -3)",
    (i, j) => min(i, max(j, 0)) >= 1 || i === min(j, -3),
  );
  check("exists (e = min(i, j): 2e >= i + 1)", (i, j) => 2 * min(i, j) >= i + 1);
  const map = value(parseSet("{ [i, min(i, 3)] : 0 <= i <= 5 }"));
  expect(isEqual(map, value(parseSet("{ [i, i] : 0 <= i < 3; [i, 3] : 3 <= i <= 5 }")))).toBe(
    "yes",
  );
  expect(parseAffine("min(2, 3)")).toMatchObject({ diagnostics: [{ code: "AFF001" }] });
  checkRefused("[N = min(2, 3)] -> { [i] : i = N }", "AFF001", "min here");
  checkRefused("{ [i] : min() <= i }", "AFF001", "min here");
});
