/**
 * Products of quantised values on bytes: the transformed graph against the graph by the oracle, and the
 * machine code with dot products against it, over shapes, windows, zero points and padding.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compileModel } from "../../src/compile.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import type { Graph, ValueId, WeightStore } from "../../src/graph/graph.ts";
import { weightReader } from "../../src/graph/prepare.ts";
import { tensorType } from "../../src/graph/tensor-type.ts";
import { eliminateDeadCode } from "../../src/graph/transforms/clean.ts";
import { expandComposites } from "../../src/graph/transforms/expand-composites.ts";
import { integerProducts } from "../../src/graph/transforms/integer-products.ts";
import type { ProductData } from "../../src/graph/transforms/quantized-operands.ts";
import { verifyGraph } from "../../src/graph/verify.ts";
import { runGraph } from "../../src/interp/graph.ts";
import { printProgram } from "../../src/program/program-text.ts";
import { createSession, runnableTargets } from "../../src/runtime/create-session.ts";
import type { DType } from "../../src/semantics/dtype.ts";
import {
  fromRef,
  numbersOf,
  type RefTensor,
  refTensor,
  type Tensor,
} from "../../src/semantics/tensor.ts";
import { invariant } from "../../src/support/invariant.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";

/** Targets with dot products, and what they are called there. */
const machines = [
  { name: "x64-avx512-vnni", instruction: "vpdpbusd.i32x16(" },
  { name: "x64-avx512", instruction: "vpdpwssd.i32x16(" },
  { name: "x64-avx2", instruction: "vpdpwssd.i32x8(" },
  { name: "wasm", instruction: "vpdpwssd.i32x4(" },
].map((m) => ({ ...m, runsHere: runnableTargets().names.includes(m.name) }));

interface Made {
  readonly graph: Graph;
  readonly weights: WeightStore;
  readonly inputs: readonly RefTensor[];
}

type Byte = "u8" | "i8";

const byteRange: Readonly<Record<Byte, readonly [number, number]>> = {
  u8: [0, 255],
  i8: [-128, 127],
};

function product(shape: readonly number[]): number {
  return shape.reduce((a, b) => a * b, 1);
}

function draw(rng: Rng, dtype: DType, shape: readonly number[], [low, high]: [number, number]) {
  const values = Array.from({ length: product(shape) }, () => rng.integer(low, high));
  return refTensor(dtype, shape, values);
}

/** Quantised data times quantised weights by `node`, with a bias and an activation, quantised again. */
class Quantised {
  readonly b = new GraphBuilder("g");
  readonly rng: Rng;
  readonly inputs: RefTensor[] = [];

  constructor(seed: number) {
    this.rng = new Rng(seed);
  }

  constant(tensor: RefTensor): ValueId {
    return this.b.constant(fromRef(tensor));
  }

  scalar(dtype: DType, value: number): ValueId {
    return this.constant(refTensor(dtype, [], [value]));
  }

  bytes(shape: readonly number[], dtype: Byte = "u8"): ValueId {
    const x = draw(this.rng, dtype, shape, [...byteRange[dtype]]);
    this.inputs.push(x);
    return this.b.input(`x${this.inputs.length}`, tensorType(dtype, ...shape));
  }

  /** Of one of the two types of bytes, with a zero point of zero, another, or none. */
  data(shape: readonly number[]): ValueId {
    const dtype = this.rng.uniform() < 0.5 ? "u8" : "i8";
    const zero = this.rng.uniform() < 0.5 ? 0 : this.rng.integer(...byteRange[dtype]);
    const hasPoint = this.rng.uniform() < 0.8;
    const operands = [this.bytes(shape, dtype), this.scalar("f32", 0.0625)];
    if (hasPoint) operands.push(this.scalar(dtype, zero));
    return this.b.node("dequantize", operands, { to: "f32" });
  }

  weights(shape: readonly number[], axis: number): ValueId {
    const isSigned = this.rng.uniform() < 0.7;
    const [dtype, range] = isSigned ? (["i8", [-127, 127]] as const) : (["u8", [0, 255]] as const);
    const w = draw(this.rng, dtype, shape, [...range]);
    const along = this.rng.uniform() < 0.6 ? axis : undefined;
    const count = along === undefined ? [] : [shape[axis]!];
    // Beside 128 some weights less their zero point are no signed bytes.
    const middle = (): number => (this.rng.uniform() < 0.5 ? 128 : this.rng.integer(0, 255));
    const points = new Array<number>(product(count)).fill(isSigned ? 0 : middle());
    const scales = points.map(() => Math.fround(0.001 * this.rng.integer(1, 9)));
    const operands = [
      this.constant(w),
      this.constant(refTensor("f32", count, scales)),
      this.constant(refTensor(dtype, count, points)),
    ];
    const attrs =
      along === undefined ? { to: "f32" as const } : { to: "f32" as const, axis: along };
    return this.b.node("dequantize", operands, attrs);
  }

