import fc from "fast-check";
import { expect, test } from "vitest";
import { compileFullMatch } from "./regular-expression.ts";

/** JavaScript's own expressions judge those that mean the same in both. */
const atom = fc.constantFrom(
  "a",
  "b",
  "c",
  ".",
  "[ab]",
  "[^b]",
  "[a-c]",
  "\\w",
  "\\d",
  "\\.",
  "(a|b)",
);
const piece = fc
  .tuple(atom, fc.constantFrom("", "*", "+", "?", "{2}", "{1,3}", "{0,}"))
  .map((p) => p.join(""));
const pattern = fc
  .array(
    fc.array(piece, { maxLength: 4 }).map((p) => p.join("")),
    { minLength: 1, maxLength: 3 },
  )
  .map((b) => b.join("|"));

test("agrees with the expressions of JavaScript", () => {
  fc.assert(
    fc.property(pattern, fc.array(fc.constantFrom(..."abc.1"), { maxLength: 6 }), (p, letters) => {
      const text = letters.join("");
      expect(compileFullMatch(p)!.matches(text)).toBe(new RegExp(`^(?:${p})$`, "su").test(text));
    }),
    { numRuns: 1500 },
  );
});

test("anchors and word boundaries", () => {
  expect(compileFullMatch("\\bab\\b.cd$")!.matches("ab cd")).toBe(true);
  expect(compileFullMatch("\\bab\\b.?cd")!.matches("abcd")).toBe(false);
  expect(compileFullMatch("(^x|y)z")!.matches("yz")).toBe(true);
});

test("a pattern that explodes in a backtracking matcher takes linear time", () => {
  expect(compileFullMatch("(a*)*(a*)*b")!.matches("a".repeat(5000))).toBe(false);
});

test("repeats of nothing end", () => {
  const empty = compileFullMatch("(){1000}{1000}{1000}{1000}")!;
  expect(empty.states).toBeLessThan(10);
  expect([empty.matches(""), empty.matches("a")]).toEqual([true, false]);
  expect(compileFullMatch("a{".repeat(50_000))).toBeUndefined();
});

test("patterns outside the subset are not guessed", () => {
  for (const p of ["(?=a)", "a(", "[a", "a**{2000}", "\\1", "*a", "[[:alpha:]]", "(".repeat(1e5)]) {
    expect(compileFullMatch(p), p).toBeUndefined();
  }
});
