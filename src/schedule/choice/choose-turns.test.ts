/** What becomes of products and convolutions whose results are wanted in another order, on machines of vectors. */
import { describe, expect, it } from "vitest";
import { compileModel } from "../../compile.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import type { Model, ValueId, WeightStore } from "../../graph/graph.ts";
import { tensorType } from "../../graph/tensor-type.ts";
import { printProgram } from "../../program/program-text.ts";
import type { Tensor } from "../../semantics/tensor.ts";
import { targets } from "../../target/index.ts";

const [rows, columns, depth] = [96, 80, 64];

function weight(g: GraphBuilder, name: string, ...shape: readonly number[]) {
  const size = shape.reduce((n, e) => n * e, 1);
  const data = Float32Array.from({ length: size }, (_, i) => ((7 * i) % 11) - 5);
  const tensor: Tensor = { dtype: "f32", shape, data };
  return { name, value: g.weight(name, tensorType("f32", ...shape)), tensor };
}

function storeOf(weights: readonly ReturnType<typeof weight>[]): WeightStore {
  return { read: (name) => weights.find((w) => w.name === name)!.tensor };
}

interface Made {
  readonly outputs: readonly ValueId[];
  readonly weights: readonly ReturnType<typeof weight>[];
}

function product(g: GraphBuilder, isConstant: boolean, columnsOf = columns) {
  const x = g.input("x", tensorType("f32", rows, depth));
  const w = isConstant ? weight(g, "w", depth, columnsOf) : undefined;
  const z = w?.value ?? g.input("z", tensorType("f32", depth, columnsOf));
  const attrs = {
    lhs: ["i", "k"],
    rhs: ["k", "j"],
    output: ["i", "j"],
    accumulator: "f32",
  } as const;
  return { y: g.nodes("contract", [x, z], attrs)[0]!, weights: w ? [w] : [] };
}

function turned(g: GraphBuilder, x: ValueId, ...permutation: readonly number[]): ValueId {
  return g.nodes("transpose", [x], { permutation })[0]!;
}

function convolution(g: GraphBuilder) {
  const x = g.input("x", tensorType("f32", 1, 16, 28, 28));
  const w = weight(g, "w", 32, 16, 3, 3);
  const same = { strides: [1, 1], dilations: [1, 1], padLow: [1, 1], padHigh: [1, 1] };
  const y = g.nodes("convolution", [x, w.value], { ...same, groups: 1 })[0]!;
  return { y: g.nodes("relu", [y], {})[0]!, weights: [w] };
}

const models: Readonly<Record<string, (g: GraphBuilder) => Made>> = {
  "a product with a weight": (g) => {
    const { y, weights } = product(g, true);
    return { outputs: [turned(g, y, 1, 0)], weights };
  },
  "a product of two inputs": (g) => {
    const { y, weights } = product(g, false);
    return { outputs: [turned(g, y, 1, 0)], weights };
  },
  "both orders of a product": (g) => {
    const { y, weights } = product(g, true);
    return { outputs: [y, turned(g, y, 1, 0)], weights };
  },
  "a product with lines that end within a vector": (g) => {
    const { y, weights } = product(g, true, columns - 1);
    return { outputs: [turned(g, y, 1, 0)], weights };
  },
  "a product of turned operands": (g) => {
    const x = g.input("x", tensorType("f32", depth, rows));
    const z = g.input("z", tensorType("f32", columns, depth));
    const attrs = {
      lhs: ["k", "i"],
      rhs: ["j", "k"],
      output: ["i", "j"],
      accumulator: "f32",
    } as const;
    return { outputs: g.nodes("contract", [x, z], attrs), weights: [] };
  },
  "a convolution": (g) => {
    const { y, weights } = convolution(g);
    return { outputs: [turned(g, y, 0, 3, 1, 2)], weights };
  },
  "both orders of a convolution": (g) => {
    const { y, weights } = convolution(g);
    return { outputs: [y, turned(g, y, 0, 3, 1, 2)], weights };
  },
};

/** The text of the kernel that sums. */
function foldOf(model: Model, targetName: string): string {
  const compiled = compileModel(model, { target: targets.get(targetName)! });
  if (!compiled.ok) throw new Error(compiled.diagnostics[0]!.message);
  const kernels = printProgram(compiled.value.plan.program).split(/^ {2}(?=kernel )/m);
  const folds = kernels.filter((text) => /^kernel S\d+ /.test(text));
  expect(folds).toHaveLength(1);
  return folds[0]!;
}

describe.each(["wasm", "x64-avx2", "x64-avx512-vnni"])("on %s", (targetName) => {
  const lanes = targets.get(targetName)!.vectorBytes / 4;

  it.each(Object.keys(models))("%s whose results are turned sums vectors", (name) => {
    const g = new GraphBuilder("net");
    const { outputs, weights } = models[name]!(g);
    const graph = g.finish([...outputs]);
    const fold = foldOf({ graph, weights: storeOf(weights) }, targetName);
    expect(fold).toContain(`load.f32x${lanes}`);
    // No lane is fetched by itself, in whole tiles as at their ends.
    expect(fold).not.toContain("pack(");
  });
});
