/** Rules that are not well formed: each fault is told with the name of the rule. */
import { expect, it } from "vitest";
import { families } from "./families/index.ts";
import { faultsOf } from "./rule-faults.ts";
import { type RuleRow, row } from "./rule-row.ts";

const exact = (left: string, right: string, where?: string) =>
  row("r", "exact", left, right, where);

it.each<[string, RuleRow]>([
  ["no pattern", exact("(neg ?x", "?x")],
  ['no operator is named "negate"', exact("(negate ?x)", "?x")],
  ['no operator is named "twice"', exact("(neg ?x)", "(twice ?x)")],
  ["neg of 2 operands, which has 1", exact("(neg ?x)", "(neg ?x ?x)")],
  ['no condition is named "everlasting"', exact("(neg ?x)", "?x", "everlasting(x)")],
  ['no function is named "turn"', exact("(neg ?x)", "(transpose[?p] ?x)", "p = turn(x)")],
  ["finite(y): ?y is not on the left", exact("(neg ?x)", "?x", "finite(y)")],
  ["?k is computed and not on the right", exact("(neg ?x)", "?x", "k = number(1, x)")],
  [
    "transpose on the right has no attributes: write transpose[?a]",
    exact("(neg ?x)", "(transpose ?x)"),
  ],
  [
    "?p has the attributes of reshape, and transpose takes its own",
    exact("(reshape[?p] ?x)", "(transpose[?p] ?x)"),
  ],
  ["a rule that approximates has no errorBound", row("r", "approximates", "(gelu[?g] ?x)", "?x")],
])("%s (EGR001)", (message, rule) => {
  const [fault, ...others] = faultsOf(rule);
  expect(others).toEqual([]);
  expect(fault).toMatchObject({ code: "EGR001", at: 'rule "r"' });
  expect(fault!.message).toContain(message);
});

it("finds nothing in the families", () => {
  expect(Object.values(families).flat().flatMap(faultsOf)).toEqual([]);
});
