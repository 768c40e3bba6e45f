import { describe, expect, it } from "vitest";
import type { DiagnosticCode } from "../support/diagnostic-codes.ts";
import { collapse } from "./collapse.ts";
import { priceOf } from "./problem.ts";
import { readProblem } from "./problem-file.ts";

type Draft = Record<string, unknown>;

function draft(changes: Draft = {}): Draft {
  return {
    schema: "wavetile/problem/1",
    name: "two layers",
    variables: [
      { name: "a", states: ["row", "col"], prices: [3, 5] },
      { name: "b", states: ["row", "col"], prices: [4, 1] },
    ],
    tables: {
      layout: [
        [0, 10],
        [10, 0],
      ],
    },
    transitions: [{ from: "a", to: "b", prices: "layout" }],
    ...changes,
  };
}

const codesOf = (text: string): readonly DiagnosticCode[] => {
  const read = readProblem(text);
  return read.ok ? [] : read.diagnostics.map((d) => d.code);
};
const codes = (changes: Draft): readonly DiagnosticCode[] =>
  codesOf(JSON.stringify(draft(changes)));
const variable = (change: Draft): Draft => ({
  variables: [{ name: "a", prices: [1], ...change }],
  transitions: [],
});
const transition = (change: Draft): Draft => ({
  transitions: [{ from: "a", to: "b", prices: "layout", ...change }],
});
const budget = (change: Draft): Draft => ({
  budgets: [{ name: "m", capacity: 3, uses: [{ variable: "a", amounts: [1, 2] }], ...change }],
});

describe("a problem file", () => {
  it("is read with tables, classes, groups and budgets", () => {
    const text = JSON.stringify(
      draft({
        groups: [
          {
            name: "fuse",
            templates: [
              { name: "fused", price: -6, allow: { a: ["col"], b: ["col"] } },
              { name: "apart", price: 0, allow: {} },
            ],
          },
        ],
        budgets: [{ name: "m", capacity: 3, uses: [{ variable: "a", amounts: [1, 2] }] }],
      }),
    );
    const read = readProblem(text);
    expect(read).toMatchObject({ ok: true });
    if (!read.ok) return;
    const outcome = collapse(read.value);
    expect(outcome).toMatchObject({ status: "optimal", objective: 0 });
    expect([...outcome.solution!]).toEqual([1, 1, 0]);
    expect(priceOf(read.value, Int32Array.of(0, 0, 0))).toBe(Infinity);
  });

  it("turns a budget on what is alive into one a moment", () => {
    const text = JSON.stringify(
      draft({
        variables: ["a", "b", "c"].map((name) => ({ name, prices: [2, 1] })),
        transitions: [
          {
            from: "a",
            to: "b",
            prices: [
              [0, 0],
              [0, 0],
            ],
          },
          {
            from: "b",
            to: "c",
            prices: [
              [0, 0],
              [0, 0],
            ],
          },
        ],
        budgets: [
          {
            name: "scratch",
            capacity: 10,
            over: "live",
            uses: ["a", "b", "c"].map((v) => ({ variable: v, amounts: [5, 8] })),
          },
        ],
      }),
    );
    const read = readProblem(text);
    expect(
      read.ok && read.value.budgets.map((b) => [b.name, b.uses.map((u) => u.variable)]),
    ).toEqual([
      ["scratch at 1", [0, 1]],
      ["scratch at 2", [1, 2]],
    ]);
    expect(read.ok && collapse(read.value).objective).toBe(6);
  });

  it.each<[DiagnosticCode, Draft]>([
    ["PRB002", { surprise: 1 }],
    ["PRB002", { schema: "wavetile/problem/9" }],
    ["PRB002", { variables: 3 }],
    ["PRB002", variable({ price: [1] })],
    ["PRB003", variable({ prices: [1.5] })],
    ["PRB003", variable({ prices: ["1"] })],
    ["PRB003", budget({ capacity: -1 })],
    ["PRB003", budget({ uses: [{ variable: "a", amounts: [1, -2] }] })],
    ["PRB003", budget({ over: "sometimes" })],
    ["PRB003", budget({ uses: [{ variable: "a", amounts: [1, 2], live: [3, 1] }] })],
    ["PRB004", transition({ to: "z" })],
    ["PRB004", transition({ prices: "none" })],
    ["PRB004", variable({ forbid: [{ constraint: "x", states: ["nope"] }] })],
    ["PRB005", { variables: [1, 2].map(() => ({ name: "a", prices: [1] })), transitions: [] }],
    ["PRB005", variable({ states: ["x", "x"], prices: [1, 2] })],
    ["PRB006", variable({ prices: [] })],
    ["PRB006", { groups: [{ name: "g", templates: [] }] }],
    ["PRB007", transition({ to: "a" })],
    [
      "PRB007",
      {
        transitions: [
          { from: "a", to: "b", prices: "layout" },
          { from: "b", to: "a", prices: "layout" },
        ],
      },
    ],
    ["PRB008", transition({ prices: [[1, 2, 3]] })],
    ["PRB008", transition({ prices: [[1, 2], [1]] })],
    ["PRB008", transition({ fromClasses: [0, 7] })],
    ["PRB008", variable({ states: ["x", "y"] })],
  ])("gives %s for %o", (code, changes) => {
    expect(codes(changes)).toContain(code);
  });

  it("gives PRB001 and PRB003 for what JSON cannot say", () => {
    expect(codesOf("{")).toEqual(["PRB001"]);
    const spoiled = JSON.stringify(draft()).replace("[3,5]", "[NaN,5]");
    expect(codesOf(spoiled)).toEqual(["PRB003"]);
    expect(codesOf(JSON.stringify(draft()).replace("[3,5]", "[1e999,5]"))).toEqual(["PRB003"]);
  });

  it("names the place, what was found and what is allowed", () => {
    const read = readProblem(JSON.stringify(draft(transition({ to: "z" }))));
    expect(read.ok || read.diagnostics[0]).toMatchObject({
      at: "transitions[0].to",
      message: 'there is no variable "z"',
      help: "use one of a, b",
    });
  });

  it("accepts circles when transitions follow no data", () => {
    const both = ["ab", "ba"].map(([from, to]) => ({ from, to, prices: "layout" }));
    expect(codes({ transitions: both, undirected: true })).toEqual([]);
  });
});
