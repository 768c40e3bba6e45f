import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { type Captured, runCaptured } from "../cli/run-captured.test-support.ts";
import { calibrate as fitCalibration } from "../cost/calibration.ts";
import { printCalibration } from "../cost/calibration-file.ts";
import { coreFigures } from "../cost/core-figures.ts";
import { samplesOf } from "../cost/samples.test-support.ts";
import { targets } from "../target/index.ts";
import { calibrate } from "./library/calibrate.ts";
import { calibrationPath, placeOf } from "./library/machine-calibration.ts";
import { sampleModel } from "./library/sample-model.test-support.ts";

const target = targets.get("wasm")!;
/** By name: what is chosen unasked differs between engines. */
const wasm = ["--target", "wasm"];
let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "wavetile-calibrate-"));
  vi.stubEnv("WAVETILE_HOME", folder);
  writeFileSync(join(folder, "model.onnx"), sampleModel());
});
afterEach(() => rmSync(calibrationPath("wasm"), { force: true }));
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

/** A calibration file whose samples say that arithmetic takes twice as long. */
function plant(path: string, changes: { readonly machine?: string } = {}): void {
  const start = coreFigures(target);
  const slower = { ...start, arithmeticPerNs: start.arithmeticPerNs / 2 };
  const samples = samplesOf(slower, 0.02).map((s) => ({ ...s, schedule: "" }));
  const { machine, codegen } = placeOf(target);
  const about = { command: "wavetile calibrate", protocol: "none", seed: 0 };
  const made = {
    target: "wasm",
    machine,
    codegen,
    ...about,
    fit: fitCalibration(samples, start),
    samples,
  };
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, printCalibration({ ...made, ...changes }));
}

function run(...argv: string[]): Promise<Captured> {
  return runCaptured(argv);
}

it("fits the samples of a file again: the same by command line and library, byte for byte", async () => {
  const [from, a, b] = ["from", "a", "b"].map((n) => join(folder, `${n}.json`));
  plant(from!);
  const { exit, out } = await run("calibrate", ...wasm, "--from", from!, "-o", a!, "--json");
  expect(exit).toBe(0);
  const { data } = JSON.parse(out) as { data: Record<string, unknown> };
  const report = await calibrate({ target: "wasm", from: from!, output: b! });
  if (!report.ok) throw new Error(JSON.stringify(report.diagnostics));
  expect({ ...data, file: b }).toEqual({ ...report.value });
  expect(readFileSync(a!, "utf8")).toBe(readFileSync(b!, "utf8"));
  expect(report.value.moved.map((m) => m.figure)).toContain("arithmeticPerNs");
  expect(report.value.heldOut.errorAfter).toBeLessThan(report.value.heldOut.errorBefore);
  const text = await run("calibrate", ...wasm, "--from", from!, "-o", a!);
  expect(text.out).toContain("rho before");
});

it("is used where it lies, named by explain, and left out on request", async () => {
  const model = join(folder, "model.onnx");
  const explain = (...more: string[]) => run("explain", model, ...wasm, "--shape", "M=8", ...more);
  const before = await explain();
  expect(before.out).toContain("nothing was measured here");
  plant(calibrationPath("wasm"));
  const found = await explain("--json");
  const { data } = JSON.parse(found.out) as { data: { calibration: Record<string, unknown> } };
  expect(data.calibration).toMatchObject({ file: calibrationPath("wasm"), samples: 96 });
  const output = join(folder, "model.wt");
  const optimized = await run("optimize", model, ...wasm, "--shape", "M=8", "-o", output);
  expect(optimized.out).toContain("prices calibrated on 96 samples");
  const artifact = await run("explain", output);
  expect(artifact.out).toContain(calibrationPath("wasm"));
  const off = await explain("--calibration", "off");
  expect(off.out).toBe(before.out);
});

it("is not used where it was not made: a warning for its own file, a refusal for a named one", async () => {
  const model = join(folder, "model.onnx");
  plant(calibrationPath("wasm"), { machine: "another" });
  const auto = await run("explain", model, ...wasm, "--shape", "M=8");
  expect(auto.exit).toBe(0);
  expect(auto.err).toContain("CAL002");
  expect(auto.out).toContain("nothing was measured here");
  const path = calibrationPath("wasm");
  const named = await run("explain", model, ...wasm, "--shape", "M=8", "--calibration", path);
  expect(named.exit).not.toBe(0);
  expect(named.err).toContain("CAL002");
  const broken = join(folder, "broken.json");
  writeFileSync(broken, "{}");
  const refused = await run("explain", model, ...wasm, "--shape", "M=8", "--calibration", broken);
  expect(refused.err).toContain("CAL001");
});

it("says what cannot be calibrated, and when too little was measured (CAL003, CAL004)", async () => {
  const gpu = await calibrate({ target: "h200" });
  expect(gpu.ok || gpu.diagnostics[0]!.code).toBe("CAL004");
  const few = await calibrate({ samples: 10 });
  expect(few.ok || few.diagnostics[0]!.code).toBe("CLI001");
  let calls = 0;
  const hurried = { now: () => 1000 * calls++, progress: () => {} };
  const short = await calibrate({ target: "wasm", seconds: 2 }, hurried);
  expect(short.ok || short.diagnostics[0]!.code).toBe("CAL003");
});
