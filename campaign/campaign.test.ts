import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { Refusal } from "../bench/refusal.ts";
import { checkNests } from "../src/interp/check-nests.ts";
import { Rng } from "../src/support/rng.ts";
import { type Campaign, type Finding, passed } from "./campaign.ts";
import { nearestFirst, spread } from "./campaigns/mutants.ts";
import { readCampaignCommandLine } from "./command-line.ts";
import { plantedFaults } from "./planted-faults.ts";
import { randomGraph } from "./random-graph.ts";
import { campaignNames, loadCampaigns } from "./registry.ts";
import { closingLine, type Failure, runCampaign } from "./run-campaign.ts";

const sample: Campaign = {
  name: "c",
  summary: "a campaign",
  targets: ["wasm", "x64"],
  defaultCount: 7,
  open: async () => () => passed,
};

describe("runCampaign", () => {
  test.each([1, 2, 9])(
    "counts by seed, %i at once; errors fail; skips keep reasons",
    async (atOnce) => {
      const findings: Record<number, Finding> = {
        11: { kind: "failed", reason: "differs" },
        12: { kind: "skipped", reason: "no GPU" },
        13: { kind: "skipped", reason: "no GPU" },
      };
      const told: Failure[] = [];
      const done: number[] = [];
      const tally = await runCampaign({
        trial: (seed) => {
          if (seed === 14) throw new TypeError("broken");
          return findings[seed] ?? passed;
        },
        seeds: [10, 11, 12, 13, 14, 15],
        atOnce,
        onFailure: (failure) => told.push(failure),
        onTrial: (n) => done.push(n),
      });
      expect(tally.failures).toEqual([
        { seed: 11, reason: "differs" },
        { seed: 14, reason: "TypeError: broken" },
      ]);
      expect(told).toEqual(tally.failures);
      expect(done).toEqual([1, 2, 3, 4, 5, 6]);
      expect([...tally.skips]).toEqual([["no GPU", 2]]);
      expect(closingLine(tally)).toBe("2 passed, 2 failed, 2 skipped");
      expect(closingLine({ ...tally, skipped: 0 })).toBe("2 passed, 2 failed");
    },
  );
});

describe("the tests that have to catch a fault", () => {
  const tests = ["src/schedule", "src/lower/x.test.ts"];
  const files = [
    { path: "src/schedule/choice/a.test.ts", text: 'import { a } from "./a.ts";' },
    { path: "src/schedule/b.test.ts", text: 'import { b } from "./choice/b.ts";' },
    { path: "src/lower/x.test.ts", text: 'from "../schedule/choice/a.ts"; from "./x.ts";' },
  ];
  test.each([
    ["src/schedule/choice/a.ts", ["src/schedule/choice/a.test.ts"], ["src/lower/x.test.ts"]],
    ["src/schedule/choice/b.ts", ["src/schedule/b.test.ts"]],
    ["src/lower/x.ts", ["src/lower/x.test.ts"]],
    ["src/schedule/c.ts"],
  ])("run from those nearest to it to all: %s", (file, ...first) => {
    expect(nearestFirst({ file, tests }, files)).toEqual([...first, tests]);
  });
});

describe("readCampaignCommandLine", () => {
  const read = (...args: string[]) => readCampaignCommandLine(args, [sample]);
  test("defaults and options", () => {
    const seeds = [0, 1, 2, 3, 4, 5, 6];
    const defaults = { campaign: sample, target: "wasm", seed: 0, seeds, json: false };
    expect(read("c")).toEqual(defaults);
    expect(read("c", "--target", "x64", "--seed", "5", "--count", "1", "--json")).toEqual({
      ...defaults,
      target: "x64",
      seed: 5,
      seeds: [5],
      json: true,
    });
  });
  test("--only picks trials by name, around and around", () => {
    const named: Campaign = { ...sample, names: () => ["one", "two", "other"] };
    const pick = (...only: string[]) =>
      readCampaignCommandLine(["c", ...only.flatMap((text) => ["--only", text])], [named]).seeds;
    expect(pick()).toEqual([0, 1, 2]);
    expect(pick("o")).toEqual([0, 1, 2]);
    expect(pick("one", "two")).toEqual([0, 1]);
    expect(() => pick("three")).toThrow('holds "three"');
    expect(() => read("c", "--only", "one")).toThrow("these trials have none");
  });
  test.each([[[]], [["d"]], [["c", "--count", "0"]], [["c", "--seed", "x"]], [["c", "--fast"]]])(
    "%j is refused",
    (args) => expect(() => read(...args)).toThrow(Refusal),
  );
});

