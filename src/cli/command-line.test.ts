import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { load } from "../commands/library/load.ts";
import { sampleModel, sumModel } from "../commands/library/sample-model.test-support.ts";
import { tensor } from "../commands/library/tensor.ts";
import { runCommandLine } from "./command-line.ts";

let folder = "";
let model = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "wavetile-cli-"));
  model = join(folder, "m.onnx");
  writeFileSync(model, sampleModel());
  vi.stubEnv("WAVETILE_HOME", folder);
});
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

let clockMs = 0;
/** What the test does with a command's wish to know of interrupts. */
let interrupt = (_stop: () => void): void => {};
async function wavetile(...argv: string[]) {
  let out = "";
  let err = "";
  const exit = await runCommandLine(argv, {
    stdout: { write: (text) => (out += text) },
    stderr: { write: (text) => (err += text) },
    environment: {},
    now: () => ++clockMs,
    onInterrupt: (stop) => interrupt(stop),
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
      data: { output: artifact, regions: [{ check: { seed: 5 } }] },
      meta: { seed: 5 },
    });
    const { checked } = JSON.parse(made.out).data.regions[0].check;
    expect(checked).toBeGreaterThanOrEqual(256);
    const tried = JSON.parse((await wavetile("trials", "--json")).out);
    expect(tried).toMatchObject({
      data: { trials: [{ verdict: { kind: "estimated", agreement: { checked } } }] },
    });
    expect(readFileSync(artifact, "latin1")).toContain(`"checked": ${checked}`);
    const shown = await wavetile("inspect", artifact, "--program");
    expect(shown.out).toMatch(/^program sample for "/);
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
      const quick = ["--budget", "1e-9", "--json"];
      const sampled = await wavetile("verify", from, ...shape, "--threads", "1", ...quick);
      expect(JSON.parse(sampled.out)).toMatchObject({
        ok: true,
        data: { coverage: { kind: "sampled", regions: [{ check: { seed: 0 } }] } },
      });
    }
  });

  it("compiles for a target that is not here and does not run it (CLI006)", async () => {
    vi.spyOn(WebAssembly, "validate").mockReturnValue(false);
    const made = join(folder, "other.wt");
    expect(
      (await wavetile("optimize", model, "--shape", "M=4", "--target", "wasm-relaxed", "-o", made))
        .exit,
    ).toBe(0);
    const run = await wavetile("run", made, "--random", "--target", "wasm-relaxed");
    expect(run).toMatchObject({ exit: 6, out: "" });
    expect(run.err).toContain("CLI006");
    vi.restoreAllMocks();
  });

  it("compiles for the threads that are asked for", async () => {
    const large = join(folder, "large.onnx");
    writeFileSync(large, sampleModel(2048));
    const dealtOut = async (...threads: string[]): Promise<boolean> => {
      const made = join(folder, "large.wt");
      await wavetile("optimize", large, "--shape", "M=512", ...threads, "-o", made);
      return (await wavetile("inspect", made, "--schedule")).out.includes("parallelize");
    };
    expect(await dealtOut()).toBe(true);
    expect(await dealtOut("--threads", "2")).toBe(true);
    expect(await dealtOut("--threads", "1")).toBe(false);
  });

  it("says of a damaged artifact what it is, not that it is no ONNX model", async () => {
    const made = join(folder, "damaged.wt");
    expect((await wavetile("optimize", model, "--shape", "M=4", "-o", made)).exit).toBe(0);
    const bytes = readFileSync(made);
    for (const at of [5, 8, bytes.length >> 1]) {
      const damaged = Buffer.from(bytes);
      damaged[at]! ^= 0x10;
      writeFileSync(made, damaged);
      expect((await wavetile("run", made, "--random")).err).toMatch(/^error ART/);
    }
  });

  it("carries states from the command line into the artifact", async () => {
    const sum = join(folder, "sum.onnx");
    writeFileSync(sum, sumModel());
    const made = join(folder, "sum.wt");
    expect((await wavetile("optimize", sum, "--state", "s=total", "-o", made)).exit).toBe(0);
    const cell = await load(made, { threads: 1 });
    const x = tensor("f32", [2], Float32Array.of(1, 2));
    cell.run({ x });
    expect(cell.run({ x }).total!.data).toEqual(Float32Array.of(2, 4));
    await cell.dispose();
    expect((await wavetile("run", made, "--random", "--state", "s=total")).err).toContain("CLI001");
  });

  it("lists targets and looks at the machine", async () => {
    expect((await wavetile("targets")).out).toContain("wasm");
    expect((await wavetile("targets", "show", "wasm")).out).toContain("f32FlopsPerNsPerCore");
    expect((await wavetile("targets", "show", "tpu")).exit).toBe(4);
    expect((await wavetile("targets", "show")).err).toContain("targets show needs a name");
    expect((await wavetile("targets", "list", "h200")).err).toContain("targets list takes no name");
    expect(JSON.parse((await wavetile("doctor", "--json")).out)).toMatchObject({ ok: true });
  });

  it("gives each failure its exit code", async () => {
    expect((await wavetile("--help")).exit).toBe(0);
    expect((await wavetile("frobnicate")).exit).toBe(2);
    expect((await wavetile("optimize")).exit).toBe(2);
    expect((await wavetile("optimize", model, "--frob")).exit).toBe(2);
    const unknown = await wavetile("optimize", model, "--shape", "Q=3");
    expect(unknown).toMatchObject({ exit: 2, out: "" });
    expect((await wavetile("run", "/nowhere")).exit).toBe(1);
    expect((await wavetile("bench", model, "--runs", "0")).err).toContain("CLI001");
    const asJson = await wavetile("run", "/nowhere", "--json");
    expect(JSON.parse(asJson.out)).toMatchObject({ ok: false, error: { code: "RUN030" } });
    expect(asJson.err).toBe("");
  });

  it("reports what was measured before an interrupt (CLI008), and exits with 130", async () => {
    const bench = ["bench", model, "--shape", "M=4", "--threads", "1"];
    const waitFor = (turns: number, stop: () => void): unknown =>
      turns === 0 ? stop() : setImmediate(() => waitFor(turns - 1, stop));
    interrupt = (stop) => waitFor(20, stop);
    const some = await wavetile(...bench, "--runs", "5000", "--json");
    const { data, error } = JSON.parse(some.out);
    expect(some.exit).toBe(130);
    expect(error.code).toBe("CLI008");
    expect(data.n).toBeLessThan(30);
    interrupt = (stop) => stop();
    expect(await wavetile(...bench)).toMatchObject({ exit: 130, out: "" });
    interrupt = () => {};
  });

  it("says which values an option takes", async () => {
    const faultOf = async (...line: string[]) => (await wavetile(...line)).err.split("\n")[0];
    const at = ["bench", model, "--shape", "M=4"];
    expect(await faultOf(...at, "--runs", "0")).toContain('--runs: found "0", allowed: at least 1');
    expect(await faultOf(...at, "--threads", "x")).toContain('found "x", allowed: a number');
    expect(await faultOf(...at, "--against", "x")).toContain('found "x", allowed: onnxruntime');
  });

  it("keeps further faults beside the first", async () => {
    const twice = ["bench", model, "--runs", "0", "--threads", "0", "--json"];
    const { error, warnings } = JSON.parse((await wavetile(...twice)).out);
    expect([error.more.length, warnings]).toEqual([1, []]);
  });

  it("answers a command line that cannot be read with a diagnostic", async () => {
    const lines = [["frobnicate"], ["optimize"], ["optimize", model, "--frob"], ["run", "--seed"]];
    for (const line of lines) {
      const text = await wavetile(...line);
      expect(text).toMatchObject({ exit: 2, out: "" });
      expect(text.err).toMatch(/^error CLI001[\s\S]*help: see wavetile .*--help\n$/);
      const { exit, out, err } = await wavetile(line[0]!, "--json", ...line.slice(1));
      expect({ exit, err }).toEqual({ exit: 2, err: "" });
      expect(JSON.parse(out)).toMatchObject({ ok: false, error: { code: "CLI001" } });
    }
    expect((await wavetile("run", model, "--input", "x")).err).toContain("help: ");
  });

  it("totals the kernels of a profile", async () => {
    const run = ["run", model, "--shape", "M=4", "--random", "--threads", "1"];
    const { data } = JSON.parse((await wavetile(...run, "--profile", "--json")).out);
    expect(data.profile.kernels.length).toBeGreaterThan(0);
    const ms = data.profile.kernels.map((k: { ms: number }) => k.ms);
    expect(data.profile.totalMs).toBe(ms.reduce((a: number, b: number) => a + b));
  });
});