  finish(product: ValueId, channels: readonly number[]): Made {
    const { b, rng } = this;
    const count = channels.reduce((a, n) => a * n, 1);
    const bias = Array.from({ length: count }, () => Math.fround(rng.normal()));
    const sum = b.add(product, this.constant(refTensor("f32", channels, bias)));
    const active = rng.uniform() < 0.5 ? b.apply("relu", sum) : sum;
    const step = [this.scalar("f32", 0.05), this.scalar("u8", rng.integer(0, 1) * 128)];
    const narrow = b.node("quantize", [active, ...step], { to: "u8", saturate: true });
    return this.made(narrow);
  }

  made(output: ValueId): Made {
    const stored = this.b.storedConstants;
    const weights = { read: (key: string): Tensor => stored.get(key)! };
    return { graph: this.b.finish([output]), weights, inputs: this.inputs };
  }
}

const window = fc.record({
  channels: fc.integer({ min: 8, max: 40 }),
  outputs: fc.integer({ min: 1, max: 36 }),
  kernel: fc.constantFrom<number>(1, 3),
  stride: fc.integer({ min: 1, max: 2 }),
  pad: fc.integer({ min: 0, max: 1 }),
  size: fc.integer({ min: 3, max: 9 }),
});

type Window = typeof window extends fc.Arbitrary<infer T> ? T : never;

function attrsOf({ stride, pad }: Window, groups: number) {
  const [two, pads] = [
    [stride, stride],
    [pad, pad],
  ];
  return { strides: two, dilations: [1, 1], padLow: pads, padHigh: pads, groups };
}

function convolution(seed: number, w: Window, isDepthwise: boolean): Made {
  const q = new Quantised(seed);
  const x = q.data([1, w.channels, w.size, w.size]);
  const outputs = isDepthwise ? w.channels : w.outputs;
  const shape = [outputs, isDepthwise ? 1 : w.channels, w.kernel, w.kernel];
  const attrs = attrsOf(w, isDepthwise ? w.channels : 1);
  const y = q.b.node("convolution", [x, q.weights(shape, 0)], attrs);
  return q.finish(y, [outputs, 1, 1]);
}

/** Few channels: rows of weights are summed. */
function rowConvolution(seed: number, w: Window): Made {
  const kernel = w.kernel === 1 ? 7 : 3;
  const row = { ...w, channels: 1 + (w.channels % 7), kernel, size: w.size + 4 };
  return convolution(seed, { ...row, pad: w.pad * (kernel >> 1) }, false);
}

/** A branch and a branch beside it, each quantised, added up and quantised. */
function residual(seed: number, w: Window): Made {
  const q = new Quantised(seed);
  const branch = (x: ValueId): ValueId => {
    const y = q.b.node("convolution", [x, q.weights([w.outputs, w.channels, 1, 1], 0)], {
      ...attrsOf({ ...w, pad: 0 }, 1),
    });
    const step = [q.scalar("f32", 0.05), q.scalar("u8", 128)];
    const narrow = q.b.node("quantize", [y, ...step], { to: "u8", saturate: true });
    return q.b.node("dequantize", [narrow, ...step], { to: "f32" });
  };
  const x = q.data([1, w.channels, w.size, w.size]);
  return q.finish(q.b.add(branch(x), branch(x)), [w.outputs, 1, 1]);
}

function matrixProduct(seed: number, w: Window, depth = 4 * w.channels + (seed % 4)): Made {
  const q = new Quantised(seed);
  const x = q.data([w.size, depth]);
  const labels = {
    lhs: ["i", "k"],
    rhs: ["k", "j"],
    output: ["i", "j"],
    accumulator: "f32",
  } as const;
  const y = q.b.node("contract", [x, q.weights([depth, w.outputs], 1)], labels);
  return q.finish(y, [w.outputs]);
}

/**
 * ConvInteger and MatMulInteger with a zero point that is known when the model runs; unsigned weights have one of
 * their own, with which they are no signed bytes.
 */
function integers(seed: number, w: Window, isConvolution: boolean): Made {
  const q = new Quantised(seed);
  return q.made(integerSums(q, w, isConvolution, q.rng.uniform() < 0.5));
}

