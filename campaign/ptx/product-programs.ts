/**
 * Texts of matrix products as the compiler lowers them to blocks (lower/product/), each from a graph and a
 * `multiply` schedule or what the search chooses: what assembling, counting and planting faults work on.
 */
import { GraphBuilder } from "../../src/graph/builder.ts";
import type { ValueId, WeightStore } from "../../src/graph/graph.ts";
import { tensorType } from "../../src/graph/tensor-type.ts";
import { noWeights } from "../../src/interp/graph.ts";
import type { Program } from "../../src/program/program.ts";
import { printProgram } from "../../src/program/program-text.ts";
import { parseSchedule } from "../../src/schedule/directive-text.ts";
import type { DType } from "../../src/semantics/dtype.ts";
import { constant } from "../../src/semantics/index-expr.ts";
import { formatDiagnostic, type Result } from "../../src/support/diagnostic.ts";
import { allowing } from "../../src/target/allowing.ts";
import { targets } from "../../src/target/index.ts";
import { Making } from "./making.ts";

type Extent = number | string;

export interface ProductCase {
  readonly equation: string;
  /** Extents; those with a name are open. */
  readonly left: readonly Extent[];
  readonly right: readonly Extent[];
  /** Upper ends of open extents, which are 1 at least. */
  readonly open?: Readonly<Record<string, number>>;
  readonly dtype: "f32" | "bf16" | "f16" | "i32" | "i8";
  /** Of the operands, where it is not that of the results. */
  readonly of?: "f8e4m3fn" | "f8e5m2" | "u8" | "i8";
  /** Of the right operand, where it is another; bytes are summed in i32. */
  readonly ofRight?: "f8e4m3fn" | "f8e5m2" | "u8" | "i8";
  /** The `multiply` directive without its statement; absent: what the search chooses, without tf32. */
  readonly how?: string;
  /**
   * What is done to the sums: a relu, or a product with silu of a tensor like the result; a relu, and heads of 64
   * columns before the rows, or the largest of each row.
   */
  readonly behind?: "relu" | "gate" | "heads" | "largest";
  /**
   * What an operand is made of: relu or a conversion from f32 in front of the left one; the right one dequantised
   * from bytes with a scale for each column, or from 4 bits with zero points, in blocks of 32 of its depth.
   */
  readonly front?: "relu" | "cast" | "bytes" | "nibbles";
  /** The right operand is a weight. */
  readonly isWeight?: boolean;
  /** Of the right operand's matrices, each of the batch takes the one that a further input says. */
  readonly isPicked?: boolean;
  /** Name of the target; its architecture claims the instructions. */
  readonly target?: string;
}

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join(" "));
  return result.value;
}

/** Columns of a head, and the regions that end behind the product's epilogue. */
const headWidth = 64;
const regionBehind: Partial<Record<string, string>> = { heads: "S3", largest: "S2" };

