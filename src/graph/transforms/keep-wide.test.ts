/** Targets whose conversions are dear keep every half wide, weights too: the same values, no conversion inside. */
import { describe, expect, it } from "vitest";
import { runGraph } from "../../interp/graph.ts";
import type { DType } from "../../semantics/dtype.ts";
import { constant } from "../../semantics/index-expr.ts";
import { fromRef, numbersOf, refTensor, type Tensor, toRef } from "../../semantics/tensor.ts";
import { Rng } from "../../support/rng.ts";
import { GraphBuilder } from "../builder.ts";
import type { Model } from "../graph.ts";
import { keepWide } from "./keep-wide.ts";

const [rows, depth, columns] = [3, 40, 70];

/** gelu-like: a product of halves by a stored weight, a constant of few elements, a cast in between. */
function model(dtype: DType, weightRows = depth): Model {
  const rng = new Rng(3);
  const draw = (count: number) => Array.from({ length: count }, () => rng.normal());
  const g = new GraphBuilder("halves");
  const shape = (dims: readonly number[]) => dims.map((d) => constant(d));
  const x = g.input("x", { dtype, shape: shape([rows, weightRows]) });
  const w = g.weight("w", { dtype, shape: shape([weightRows, columns]) }, "stored");
  const bias = g.constant(fromRef(refTensor(dtype, [columns], draw(columns))), "bias");
  const sum = g.add(g.cast(g.matMul(x, w, "f32"), dtype), bias);
  const y = g.mul(g.apply("tanh", sum), g.cast(g.cast(sum, "f32"), dtype));
  const graph = g.finish([y]);
  const stored = fromRef(refTensor(dtype, [depth, columns], draw(depth * columns)));
  return {
    graph,
    weights: { read: (key) => (key === "stored" ? stored : g.storedConstants.get(key)!) },
  };
}

describe.each(["f16", "bf16"] as const)("values of %s kept wide everywhere", (dtype) => {
  const { model: wide, isChanged, wide: left } = keepWide(model(dtype), { everywhere: true });
  const { values, inputs, outputs, weights } = wide.graph;

  it("leave inputs and outputs as they are, and nothing else", () => {
    expect(isChanged).toBe(true);
    expect(left).toEqual([]);
    const halves = values.flatMap((v, id) => (v.type.dtype === dtype ? [id] : []));
    expect(halves).toEqual([...inputs, ...outputs]);
    expect(weights.map((w) => values[w.value]!.type.dtype)).toEqual(weights.map(() => "f32"));
  });

  it("compute what the model computes, but for roundings on the way", () => {
    const rng = new Rng(8);
    const x = refTensor(
      dtype,
      [rows, depth],
      Array.from({ length: rows * depth }, () => rng.normal()),
    );
    const run = ({ graph, weights: store }: Model): Float64Array => {
      const found = runGraph(graph, [x], store);
      if (!found.ok) throw new Error(found.diagnostics[0]!.message);
      return numbersOf(found.value[0]!);
    };
    const [wanted, found] = [run(model(dtype)), run(wide)];
    const unit = dtype === "f16" ? 2 ** -11 : 2 ** -8;
    for (const [i, value] of found.entries()) {
      expect(Math.abs(value - wanted[i]!)).toBeLessThanOrEqual(
        4 * unit * (1 + Math.abs(wanted[i]!)),
      );
    }
  });

  it("have weights that are read wide, element for element", () => {
    const source = weights.map((w) => w.source).find((s) => s.kind === "stored")!;
    const tensor: Tensor = wide.weights.read(source.kind === "stored" ? source.key : "");
    expect(tensor.dtype).toBe("f32");
    expect(numbersOf(toRef(tensor))).toEqual(numbersOf(toRef(model(dtype).weights.read("stored"))));
  });

  it("stay narrow where the weights would fill the memory", () => {
    const { graph } = keepWide(model(dtype, 2 ** 24), { everywhere: true }).model;
    const sources = graph.weights.map((w) => (w.source.kind === "stored" ? w.source.key : ""));
    expect(sources).toContain("stored");
  });
});
