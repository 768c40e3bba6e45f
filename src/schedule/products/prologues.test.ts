import { describe, expect, it } from "vitest";
import { interpretProgram } from "../../../campaign/interpreted-instance.ts";
import { type CompiledModel, compileModel } from "../../compile.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import type { ValueId, WeightStore } from "../../graph/graph.ts";
import { weightReader } from "../../graph/prepare.ts";
import { tensorType } from "../../graph/tensor-type.ts";
import { noWeights, runGraph } from "../../interp/graph.ts";
import { ModelSession } from "../../runtime/model-session.ts";
import type { DType } from "../../semantics/dtype.ts";
import { fromRef, randomRef, type Tensor, toRef } from "../../semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { Rng } from "../../support/rng.ts";
import { targets } from "../../target/index.ts";

const target = targets.get("h200")!;

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

/** Random elements by name, made when they are asked for. */
function randomWeights(
  types: Readonly<Record<string, readonly [DType, ...number[]]>>,
): WeightStore {
  const rng = new Rng(7);
  const known = new Map<string, Tensor>();
  return {
    read: (key) => {
      const [dtype, ...shape] = types[key]!;
      const tensor = known.get(key) ?? fromRef(randomRef(dtype, shape, rng));
      known.set(key, tensor);
      return tensor;
    },
  };
}

type Size = readonly [m: number, n: number, k: number];

/** Data by weights of bytes with a scale for each column. */
function byteWeights([m, n, k]: Size, { code = "i8", to = "bf16", blockSize = 0 } = {}) {
  const g = new GraphBuilder("product");
  const dtype = to as DType;
  const places = blockSize > 0 ? [k / blockSize, n] : [n];
  const types = { w: [code as DType, k, n], s: [dtype, ...places] } as const;
  const x = g.input("x", tensorType(dtype, m, k));
  const w = g.weight("w", tensorType(...(types.w as [DType, number, number])));
  const s = g.weight("s", tensorType(dtype, ...places));
  const how = blockSize > 0 ? { axis: 0, blockSize } : { axis: 1 };
  const right = g.node("dequantize", [w, s], { ...how, to: dtype });
  const graph = g.finish([g.cast(g.einsum("i k, k j -> i j", x, right, "f32"), dtype)]);
  return { graph, weights: randomWeights(types) };
}

const compiled = (model: Parameters<typeof compileModel>[0]): CompiledModel =>
  take(compileModel(model, { target }));

const weightTypes = ({ model: { graph } }: CompiledModel): readonly string[] =>
  graph.weights.map((w) => graph.values[w.value]!.type.dtype);

const directives = ({ regions }: CompiledModel): readonly string[] =>
  regions.map(({ scheduled }) => {
    const [product] = scheduled.products;
    return product ? product.directive.by : scheduled.rows ? "rows" : "loops";
  });

describe("what operands are made of, by price", () => {
  it("one row reads weights of bytes as they are stored", () => {
    const made = compiled(byteWeights([1, 2048, 2048]));
    expect(weightTypes(made)).toContain("i8");
    expect(made.regions.flatMap((r) => r.origins).join()).toContain("dequantize");
  });

  it("many rows read what was dequantised before they ran", () => {
    const model = byteWeights([2048, 1024, 1024]);
    const made = compiled(model);
    expect(weightTypes(made)).not.toContain("i8");
    expect(directives(made)).toEqual(["wgmma"]);
    const { weights, values } = made.model.graph;
    const matrix = weights.map((w) => values[w.value]!).find((v) => v.type.shape.length === 2)!;
    const { dtype, shape, data } = weightReader(made.model)(matrix.name);
    expect([dtype, ...shape]).toEqual(["bf16", 1024, 1024]);
    const [codes] = [toRef(model.weights.read("w")).data];
    expect(toRef({ dtype, shape, data }).data.slice(0, 64)).toEqual(codes.slice(0, 64));
  });

  it("relu of many rows stays a kernel in front of warpgroups", () => {
    const g = new GraphBuilder("product");
    const type = tensorType("bf16", 4096, 4096);
    const [x, w] = [g.input("x", type), g.input("w", type)];
    const product = g.einsum("i k, j k -> i j", g.apply("relu", x), w, "f32");
    const graph = g.finish([g.cast(product, "bf16")]);
    expect(directives(compiled({ graph, weights: noWeights }))).toEqual(["loops", "wgmma"]);
  });

  it("a map that does not leave zero, and one that an output is too, stay kernels", () => {
    const product = (map: (g: GraphBuilder, x: ValueId) => ValueId, isOutput = false) => {
      const g = new GraphBuilder("product");
      const [data, w] = ["x", "w"].map((name) => g.input(name, tensorType("bf16", 48, 48)));
      const x = map(g, data!);
      const sums = g.einsum("i k, j k -> i j", x, w!, "f32");
      return compiled({
        graph: g.finish([g.cast(sums, "bf16"), ...(isOutput ? [x] : [])]),
        weights: noWeights,
      }).regions.length;
    };
    expect(product((g, x) => g.apply("relu", x))).toBe(1);
    expect(product((g, x) => g.apply("exp", x))).toBe(2);
    expect(product((g, x) => g.apply("relu", x), true)).toBe(2);
  });
});

/** The compiled program, run thread by thread, against the oracle: the largest difference over the largest result. */
function difference(model: ReturnType<typeof byteWeights>): number {
  const made = compiled(model);
  const { dtype, shape } = model.graph.values[model.graph.inputs[0]!]!.type;
  const extents = shape.map((e) => e.constant);
  const input = randomRef(dtype, extents, new Rng(5));
  const [want] = take(runGraph(model.graph, [input], model.weights));
  const { program } = made.plan;
  const options = { weight: weightReader(made.model) };
  const session = new ModelSession(program, interpretProgram(program, 2), options);
  const results = take(session.run({ x: fromRef(input) }));
  const found = toRef(results[made.nests.outputs[0]!]!);
  const numbers = Array.from(want!.data, Number);
  const off = numbers.map((x, i) => Math.abs(x - Number(found.data[i])));
  return Math.max(...off) / Math.max(...numbers.map(Math.abs));
}

describe("products with weights as they are stored", () => {
  it("of several rows", () => {
    expect(difference(byteWeights([17, 16, 32]))).toBeLessThan(2 ** -7);
  });

  it("of one row: bytes, packed 4 bits in blocks, in f32 and bf16", () => {
    expect(difference(byteWeights([1, 40, 96]))).toBeLessThan(2 ** -7);
    expect(difference(byteWeights([1, 40, 96], { to: "f32", code: "u8" }))).toBeLessThan(2 ** -18);
    expect(difference(byteWeights([1, 32, 128], { code: "u4", blockSize: 32 }))).toBeLessThan(
      2 ** -7,
    );
  });
});
