import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sampleModel } from "../commands/library/sample-model.test-support.ts";
import { runCommandLine } from "./command-line.ts";

let folder = "";
let model = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "wavetile-cli-"));
  model = join(folder, "m.onnx");
  writeFileSync(model, sampleModel());
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function wavetile(...argv: string[]) {
  let out = "";
  let err = "";
  const exit = await runCommandLine(argv, {
    stdout: { write: (text) => (out += text) },
    stderr: { write: (text) => (err += text) },
    environment: {},
    now: () => 0,
  });
  return { exit, out, err };
}

describe("wavetile", () => {
  it("optimizes, inspects, runs and verifies", async () => {
    const artifact = join(folder, "m.wt");
    const made = await wavetile("optimize", model, "--shape", "M=1..8", "--seed", "5", "--json");
    expect(made.err).toBe("");
    expect(JSON.parse(made.out)).toMatchObject({
      ok: true,
      schema: "wavetile/optimize/1",
      data: { output: artifact },
      meta: { seed: 5 },
    });
    const shown = await wavetile("inspect", artifact, "--program");
    expect(shown.out).toMatch(/^program sample for "wasm/);
    const trace = join(folder, "t.json");
    const outputs = join(folder, "out");
    const run = ["run", artifact, "--random", "--threads", "1"];
    const ran = await wavetile(...run, "--profile", "--trace", trace, "--output-dir", outputs);
    expect(ran).toMatchObject({ exit: 0, err: "" });
    expect(JSON.parse(readFileSync(trace, "utf8"))).toHaveProperty("traceEvents");
    expect(existsSync(join(outputs, "y_0.npy"))).toBe(true);
    for (const from of [artifact, model]) {
      const shape = from === model ? ["--shape", "M=4"] : [];
      const checked = await wavetile("verify", from, ...shape, "--threads", "1", "--json");
      expect(JSON.parse(checked.out)).toMatchObject({ ok: true, data: { against: "oracle" } });
    }
  });

  it("lists targets and looks at the machine", async () => {
    expect((await wavetile("targets")).out).toContain("wasm");
    expect((await wavetile("targets", "show", "wasm")).out).toContain("f32FlopsPerNsPerCore");
    expect((await wavetile("targets", "show", "tpu")).exit).toBe(2);
    expect(JSON.parse((await wavetile("doctor", "--json")).out)).toMatchObject({ ok: true });
  });

  it("gives each failure its exit code", async () => {
    expect((await wavetile("--help")).exit).toBe(0);
    expect((await wavetile("frobnicate")).exit).toBe(2);
    expect((await wavetile("optimize")).exit).toBe(2);
    expect((await wavetile("optimize", model, "--frob")).exit).toBe(2);
    expect(await wavetile("optimize", model)).toMatchObject({ exit: 2, out: "" });
    expect((await wavetile("run", "/nowhere")).exit).toBe(1);
    expect((await wavetile("bench", model, "--runs", "0")).err).toContain("CLI001");
    const asJson = await wavetile("run", "/nowhere", "--json");
    expect(JSON.parse(asJson.out)).toMatchObject({ ok: false, error: { code: "RUN030" } });
    expect(asJson.err).toBe("");
  });
});
