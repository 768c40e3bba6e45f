/**
 * Products of dequantised 8-bit floats on the stored elements: the transformed graph against the graph by the
 * oracle, over orders of axes, scales and windows, what is left alone, and whole programs of such products, thread
 * by thread, against the graph as it was.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compileModel, prepareFor } from "../../src/compile.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import type { Graph, ValueId, WeightStore } from "../../src/graph/graph.ts";
import { weightReader } from "../../src/graph/prepare.ts";
import { tensorType } from "../../src/graph/tensor-type.ts";
import { byteFloatProducts } from "../../src/graph/transforms/byte-float-products.ts";
import { eliminateDeadCode } from "../../src/graph/transforms/clean.ts";
import { expandComposites } from "../../src/graph/transforms/expand-composites.ts";
import { verifyGraph } from "../../src/graph/verify.ts";
import { runGraph } from "../../src/interp/graph.ts";
import { runProgram } from "../../src/interp/program.ts";
import type { Schedule } from "../../src/schedule/directive.ts";
import { parseSchedule } from "../../src/schedule/directive-text.ts";
import { byteFloatBound } from "../../src/schedule/products/apart-sums.ts";
import { productForm } from "../../src/schedule/products/product-form.ts";
import type { DType } from "../../src/semantics/dtype.ts";
import { constant } from "../../src/semantics/index-expr.ts";
import {
  fromRef,
  numbersOf,
  type RefTensor,
  randomRef,
  refTensor,
  type Tensor,
  tensorBytes,
  tensorFromBytes,
  toRef,
} from "../../src/semantics/tensor.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";
import type { Target } from "../../src/target/target.ts";

type ByteFloat = "f8e4m3fn" | "f8e5m2";

interface Made {
  readonly graph: Graph;
  readonly weights: WeightStore;
  readonly inputs: readonly RefTensor[];
}

interface Quantised {
  readonly shape: readonly number[];
  readonly dtype?: ByteFloat;
  /** Of scales; absent: one for all. */
  readonly axis?: number;
  readonly blockSize?: number;
  readonly to?: "f32" | "f16";
  readonly isWeight?: boolean;
  readonly zero?: number;
}

class Maker {
  readonly b = new GraphBuilder("g");
  readonly rng: Rng;
  readonly inputs: RefTensor[] = [];

  constructor(seed: number) {
    this.rng = new Rng(seed);
  }

  tensor(dtype: DType, shape: readonly number[], isWeight: boolean): ValueId {
    const values = randomRef(dtype, shape, this.rng);
    if (isWeight) return this.b.constant(fromRef(values));
    this.inputs.push(values);
    return this.b.input(`x${this.inputs.length}`, tensorType(dtype, ...shape));
  }

  /** Inputs come before other values. */
  dequantized(...all: readonly Quantised[]): readonly ValueId[] {
    const elements = all.map(({ dtype = "f8e4m3fn", shape, isWeight = false }) =>
      this.tensor(dtype, shape, isWeight),
    );
    return all.map((of, i) => this.#dequantize(elements[i]!, of));
  }

  #dequantize(x: ValueId, of: Quantised): ValueId {
    const { shape, axis, blockSize, dtype = "f8e4m3fn", to = "f32" } = of;
    const along = shape.map((n, i) => (i === axis ? n / (blockSize ?? 1) : n));
    const scales = axis === undefined ? [] : blockSize === undefined ? [shape[axis]!] : along;
    const count = scales.reduce((a, n) => a * n, 1);
    const steps = Array.from({ length: count }, () => 2 ** -this.rng.integer(1, 6));
    const scale = this.b.constant(fromRef(refTensor(to, scales, steps)));
    const zeros = new Array<number>(count).fill(of.zero ?? 0);
    const zero = this.b.constant(fromRef(refTensor(dtype, scales, zeros)));
    const attrs = {
      to,
      ...(axis !== undefined && { axis }),
      ...(blockSize !== undefined && { blockSize }),
    };
    return this.b.node("dequantize", [x, scale, zero], attrs);
  }

  made(...outputs: readonly ValueId[]): Made {
    const stored = this.b.storedConstants;
    const weights = { read: (key: string): Tensor => stored.get(key)! };
    return { graph: this.b.finish([...outputs]), weights, inputs: this.inputs };
  }
}

function oracle({ graph, weights, inputs }: Made): RefTensor {
  const result = runGraph(expandComposites(graph).graph, inputs, weights);
  if (!result.ok) throw new Error(JSON.stringify(result.diagnostics));
  return result.value[0]!;
}

