import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { type CompiledModel, compileModel } from "../compile.ts";
import { parseGraph } from "../graph/graph-text.ts";
import { noWeights } from "../interp/graph.ts";
import { ChildRunner } from "../runtime/child/child-runner.ts";
import { openAppendLog } from "../runtime/files/append-log.ts";
import { TrialStore } from "../store/trial-store.ts";
import type { Result } from "../support/diagnostic.ts";
import { targets } from "../target/index.ts";
import { checkOf, checkRegions, describeChecks, RegionChecking } from "./actions/check-regions.ts";
import { defaultStorePath } from "./actions/trials.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "wavetile-check-"));
  vi.stubEnv("WAVETILE_HOME", folder);
});
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

const target = targets.get("wasm")!;

function unwrap<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(JSON.stringify(result.diagnostics));
  return result.value;
}

const quiet = { seed: 1, progress: () => {} };

function compiled(op: string): CompiledModel {
  const text = `graph g(x: f32[40, 30]) -> (y) { y = ${op}(x) : f32[40, 30] }`;
  return unwrap(compileModel({ graph: unwrap(parseGraph(text)), weights: noWeights }, { target }));
}

it("finds a region that computes something else (VER006), and records all trials", async () => {
  const right = compiled("abs");
  const [other] = compiled("neg").regions;
  const wrong = right.regions.map((r) => ({
    ...r,
    scheduled: { ...other!.scheduled, region: r.scheduled.region },
  }));
  const good = unwrap(await checkRegions(right, target, quiet));
  expect(good).toMatchObject({ faults: [], warnings: [] });
  expect(checkOf(good.reports[0])?.checked).toBeGreaterThanOrEqual(256);
  expect(describeChecks(good.reports)).toMatch(/^checked \d+ elements of 1 regions/);
  const bad = unwrap(await checkRegions({ ...right, regions: wrong }, target, quiet));
  expect(bad.faults).toMatchObject([{ code: "VER006" }]);
  expect(bad.faults[0]!.message).toMatch(/y\S*\[[\d, ]+\] is .*, the oracle has/);
  const store = unwrap(new TrialStore(openAppendLog(defaultStorePath())).read());
  expect(store.trials.map((t) => t.verdict.kind)).toEqual(["estimated", "wrong"]);
  expect(new Set(store.trials.map((t) => t.key)).size).toBe(1);
});

it("runs code once that two regions share, and each by itself where it is wrong", async () => {
  const twice = (op: string): CompiledModel => {
    const rows = [`y = ${op}(x) : f32[40, 30]`, `w = ${op}(z) : f32[40, 30]`];
    const text = `graph g(x: f32[40, 30], z: f32[40, 30]) -> (y, w) {\n${rows.join("\n")}\n}`;
    const graph = unwrap(parseGraph(text));
    return unwrap(compileModel({ graph, weights: noWeights }, { target }));
  };
  const right = twice("abs");
  const good = unwrap(await checkRegions(right, target, quiet));
  expect(good.reports.map((r) => r.sameAs)).toEqual([undefined, right.regions[0]!.name]);
  expect(checkOf(good.reports[1])).toEqual(checkOf(good.reports[0]));
  expect(describeChecks(good.reports)).toMatch(/of 1 regions .*; 1 regions have the code of one/);
  const other = twice("neg").regions;
  const wrong = right.regions.map((r, i) => ({
    ...r,
    scheduled: { ...other[i]!.scheduled, region: r.scheduled.region },
  }));
  const bad = unwrap(await checkRegions({ ...right, regions: wrong }, target, quiet));
  expect(bad.faults).toMatchObject([{ code: "VER006" }, { code: "VER006" }]);
  expect(bad.reports.map((r) => r.sameAs)).toEqual([undefined, undefined]);
});

it("checks nothing for a machine that is not here, and says so (VER004)", async () => {
  const elsewhere = { ...target, name: "elsewhere" };
  const found = unwrap(await checkRegions(compiled("abs"), elsewhere, quiet));
  expect(found.warnings).toMatchObject([{ code: "VER004", severity: "warning" }]);
  expect(describeChecks(found.reports)).toContain("1 regions not checked");
});

it("has asked for everything before the program is whole, and drops what is not part of it", async () => {
  const runner = new ChildRunner();
  const asked = vi.spyOn(runner, "request");
  const checking = new RegionChecking({ ...quiet, runner });
  const kinds = () => asked.mock.calls.map(([request]) => request.kind);
  const dropped = compiled("neg");
  checking.begin(dropped, target);
  expect(kinds()).toEqual(["load", "run", "read", "unload"]);
  const whole = compiled("abs");
  checking.begin(whole, target);
  expect(kinds()).toHaveLength(8);
  const found = unwrap(await checking.finish(whole, target));
  expect(kinds()).toHaveLength(8);
  expect(found).toMatchObject({ faults: [], warnings: [] });
  expect(found.reports.map((r) => r.region)).toEqual(whole.regions.map((r) => r.name));
  // Nothing starts another child behind it.
  const ended = new RegionChecking(quiet);
  ended.begin(whole, target);
  await ended.end();
});
