import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { noWeights, runGraph } from "../../interp/graph.ts";
import { fromRef, numbersOf, type RefTensor, refTensor } from "../../semantics/tensor.ts";
import { Rng } from "../../support/rng.ts";
import { GraphBuilder } from "../builder.ts";
import type { Graph, ValueId } from "../graph.ts";
import { tensorType } from "../tensor-type.ts";
import { verifyGraph } from "../verify.ts";
import { eliminateDeadCode } from "./clean.ts";
import { expandComposites } from "./expand-composites.ts";
import { integerProducts } from "./integer-products.ts";
import type { ProductData } from "./quantized-operands.ts";

type Byte = "u8" | "i8";

/** Zero points are not there, zero, another constant, data, or such of each row (column of the second operand). */
const points = [
  "none",
  "zero",
  "constant",
  "data",
  "zero each",
  "constant each",
  "data each",
] as const;

interface Given {
  readonly seed: number;
  readonly batch: readonly number[];
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
  readonly types: readonly [Byte, Byte];
  readonly zeros: readonly [(typeof points)[number], (typeof points)[number]];
  /** Of each, there is one for each row of each matrix of the batch: shape [batch, rows, 1]. */
  readonly ofBatch: boolean;
  /** The second operand is one matrix for the whole batch. */
  readonly isShared: boolean;
}

const given: fc.Arbitrary<Given> = fc.record({
  seed: fc.integer({ min: 0, max: 1000 }),
  batch: fc.constantFrom([], [2], [2, 1]),
  rows: fc.integer({ min: 1, max: 5 }),
  columns: fc.integer({ min: 1, max: 6 }),
  depth: fc.integer({ min: 8, max: 19 }),
  types: fc.tuple(fc.constantFrom<Byte>("u8", "i8"), fc.constantFrom<Byte>("u8", "i8")),
  zeros: fc.tuple(fc.constantFrom(...points), fc.constantFrom(...points)),
  ofBatch: fc.boolean(),
  isShared: fc.boolean(),
});

const ranges = { u8: [0, 255], i8: [-128, 127] } as const;

function bytes(rng: Rng, dtype: Byte, shape: readonly number[]): RefTensor {
  const [low, high] = ranges[dtype];
  const count = shape.reduce((a, b) => a * b, 1);
  return refTensor(
    dtype,
    shape,
    Array.from({ length: count }, () => rng.integer(low, high)),
  );
}

interface Made {
  readonly graph: Graph;
  readonly inputs: readonly RefTensor[];
}

/** @param isReal of dequantised operands, else MatMulInteger */
function made(drawn: Given, isReal: boolean): Made {
  const { seed, batch, rows, columns, depth, types, zeros, isShared } = drawn;
  const rng = new Rng(seed);
  const g = new GraphBuilder("pair");
  const inputs: RefTensor[] = [];
  const input = (name: string, value: RefTensor): ValueId => {
    inputs.push(value);
    return g.input(name, tensorType(value.dtype, ...value.shape));
  };
  const shapes = [
    [...batch, rows, depth],
    [...(isShared ? [] : batch), depth, columns],
  ];
  const values = shapes.map((shape, i) => input(`x${i}`, bytes(rng, types[i]!, shape)));
  const shapeOf = (side: number): readonly number[] =>
    zeros[side]!.endsWith("each") ? shapeOfEach(drawn, side, isReal) : [];
  const data = zeros.map((kind, side) =>
    kind.startsWith("data")
      ? input(`p${side}`, bytes(rng, types[side]!, shapeOf(side)))
      : undefined,
  );
  const found = zeros.map((kind, side): ValueId | undefined => {
    if (kind === "none" || data[side] !== undefined) return data[side];
    const shape = shapeOf(side);
    const count = shape.reduce((a, b) => a * b, 1);
    const points = Array.from({ length: count }, (_, i) => (kind.startsWith("zero") ? 0 : 3 + i));
    return g.constant(fromRef(refTensor(types[side]!, shape, points)));
  });
  if (!isReal) {
    const operands = [...values, ...found.filter((z) => z !== undefined)];
    const attrs = { aZero: found[0] !== undefined, bZero: found[1] !== undefined };
    return { graph: g.finish([g.node("matMulInteger", operands, attrs)]), inputs };
  }
  const real = values.map((x, i) => {
    const shape = shapeOf(i);
    const count = shape[0] ?? 1;
    const scales = Float32Array.from({ length: count }, (_, at) => 0.25 + i + at / 8);
    const scale = g.constant({ dtype: "f32", shape, data: scales });
    const zero = found[i] ?? g.constant(fromRef(refTensor(types[i]!, [], [0])));
    const axis = shape.length > 0 ? { axis: shapes[i]!.length - 2 + i } : {};
    return g.node("dequantize", [x, scale, zero], { to: "f32", ...axis });
  });
  return { graph: g.finish([g.matMul(real[0]!, real[1]!)]), inputs };
}

