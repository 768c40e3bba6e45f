import { describe, expect, it } from "vitest";
import { type CompiledModel, compileModel } from "../../compile.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import type { Graph } from "../../graph/graph.ts";
import { noWeights } from "../../interp/graph.ts";
import { runNests } from "../../interp/nest.ts";
import type { NestProgram, Region, TensorRole } from "../../region/nest.ts";
import { parseRegion } from "../../region/nest-reader.ts";
import type { DType } from "../../semantics/dtype.ts";
import { constant } from "../../semantics/index-expr.ts";
import { numbersOf, randomRef } from "../../semantics/tensor.ts";
import type { Result } from "../../support/diagnostic.ts";
import { Rng } from "../../support/rng.ts";
import { targets } from "../../target/index.ts";
import { turnedProducts } from "./operand-orders.ts";
import { paddedProduct } from "./padded-depths.ts";

const h200 = targets.get("h200")!;

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(JSON.stringify(result.diagnostics));
  return result.value;
}

function graphOf(
  equation: string,
  left: readonly number[],
  right: readonly number[],
  [dtype, other]: readonly [DType, DType],
): Graph {
  const g = new GraphBuilder("bytes");
  const type = (of: DType, shape: readonly number[]) => ({
    dtype: of,
    shape: shape.map((n) => constant(n)),
  });
  const operands = [g.input("x", type(dtype, left)), g.input("w", type(other, right))];
  const [lhs, rhs, output] = equation.split(/, | -> /).map((letters) => letters.split(" "));
  const labels = { lhs: lhs!, rhs: rhs!, output: output! };
  const accumulator = dtype === "u8" || dtype === "i8" ? "i32" : "f32";
  return g.finish([g.node("contract", operands, { ...labels, accumulator })]);
}

function compiled(graph: Graph, target = "h200"): CompiledModel {
  return take(compileModel({ graph, weights: noWeights }, { target: targets.get(target)! }));
}

/** What the regions of a program do, in order. */
function waysOf({ regions }: CompiledModel): readonly string[] {
  return regions.map(({ scheduled: { schedule, region } }) => {
    const product = schedule.directives.find((d) => d.kind === "multiply");
    return product ? product.by : region.name.split(".")[0]!;
  });
}

/** What the regions, one after another, write to y. */
function resultOf(regions: readonly Region[]): readonly number[] {
  const tensors = new Map(
    regions.flatMap((r) =>
      [...r.tensors].map(([name, { role, ...rest }]) => {
        const own: TensorRole = role === "local" ? "intermediate" : role;
        return [name, { ...rest, role: own }] as const;
      }),
    ),
  );
  const inputs = ["x", "w"];
  const program: NestProgram = {
    name: "r",
    symbols: [],
    tensors,
    items: regions.flatMap((r) => r.statements.map((s) => ({ kind: "statement", statement: s }))),
    inputs,
    outputs: ["y"],
  };
  const rng = new Rng(3);
  const drawn = inputs.map((name) => {
    const { dtype, shape } = tensors.get(name)!;
    const extents = shape.map((e) => e.constant);
    return [name, randomRef(dtype, extents, rng)] as const;
  });
  const [y] = take(runNests(program, { given: new Map(drawn), symbols: new Map() }));
  return [...numbersOf(y!)];
}

