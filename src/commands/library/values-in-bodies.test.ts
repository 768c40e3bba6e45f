/**
 * Values that decide what a model is where they stand in functions and bodies of control flow: they are
 * known one after another in a body that joins the graph, as a branch that is taken or as its copies.
 */
import { afterAll, describe, expect, it } from "vitest";
import {
  type GraphSpec,
  type ModelSpec,
  type NodeSpec,
  writeModel,
} from "../../frontend/onnx/model-writer.ts";
import { load } from "./load.ts";
import type { LoadedModel } from "./loaded-model.ts";
import { tensor } from "./tensor.ts";

const open: LoadedModel[] = [];
afterAll(async () => {
  for (const model of open) await model.dispose();
});

const weights = {
  zero: tensor("f32", [], [0]),
  one: tensor("f32", [], [1]),
  axis: tensor("i64", [1], [0n]),
  yes: tensor("bool", [], Uint8Array.of(1)),
  most: tensor("i64", [], [2n ** 62n]),
};

/** `to` is 0 + 1 + … below `from`, by a Range whose extent nobody knows before a run. */
const sumBelow = (from: string, to: string): readonly NodeSpec[] => [
  { op: "Range", inputs: ["zero", from, "one"], outputs: [`${to}_steps`] },
  { op: "ReduceSum", inputs: [`${to}_steps`], outputs: [to], attributes: { keepdims: 0n } },
];
const below = (n: number): number => (n * (n - 1)) / 2;

async function loaded(spec: Omit<ModelSpec, "opset" | "weights">): Promise<LoadedModel> {
  const model = await load(writeModel({ opset: 18, weights, ...spec }), { threads: 1 });
  open.push(model);
  return model;
}

const scalar = (value: number) => tensor("f32", [], Float32Array.of(value));
const vector = (...values: number[]) => tensor("f32", [values.length], values);
const numbers = (t: { readonly data: unknown } | undefined) => Array.from(t!.data as Float32Array);

const x = { name: "x", dtype: "f32", shape: [] } as const;
const xs = { name: "xs", dtype: "f32", shape: ["N"] } as const;

describe("a value that decides what the model is", () => {
  it("is known in a function, each of its calls with its own", async () => {
    const model = await loaded({
      inputs: [x],
      outputs: ["b"],
      domains: { own: 1 },
      functions: [
        {
          domain: "own",
          name: "SumBelow",
          inputs: ["zero", "n", "one"],
          outputs: ["t"],
          nodes: [{ op: "Add", inputs: ["n", "one"], outputs: ["m"] }, ...sumBelow("m", "t")],
        },
      ],
      nodes: [
        { op: "SumBelow", domain: "own", inputs: ["zero", "x", "one"], outputs: ["a"] },
        { op: "SumBelow", domain: "own", inputs: ["zero", "a", "one"], outputs: ["b"] },
      ],
    });
    for (const n of [2, 4, 2]) {
      expect(numbers(model.run({ x: scalar(n) }).b)).toEqual([below(below(n + 1) + 1)]);
    }
  });

  it("is known in the branch that is taken", async () => {
    const branch = (nodes: readonly NodeSpec[]): GraphSpec => ({
      inputs: [],
      outputs: ["r"],
      nodes,
    });
    const model = await loaded({
      inputs: [x],
      outputs: ["y"],
      nodes: [
        { op: "Greater", inputs: ["x", "one"], outputs: ["many"] },
        { op: "Mul", inputs: ["x", "x"], outputs: ["square"] },
        {
          op: "If",
          inputs: ["many"],
          outputs: ["y"],
          attributes: {
            then_branch: branch([
              { op: "Add", inputs: ["square", "one"], outputs: ["n"] },
              ...sumBelow("n", "r"),
            ]),
            else_branch: branch([{ op: "Neg", inputs: ["x"], outputs: ["r"] }]),
          },
        },
      ],
    });
    for (const n of [3, -4, 2]) {
      expect(numbers(model.run({ x: scalar(n) }).y)).toEqual([n > 1 ? below(n * n + 1) : -n]);
    }
  });

  it("is known in each trip of a loop, whose end it decides", async () => {
    const body: GraphSpec = {
      inputs: [
        { name: "trip", dtype: "i64", shape: [] },
        { name: "before", dtype: "bool", shape: [] },
        { name: "n", dtype: "f32", shape: [] },
      ],
      outputs: ["more", "next", "t"],
      nodes: [
        ...sumBelow("n", "t"),
        { op: "Sub", inputs: ["n", "one"], outputs: ["next"] },
        { op: "Greater", inputs: ["next", "one"], outputs: ["more"] },
      ],
    };
    const model = await loaded({
      inputs: [x],
      outputs: ["last", "sums"],
      nodes: [
        {
          op: "Loop",
          inputs: ["most", "yes", "x"],
          outputs: ["last", "sums"],
          attributes: { body },
        },
      ],
    });
    for (const n of [4, 2]) {
      const { last, sums } = model.run({ x: scalar(n) });
      const each = Array.from({ length: n - 1 }, (_, i) => below(n - i));
      expect([numbers(last), numbers(sums)]).toEqual([[1], each]);
    }
  });

  it("is known in each trip of a loop whose number of trips is computed", async () => {
    const body: GraphSpec = {
      inputs: [
        { name: "trip", dtype: "i64", shape: [] },
        { name: "before", dtype: "bool", shape: [] },
        { name: "n", dtype: "f32", shape: [] },
      ],
      outputs: ["same", "next"],
      nodes: [
        { op: "Identity", inputs: ["before"], outputs: ["same"] },
        { op: "Add", inputs: ["n", "one"], outputs: ["m"] },
        ...sumBelow("m", "next"),
      ],
    };
    const model = await loaded({
      inputs: [x, { ...x, name: "trips" }],
      outputs: ["last"],
      nodes: [
        { op: "Cast", inputs: ["trips"], outputs: ["count"], attributes: { to: 7n } },
        { op: "Loop", inputs: ["count", "", "x"], outputs: ["last"], attributes: { body } },
      ],
    });
    for (const trips of [3, 0, 1]) {
      let expected = 2;
      for (let i = 0; i < trips; i++) expected = below(expected + 1);
      const { last } = model.run({ x: scalar(2), trips: scalar(trips) });
      expect(numbers(last)).toEqual([expected]);
    }
  });

  it.each([0n, 1n])("is known for each element of a scan in direction %i", async (direction) => {
    const body: GraphSpec = {
      inputs: [x, { ...x, name: "e" }],
      outputs: ["total", "t"],
      nodes: [...sumBelow("e", "t"), { op: "Sub", inputs: ["t", "x"], outputs: ["total"] }],
    };
    const attributes = {
      body,
      num_scan_inputs: 1n,
      scan_input_directions: [direction],
      scan_output_directions: [direction],
    };
    const model = await loaded({
      inputs: [xs],
      outputs: ["total", "sums"],
      nodes: [{ op: "Scan", inputs: ["zero", "xs"], outputs: ["total", "sums"], attributes }],
    });
    for (const given of [[3, 1, 4], [5]]) {
      const { total, sums } = model.run({ xs: vector(...given) });
      const ordered = direction === 1n ? given.toReversed() : given;
      expect(numbers(sums)).toEqual(given.map(below));
      expect(numbers(total)).toEqual([ordered.reduce((s, e) => below(e) - s, 0)]);
    }
  });
});
