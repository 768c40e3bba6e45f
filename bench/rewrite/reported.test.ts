/** The list of reported optimisations names rules that there are, and says why where none is named. */
import { expect, it } from "vitest";
import { defaultPhases } from "../../src/rewrite/families/index.ts";
import { reported } from "./reported.ts";

it("names rules that models are rewritten with", () => {
  const known = new Set(defaultPhases.flatMap((p) => p.rules.map((r) => r.name)));
  expect(reported.flatMap((r) => r.rules).filter((name) => !known.has(name))).toEqual([]);
});

it("has a reason for everything that may not be found", () => {
  expect(reported.filter((r) => r.otherwise.length < 10)).toEqual([]);
});
