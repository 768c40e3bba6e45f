import fc from "fast-check";
import { expect, it } from "vitest";
import { Rng } from "../support/rng.ts";
import { exhaustiveOptimum } from "./check.ts";
import { collapse } from "./collapse.ts";
import { generate } from "./generators.ts";
import { randomProblem } from "./random-problem.test-support.ts";
import { printWcsp, readWcsp } from "./wcsp.ts";

it("written and read again has the same optimum, shifted", () => {
  const property = fc.property(fc.integer({ min: 0, max: 1 << 30 }), (seed) => {
    const rng = new Rng(seed);
    const options = { variables: 4, states: 3, edges: 6, hard: 0.2, budgets: 0 };
    const problem = randomProblem(rng, options);
    const printed = printWcsp(problem);
    const again = printed.ok && readWcsp(printed.value.text);
    if (!printed.ok || !again || again.ok === false) throw new Error("no round trip");
    const best = exhaustiveOptimum(problem);
    const found = exhaustiveOptimum(again.value);
    expect(found === undefined ? undefined : found + printed.value.shift).toBe(best);
  });
  fc.assert(property, { numRuns: 100 });
});

it("writes classes of many states as variables of their own, with the same optimum", () => {
  const wide = { shape: "residual", layers: 7, states: 120, classes: 6 } as const;
  for (const seed of [1, 2, 3]) {
    const problem = generate({ ...wide, seed });
    const printed = printWcsp(problem);
    const again = printed.ok && readWcsp(printed.value.text);
    if (!printed.ok || !again || again.ok === false) throw new Error("no round trip");
    expect(again.value.variables.length).toBe(14);
    // All pairs of states of the eight transitions would be more than a megabyte.
    expect(printed.value.text.length).toBeLessThan(30_000);
    const { objective, status } = collapse(again.value);
    expect(status).toBe("optimal");
    expect(objective! + printed.value.shift).toBe(collapse(problem).objective);
  }
});

it("reads functions over three variables and sgcc", () => {
  const text = `t 3 2 2 100
2 2 2
3 0 1 2 5 2
0 0 0 1
1 1 0 0
3 0 1 2 -1 sgcc var 7 2 0 1 1 1 2 2`;
  const read = readWcsp(text);
  expect(read.ok && collapse(read.value).objective).toBe(0);
});

it.each([
  [7, 3, 0],
  [100, 2, undefined],
  [5, 2, 5],
])("reads salldiff at cost %d over %d values", (cost, values, expected) => {
  const sizes = `${values} ${values} ${values}`;
  const read = readWcsp(`d 3 ${values} 1 100\n${sizes}\n3 0 1 2 -1 salldiff var ${cost}`);
  expect(read.ok && exhaustiveOptimum(read.value)).toBe(expected);
});

it("gives PRB011 for what does not parse and for budgets", () => {
  const bad = ["x 1 2 1 9\n2\n1 5 0 0", "x 1 2 1 9\nz", "x 1 2 1 9\n2\n1 0 0 1\n7 1"];
  for (const text of bad)
    expect(readWcsp(text)).toMatchObject({ diagnostics: [{ code: "PRB011" }] });
  const options = { variables: 2, states: 2, edges: 1, hard: 0, budgets: 1 };
  const problem = randomProblem(new Rng(1), options);
  expect(printWcsp(problem)).toMatchObject({ diagnostics: [{ code: "PRB011" }] });
});
