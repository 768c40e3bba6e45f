/** The example problems reproduce what the baseline's authors and its reviewers measured. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { checkOutcome } from "../search/check.ts";
import { collapse } from "../search/collapse.ts";
import { type Problem, readable, stateName } from "../search/problem.ts";
import { viterbi } from "../search/viterbi.ts";
import { readLayerProblem } from "./layer-file.ts";

const folder = join(import.meta.dirname, "../../examples/problems");

function example(name: string): Problem {
  const read = readLayerProblem(readFileSync(join(folder, `${name}.json`), "utf8"));
  if (!read.ok) throw new Error(read.diagnostics.map((d) => d.message).join("\n"));
  return read.value;
}

function left(problem: Problem, i: number): number {
  const { prices, exclusions } = problem.variables[i]!;
  return prices.length - new Set((exclusions ?? []).flatMap((x) => x.states)).size;
}

describe("the attention block on 12 KB", () => {
  const problem = example("attention-12kb");

  it("has 66 states a layer of which 36 and 33 can run", () => {
    expect(problem.variables.map((v) => v.prices.length)).toEqual([66, 66, 66, 66, 66, 66]);
    expect(problem.variables.map((_, i) => left(problem, i))).toEqual([36, 36, 33, 36, 36, 36]);
  });

  it.each([collapse, viterbi])("has its published optimum by %o", (solver) => {
    const outcome = solver(problem);
    expect(outcome.status).toBe("optimal");
    expect(checkOutcome(problem, outcome)).toEqual([]);
    expect(readable(problem, outcome.objective!).toFixed(4)).toBe("2.8494");
    const states = problem.variables.map((v, i) => stateName(v, outcome.solution![i]!));
    const usual = "32x32 row sram";
    expect(states).toEqual([usual, usual, "16x16 row sram", usual, usual, usual]);
  });
});

describe("every example", () => {
  const names = readdirSync(folder).map((f) => f.replace(/\.json$/, ""));

  it.each(names)("%s is solved to proven optimality", (name) => {
    const problem = example(name);
    const outcome = collapse(problem);
    expect(outcome.status).toBe("optimal");
    expect(checkOutcome(problem, outcome)).toEqual([]);
  });
});

describe("a layer file", () => {
  const good = JSON.parse(readFileSync(join(folder, "toy-64kb.json"), "utf8"));
  const codes = (changes: object): readonly string[] => {
    const read = readLayerProblem(JSON.stringify({ ...good, ...changes }));
    return read.ok ? [] : read.diagnostics.map((d) => d.code);
  };
  const layer = (changes: object): object => ({ layers: [{ ...good.layers[0], ...changes }] });

  it.each<[string, object]>([
    ["PRB002", { extra: 1 }],
    ["PRB002", { schema: "wavetile/layers/2" }],
    ["PRB003", { machine: { ...good.machine, sramBytes: -1 } }],
    ["PRB003", { machine: { ...good.machine, computeGflops: 0 } }],
    ["PRB003", layer({ dims: { M: 0, N: 1, K: 1 } })],
    ["PRB002", layer({ dims: { M: 1, N: 1 } })],
    ["PRB004", layer({ type: "gru" })],
    ["PRB005", { layers: [good.layers[0], good.layers[0]] }],
    ["PRB006", { layers: [] }],
    ["PRB006", { tiles: [] }],
    ["PRB004", { edges: [["Linear_A", "nowhere"]] }],
    [
      "PRB007",
      {
        edges: [
          ["Linear_A", "ReLU_B"],
          ["ReLU_B", "Linear_A"],
        ],
      },
    ],
  ])("gives %s for %o", (code, changes) => {
    expect(codes(changes)).toContain(code);
  });
});