function transformed(made: Made): Made {
  const { graph, constants } = byteFloatProducts(made.graph, made.weights);
  expect(verifyGraph(graph)).toEqual([]);
  const weights = { read: (key: string) => constants.get(key) ?? made.weights.read(key) };
  return { ...made, graph: eliminateDeadCode(graph), weights };
}

function expectClose(found: RefTensor, want: RefTensor, within = 1e-5): void {
  expect([found.dtype, found.shape]).toEqual([want.dtype, want.shape]);
  const [a, b] = [numbersOf(found), numbersOf(want)];
  const size = Math.max(1e-3, ...b.map(Math.abs));
  for (let i = 0; i < b.length; i++) expect(Math.abs(a[i]! - b[i]!)).toBeLessThan(within * size);
}

/** Types of what products multiply. */
function multiplied({ graph }: Made): readonly (readonly string[])[] {
  const products = graph.nodes.filter((n) => n.op === "contract" || n.op === "convolution");
  return products.map((n) => n.inputs.map((id) => graph.values[id]!.type.dtype));
}

const float = fc.constantFrom<ByteFloat>("f8e4m3fn", "f8e5m2");

describe("products of dequantised 8-bit floats", () => {
  it("are those of the stored elements: every order, scales of both sides, transposed and reshaped", () => {
    const shape = fc.record({
      ...{ left: float, right: float, seed: fc.nat(), to: fc.constantFrom("f32", "f16") },
      ...{ rowScales: fc.boolean(), columnScales: fc.boolean(), isTransposed: fc.boolean() },
      ...{ isWide: fc.boolean(), isSplit: fc.boolean() },
    });
    fc.assert(
      fc.property(shape, (s) => {
        const made = new Maker(s.seed);
        const [m, n, k] = [6, 5, 12];
        const to = s.to as "f32" | "f16";
        const row = s.rowScales && !s.isSplit ? { axis: 0 } : {};
        const columns = s.isTransposed ? ([n, k] as const) : ([k, n] as const);
        const along = s.columnScales ? { axis: s.isTransposed ? 0 : 1 } : {};
        const right = { shape: columns, dtype: s.right, to, isWeight: true, ...along };
        const left = { shape: [m, k], dtype: s.left, to, ...row };
        const [x, w] = made.dequantized(left, right);
        const turned = s.isTransposed
          ? made.b.node("transpose", [w!], { permutation: [1, 0] })
          : w!;
        const data = s.isSplit
          ? made.b.reshape(
              x!,
              [2, 3, k].map((e) => constant(e)),
            )
          : x!;
        const before = made.made(made.b.matMul(data, turned));
        const after = transformed(before);
        expect(multiplied(after)).toEqual([[s.left, s.right]]);
        // In f16 each operand of the graph as it was is rounded, and each result of both.
        expectClose(oracle(after), oracle(before), to === "f32" ? 1e-5 : 4e-3);
      }),
      { numRuns: 40 },
    );
  });

  it("of data that lie across are turned where enough meet them", () => {
    for (const [rows, isTaken] of [
      [40, true],
      [4, false],
    ] as const) {
      const made = new Maker(rows);
      const [x, y] = made.dequantized({ shape: [2, rows, 12] }, { shape: [2, 12, 5], axis: 0 });
      const before = made.made(made.b.matMul(x!, y!));
      const after = transformed(before);
      expect(multiplied(after)[0]![0]).toBe(isTaken ? "f8e4m3fn" : "f32");
      expect(after.graph.nodes.some((n) => n.op === "transpose")).toBe(isTaken);
      expectClose(oracle(after), oracle(before));
    }
  });

  it("of convolutions: scales of output channels, windows, strides, padding", () => {
    for (const axis of [undefined, 0]) {
      const made = new Maker(axis ?? 7);
      const along = axis === undefined ? {} : { axis };
      const weight = { shape: [4, 6, 3, 3], isWeight: true, dtype: "f8e5m2", ...along } as const;
      const [x, w] = made.dequantized({ shape: [2, 6, 7, 5] }, weight);
      const window = { strides: [2, 1], dilations: [1, 1], padLow: [1, 1], padHigh: [1, 0] };
      const before = made.made(made.b.node("convolution", [x!, w!], { ...window, groups: 1 }));
      const after = transformed(before);
      expect(multiplied(after)).toEqual([["f8e4m3fn", "f8e5m2"]]);
      expectClose(oracle(after), oracle(before));
    }
  });

  it("stay as they are: scales along the depth, in blocks, zero points, data of attention", () => {
    const plain = { shape: [6, 12] } as const;
    const weight = { shape: [12, 8], isWeight: true } as const;
    const kept: readonly (readonly [Quantised, Quantised])[] = [
      [{ ...plain, axis: 1 }, weight],
      [plain, { ...weight, axis: 0 }],
      [plain, { ...weight, axis: 0, blockSize: 4 }],
      [plain, { ...weight, zero: 2 }],
      [
        { ...plain, to: "f16" },
        { shape: [12, 8], to: "f16" },
      ],
    ];
    for (const [left, right] of kept) {
      const made = new Maker(3);
      const [x, w] = made.dequantized(left, right);
      const before = made.made(made.b.matMul(x!, w!));
      expect(multiplied(transformed(before))).toEqual(multiplied(before));
    }
  });
});

