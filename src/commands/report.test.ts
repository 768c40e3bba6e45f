import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { runCaptured } from "../cli/run-captured.test-support.ts";
import { sampleModel } from "./library/sample-model.test-support.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "wavetile-report-"));
  vi.stubEnv("WAVETILE_HOME", folder);
  writeFileSync(join(folder, "model.onnx"), sampleModel());
});
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

async function run(...argv: string[]) {
  const { exit, out, err } = await runCaptured([...argv, "--json"], () => performance.now());
  expect(exit, out + err).toBe(0);
  return (JSON.parse(out) as { data: Record<string, unknown> }).data;
}

it("draws everything of an ONNX model, and what an artifact holds", async () => {
  const model = join(folder, "model.onnx");
  const [page, svg] = [join(folder, "r.html"), join(folder, "svg")];
  const given = ["--shape", "M=8", "-o", page, "--machines", "wasm,x64-avx2", "--measure"];
  const data = await run("report", model, ...given, "--svg", svg);
  const drawn = ["funnel", "collapse", "price", "gap", "breakdown", "layers", "measured"];
  expect(data.pictures).toEqual([...drawn, "machines"]);
  for (const name of data.pictures as string[]) {
    expect(existsSync(join(svg, `${name}.svg`))).toBe(true);
    expect(readFileSync(page, "utf8")).toContain(`id="${name}"`);
  }
  const search = data.search as { regions: { estimateNs: number; parts: object }[] };
  for (const { estimateNs, parts } of search.regions) {
    const sum = Object.values(parts).reduce((a: number, b: number) => a + b, 0);
    expect(sum).toBeCloseTo(estimateNs, 6);
  }
  const measured = data.measured as { name: string; measuredNs: number }[];
  expect(measured).toHaveLength(search.regions.length);
  for (const point of measured) expect(point.measuredNs).toBeGreaterThan(0);

  const artifact = join(folder, "model.wt");
  await run("optimize", model, "--shape", "M=8", "--target", "wasm", "-o", artifact);
  const kept = await run("report", artifact, "-o", page);
  expect(kept.pictures).toEqual(drawn.slice(0, -1));
  expect((kept.missing as { name: string }[]).map((m) => m.name)).toEqual([
    "measured",
    "calibration",
    "machines",
  ]);
  const files = await run("explain", artifact, "--svg", join(folder, "explained"));
  expect(files.pictures).toHaveLength(6);
});
