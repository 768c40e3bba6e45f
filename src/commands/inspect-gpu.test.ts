/** What inspect and explain say of schedules and code for a GPU, on a machine without one. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { runCaptured } from "../cli/run-captured.test-support.ts";
import { type NodeSpec, tensorOf, writeModel } from "../frontend/onnx/model-writer.ts";
import type { DType } from "../semantics/dtype.ts";

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

/** A model of two square inputs. */
function written(name: string, dtype: DType, nodes: readonly NodeSpec[]): string {
  const path = join(folder, name);
  const inputs = ["x", "w"].map((x) => ({ name: x, dtype, shape: [1024, 1024] }));
  const numbers = (n: number) => tensorOf("i64", [1], BigInt64Array.of(BigInt(n)));
  const weights = { starts: numbers(0), ends: numbers(64), axes: numbers(1) };
  writeFileSync(path, writeModel({ opset: 18, inputs, outputs: ["y"], weights, nodes }));
  return path;
}

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

  it("prints the code of the schedules of a file, or says that there is none", async () => {
    const shown = await runCaptured(["inspect", model, "--schedule", "--target", "h200"]);
    const region = /multiply (\S+) by/.exec(shown.out)![1]!;
    const file = join(folder, "code.txt");
    const codeOf = async (how: string, form = "--asm") => {
      writeFileSync(file, `schedule "${region}" for "h200" { multiply ${region} ${how} }`);
      return runCaptured(["inspect", model, form, "--use", file, "--target", "h200"]);
    };
    const small = "by mma tile (64, 64, 32) warps (2, 2) stages";
    const made = await codeOf(`${small} 3 swizzle 64`);
    expect(made.out).toMatch(/mma\.sync/);
    expect(made.out).not.toMatch(/wgmma/);
    expect((await codeOf(`${small} 4 swizzle 64`)).out).not.toBe(made.out);
    expect((await codeOf(`${small} 3 swizzle 64`, "--program")).out).toMatch(/kernel \S+ region/);
    const none = await codeOf(`${small} 40 swizzle 64`);
    expect(none).toMatchObject({ exit: 4, err: expect.stringContaining("SCH046") });
    expect(none.err).toContain(`at ${file}`);
    const alone = await runCaptured(["inspect", model, "--graph", "--use", file]);
    expect(alone).toMatchObject({ exit: 2, err: expect.stringContaining("CLI001") });
  });

  it("prints PTX", async () => {
    const { out } = await runCaptured(["inspect", model, "--asm", "--target", "h200"]);
    expect(out).toContain(".target sm_90a");
    expect(out).toContain(".visible .entry");
  });
});

describe("explain for a GPU", () => {
  const explained = (...words: readonly string[]): Promise<{ readonly out: string }> =>
    runCaptured(["explain", model, "--target", "h200", ...words]);

  it("prints a table of all kernels without being asked for a region", async () => {
    const { out } = await explained();
    const lines = out.split("\n");
    const head = lines.find((line) => line.startsWith("kernel"))!;
    for (const word of ["strategy", "tile", "stages", "cluster", "registers", "resident", "bound"])
      expect(head).toContain(word);
    const row = lines[lines.indexOf(head) + 1]!;
    expect(row).toMatch(/multiply (mma|wgmma)\s+\d+x\d+x\d+\s+\d+\s+\d+/);
    expect(row).toMatch(/ latency\s+\d+\.\d %$/);
    expect(out).toContain("~ estimated from the text");
  });

  it("has the same in JSON, with the bound and the estimate's part of it", async () => {
    const { out } = await explained("--json");
    const [region] = JSON.parse(out).data.regions;
    const [kernel] = region.kernels;
    expect(kernel).toMatchObject({ region: region.name, registersBy: "estimate", cluster: 1 });
    expect(kernel.tile).toHaveLength(3);
    expect(region.bound.by).toBe("latency");
    expect(region.bound.ns).toBeGreaterThan(region.boundNs);
    expect(region.bound.share).toBeCloseTo(region.bound.ns / region.estimateNs, 9);
    expect(region.bound.share).toBeLessThanOrEqual(1);
    const one = await explained("--region", region.name);
    expect(one.out).toMatch(/bound by latency: .* the estimate is at \d+\.\d % of that/);
    expect(one.out).toContain("registers a thread (estimate; the text allows");
  });

  it("tells of f32 on matrix units where tf32 is allowed", async () => {
    const single = written("single.onnx", "f32", [
      { op: "Gemm", inputs: ["x", "w"], outputs: ["y"], attributes: { transB: 1n } },
    ]);
    const rows = async (...words: readonly string[]) =>
      (await runCaptured(["explain", single, "--target", "h200", ...words])).out;
    expect(await rows()).toMatch(/multiply fma/);
    expect(await rows("--allow", "tf32")).toMatch(/multiply (mma|wgmma)/);
    const refused = await runCaptured(["explain", single, "--target", "h200", "--allow", "f16"]);
    expect(refused).toMatchObject({ exit: 2, err: expect.stringContaining("CLI001") });
  });

  it.each(["bf16", "f16", "f32"] as const)(
    "has one kernel for a product of transposed %s",
    async (dtype) => {
      const turned = written("turned.onnx", dtype, [
        { op: "Transpose", inputs: ["x"], outputs: ["xt"], attributes: { perm: [1n, 0n] } },
        { op: "Transpose", inputs: ["w"], outputs: ["wt"], attributes: { perm: [1n, 0n] } },
        { op: "MatMul", inputs: ["xt", "wt"], outputs: ["p"] },
        { op: "Transpose", inputs: ["p"], outputs: ["y"], attributes: { perm: [1n, 0n] } },
      ]);
      const { out } = await runCaptured(["explain", turned, "--target", "h200", "--json"]);
      const { regions } = JSON.parse(out).data;
      expect(regions).toHaveLength(1);
      expect(regions[0].kernels).toHaveLength(1);
      const shown = await runCaptured(["explain", turned, "--target", "h200"]);
      expect(shown.out.match(/multiply (fma|mma|wgmma)/g)).toHaveLength(1);
    },
  );

  it("tells of the graph that rewriting leads to, as inspect does", async () => {
    const chain = written("chain.onnx", "f32", [
      { op: "Mul", inputs: ["x", "x"], outputs: ["a"] },
      { op: "MatMul", inputs: ["a", "w"], outputs: ["b"] },
      { op: "Slice", inputs: ["b", "starts", "ends", "axes"], outputs: ["y"] },
    ]);
    const words = [chain, "--target", "h200", "--json"];
    const regionsOf = async (...more: readonly string[]) =>
      JSON.parse((await runCaptured(["explain", ...words, ...more])).out).data.regions.map(
        (r: { name: string; estimateNs: number }) => r.estimateNs,
      );
    const [plain, rewritten] = [await regionsOf(), await regionsOf("--rewritten", "on")];
    const sum = (list: readonly number[]): number => list.reduce((a, b) => a + b, 0);
    expect(sum(rewritten)).toBeLessThan(sum(plain));
    const both = await runCaptured(["explain", ...words, "--rewrite", "--rewritten", "on"]);
    expect(both.out).toContain("--rewritten tells of schedules");
  });

  it("says nothing of kernels where threads are those of a CPU", async () => {
    const { out } = await runCaptured(["explain", model, "--target", "wasm"]);
    expect(out).not.toContain("strategy");
  });
});
