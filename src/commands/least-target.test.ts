/** Artifacts for `cpu`: machine code under the least name whose processors have all that it uses. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { openContainer, stageContainers } from "../artifact/container.ts";
import { readContainer } from "../artifact/read-artifact.ts";
import { runCaptured } from "../cli/run-captured.test-support.ts";
import { type ModelSpec, writeModel } from "../frontend/onnx/model-writer.ts";
import { nativeTargets } from "../runtime/create-session.ts";
import { checksums } from "../runtime/files/hash-bytes.ts";
import type { DType } from "../semantics/dtype.ts";
import { fromRef, refTensor } from "../semantics/tensor.ts";
import { targets } from "../target/index.ts";
import { dotsOfBrains, dotsOfBytes } from "../target/x64-capabilities.ts";
import { chooseTarget } from "./library/choose-target.ts";
import { leastTarget } from "./library/least-target.ts";
import { load } from "./library/load.ts";

const folder = mkdtempSync(join(tmpdir(), "wavetile-least-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const [depth, columns] = [48, 64];

function weights(dtype: DType) {
  const values = Array.from({ length: depth * columns }, (_, i) => (i % 7) - 3);
  return fromRef(refTensor(dtype, [depth, columns], values));
}

function product(dtype: DType, op: string, of: DType): ModelSpec {
  return {
    opset: 18,
    inputs: [{ name: "x", dtype, shape: [8, depth] }],
    outputs: ["y"],
    weights: { w: weights(of) },
    nodes: [
      ...(op === "MatMul" ? [{ op: "Neg", inputs: ["x"], outputs: ["a"] }] : []),
      { op, inputs: [op === "MatMul" ? "a" : "x", "w"], outputs: ["y"] },
    ],
  };
}

/** Data decide how many rows `picked` has: a program before it and one behind. */
const staged: ModelSpec = {
  opset: 18,
  inputs: [{ name: "x", dtype: "u8", shape: [8, depth] }],
  outputs: ["y"],
  weights: { w: weights("i8"), zero: fromRef(refTensor("i32", [], [0])) },
  nodes: [
    { op: "MatMulInteger", inputs: ["x", "w"], outputs: ["sums"] },
    { op: "Greater", inputs: ["sums", "zero"], outputs: ["mask"] },
    { op: "NonZero", inputs: ["mask"], outputs: ["places"] },
    { op: "Transpose", inputs: ["places"], outputs: ["rows"], attributes: { perm: [1n, 0n] } },
    { op: "GatherND", inputs: ["sums", "rows"], outputs: ["picked"] },
    { op: "Add", inputs: ["picked", "picked"], outputs: ["y"] },
  ],
};

const [best] = nativeTargets();
const own = targets.get(best ?? "")?.capabilities;
const [isWide, hasBytes, hasBrains] = ["avx512", dotsOfBytes(16), dotsOfBrains(16)].map(
  (c) => own?.has(c) === true,
);

const cases = [
  ["f32", product("f32", "MatMul", "f32"), "x64-avx512", isWide],
  ["bytes", product("u8", "MatMulInteger", "i8"), "x64-avx512-vnni", hasBytes],
  ["bf16", product("bf16", "MatMul", "bf16"), "x64-avx512-bf16", hasBrains],
  ["bytes, in stages", staged, "x64-avx512-vnni", hasBytes],
] as const;

async function optimized(name: string, spec: ModelSpec, target: string): Promise<string> {
  const [model, artifact] = [".onnx", ".wt"].map((e) => join(folder, `${name}-${target}${e}`));
  writeFileSync(model!, writeModel(spec));
  const run = await runCaptured(["optimize", model!, "-o", artifact!, "--target", target]);
  expect(run, run.err).toMatchObject({ exit: 0 });
  return artifact!;
}

function contained(path: string) {
  const container = openContainer(readFileSync(path), checksums);
  if (!container.ok) throw new Error(container.diagnostics[0]!.message);
  return container.value;
}

describe.each(cases)("an artifact of a model of %s", (name, spec, wanted, isHere) => {
  it.skipIf(!isHere)(`is for ${wanted}, in all that it says of itself`, async () => {
    const path = await optimized(name, spec, "cpu");
    const container = contained(path);
    expect(container.targetNames).toEqual(["wasm", wanted]);
    const parts = stageContainers(container).flatMap((s) => s.program ?? []);
    expect(parts.length > 0).toBe(spec === staged);
    for (const part of spec === staged ? parts : [container]) {
      // Reading refuses programs and schedules of another name than theirs.
      const read = readContainer(part);
      expect(read).toMatchObject({ ok: true });
      expect(part.meta.searches!.map((s) => s.target)).toEqual([wanted, "wasm"]);
      if (spec !== staged) expect(part.meta.packed!.target).toBe(wanted);
    }
    const verified = await runCaptured(["verify", path, "--json"]);
    expect(verified.exit, verified.err).toBe(0);
    expect(JSON.parse(verified.out)).toMatchObject({ meta: { target: wanted } });
  });

  it.skipIf(!isHere)(
    "runs without a warning, and on a machine with no more than it uses",
    async () => {
      const path = await optimized(name, spec, "cpu");
      const model = await load(path, { threads: 1 });
      expect(model.warnings).toEqual([]);
      await model.dispose();
      const all = nativeTargets().filter((n) => n.startsWith("x64-"));
      const less = { names: [...all.slice(all.indexOf(wanted)), "wasm"], reasons: [] };
      for (const wish of ["auto", "cpu"]) {
        const found = chooseTarget(contained(path), wish, less);
        expect(found).toMatchObject({ ok: true, value: { name: wanted }, warnings: [] });
      }
    },
  );
});

describe("a target", () => {
  it.skipIf(!isWide)("that was named stays as it was named", async () => {
    const path = await optimized("named", cases[0][1], best!);
    expect(contained(path).targetNames).toEqual(["wasm", best]);
  });

  it("of another width is none of the least, and a GPU's stays", () => {
    for (const name of ["x64-avx512-bf16", "x64-avx512-vnni", "x64-avx512"])
      expect(leastTarget([], targets.get(name)!).name).toBe("x64-avx512");
    for (const name of ["x64-avx2", "wasm", "h100"])
      expect(leastTarget([], targets.get(name)!).name).toBe(name);
  });
});
