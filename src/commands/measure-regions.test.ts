import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { compileModel } from "../compile.ts";
import { parseGraph } from "../graph/graph-text.ts";
import { noWeights } from "../interp/graph.ts";
import { nativeTargets } from "../runtime/create-session.ts";
import { openAppendLog } from "../runtime/files/append-log.ts";
import { printSchedule } from "../schedule/directive-text.ts";
import { TrialStore } from "../store/trial-store.ts";
import type { Result } from "../support/diagnostic.ts";
import { targets } from "../target/index.ts";
import { optimizeModel } from "./actions/optimize.ts";
import { defaultStorePath } from "./actions/trials.ts";
import { sampleModel } from "./library/sample-model.test-support.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "wavetile-measure-"));
  vi.stubEnv("WAVETILE_HOME", folder);
});
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

function unwrap<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(JSON.stringify(result.diagnostics));
  return result.value;
}

const target = targets.get("wasm")!;

const machineCode = nativeTargets()[0];

it.each(["wasm", ...(machineCode ? [machineCode] : [])])(
  "a budget measures alternatives and keeps them as trials: %s",
  async (name) => {
    const model = join(folder, "model.onnx");
    writeFileSync(model, sampleModel(48));
    const args = { model, target: name, shape: ["M=1..64"], state: [], threads: 1, budget: 60 };
    const context = {
      now: () => performance.now(),
      progress: () => {},
      interrupted: () => new AbortController().signal,
    };
    const { data } = unwrap(await optimizeModel(args, context));
    const found = data.measured as { schedules: number; regions: number };
    expect(found.regions).toBe(1);
    const store = new TrialStore(openAppendLog(defaultStorePath()));
    const { trials } = unwrap(store.read());
    const own = trials.filter((t) => t.subject.target === name);
    const measured = own.filter((t) => t.verdict.kind === "measured");
    // Machine code's trials say what its emitter counted of each kernel.
    for (const { emitted } of measured) {
      if (name === "wasm") expect(emitted).toBeUndefined();
      else expect(emitted!.every((k) => k.spills >= k.vectorSpills)).toBe(true);
    }
    expect(measured.length).toBe(found.schedules);
    expect(own.filter((t) => t.verdict.kind !== "estimated").length).toBeGreaterThan(1);
  },
  120_000,
);

it("a measured schedule is taken whatever the prices say", () => {
  const graph = unwrap(parseGraph("graph g(x: f32[40, 30]) -> (y) { y = neg(x) : f32[40, 30] }"));
  const first = unwrap(compileModel({ graph, weights: noWeights }, { target }));
  const [region] = first.regions;
  expect(region!.alternatives.length).toBeGreaterThan(1);
  const other = region!.alternatives.at(-1)!;
  const measured = new Map([[region!.name, other]]);
  const second = unwrap(compileModel({ graph, weights: noWeights }, { target, measured }));
  expect(printSchedule(second.regions[0]!.scheduled.schedule)).toBe(printSchedule(other));
});
