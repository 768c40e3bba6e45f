import { expect, it } from "vitest";
import { compileModel } from "../../compile.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import type { ValueId, WeightStore } from "../../graph/graph.ts";
import { tensorType } from "../../graph/tensor-type.ts";
import { constantValue } from "../../semantics/index-expr.ts";
import { targets } from "../../target/index.ts";

it("what a norm leaves for a convolution with the channels last is no value of the norm's own", () => {
  const g = new GraphBuilder("norm before a convolution");
  const x = g.input("x", tensorType("f32", 1, 80, 120));
  const [scale, bias] = ["scale", "bias"].map((name) => g.input(name, tensorType("f32", 120)));
  const types = [tensorType("f32", 480, 120, 1, 1), tensorType("f32", 60, 480, 1, 3)];
  const [near, wide] = types.map((type, i) => g.weight(`w${i}`, type));
  const norm = g.node("layerNorm", [x, scale!, bias!], { axis: 2, epsilon: 1e-5 });
  const map = g.transpose(g.reshape(norm, [1, 1, 80, 120]), [0, 3, 1, 2]);
  const convolve = (value: ValueId, by: ValueId, pad: number): ValueId => {
    const edges = { padLow: [0, pad], padHigh: [0, pad] };
    const attrs = { strides: [1, 1], dilations: [1, 1], ...edges, groups: 1 };
    return g.node("convolution", [value, by], attrs);
  };
  const graph = g.finish([convolve(g.node("sigmoid", [convolve(map, near!, 0)], {}), wide!, 1)]);
  const weights: WeightStore = {
    read: (name) => {
      const { shape: extents } = types[Number(name.slice(1))]!;
      const shape = extents.map((e) => constantValue(e)!);
      return { dtype: "f32", shape, data: new Float32Array(shape.reduce((m, n) => m * n, 1)) };
    },
  };
  const compiled = compileModel({ graph, weights }, { target: targets.get("h200")! });
  const names = compiled.ok
    ? compiled.value.regions.map((r) => [...r.scheduled.region.tensors.keys()])
    : [];
  expect(compiled).toMatchObject({ ok: true });
  // Otherwise the choice went another way, and nothing is tested.
  expect(names.filter((all) => all.some((name) => name.endsWith(".last"))).length).toBeGreaterThan(
    1,
  );
});
