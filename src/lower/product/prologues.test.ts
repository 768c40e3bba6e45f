import { describe, expect, it } from "vitest";
import { productDifference } from "../../../campaign/ptx/product-difference.ts";
import { compileModel } from "../../compile.ts";
import { emitPtx } from "../../emit/ptx/emit-program.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import type { Graph, ValueId } from "../../graph/graph.ts";
import { tensorType } from "../../graph/tensor-type.ts";
import { noWeights } from "../../interp/graph.ts";
import { applySchedule } from "../../schedule/apply.ts";
import { parseSchedule } from "../../schedule/directive-text.ts";
import type { DType } from "../../semantics/dtype.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { architectures } from "../../target/architectures/index.ts";
import { targets } from "../../target/index.ts";

const target = targets.get("h200")!;

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

/** Declares what an operand is made of; what that gives makes it. */
type Made = (g: GraphBuilder) => () => ValueId;

interface Shape {
  readonly equation: string;
  readonly left: Made;
  readonly right: Made;
  readonly to?: DType;
}

function graphOf({ equation, left, right, to = "bf16" }: Shape): Graph {
  const g = new GraphBuilder("product");
  const [x, w] = [left(g), right(g)];
  return g.finish([g.cast(g.einsum(equation, x(), w(), "f32"), to)]);
}

/** Compiled (and so proved) as one product, run thread by thread, compared with the oracle. */
function difference(shape: Shape, how: string): string | undefined {
  const graph = graphOf(shape);
  const { regions } = take(compileModel({ graph, weights: noWeights }, { target }));
  const [{ name }, ...others] = regions as [(typeof regions)[number]];
  if (others.length > 0) return `${regions.length} regions`;
  const text = `schedule "${name}" for "h200" { multiply ${name} ${how} }`;
  return productDifference({
    graph,
    measured: new Map([[name, take(parseSchedule(text))]]),
    target,
  });
}

const input =
  (name: string, dtype: DType, ...shape: readonly number[]): Made =>
  (g) => {
    const id = g.input(name, tensorType(dtype, ...shape));
    return () => id;
  };

const map =
  (x: Made, made: (g: GraphBuilder, id: ValueId) => ValueId): Made =>
  (g) => {
    const declared = x(g);
    return () => made(g, declared());
  };
const relu = (x: Made): Made => map(x, (g, id) => g.apply("relu", id));
const cast = (x: Made, to: DType): Made => map(x, (g, id) => g.cast(id, to));
const bf16 = (x: Made): Made => cast(x, "bf16");

/** Weights [n, k] of a type with scales (and zero points) for all, a row, or blocks of the depth. */
function dequantized(
  code: DType,
  [n, k]: readonly [number, number],
  { to = "bf16", blockSize, zero }: { to?: DType; blockSize?: number; zero?: true } = {},
): Made {
  return (g) => {
    const places = blockSize === undefined ? [n] : [n, k / blockSize];
    const w = g.input("w", tensorType(code, n, k));
    const s = g.input("s", tensorType(to, ...places));
    const z = zero ? [g.input("z", tensorType(code, ...places))] : [];
    const how = blockSize === undefined ? { axis: 0 } : { axis: 1, blockSize };
    return () => g.node("dequantize", [w, s, ...z], { ...how, to });
  };
}

const along = "i k, j k -> i j";

describe("products of operands that are made on their way", () => {
  const warps = "by mma tile (16, 16, 32) warps (1, 1) stages 3 swizzle 64";

  it("by warps: weights of bytes with scales of columns, zero points, blocks of the depth, ragged", () => {
    const left = input("x", "bf16", 9, 40);
    for (const how of [{}, { blockSize: 8, zero: true }] as const) {
      const right = dequantized("i8", [17, 40], how);
      expect(difference({ equation: along, left, right }, warps)).toBeUndefined();
    }
  });

  it("by warps: packed weights of 4 bits in blocks", () => {
    const left = input("x", "bf16", 9, 64);
    const right = dequantized("u4", [17, 64], { blockSize: 32, zero: true });
    expect(difference({ equation: along, left, right }, warps)).toBeUndefined();
  });

  it("by warps: relu and conversions of either operand, across the depth, through single elements", () => {
    const cases: readonly Shape[] = [
      {
        equation: along,
        left: relu(input("x", "bf16", 24, 40)),
        right: input("w", "bf16", 17, 40),
      },
      {
        equation: "k i, k j -> i j",
        left: bf16(input("x", "f32", 33, 16)),
        right: input("w", "bf16", 33, 24),
      },
      {
        equation: along,
        left: input("x", "bf16", 9, 35),
        right: bf16(relu(input("w", "f32", 18, 35))),
      },
    ];
    for (const shape of cases) expect(difference(shape, warps)).toBeUndefined();
  });

  it("by warps: bytes across the depth, in panels of vectors that machines have a spelling for", () => {
    const right = cast(input("w", "i8", 256, 512), "f16");
    const left = input("x", "f16", 300, 256);
    const graph = graphOf({ equation: "i k, k j -> i j", left, right, to: "f16" });
    const older = targets.get("a100-40gb")!;
    const { plan } = take(compileModel({ graph, weights: noWeights }, { target: older }));
    const [kernel, ...others] = plan.program.kernels;
    expect(others).toEqual([]);
    expect(kernel!.buffers.find((b) => b.name === "right")).toMatchObject({ swizzleBytes: 128 });
    const { text } = take(emitPtx(plan.program, architectures.get("sm_80")!));
    expect(text).toContain("st.shared.v4.b32");
  });

  it("by warps: both operands, one stage ahead", () => {
    const left = bf16(input("x", "f32", 17, 40));
    const right = dequantized("u8", [18, 40], { zero: true });
    const how = warps.replace("stages 3", "stages 2");
    expect(difference({ equation: along, left, right }, how)).toBeUndefined();
  });

  it("by threads: weights of bytes, and f32 from narrow floats", () => {
    const threads = "by fma tile (16, 32, 8) warps (1, 1) stages 3 swizzle 0";
    const left = input("x", "f32", 17, 12);
    const bytes = dequantized("i8", [36, 12], { to: "f32", zero: true });
    // Rounded to bf16, since terms of the size of bytes cancel in f32.
    expect(difference({ equation: along, left, right: bytes }, threads)).toBeUndefined();
    const right = cast(input("w", "bf16", 36, 12), "f32");
    expect(difference({ equation: along, left, right, to: "f32" }, threads)).toBeUndefined();
  });

  it("warpgroups, whose copies bring operands as they are, are refused", () => {
    const left = relu(input("x", "bf16", 64, 64));
    const graph = graphOf({ equation: along, left, right: input("w", "bf16", 16, 64) });
    const { regions } = take(compileModel({ graph, weights: noWeights }, { target }));
    const { region } = regions[0]!.scheduled;
    const how = "by wgmma tile (64, 16, 64) warps (4, 1) stages 2 swizzle 128";
    const text = `schedule "${region.name}" for "h200" { multiply ${region.name} ${how} }`;
    const applied = applySchedule(region, take(parseSchedule(text)));
    expect(JSON.stringify(applied)).toContain("tensor copies bring operands as they are");
  });
});