/** The same as a layer has it: by unsigned weights, scaled, and quantised again. */
function unsignedLayer(seed: number, w: Window, isConvolution: boolean): Made {
  const q = new Quantised(seed);
  const sums = q.b.cast(integerSums(q, w, isConvolution, false), "f32");
  return q.finish(q.b.applyNumber("mul", sums, 1e-3), [
    w.outputs,
    ...(isConvolution ? [1, 1] : []),
  ]);
}

function integerSums(q: Quantised, w: Window, isConvolution: boolean, isSigned: boolean): ValueId {
  const { b } = q;
  const depth = isConvolution ? w.channels : 4 * w.channels + q.rng.integer(0, 3);
  const dtype = q.rng.uniform() < 0.5 ? "u8" : "i8";
  const x = q.bytes(isConvolution ? [1, depth, w.size, w.size] : [w.size, depth], dtype);
  const zero = q.bytes([], dtype);
  const shape = isConvolution ? [w.outputs, depth, w.kernel, w.kernel] : [depth, w.outputs];
  const has = !isSigned;
  const type: Byte = has ? "u8" : "i8";
  const weights = q.constant(draw(q.rng, type, shape, [...byteRange[type]]));
  const operands = [x, weights, zero, ...(has ? [q.scalar("u8", q.rng.integer(100, 120))] : [])];
  return isConvolution
    ? b.node("convInteger", operands, { ...attrsOf(w, 1), xZero: true, wZero: has })
    : b.node("matMulInteger", operands, { aZero: true, bZero: has });
}

function oracle({ graph, weights, inputs }: Made): RefTensor {
  const result = runGraph(expandComposites(graph).graph, inputs, weights);
  if (!result.ok) throw new Error(JSON.stringify(result.diagnostics));
  return result.value[0]!;
}

function onMachine(
  { graph, weights, inputs }: Made,
  name: string,
): { readonly result: Tensor; readonly text: string } {
  const target = targets.get(name)!;
  const compiled = compileModel({ graph, weights }, { target });
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.diagnostics));
  const { program } = compiled.value.plan;
  const weight = weightReader(compiled.value.model);
  const session = createSession(program, target, { threads: 1, weight });
  if (!session.ok) throw new Error(JSON.stringify(session.diagnostics));
  const feeds = graph.inputs.map((id, i) => [graph.values[id]!.name, fromRef(inputs[i]!)] as const);
  const outputs = session.value.run(Object.fromEntries(feeds));
  if (!outputs.ok) throw new Error(JSON.stringify(outputs.diagnostics));
  const result = outputs.value[compiled.value.nests.outputs[0]!]!;
  session.value.dispose();
  return { result, text: printProgram(program) };
}

/** One step apart at most, and seldom: a sum between two steps may be rounded to either. */
function expectNear(found: ArrayLike<number>, want: RefTensor, most: number): void {
  const values = numbersOf(want);
  let apart = 0;
  for (let i = 0; i < values.length; i++) {
    const difference = Math.abs(found[i]! - values[i]!);
    expect(difference).toBeLessThanOrEqual(most);
    if (difference > 0) apart++;
  }
  expect(apart).toBeLessThanOrEqual(Math.ceil(values.length / 20));
}

const kinds = [
  ["convolutions", (seed: number, w: Window) => convolution(seed, w, false), 1],
  ["convolutions of each channel", (seed: number, w: Window) => convolution(seed, w, true), 1],
  ["convolutions of few channels", rowConvolution, 1],
  ["sums of two convolutions", residual, 1],
  ["matrix products", (seed: number, w: Window) => matrixProduct(seed, w), 1],
  ["ConvInteger", (seed: number, w: Window) => integers(seed, w, true), 0],
  ["MatMulInteger", (seed: number, w: Window) => integers(seed, w, false), 0],
  ["ConvInteger of a layer", (seed: number, w: Window) => unsignedLayer(seed, w, true), 1],
  ["MatMulInteger of a layer", (seed: number, w: Window) => unsignedLayer(seed, w, false), 1],
] as const;

describe.each(kinds)("%s on bytes", (_, make, most) => {
  it.each<readonly [ProductData, ProductData]>([
    ["u8", "u8"],
    ["i16", "i16"],
    ["u8", "i16"],
  ])("are what the graph says, as %s and, in contractions, %s", (data, contracted) => {
    fc.assert(
      fc.property(fc.nat(), window, (seed, w) => {
        const made = make(seed, w);
        const { graph, constants } = integerProducts(made.graph, made.weights, {
          data,
          contracted,
          sumsRows: true,
          takesWideWeights: seed % 2 === 0,
        });
        expect(verifyGraph(graph)).toEqual([]);
        const weights = { read: (key: string) => constants.get(key) ?? made.weights.read(key) };
        expectNear(numbersOf(oracle({ ...made, graph, weights })), oracle(made), most);
      }),
      { numRuns: 4 },
    );
  });
  for (const { name, runsHere } of machines) {
    it.skipIf(!runsHere)(`are what the machine computes: ${name}`, () => {
      fc.assert(
        fc.property(fc.nat(), window, (seed, w) => {
          const made = make(seed, w);
          const { result } = onMachine(made, name);
          expectNear(result.data as Uint8Array, oracle(made), most);
        }),
        { numRuns: 1 },
      );
    });
  }
});