/** A vector along rows or columns, or a tensor beside all axes but the depth. */
function shapeOfEach(
  { batch, rows, columns, ofBatch, isShared }: Given,
  side: number,
  isReal: boolean,
): readonly number[] {
  if (isReal || !ofBatch) return [side === 0 ? rows : columns];
  return side === 0 ? [...batch, rows, 1] : [...(isShared ? [] : batch), 1, columns];
}

function onBytes(graph: Graph, data: ProductData = "bytes"): Graph {
  const { graph: rebuilt } = integerProducts(graph, noWeights, { data });
  return expandComposites(eliminateDeadCode(rebuilt)).graph;
}

function bytePairs({ nodes, values }: Graph): number {
  const isByte = (id: ValueId): boolean => ["u8", "i8"].includes(values[id]!.type.dtype);
  return nodes.filter((n) => n.op === "contract" && n.inputs.every(isByte)).length;
}

function resultOf(graph: Graph, inputs: readonly RefTensor[]): readonly number[] {
  const run = runGraph(graph, inputs);
  if (!run.ok) throw new Error(JSON.stringify(run.diagnostics));
  return [...numbersOf(run.value[0]!)];
}

describe("products of two quantised values that come at run time", () => {
  it("are the same integers as products of the bytes less what zero points add", () => {
    fc.assert(
      fc.property(given, (drawn) => {
        const { graph, inputs } = made(drawn, false);
        const bytes = onBytes(graph);
        expect(verifyGraph(bytes)).toEqual([]);
        expect(bytePairs(bytes)).toBe(1);
        expect(resultOf(bytes, inputs)).toEqual(resultOf(graph, inputs));
      }),
      { numRuns: 60, seed: 1 },
    );
  });

  it("are the same real numbers up to rounding", () => {
    fc.assert(
      fc.property(given, (drawn) => {
        const { graph, inputs } = made({ ...drawn, isShared: false }, true);
        const bytes = onBytes(graph);
        expect(bytePairs(bytes)).toBe(1);
        const [found, wanted] = [resultOf(bytes, inputs), resultOf(graph, inputs)];
        found.forEach((x, i) => {
          expect(Math.abs(x - wanted[i]!)).toBeLessThanOrEqual(1e-5 * Math.max(1, Math.abs(x)));
        });
      }),
      { numRuns: 60, seed: 2 },
    );
  });

  it("stay as they are where the machine's instruction is for other data, or sums could overflow", () => {
    const matrix = { seed: 1, batch: [], rows: 2, columns: 2, depth: 16 } as const;
    const drawn = { ...matrix, ofBatch: false, isShared: false } as const;
    const { graph } = made({ ...drawn, types: ["u8", "i8"], zeros: ["none", "none"] }, false);
    expect(bytePairs(onBytes(graph, "u8"))).toBe(0);
    const deep = made(
      { ...drawn, depth: 40_000, types: ["u8", "i8"], zeros: ["none", "none"] },
      false,
    );
    expect(bytePairs(onBytes(deep.graph))).toBe(0);
  });

  it("stay as they are where zero points differ along the depth", () => {
    const g = new GraphBuilder("depth");
    const [x, y] = [
      g.input("x", tensorType("u8", 4, 16)),
      g.input("y", tensorType("i8", 16, 5)),
    ] as const;
    const point = g.input("p", tensorType("u8", 1, 16));
    const product = g.node("matMulInteger", [x, y, point], { aZero: true, bZero: false });
    expect(bytePairs(onBytes(g.finish([product])))).toBe(0);
    const scale = g.constant({ dtype: "f32", shape: [16], data: new Float32Array(16).fill(0.5) });
    const real = g.node("dequantize", [y, scale], { to: "f32", axis: 0 });
    const one = g.constant({ dtype: "f32", shape: [], data: Float32Array.of(1) });
    const left = g.node("dequantize", [x, one], { to: "f32" });
    expect(bytePairs(onBytes(g.finish([g.matMul(left, real)])))).toBe(0);
  });
});
