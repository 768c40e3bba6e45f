import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { makeTrial, printTrial } from "../store/trial.ts";
import { trialsAction } from "./actions/trials.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "wavetile-trials-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function trial(medianNs: number) {
  const agreement = { checked: 300, worst: 0, worstUlp: 0, tolerance: "f32", seed: 1 };
  return makeTrial({
    subject: {
      semantic: "s",
      shapes: {},
      dtypes: ["f32"],
      target: "wasm",
      device: "d",
      driver: "e",
      threads: 2,
      codegen: "1",
      protocol: "p",
    },
    region: "conv1",
    schedule: "schedule",
    program: "p",
    verdict: {
      kind: "measured",
      agreement,
      timing: { medianNs, lowNs: medianNs, highNs: medianNs, n: 3, boundNs: 0 },
    },
  });
}

const context = {
  now: () => 0,
  progress: () => {},
  interrupted: () => new AbortController().signal,
};
const call = (args: Partial<Parameters<typeof trialsAction>[0]>) =>
  trialsAction(
    { action: "list", from: [], best: false, store: join(folder, "all"), ...args },
    context,
  );

it("merges stores, lists them, and shows a key", async () => {
  const [a, b] = ["a", "b"].map((name) => join(folder, name)) as [string, string];
  writeFileSync(a, `${printTrial(trial(2e6))}\n${printTrial(trial(3e6))}\n`);
  writeFileSync(b, `${printTrial(trial(2e6))}\n{"schema":"wavetile/trial/9"}\nhalf`);
  const merged = await call({ action: "merge", from: [a, b] });
  expect(merged).toMatchObject({
    value: {
      data: { merged: [{ added: 2 }, { added: 0 }] },
      failed: [{ code: "STO002" }],
    },
    warnings: [{ code: "STO003" }],
  });
  expect(await call({})).toMatchObject({ value: { data: { trials: { length: 2 } } } });
  const best = await call({ best: true });
  expect(best.ok && best.value.text).toMatch(/conv1 .*measured .*2\.000 ms/);
  expect(await call({ action: "show", key: trial(2e6).key.slice(0, 6) })).toMatchObject({
    value: { data: { trials: { length: 2 } } },
  });
});

it("names what a call lacks", async () => {
  const calls = [
    { action: "show" },
    { action: "show", key: "no such" },
    { action: "merge" },
    { action: "merge", from: [join(folder, "none")] },
    { from: ["x"] },
    { action: "show", key: "a", best: true },
  ] as const;
  for (const args of calls) {
    expect(await call(args)).toMatchObject({ ok: false, diagnostics: [{ code: "CLI001" }] });
  }
});
