/** Every rule of every family, proved on random tensors; see prove/prove-rule.ts. */
import { describe, expect, it } from "vitest";
import { families } from "./families/index.ts";
import { falseRules } from "./prove/false-rules.test-support.ts";
import { defaultProof, proveRule } from "./prove/prove-rule.ts";

const rows = Object.entries(families).flatMap(([family, list]) =>
  list.map((row) => ({ family, row, name: row.name })),
);

describe("rules", () => {
  it("have names of their own", () => {
    const names = rows.map((r) => r.name);
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
  });

  it.each(rows)("$name of $family holds on random tensors", ({ row }) => {
    const verdict = proveRule(row, { ...defaultProof, wanted: 10 });
    expect(verdict).toMatchObject({ kind: "holds" });
  });
});

describe("rules that are false or lack a guard", () => {
  it("are forty or more", () => {
    expect(falseRules.length).toBeGreaterThanOrEqual(40);
  });

  it.each(falseRules)("$name is refused", (row) => {
    const verdict = proveRule(row);
    expect(verdict.kind).toBe("fails");
    // Refused by a counterexample, and not because it never applied.
    expect(verdict).not.toMatchObject({ reason: expect.stringMatching(/^it applied/) });
  });
});