describe("operands that are turned first", () => {
  const sizes = [1024, 1024] as const;

  it("are bytes across the depth, one or both: a kernel of its own costs less than loops", () => {
    const waysFor = (equation: string, target?: string) =>
      waysOf(compiled(graphOf(equation, sizes, sizes, ["u8", "i8"]), target));
    expect(waysFor("i k, j k -> i j")).toEqual(["wgmma"]);
    expect(waysFor("i k, k j -> i j")).toEqual(["turn", "wgmma"]);
    expect(waysFor("k i, k j -> i j")).toEqual(["turn", "turn", "wgmma"]);
    expect(waysFor("i k, k j -> i j", "a100-40gb")).toEqual(["turn", "mma"]);
  });

  it("are floats of 8 bits too, and none of 16, which matrix units take as they lie", () => {
    const waysFor = (dtype: DType) =>
      waysOf(compiled(graphOf("i k, k j -> i j", sizes, sizes, [dtype, dtype])));
    expect(waysFor("f8e4m3fn")).toEqual(["turn", "wgmma"]);
    expect(waysFor("bf16")).toEqual(["wgmma"]);
    expect(waysFor("f32")).toEqual(["fma"]);
  });

  it("are of 16 bits where their rows are no multiple of 16 bytes", () => {
    const odd = graphOf("i k, k j -> i j", sizes, [1024, 1001], ["bf16", "bf16"]);
    expect(waysOf(compiled(odd))).toEqual(["turn", "wgmma"]);
  });

  it("are columns of f32 along the depth, where loops over neighbouring columns cost less", () => {
    const heads = graphOf(
      "b i k, b j k -> b i j",
      [32, 1024, 128],
      [32, 1024, 128],
      ["f32", "f32"],
    );
    const { regions } = compiled(heads);
    expect(regions.map((r) => r.name.split(".")[0])).toEqual(["turn", "S0"]);
    const region = take(
      parseRegion(`region r group r anchor S0 inlined () epilogue () {
        input x : f32[2, 5, 32] input w : f32[2, 7, 32] output y : f32[2, 5, 7]
        statement S0 "" {b in 2, i in 5, j in 7, reduce k in 32} {
          y[b, i, j] = reduce<sum, f32, reassociates>(mul(x[b, i, k], w[b, j, k])) } }`),
    );
    const [turned, ...others] = turnedProducts(region, h200);
    expect(others).toEqual([]);
    expect(turned!.copies.map((c) => c.name)).toEqual(["turn.w.o0_2_1"]);
    expect(resultOf([...turned!.copies, turned!.product])).toEqual(resultOf([region]));
  });

  it("give the same integers: problems of a batch, one operand turned, the other, both", () => {
    const region = take(
      parseRegion(`region r group r anchor S0 inlined () epilogue () {
        input x : i8[2, 32, 5] input w : u8[2, 32, 7] output y : i32[2, 5, 7]
        statement S0 "" {b in 2, i in 5, j in 7, reduce k in 32} {
          y[b, i, j] = reduce<sum, i32, exact>(mul(cast<i32>(x[b, k, i]), cast<i32>(w[b, k, j]))) } }`),
    );
    const turned = turnedProducts(region, h200);
    expect(turned.map(({ copies }) => copies.length)).toEqual([1, 1, 2]);
    for (const { product, copies } of turned)
      expect(resultOf([...copies, product])).toEqual(resultOf([region]));
  });

  it("are shared by the products that read them", () => {
    const g = new GraphBuilder("shared");
    const type = { dtype: "i8", shape: sizes.map((n) => constant(n)) } as const;
    const [x, y, w] = ["x", "y", "w"].map((name) => g.input(name, type));
    const labels = { lhs: ["i", "k"], rhs: ["k", "j"], output: ["i", "j"] };
    const products = [x!, y!].map((v) =>
      g.node("contract", [v, w!], { ...labels, accumulator: "i32" }),
    );
    expect(waysOf(compiled(g.finish(products)))).toEqual(["turn", "wgmma", "wgmma"]);
  });

  it("are no weights, and nothing whose axes are not loops", () => {
    const region = (role: string, index: string) =>
      take(
        parseRegion(`region r group r anchor S0 inlined () epilogue () {
          input x : i8[16, 32] ${role} w : i8[32, 24] output y : i32[16, 24]
          statement S0 "" {i in 16, j in 24, reduce k in 32} {
            y[i, j] = reduce<sum, i32, exact>(mul(cast<i32>(x[i, k]), cast<i32>(w[${index}]))) } }`),
      );
    expect(turnedProducts(region("input", "k, j"), h200)).toHaveLength(1);
    expect(turnedProducts(region("weight", "k, j"), h200)).toHaveLength(0);
    expect(turnedProducts(region("input", "31 - k, j"), h200)).toHaveLength(0);
  });

  it("get zeros behind a depth whose lines are no multiple of 16 bytes, where that costs less", () => {
    const waysFor = (equation: string, right: readonly number[], depth = 2051) =>
      waysOf(compiled(graphOf(equation, [2048, depth], right, ["bf16", "bf16"])));
    expect(waysFor("i k, j k -> i j", [2047, 2051])).toEqual(["pad", "pad", "wgmma"]);
    expect(waysFor("i k, k j -> i j", [2051, 2048])).toEqual(["pad", "pad", "wgmma"]);
    expect(waysFor("i k, j k -> i j", [2047, 2048], 2048)).toEqual(["wgmma"]);
    expect(waysFor("i k, j k -> i j", [16, 2051])).not.toContain("pad");
  });

  it.each([
    ["x[b, i, k]", "w[b, j, k]", "[2, 5, 43]", "[2, 7, 43]", ["o0_1_2", "o0_1_2"]],
    ["x[b, k, i]", "w[b, k, j]", "[2, 43, 5]", "[2, 43, 7]", ["o0_2_1", "o0_2_1"]],
    ["x[b, i, k]", "w[k, j]", "[2, 5, 43]", "[43, 8]", ["o0_1_2", "o0_1"]],
  ])("give the same sums: %s by %s", (left, right, x, w, orders) => {
    const columns = w === "[43, 8]" ? 8 : 7;
    const region = take(
      parseRegion(`region r group r anchor S0 inlined () epilogue () {
        input x : f16${x} input w : f16${w} output y : f32[2, 5, ${columns}]
        statement S0 "" {b in 2, i in 5, j in ${columns}, reduce k in 43} {
          y[b, i, j] = reduce<sum, f32, reassociates>(mul(cast<f32>(${left}), cast<f32>(${right}))) } }`),
    );
    const { product, copies } = paddedProduct(region)!;
    const names = orders.map((order, n) => `pad.${"xw"[n]}.${order}.to48`);
    expect(copies.map((c) => c.name)).toEqual(names);
    expect(resultOf([...copies, product])).toEqual(resultOf([region]));
  });
});
