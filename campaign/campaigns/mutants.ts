/**
 * Whether the tests notice faults: trial number n plants fault n of the table in a copy of the tree and
 * runs the tests that have to catch it. The trial fails when they pass, when the fault does not apply
 * exactly once, or when no test came to run (a fault that only breaks the loading of a file shows
 * nothing). `open` first runs the tests of the whole table on the copy without a fault.
 */
import { spawn } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Campaign, type Finding, passed, type Trial } from "../campaign.ts";
import { type PlantedFault, plant, plantedFaults } from "../planted-faults.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const copied = ["src", "test", "docs", "package.json", "tsconfig.json", "vitest.config.ts"];
/** A planted fault may make a loop endless: a run that takes so long counts as caught. */
const limitMs = 60_000;
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
  const all = [...new Set(plantedFaults.flatMap((f) => f.tests))];
  const clean = await runTests(free[0]!, all, 5 * limitMs);
  if (clean !== "passed") throw new Error(`the tests without a fault: ${clean}`);
  return async (seed) => {
    const tree = free.pop()!;
    try {
      return await tryFault(tree, plantedFaults[seed % plantedFaults.length]!);
    } finally {
      free.push(tree);
    }
  };
}

function copyTree(tree: string): string {
  for (const name of copied) cpSync(join(root, name), join(tree, name), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(tree, "node_modules"));
  return tree;
}

async function tryFault(tree: string, fault: PlantedFault): Promise<Finding> {
  const place = join(tree, fault.file);
  const source = readFileSync(place, "utf8");
  writeFileSync(place, plant(source, fault));
  try {
    const outcome = await runTests(tree, fault.tests, limitMs);
    if (outcome === "failed" || outcome === "endless") return passed;
    const what = outcome === "passed" ? "survives" : "is not tested, nothing runs";
    return { kind: "failed", reason: `${fault.file}: ${what}: ${fault.what}` };
  } finally {
    writeFileSync(place, source);
  }
}

type Outcome = "passed" | "failed" | "broken" | "endless";

/** Runs test files with vitest in a tree of its own process group, so that all of it can be ended. */
async function runTests(tree: string, tests: readonly string[], ms: number): Promise<Outcome> {
  const report = join(tree, "report.json");
  rmSync(report, { force: true });
  const vitest = join(tree, "node_modules/vitest/vitest.mjs");
  const options = ["--bail=1", "--reporter=json", `--outputFile=${report}`];
  const child = spawn(process.execPath, [vitest, "run", ...tests, ...options], {
    cwd: tree,
    detached: true,
    stdio: "ignore",
  });
  let endless = false;
  const timer = setTimeout(() => {
    endless = true;
    process.kill(-child.pid!, "SIGKILL");
  }, ms);
  const exit = await new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", resolve);
  });
  clearTimeout(timer);
  if (endless) return "endless";
  if (exit === 0) return "passed";
  if (!existsSync(report)) return "broken";
  const { numFailedTests } = JSON.parse(readFileSync(report, "utf8")) as { numFailedTests: number };
  return numFailedTests > 0 ? "failed" : "broken";
}
