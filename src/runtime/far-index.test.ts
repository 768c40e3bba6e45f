/** Indices that no tensor has, of 64 bits: each is judged whole and told as it stands in the feed. */
import { describe, expect, it } from "vitest";
import { load } from "../commands/library/load.ts";
import { openModel } from "../commands/library/open-model.ts";
import { tensor } from "../commands/library/tensor.ts";
import { emitPtx } from "../emit/ptx/emit-program.ts";
import { importOnnx } from "../frontend/onnx/import/import-model.ts";
import { type NodeSpec, type ValueSpec, writeModel } from "../frontend/onnx/model-writer.ts";
import { runGraph } from "../interp/graph.ts";
import { type Tensor, toRef } from "../semantics/tensor.ts";
import { targets } from "../target/index.ts";
import { runnableTargets } from "./create-session.ts";

const far = [
  2n ** 32n,
  2n ** 32n + 1n,
  -(2n ** 32n),
  1n - 2n ** 32n,
  2n ** 62n,
  2n ** 63n - 1n,
  -(2n ** 63n),
  7n,
  -5n,
];

/** Operators that read an index of data: of x [4] or [4, 2], at i. */
const readers: Readonly<Record<string, { node: NodeSpec; x: number[]; i: number[] }>> = {
  Gather: { node: op("Gather", { axis: 0n }), x: [4], i: [1] },
  GatherElements: { node: op("GatherElements", { axis: 0n }), x: [4], i: [2] },
  GatherND: { node: op("GatherND"), x: [4, 2], i: [1, 1] },
  ScatterElements: { node: op("ScatterElements", { axis: 0n }, true), x: [4], i: [1] },
  ScatterND: { node: op("ScatterND", {}, true), x: [4], i: [1, 1] },
};

function op(name: string, attributes: NodeSpec["attributes"] = {}, updates = false): NodeSpec {
  const inputs = ["x", "i", ...(updates ? ["u"] : [])];
  return { op: name, inputs, outputs: ["y"], attributes };
}

function modelOf({ node, x, i }: (typeof readers)[string], indexType: "i64" | "i32" = "i64") {
  const inputs: ValueSpec[] = [
    { name: "x", dtype: "f32", shape: x },
    { name: "i", dtype: indexType, shape: i },
    ...(node.inputs.includes("u") ? [{ name: "u", dtype: "f32", shape: [1] } as const] : []),
  ];
  return writeModel({ opset: 18, inputs, outputs: ["y"], nodes: [node] });
}

function feedsOf({ node, x, i }: (typeof readers)[string], index: bigint) {
  const count = (shape: readonly number[]) => shape.reduce((a, b) => a * b, 1);
  const data = new BigInt64Array(count(i));
  data[data.length - 1] = index;
  const feeds: Record<string, Tensor> = {
    x: tensor(
      "f32",
      x,
      Float32Array.from({ length: count(x) }, (_, n) => n),
    ),
    i: tensor("i64", i, data),
  };
  if (node.inputs.includes("u")) feeds.u = tensor("f32", [1], Float32Array.of(9));
  return feeds;
}

/** Named machines have the code of a general target. */
const here = runnableTargets().names.filter((name) => !targets.get(name)!.machine);

describe.each(here)("on %s", (target) => {
  it.each(Object.keys(readers))("%s tells a bad index as it is", async (name) => {
    const reader = readers[name]!;
    await using model = await load(modelOf(reader), { threads: 1, target });
    for (const index of far)
      expect(() => model.run(feedsOf(reader, index)), `${index}`).toThrow(
        `index ${index} is out of range`,
      );
    for (const index of [-4n, -1n, 0n, 3n])
      expect(() => model.run(feedsOf(reader, index)), `${index}`).not.toThrow();
  });
});

it.each(Object.keys(readers))("the oracle refuses a bad index of %s", (name) => {
  const reader = readers[name]!;
  const imported = importOnnx(modelOf(reader));
  if (!imported.ok) throw new Error("not imported");
  for (const index of far) {
    const inputs = Object.values(feedsOf(reader, index)).map(toRef);
    const found = runGraph(imported.value.graph, inputs, imported.value.weights);
    expect(found.ok, `${index}`).toBe(false);
  }
});

it("a GPU compares and keeps all 64 bits", () => {
  const target = targets.get("h200")!;
  const opened = openModel(
    { bytes: modelOf(readers.Gather!) },
    { target: target.name, seed: 0, shapes: {} },
  );
  if (!opened.ok || target.machine?.kind !== "gpu") throw new Error("no program");
  const emitted = emitPtx(opened.value.start.program, target.machine.architecture, target.blocks);
  const text = emitted.ok ? emitted.value.text : "";
  expect(text).toMatch(/ld\.global\S*\.[bus]64/);
  expect(text).toMatch(/setp\.ge\.u64/);
  expect(text).toMatch(/st\.global\.b64 \[\S+\+8\]/);
});
