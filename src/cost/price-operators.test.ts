/** Prices of operators by themselves: by node and by call alike, composites as one. */
import { expect, it } from "vitest";
import { GraphBuilder } from "../graph/builder.ts";
import { rangesOf } from "../graph/counts.ts";
import type { Graph, NodeOf, OpKind } from "../graph/graph.ts";
import { tensorType } from "../graph/tensor-type.ts";
import { expandComposites } from "../graph/transforms/expand-composites.ts";
import { targets } from "../target/index.ts";
import { OperatorPricer } from "./price-operators.ts";

const pricer = () => new OperatorPricer(targets.get("wasm")!);

function layer(): Graph {
  const b = new GraphBuilder("layer");
  const x = b.input("x", tensorType("f32", 64, 256));
  const w = b.weight("w", tensorType("f32", 256, 256));
  const normed = b.node("softmax", [b.matMul(x, w)], { axis: 1 });
  return b.finish([b.reshape(b.node("silu", [normed], {}), [256, 64])]);
}

it("says of a node what it says of its call, and of a graph the sum", () => {
  const graph = layer();
  const own = pricer();
  const ranges = rangesOf(graph);
  const byCall = graph.nodes.map((node) => {
    const { op, attrs, inputs, outputs } = node as NodeOf<OpKind>;
    const type = (id: number) => graph.values[id]!.type;
    return own.op({ op, attrs, inputs: inputs.map(type), output: type(outputs[0]!) }, ranges);
  });
  const named = own.regions(graph);
  expect(named.ok && named.value.map((name) => own.region(name))).toEqual(byCall);
  expect(own.totalNs(graph)).toBeCloseTo(byCall.reduce((a, b) => a + b, 0));
});

it("prices a composite below the operators of its definition", () => {
  const graph = layer();
  const own = pricer();
  expect(own.totalNs(graph)).toBeLessThan(own.totalNs(expandComposites(graph).graph));
});

it("prices a branch that data decide as a call and the cheapest of its bodies", () => {
  const type = tensorType("f32", 64, 256);
  const branch = (ops: number): Graph => {
    const b = new GraphBuilder("branch");
    let x = b.input("x", type);
    for (let i = 0; i < ops; i++) x = b.apply("exp", x);
    return b.finish([x]);
  };
  const b = new GraphBuilder("either");
  const condition = b.input("condition", tensorType("bool"));
  const x = b.input("x", type);
  const y = b.node("if", [condition, x], { then: branch(5), else: branch(2) });
  const own = pricer();
  const call = own.totalNs(b.finish([y])) - own.totalNs(branch(2));
  expect(call).toBeGreaterThan(0);
  expect(call).toBeLessThan(own.totalNs(branch(1)));
});
