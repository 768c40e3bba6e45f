/** Patterns and rules as text: round trips, and what is refused. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Pattern, parsePattern, printPattern } from "./pattern.ts";
import { type RuleText, readRules } from "./rule.ts";

const opName = fc.constantFrom("f", "matmul", "+", "->", "a b", "x.y", "const", "..", "");
const name = fc.constantFrom("x", "y", "a1");
const payload = fc.oneof(
  fc.record({
    kind: fc.constant("key" as const),
    key: fc.constantFrom("", "3", "-2.5", "007", "axis", "_", "a=1, b", '"'),
  }),
  fc.record({ kind: fc.constant("variable" as const), name }),
  fc.constant({ kind: "any" as const }),
);
const pattern = fc.letrec<{ pattern: Pattern }>((tie) => ({
  pattern: fc.oneof(
    { maxDepth: 3, depthSize: "small" },
    fc.record({ kind: fc.constant("variable" as const), name }),
    fc.record(
      {
        kind: fc.constant("node" as const),
        op: opName,
        payload,
        children: fc.array(tie("pattern"), { maxLength: 5 }),
        open: fc.boolean(),
        name,
      },
      { requiredKeys: ["kind", "op", "payload", "children", "open"] },
    ),
  ),
})).pattern;

it("prints patterns so that they parse back", () => {
  fc.assert(
    fc.property(pattern, (value) => {
      expect(parsePattern(printPattern(value))).toEqual(value);
    }),
  );
});

describe("a rule is refused", () => {
  const refusal = (rule: Partial<RuleText>) => {
    const result = readRules([{ name: "r", left: "(f ?x)", right: "?x", ...rule }]);
    return result.ok ? [] : result.diagnostics.map((d) => `${d.code} ${d.at}`);
  };

  it.each<[string, Partial<RuleText>]>([
    ["that does not parse", { left: "(f ?x" }],
    ["with no sides", { left: [], right: [] }],
    ["with a side that is no text", { left: null as never }],
    ["without a right side", { right: undefined as never }],
    ["with text after the pattern", { left: "(f ?x) ?y" }],
    ["with children after the rest", { left: "(f ... ?x)" }],
    ["with unequal sides", { left: ["(f ?x)", "(g ?x)"] }],
    ["that builds an open term", { right: "(g ?x ...)" }],
    ["that builds any payload", { right: "(g[_] ?x)" }],
    [
      "with a bare variable among several left sides",
      { left: ["(f ?x)", "?x"], right: ["?x", "?x"] },
    ],
  ])("%s (EGR001)", (_, rule) => {
    expect(refusal(rule)).toEqual(['EGR001 rule "r"']);
  });

  it("that uses a variable which nothing binds (EGR002)", () => {
    expect(refusal({ right: "(g ?y)" })).toEqual(['EGR002 rule "r"']);
    expect(refusal({ right: "(g[?p] ?x)" })).toEqual(['EGR002 rule "r"']);
    expect(refusal({ right: "(g[?p] ?x)", compute: { p: () => "1" } })).toEqual([]);
  });

  it("whose name is taken, beside every other fault", () => {
    const good = { name: "r", left: "(f ?x)", right: "?x" };
    const result = readRules([good, good, { ...good, name: "s", right: "?z" }]);
    expect(result.ok ? [] : result.diagnostics.map((d) => d.code)).toEqual(["EGR002", "EGR001"]);
  });
});
