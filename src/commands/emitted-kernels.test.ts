import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { productProgram } from "../../campaign/ptx/product-programs.ts";
import { compileModel } from "../compile.ts";
import { emitPtx } from "../emit/ptx/emit-program.ts";
import { emitX64 } from "../emit/x64/emit-program.ts";
import { importOnnx } from "../frontend/onnx/import/import-model.ts";
import { type ModelSpec, writeModel } from "../frontend/onnx/model-writer.ts";
import { configureKernel } from "../plan/kernels/configure.ts";
import { codeOf } from "../plan/kernels/emitted.ts";
import { stepsFor } from "../plan/kernels/plain-steps.ts";
import { type KernelClass, kernelClasses } from "../plan/kernels/problem.ts";
import type { Program } from "../program/program.ts";
import { randomTensor } from "../semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../support/diagnostic.ts";
import { Rng } from "../support/rng.ts";
import { targets } from "../target/index.ts";

type Float = "f32" | "f16" | "bf16";
type Body = Omit<ModelSpec, "name" | "opset">;

const rng = new Rng(1);
const positions = { dtype: "i64", shape: [1, 16], data: new BigInt64Array(16) } as const;
const lastAxis = { dtype: "i64", shape: [1], data: BigInt64Array.of(1n) } as const;

function product(dtype: Float, batch: readonly number[], rows: number): Body {
  const [x, w] = [
    [...batch, rows, 96],
    [...batch, 96, 128],
  ];
  return {
    inputs: [
      { name: "x", dtype, shape: x },
      { name: "w", dtype, shape: w },
    ],
    outputs: ["y"],
    weights: {},
    nodes: [{ op: "MatMul", inputs: ["x", "w"], outputs: ["y"] }],
  };
}

function attention(dtype: Float, queries: number): Body {
  return {
    inputs: [
      { name: "q", dtype, shape: [2, queries, 32] },
      { name: "k", dtype, shape: [2, 32, 80] },
      { name: "v", dtype, shape: [2, 80, 32] },
    ],
    outputs: ["y"],
    weights: {},
    nodes: [
      { op: "MatMul", inputs: ["q", "k"], outputs: ["s"] },
      { op: "Softmax", inputs: ["s"], outputs: ["p"], attributes: { axis: -1n } },
      { op: "MatMul", inputs: ["p", "v"], outputs: ["y"] },
    ],
  };
}

function unary(
  dtype: Float,
  op: string,
  weights: ModelSpec["weights"] = {},
  attributes: Readonly<Record<string, bigint>> = {},
): Body {
  const inputs = ["x", ...Object.keys(weights)];
  return {
    inputs: [{ name: "x", dtype, shape: op === "RotaryEmbedding" ? [1, 4, 16, 32] : [64, 96] }],
    outputs: ["y"],
    weights,
    nodes: [{ op, inputs, outputs: ["y"], attributes }],
  };
}

const models: Readonly<Record<KernelClass, ((dtype: Float) => Body) | undefined>> = {
  gemm: (d) => product(d, [], 64),
  gemv: (d) => product(d, [], 1),
  "grouped-gemm": (d) => product(d, [4], 64),
  // Stored weights are not unpacked by any emitter.
  "quantised-gemm": undefined,
  "attention-prefill": (d) => attention(d, 64),
  "attention-decode": (d) => attention(d, 1),
  norm: (d) => unary(d, "LayerNormalization", { g: randomTensor(d, [96], rng) }),
  softmax: (d) => unary(d, "Softmax"),
  rope: (d) => {
    const [c, s] = [randomTensor(d, [16, 16], rng), randomTensor(d, [16, 16], rng)];
    return unary(d, "RotaryEmbedding", { c, s, positions });
  },
  elementwise: (d) => unary(d, "Relu"),
  reduction: (d) => unary(d, "ReduceSum", { axes: lastAxis }, { keepdims: 0n }),
  convolution: (d) => ({
    inputs: [{ name: "x", dtype: d, shape: [1, 8, 20, 20] }],
    outputs: ["y"],
    weights: { w: randomTensor(d, [16, 8, 3, 3], rng) },
    nodes: [{ op: "Conv", inputs: ["x", "w"], outputs: ["y"] }],
  }),
  embedding: (d) => ({
    inputs: [{ name: "i", dtype: "i64", shape: [20] }],
    outputs: ["y"],
    weights: { w: randomTensor(d, [300, 96], rng) },
    nodes: [{ op: "Gather", inputs: ["w", "i"], outputs: ["y"] }],
  }),
};

function take<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
}

