/** The list of reported optimisations names rules that there are. */
import { expect, it } from "vitest";
import { defaultPhases } from "../../src/rewrite/families/index.ts";
import { reported } from "./reported.ts";

it("names rules that models are rewritten with", () => {
  const known = new Set(defaultPhases.flatMap((p) => p.rules.map((r) => r.name)));
  expect(reported.flatMap((r) => r.rules).filter((name) => !known.has(name))).toEqual([]);
});

it("has a rule for everything", () => {
  expect(reported.filter((r) => r.rules.length === 0)).toEqual([]);
});