/** The program of a product with what is behind it. */
export function productProgram(given: ProductCase, making = new Making()): Program {
  const { equation, left, right, dtype, of = dtype, how, behind, target: name = "h200" } = given;
  const g = new GraphBuilder("product");
  const symbols = new Map(
    Object.entries(given.open ?? {}).map(([n, most]) => [n, g.symbol(n, 1, most)] as const),
  );
  const type = (dtype: DType, shape: readonly Extent[]) => ({
    dtype,
    shape: shape.map((e) => (typeof e === "string" ? symbols.get(e)! : constant(e))),
  });
  const data = g.input("x", type(given.front === "cast" ? "f32" : of, left));
  const which = given.isPicked ? g.input("which", type("i32", [left[0]!])) : undefined;
  const second = type(given.ofRight ?? of, right);
  const isStored = given.front === "bytes" || given.front === "nibbles";
  const w = isStored
    ? dequantized(g, given.front, known(right), of)
    : given.isWeight
      ? g.weight("w", second)
      : g.input("w", second);
  const isGated = behind === "gate";
  const gate = isGated ? g.input("gate", type(dtype, [left[0]!, right[0]!])) : undefined;
  const x = leftOperand(g, given.front, data);
  const own = which === undefined ? w : g.node("gather", [w, which], { axis: 0 });
  const isOfBytes = of === "u8" || of === "i8";
  const sums = isOfBytes ? byteSums(g, equation, x, w) : g.einsum(equation, x, own, "f32");
  const made = gate
    ? g.mul(sums, g.node("silu", [g.cast(gate, "f32")], {}))
    : g.apply("relu", dtype === "i8" ? g.applyNumber("mul", g.cast(sums, "f32"), 2 ** -8) : sums);
  const rounded = dtype === "i8" ? g.apply("round", made) : made;
  const folded = behind === "largest" ? g.reduce("max", rounded, [1], true) : rounded;
  const result = g.cast(folded, dtype);
  const heads = [left[0]!, Number(right[0]) / headWidth, headWidth] as readonly number[];
  const placed = behind === "heads" ? g.transpose(g.reshape(result, heads), [1, 0, 2]) : result;
  const graph = g.finish([placed]);
  const weights = given.isWeight ? zeros(of, known(right)) : noWeights;
  if (how === undefined) {
    const target = targets.get(name)!;
    // Launches that overlap are not for every architecture.
    return making.compile({ graph, weights }, { target, overlap: false }).plan.program;
  }
  // Regions have the names of what they end with; beside a fold the product has its own.
  const isSecond = given.isPicked || given.front !== undefined;
  const region = isSecond ? "S1" : (regionBehind[behind ?? "relu"] ?? "S0");
  const multiplied = behind === "largest" ? "S0" : region;
  const schedule = take(
    parseSchedule(`schedule "${region}" for "${name}" { multiply ${multiplied} ${how} }`),
  );
  const target = allowing(targets.get(name)!, ["tf32"]);
  const measured = new Map([[region, schedule]]);
  const { program } = making.compile({ graph, weights }, { target, measured }).plan;
  if (given.front && program.kernels.some((k) => k.region === "S0"))
    throw new Error(`${given.front} is a kernel by itself`);
  return program;
}

function leftOperand(g: GraphBuilder, front: ProductCase["front"], x: ValueId): ValueId {
  if (front === "relu") return g.apply("relu", x);
  return front === "cast" ? g.cast(x, "bf16") : x;
}

/** Extents of what is stored. */
function known(shape: readonly Extent[]): readonly number[] {
  return shape.map(Number);
}

/** Columns along the depth, of codes with what they are dequantised by. */
function dequantized(
  g: GraphBuilder,
  front: ProductCase["front"],
  [n, k]: readonly number[],
  to: DType,
): ValueId {
  const code = front === "bytes" ? "i8" : "u4";
  const places = front === "bytes" ? [n!] : [n!, k! / 32];
  const w = g.input("w", tensorType(code, n!, k!));
  const operands = [w, g.input("s", tensorType(to, ...places))];
  if (front === "bytes") return g.node("dequantize", operands, { axis: 0, to });
  const zero = g.input("z", tensorType(code, ...places));
  return g.node("dequantize", [...operands, zero], { axis: 1, blockSize: 32, to });
}

function byteSums(g: GraphBuilder, equation: string, x: ValueId, w: ValueId): ValueId {
  const [lhs, rhs, output] = equation.split(/,|->/).map((part) => part.trim().split(" "));
  const labels = { lhs: lhs!, rhs: rhs!, output: output! };
  return g.node("contract", [x, w], { ...labels, accumulator: "i32" });
}

/** Any weights: the program does not depend on them. */
function zeros(dtype: DType, shape: readonly number[]): WeightStore {
  const size = shape.reduce((a, b) => a * b, 1);
  return { read: () => ({ dtype, shape, data: new Uint16Array(size) }) };
}

export function productText(given: ProductCase, making?: Making): string {
  return printProgram(productProgram(given, making));
}