function programOf(body: Body, target: string): Program {
  const model = take(importOnnx(writeModel({ name: "kernel", opset: 23, ...body }), {}));
  return take(compileModel(model, { target: targets.get(target)! })).plan.program;
}

/** Bytes of machine code or of PTX. */
function emit(program: Program, target: string): number {
  const { machine } = targets.get(target)!;
  if (machine?.kind === "gpu") {
    return take(emitPtx(program, machine.architecture)).kernels.length;
  }
  const features = { vectorBits: 512, evex: true } as const;
  return take(emitX64(program, { features, system: "linux" })).code.bytes.length;
}

/** Warps down and across a tile, none with more than 64 rows or columns. */
function warpsOf(
  { m, n }: { m: number; n: number },
  warps: number,
  leastColumns: number,
): readonly [number, number] {
  for (let down = 1; down <= warps; down *= 2) {
    const across = warps / down;
    if (m / down <= 64 && n / across <= 64 && m / down >= 16 && n / across >= leastColumns) {
      return [down, across];
    }
  }
  throw new Error(`${m} x ${n} on ${warps} warps`);
}

describe("what plan kernels calls written today", () => {
  it.each(["x86-64-v4", "h200"])("is compiled and emitted for %s, every class", (target) => {
    for (const kind of kernelClasses) {
      for (const type of ["f32", "f16", "bf16"] as const) {
        const keys = kind.startsWith("attention") ? { keys: 80 } : {};
        const extents = { batch: 2, rows: 64, columns: 128, depth: 96, ...keys };
        const { today } = take(configureKernel({ kind, type, ...extents }, targets.get(target)!));
        const body = models[kind];
        if (!body) {
          expect(today).toHaveProperty("none");
          continue;
        }
        expect(today, `${kind} ${type}`).toHaveProperty("kernel");
        const program = programOf(body(type), target);
        expect(emit(program, target)).toBeGreaterThan(0);
        const steps = stepsFor(kind);
        if (!steps) continue;
        // Rows go through all steps in one kernel where that is cheaper.
        expect(program.kernels.length).toBeLessThanOrEqual(steps.kernels);
      }
    }
  });

  it("as tiles of products is what lowering takes, with the warps and stages that are named", () => {
    const seen = new Set<string>();
    for (const target of ["a100-80gb", "rtx-4090", "h200"]) {
      for (const type of ["f32", "f16", "bf16"] as const) {
        for (const [rows, columns, depth] of [[40, 320, 256] as const, [512, 512, 128] as const]) {
          const problem = { kind: "gemm", type, batch: 1, rows, columns, depth } as const;
          const { today } = take(configureKernel(problem, targets.get(target)!));
          if (!("kernel" in today) || !/^(mma|vector)/.test(today.kernel.implementation)) continue;
          const { tile, stages, block } = today.kernel;
          const by = type === "f32" ? "fma" : "mma";
          const warps = warpsOf(tile, block[0] / 32, type === "f32" ? 32 : 16);
          const how = `by ${by} tile (${tile.m}, ${tile.n}, ${tile.k}) warps (${warps.join(", ")}) stages ${stages} swizzle 0`;
          const [left, right] = [
            [rows, depth],
            [columns, depth],
          ];
          const equation = "i k, j k -> i j";
          const program = productProgram({ equation, left, right, dtype: type, how, target });
          expect(emit(program, target), `${target} ${how}`).toBeGreaterThan(0);
          seen.add(by);
        }
      }
    }
    expect([...seen].sort()).toEqual(["fma", "mma"]);
  });

  it("as a gated product divides without calls and has registers for what its epilogue reads", () => {
    const how = "by wgmma tile (128, 128, 64) warps (8, 1) stages 4 swizzle 128 group 8 results 2";
    const shapes = { left: [256, 128], right: [256, 128], equation: "i k, j k -> i j" } as const;
    const textOf = (behind: "relu" | "gate"): string => {
      const program = productProgram({ ...shapes, dtype: "bf16", how, behind });
      const { machine } = targets.get("h200")!;
      if (machine?.kind !== "gpu") throw new Error("an h200 is a GPU");
      return take(emitPtx(program, machine.architecture)).text;
    };
    const gated = textOf("gate");
    expect(gated).toContain("wgmma.mma_async");
    expect(gated).toContain("div.full.f32");
    expect(gated).not.toContain("div.rn.f32");
    expect(gated).toContain("setmaxnreg.inc");
    // 64 sums by themselves leave room.
    expect(textOf("relu")).not.toContain("setmaxnreg");
  });

  it("is linked to code that is there", () => {
    for (const path of Object.values(codeOf).flat()) {
      expect(existsSync(new URL(`../../${path}`, import.meta.url)), path).toBe(true);
    }
  });
});
