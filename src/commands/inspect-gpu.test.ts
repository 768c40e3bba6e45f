/** What inspect says of schedules and code for a GPU, on a machine without one. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { runCaptured } from "../cli/run-captured.test-support.ts";
import { writeModel } from "../frontend/onnx/model-writer.ts";

const folder = mkdtempSync(join(tmpdir(), "wavetile-inspect-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const model = join(folder, "product.onnx");
writeFileSync(
  model,
  writeModel({
    opset: 18,
    inputs: [
      { name: "x", dtype: "f16", shape: [256, 256] },
      { name: "w", dtype: "f16", shape: [256, 256] },
    ],
    outputs: ["y"],
    weights: {},
    nodes: [{ op: "Gemm", inputs: ["x", "w"], outputs: ["y"], attributes: { transB: 1n } }],
  }),
);

async function used(target: string, how: string): Promise<string> {
  const shown = await runCaptured(["inspect", model, "--schedule", "--target", target]);
  const region = /multiply (\S+) by/.exec(shown.out)![1]!;
  const file = join(folder, "use.txt");
  writeFileSync(file, `schedule "${region}" for "${target}" { multiply ${region} ${how} }`);
  const { out, err } = await runCaptured([
    "inspect",
    model,
    "--schedule",
    "--use",
    file,
    "--target",
    target,
  ]);
  return `${out}${err}`;
}

describe("inspect for a GPU", () => {
  const tile = "by wgmma tile (64, 128, 64) warps (4, 1) stages";
  it("says of a schedule whether there is code for it", async () => {
    const fits = await used("h200", `${tile} 4 swizzle 128`);
    expect(fits).toMatch(/legal; lowers to \S+\s*$/m);
    expect(fits).not.toContain("no code");
    expect(await used("h200", `${tile} 12 swizzle 128`)).toMatch(
      /no code of h200: .*EMT001.*shared memory/,
    );
    expect(await used("a100-80gb", `${tile} 4 swizzle 128`)).toMatch(
      /no code of a100-80gb: .*EMT001/,
    );
  });

  it("prints PTX", async () => {
    const { out } = await runCaptured(["inspect", model, "--asm", "--target", "h200"]);
    expect(out).toContain(".target sm_90a");
    expect(out).toContain(".visible .entry");
  });
});