/** Two layers whose data are quantised in the graph, a relu and a bias between them. */
function layers(seed: number): Made {
  const made = new Maker(seed);
  const { b } = made;
  const x = made.tensor("f32", [16, 32], false);
  const step = b.constant(fromRef(refTensor("f32", [], [0.25])));
  const layer = (data: ValueId, from: number, to: number): ValueId => {
    const narrow = b.node("quantize", [data, step], { to: "f8e4m3fn", saturate: true });
    const wide = b.node("dequantize", [narrow, step], { to: "f32" });
    const [w] = made.dequantized({ shape: [to, from], isWeight: true, axis: 0 });
    const turned = b.node("transpose", [w!], { permutation: [1, 0] });
    return b.add(b.matMul(wide, turned), made.tensor("f32", [to], true));
  };
  return made.made(layer(b.apply("relu", layer(x, 32, 48)), 48, 32));
}

/** Every product of a model by one schedule. */
function scheduledProducts(made: Made, target: Target, how: string) {
  const compile = (measured: ReadonlyMap<string, Schedule>) => {
    const compiled = compileModel(made, { target, measured });
    if (!compiled.ok) throw new Error(JSON.stringify(compiled.diagnostics));
    return compiled.value;
  };
  const products = compile(new Map()).regions.filter(({ scheduled: { region } }) => {
    return typeof productForm(region, region.statements[0]!) !== "string";
  });
  const schedules = products.map(({ name }) => {
    const schedule = parseSchedule(
      `schedule "${name}" for "${target.name}" { multiply ${name} ${how} }`,
    );
    if (!schedule.ok) throw new Error(how);
    return [name, schedule.value] as const;
  });
  return compile(new Map(schedules));
}

describe("programs of layers in 8-bit floats", () => {
  for (const [name, how] of [
    ["h200", "by wgmma tile (64, 16, 128) warps (4, 1) stages 2 swizzle 128"],
    ["l40s", "by mma tile (16, 16, 32) warps (1, 1) stages 2 swizzle 0"],
    ["rtx-5090", "by mma tile (16, 16, 64) warps (1, 1) stages 2 swizzle 64"],
  ] as const) {
    it(`multiply the stored elements, and are what the graph says: ${name}`, () => {
      const made = layers(5);
      const compiled = scheduledProducts(made, targets.get(name)!, how);
      const { plan, regions, model, nests, errorBound } = compiled;
      const products = regions.flatMap((r) => r.scheduled.products);
      expect(products.map((p) => p.form.dtype)).toEqual(["f8e4m3fn", "f8e4m3fn"]);
      expect(errorBound).toBe(byteFloatBound(regions));
      expect(errorBound).toBe(2 ** -5);
      const read = weightReader(model);
      const contents = new Map(
        plan.program.buffers.flatMap((buffer): [string, Uint8Array][] => {
          if (buffer.kind === "weight") return [[buffer.name, tensorBytes(read(buffer.name))]];
          if (buffer.kind !== "input") return [];
          return [[buffer.name, tensorBytes(fromRef(made.inputs[0]!))]];
        }),
      );
      const outcome = runProgram(plan.program, { parameters: {}, contents, threads: 1, seed: 2 });
      if (outcome.kind === "fault") throw new Error(JSON.stringify(outcome.fault));
      const want = oracle(made);
      const bytes = outcome.contents.get(nests.outputs[0]!)!.slice();
      const found = toRef(tensorFromBytes("f32", want.shape, bytes));
      // A value between two elements may be rounded to either: of a layer's 48, one step of 2^-3.
      expectClose(found, want, 0.01);
    });
  }

  it("are not changed where no matrix unit takes them", () => {
    const made = layers(5);
    for (const name of ["wasm", "x64-avx512", "a100-40gb"]) {
      const prepared = prepareFor(made, targets.get(name)!);
      expect(multiplied({ ...made, graph: prepared.graph })).not.toContainEqual([
        "f8e4m3fn",
        "f8e4m3fn",
      ]);
    }
  });
});