test("campaigns have the names that they are loaded by, and targets", async () => {
  const campaigns = await loadCampaigns([]);
  expect(campaigns.map((c) => c.name)).toEqual(campaignNames);
  for (const c of campaigns) expect(c.targets.length).toBeGreaterThan(0);
  const named = await loadCampaigns(["--seed", "3", "models", "--only", "solver"]);
  expect(named.map((c) => c.name)).toEqual(["models", "solver"]);
});

describe("planted faults", () => {
  const root = fileURLToPath(new URL("../", import.meta.url));

  test("each applies to its file, and its tests exist", () => {
    const broken = plantedFaults.flatMap((fault) => {
      const times = readFileSync(join(root, fault.file), "utf8").split(fault.from).length - 1;
      const missing = fault.tests.filter((t) => !existsSync(join(root, t)));
      // Whoever rewrites the line plants the same kind of fault in its new form.
      return times === 1 && missing.length === 0 ? [] : [{ ...fault, times, missing }];
    });
    expect(broken).toEqual([]);
  });

  test("they reach every stage, and neighbours lie in different files", () => {
    expect(plantedFaults.length).toBeGreaterThanOrEqual(60);
    const stages = [
      "graph",
      "region",
      "schedule",
      "lower",
      "program",
      "emit",
      "runtime",
      "verdict",
    ];
    const files = plantedFaults.map((f) => f.file.split("/")[1]);
    for (const stage of stages) expect(files).toContain(stage);
    const sample = spread(plantedFaults).slice(0, 20);
    expect(new Set(sample.map((f) => f.file)).size).toBe(20);
    expect(new Set(spread(plantedFaults))).toEqual(new Set(plantedFaults));
  });
});

describe("random graphs", () => {
  test("the same seed gives the same graph, others differ", () => {
    const spell = (seed: number) =>
      JSON.stringify(randomGraph(seed), (_k, v) => (typeof v === "bigint" ? `${v}` : v));
    expect(spell(4)).toBe(spell(4));
    expect(spell(4)).not.toBe(spell(5));
  });

  test("two hundred seeds reach every op family, and symbols", () => {
    const graphs = Array.from({ length: 200 }, (_, seed) => randomGraph(seed).graph);
    const ops = new Set(graphs.flatMap((g) => g.nodes.map((node) => node.op)));
    for (const op of ["contract", "convolution", "pool", "gather", "slice", "pad", "argReduce"]) {
      expect([...ops]).toContain(op);
    }
    const dims = graphs.flatMap((g) => g.inputs.flatMap((v) => g.values[v]!.type.shape));
    expect(dims.some((d) => d.key === "N")).toBe(true);
  });

  test("a planted fault in the nests is caught", () => {
    let caught = 0;
    for (let seed = 0; seed < 60; seed++) {
      const { graph, extents } = randomGraph(seed);
      const planted = () =>
        checkNests(graph, {
          rng: new Rng(seed),
          extents,
          // The last item is dropped: its result is never written.
          transform: (program) => ({ ...program, items: program.items.slice(0, -1) }),
        });
      try {
        planted();
      } catch {
        caught++;
      }
    }
    expect(caught).toBeGreaterThan(50);
  });
});