describe.each(machines.filter((m) => m.runsHere))("dot products on $name", (machine) => {
  const { name, instruction } = machine;
  const size = { channels: 32, outputs: 32, kernel: 3, stride: 1, pad: 1, size: 7 };
  it("compute convolutions", () => {
    expect(onMachine(convolution(1, size, false), name).text).toContain(instruction);
  });
  it.each([3, 7])("compute rows of %i of three channels where four bytes are summed", (kernel) => {
    const few = { ...size, channels: 3, kernel, size: 16 };
    const found = onMachine(convolution(1, few, false), name).text.includes(instruction);
    expect(found).toBe(instruction.startsWith("vpdpbusd"));
  });
  it.each([128, 129, 130, 131])("compute matrix products of a depth of %i", (depth) => {
    // Weights without their zero point may be of 16 bits, by the depth.
    const { text } = onMachine(matrixProduct(2, size, depth), name);
    expect(
      [instruction, instruction.replace("vpdpbusd", "vpdpwssd")].some((n) => text.includes(n)),
    ).toBe(true);
  });
  it.each([true, false])("compute sums that are the result: convolution %s", (isConvolution) => {
    const made = new Quantised(5);
    const sums = integerSums(made, size, isConvolution, true);
    expect(onMachine(made.made(sums), name).text).toContain(instruction);
  });
  it.each([true, false])("compute by unsigned weights less a zero point: %s", (isConvolution) => {
    const { text } = onMachine(unsignedLayer(1, size, isConvolution), name);
    expect(text).toContain(instruction.replace("vpdpbusd", "vpdpwssd"));
  });
  it("do not compute convolutions of each channel", () => {
    expect(onMachine(convolution(1, size, true), name).text).not.toContain(instruction);
  });
});

describe("what is quantised behind a product", () => {
  const size = { channels: 32, outputs: 32, kernel: 1, stride: 1, pad: 0, size: 7 };
  const operators = (made: Made): readonly string[] =>
    eliminateDeadCode(integerProducts(made.graph, made.weights, { data: "u8" }).graph).nodes.map(
      (n) => n.op,
    );
  it("is scaled by the constants of the product, and needs no relu from zero on", () => {
    const made = convolution(3, size, false);
    const zero = made.graph.nodes.find((n) => n.op === "quantize")!.inputs[2]!;
    const point = made.graph.weights.find((w) => w.value === zero)!.source;
    invariant(point.kind === "inline", () => "small constants are inline");
    expect(Number(point.tensor.data[0])).toBe(0);
    expect(made.graph.nodes.map((n) => n.op)).toContain("relu");
    const names = operators(made);
    expect(names).not.toContain("relu");
    // From the bias on nothing is multiplied.
    expect(names.slice(names.lastIndexOf("add"))).not.toContain("mul");
  });
  it.each(machines)("stays bytes until another kernel adds it: $name", ({ name }) => {
    const { graph, weights } = residual(1, size);
    const compiled = compileModel({ graph, weights }, { target: targets.get(name)! });
    if (!compiled.ok) throw new Error(JSON.stringify(compiled.diagnostics));
    const { buffers } = compiled.value.plan.program;
    const kept = buffers.filter((b) => b.kind === "scratch" && b.scope === "memory");
    expect(kept.map((b) => b.dtype)).not.toContain("f32");
  });
});

it("data of contractions alone are widened where an engine compiles the code", () => {
  const widens = (make: (seed: number) => Made): number =>
    [1, 2, 3, 4, 5, 6, 7, 8].filter((seed) => {
      const options = { data: "u8", contracted: "i16" } as const;
      const made = make(seed);
      const { graph } = integerProducts(made.graph, made.weights, options);
      return graph.nodes.some((n) => n.op === "cast" && n.attrs.to === "i16");
    }).length;
  const w = fc.sample(window, { numRuns: 1, seed: 1 })[0]!;
  expect(widens((seed) => matrixProduct(seed, w))).toBeGreaterThan(0);
  expect(widens((seed) => integers(seed, w, false))).toBeGreaterThan(0);
  expect(widens((seed) => convolution(seed, w, false))).toBe(0);
  expect(widens((seed) => integers(seed, w, true))).toBe(0);
});
