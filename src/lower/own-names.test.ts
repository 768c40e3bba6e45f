/** Tensors that are called as a kernel's own buffers and counters are: nothing but names is different. */
import { expect, it } from "vitest";
import { productDifference } from "../../campaign/ptx/product-difference.ts";
import { compileModel } from "../compile.ts";
import { GraphBuilder } from "../graph/builder.ts";
import type { Graph } from "../graph/graph.ts";
import { tensorType } from "../graph/tensor-type.ts";
import { noWeights } from "../interp/graph.ts";
import { codeClass } from "../program/code-class.ts";
import type { Program } from "../program/program.ts";
import { parseSchedule } from "../schedule/directive-text.ts";
import { formatDiagnostic, type Result } from "../support/diagnostic.ts";
import { targets } from "../target/index.ts";

const target = targets.get("h200")!;

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

type Make = (names: readonly [string, string, string]) => Graph;

const product: Make = ([x, w]) => {
  const g = new GraphBuilder("product");
  const operands = [
    g.input(x, tensorType("bf16", 64, 128)),
    g.input(w, tensorType("bf16", 64, 128)),
  ];
  return g.finish([g.cast(g.einsum("i k, j k -> i j", operands[0]!, operands[1]!, "f32"), "bf16")]);
};
const attention: Make = (names) => {
  const g = new GraphBuilder("attention");
  const operands = names.map((name) => g.input(name, tensorType("bf16", 1, 2, 128, 64)));
  const attrs = { scale: 0.125, causal: "none", mask: false, softcap: 0 };
  return g.finish([g.node("attention", operands, attrs as never)]);
};
const softmax: Make = ([x]) => {
  const g = new GraphBuilder("rows");
  return g.finish([g.node("softmax", [g.input(x, tensorType("f32", 8, 256))], { axis: 1 })]);
};

function ownOf({ kernels }: Program): readonly string[] {
  return kernels.flatMap((k) => [...k.buffers, ...k.counters].map((b) => b.name));
}

function compile(graph: Graph, how?: string): Program {
  const text = `schedule "S0" for "h200" { multiply S0 ${how} }`;
  const measured =
    how === undefined ? {} : { measured: new Map([["S0", take(parseSchedule(text))]]) };
  return take(compileModel({ graph, weights: noWeights }, { target, ...measured })).plan.program;
}

/** The first own names (tiles of operands) in both orders. */
function check(make: Make, how?: string): void {
  const plain = compile(make(["x", "y", "z"]), how);
  const own = ownOf(plain);
  expect(own.length).toBeGreaterThan(1);
  const [a, b, c] = [own[0]!, own[1]!, own[2] ?? "z"];
  for (const names of [
    [a, b, c],
    [b, a, `${c}.1`],
  ] as const) {
    const named = compile(make(names), how);
    const memory = new Set(named.buffers.map((x) => x.name));
    expect(ownOf(named).filter((name) => memory.has(name))).toEqual([]);
    expect(codeClass(named)).toBe(codeClass(plain));
  }
}

const products = [
  "by mma tile (16, 16, 32) warps (1, 1) stages 3 swizzle 64",
  "by wgmma tile (64, 32, 64) warps (4, 1) stages 2 swizzle 128 parts 2",
];

it("products are the same under all names", () => {
  for (const how of products) check(product, how);
}, 120_000);

it("attention and rows are the same under all names", () => {
  expect(ownOf(compile(attention(["x", "y", "z"])))).toContain("keys");
  check(attention);
  check(softmax);
}, 120_000);

it("products give the oracle's results", () => {
  const text = `schedule "S0" for "h200" { multiply S0 ${products[0]} }`;
  const measured = new Map([["S0", take(parseSchedule(text))]]);
  const graph = product(["right", "left", ""]);
  expect(productDifference({ graph, measured, target })).toBeUndefined();
}, 60_000);
