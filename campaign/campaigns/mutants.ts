/**
 * Whether the tests notice faults: trial number n plants fault n of the table in a copy of the tree and
 * runs the tests that have to catch it. The trial fails when they pass, when the fault does not apply
 * exactly once, or when no test came to run (a fault that only breaks the loading of a file shows
 * nothing; one that ends the process of a test that runs is noticed). Of the tests those nearest to the fault run
 * first, so that most faults are caught in seconds. Before the first fault of a set of tests these must pass on the
 * copy as it is. Neighbouring numbers are faults of different files, so that a few trials in a row are a sample of
 * the whole.
 */
import { spawn } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Campaign, type Finding, passed, type Trial } from "../campaign.ts";
import type { Outcome } from "../outcome-reporter.ts";
import { type PlantedFault, plant, plantedFaults } from "../planted-faults.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const copied = [
  "src",
  "test",
  "campaign",
  "bench",
  "docs",
  "package.json",
  "tsconfig.json",
  "vitest.config.ts",
];
/** A planted fault may make a loop endless: a run that takes so much longer counts as caught. */
const endless = { atLeastMs: 60_000, timesClean: 8 } as const;
const cleanLimitMs = 300_000;
/** CI has run all tests on the tree as it is right before, so that none of them is run on it once more. */
const isTested = process.env.TREE_IS_TESTED === "true";
/** How long tests may take then: of many files longer than of one. */
const testedMs = (files: number): number =>
  Math.min(cleanLimitMs, endless.atLeastMs + 10_000 * files) / endless.timesClean;
const atOnce = 2;

export const mutants: Campaign = {
  name: "mutants",
  summary: "faults planted in the source, one at a time, against the tests",
  targets: ["source"],
  defaultCount: plantedFaults.length,
  atOnce,
  open,
};

async function open(): Promise<Trial> {
  const home = mkdtempSync(join(tmpdir(), "wavetile-mutants-"));
  process.on("exit", () => rmSync(home, { recursive: true, force: true }));
  const free = Array.from({ length: atOnce }, (_, i) => copyTree(join(home, String(i))));
  const faults = spread(plantedFaults);
  const clean = new Map<string, Promise<TestRun>>();
  return async (seed) => {
    const fault = faults[seed % faults.length]!;
    const tree = free.pop()!;
    try {
      const key = fault.tests.join(" ");
      const known =
        clean.get(key) ??
        (isTested ? alreadyTested(tree, fault) : runTests(tree, fault.tests, cleanLimitMs));
      clean.set(key, known);
      const { outcome, ms } = await known;
      if (outcome !== "passed") {
        return { kind: "failed", reason: `without a fault: ${key}: ${outcome}` };
      }
      return await tryFault(tree, fault, Math.max(endless.atLeastMs, endless.timesClean * ms));
    } finally {
      free.push(tree);
    }
  };
}

async function alreadyTested(tree: string, { tests }: PlantedFault): Promise<TestRun> {
  return { outcome: "passed", ms: testedMs(testsIn(tree, tests).length) };
}

/** The faults in turns over the files, so that any run of neighbours touches many parts. */
export function spread(faults: readonly PlantedFault[]): readonly PlantedFault[] {
  const turn = new Map<string, number>();
  const turns = faults.map((fault) => {
    const n = turn.get(fault.file) ?? 0;
    turn.set(fault.file, n + 1);
    return { fault, n };
  });
  return turns.sort((a, b) => a.n - b.n).map((t) => t.fault);
}

interface TestFile {
  readonly path: string;
  readonly text: string;
}

function testsIn(tree: string, tests: readonly string[]): readonly TestFile[] {
  const read = (path: string): TestFile => ({ path, text: readFileSync(join(tree, path), "utf8") });
  return tests.flatMap((test) =>
    test.endsWith(".ts")
      ? [read(test)]
      : readdirSync(join(tree, test), { recursive: true, encoding: "utf8" })
          .filter((name) => name.endsWith(".test.ts"))
          .sort()
          .map((name) => read(`${test}/${name}`)),
  );
}

/** The file's own tests, those that import it, and all of the tests that have to catch the fault. */
export function nearestFirst(
  { file, tests }: Pick<PlantedFault, "file" | "tests">,
  files: readonly TestFile[],
): readonly (readonly string[])[] {
  const own = files.filter(({ path }) => path === file.replace(/\.ts$/, ".test.ts"));
  const importing = files.filter((f) => !own.includes(f) && f.text.includes(`/${basename(file)}"`));
  const near = [own, importing].filter((some) => some.length > 0 && some.length < files.length);
  return [...near.map((some) => some.map(({ path }) => path)), tests];
}

function copyTree(tree: string): string {
  for (const name of copied) cpSync(join(root, name), join(tree, name), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(tree, "node_modules"));
  return tree;
}

async function tryFault(tree: string, fault: PlantedFault, limitMs: number): Promise<Finding> {
  const place = join(tree, fault.file);
  const source = readFileSync(place, "utf8");
  writeFileSync(place, plant(source, fault));
  try {
    let last: TestRun["outcome"] = "broken";
    for (const tests of nearestFirst(fault, testsIn(tree, fault.tests))) {
      ({ outcome: last } = await runTests(tree, tests, limitMs));
      if (last === "failed" || last === "endless") return passed;
    }
    const what = last === "passed" ? "survives" : "is not tested, nothing runs";
    return { kind: "failed", reason: `${fault.file}: ${what}: ${fault.what}` };
  } finally {
    writeFileSync(place, source);
  }
}

interface TestRun {
  readonly outcome: "passed" | "failed" | "broken" | "endless";
  readonly ms: number;
}

/** Runs test files with vitest in a tree of its own process group, so that all of it can be ended. */
async function runTests(tree: string, tests: readonly string[], limitMs: number): Promise<TestRun> {
  const begin = performance.now();
  const ended = (outcome: TestRun["outcome"]): TestRun => ({
    outcome,
    ms: performance.now() - begin,
  });
  const report = join(tree, "outcome.json");
  rmSync(report, { force: true });
  const vitest = join(tree, "node_modules/vitest/vitest.mjs");
  const options = ["--bail=1", "--maxWorkers=1", "--reporter=./campaign/outcome-reporter.ts"];
  const child = spawn(process.execPath, [vitest, "run", ...tests, ...options], {
    cwd: tree,
    detached: true,
    stdio: "ignore",
    env: { ...process.env, OUTCOME_FILE: report },
  });
  let stopped = false;
  const timer = setTimeout(() => {
    stopped = true;
    process.kill(-child.pid!, "SIGKILL");
  }, limitMs);
  const exit = await new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", resolve);
  });
  clearTimeout(timer);
  if (stopped) return ended("endless");
  if (exit === 0) return ended("passed");
  if (!existsSync(report)) return ended("broken");
  const { failedTests, crashed } = JSON.parse(readFileSync(report, "utf8")) as Outcome;
  return ended(failedTests > 0 || crashed ? "failed" : "broken");
}
