/** The example problems reproduce what the baseline's authors and its reviewers measured. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { checkOutcome } from "../search/check.ts";
import { classic } from "../search/classic.ts";
import { collapse } from "../search/collapse.ts";
import { explainConflict } from "../search/conflict.ts";
import { type Problem, readable, stateName } from "../search/problem.ts";
import { viterbi } from "../search/viterbi.ts";
import { readLayerProblem } from "./layer-file.ts";
import { defaultTiles, nameOfState, statesOf } from "./layer-problem.ts";

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

describe("the five safety checks of the baseline, as assertions", () => {
  const toy = example("toy-64kb");
  const states = statesOf(defaultTiles);
  const alive = (problem: Problem, i: number): number[] => {
    const out = new Set((problem.variables[i]!.exclusions ?? []).flatMap((x) => x.states));
    return [...states.keys()].filter((s) => !out.has(s));
  };

  it("1: hard constraints remove what cannot run and no more", () => {
    for (const { exclusions } of toy.variables) {
      for (const { constraint, states: gone } of exclusions ?? []) {
        for (const s of gone) {
          const { tileM, tileN, place } = states[s]!;
          if (constraint === "rows are aligned") expect((tileN * 4) % 128).not.toBe(0);
          else expect([place, tileM * tileN * 4 * 3 > 65536]).toEqual(["sram", true]);
        }
      }
    }
    const stress = example("attention-12kb");
    const softmax = alive(stress, 2).map((s) => nameOfState(states[s]!));
    expect(softmax).not.toContain("32x32 row sram");
    expect(softmax).toContain("32x32 row dram");
    expect(softmax).toContain("16x16 row sram");
  });

  it("2: scores tell states apart", () => {
    for (const [name, least] of [
      ["toy-64kb", 5],
      ["attention-12kb", 8],
    ] as const) {
      const problem = example(name);
      const prices = alive(problem, 0).map((s) => problem.variables[0]!.prices[s]!);
      expect(Math.max(...prices) - Math.min(...prices)).toBeGreaterThan(1e7);
      expect(new Set(prices).size).toBeGreaterThanOrEqual(least);
    }
  });

  it.each([
    [0.5, 92],
    [1, 75],
    [1.5, 43],
    [2, 16],
    [3, 0],
  ])(
    "3: propagation at threshold %d removes %d %% of the neighbour's states",
    (threshold, percent) => {
      const [first] = alive(toy, 0).filter((s) => /row sram$/.test(nameOfState(states[s]!)));
      const pair: Problem = {
        ...toy,
        variables: toy.variables.slice(0, 2),
        transitions: [toy.transitions[0]!],
      };
      const others = alive(toy, 0).filter((s) => s !== first);
      const fixed = {
        ...pair.variables[0]!,
        exclusions: [
          { constraint: "decided", states: [...states.keys()].filter((s) => s !== first) },
        ],
      };
      const outcome = classic({ ...pair, variables: [fixed, pair.variables[1]!] }, { threshold });
      expect(others.length).toBeGreaterThan(0);
      const before = alive(toy, 1).length;
      expect(Math.round((100 * outcome.counts.removed!) / before)).toBe(percent);
    },
  );

  it("4: an unsolvable block fails after going back, and says why", () => {
    const machine = { sramBytes: 200, alignmentBytes: 4096 };
    const file = JSON.parse(readFileSync(join(folder, "toy-64kb.json"), "utf8"));
    const read = readLayerProblem(
      JSON.stringify({ ...file, machine: { ...file.machine, ...machine } }),
    );
    const problem = read.ok ? read.value : undefined;
    expect(classic(problem!).status).toBe("unknown");
    expect(collapse(problem!).status).toBe("infeasible");
    expect(explainConflict(problem!)?.constraints).toEqual([
      'Linear_A: "rows are aligned" excludes 66 of 66 states',
    ]);
  });

  it("5: layers of different kinds choose different states, as the exact optimum does", () => {
    const problem = example("attention-12kb");
    const greedy = classic(problem);
    expect(new Set(greedy.solution).size).toBeGreaterThan(1);
    expect(greedy.objective).toBe(viterbi(problem).objective);
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
