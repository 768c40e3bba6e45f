/** Sequences, optionals and strings: they vanish at import, what is left are tensors. */
import { expect, test } from "vitest";
import { runGraph } from "../../../interp/graph.ts";
import { indicesOf, refTensor, toRef } from "../../../semantics/tensor.ts";
import { growing } from "../growing-loop.test-support.ts";
import type { HostValue } from "../host-value.ts";
import { assembleOutput, isTensor } from "../host-value.ts";
import {
  type GraphSpec,
  type ModelSpec,
  type NodeSpec,
  tensorOf,
  writeModel,
} from "../model-writer.ts";
import { type ImportOptions, importOnnx } from "./import-model.ts";

const x = { name: "x", dtype: "f32", shape: [4] } as const;
const i64 = (...values: number[]) =>
  tensorOf("i64", [values.length], BigInt64Array.from(values.map(BigInt)));
const scalar = (value: number) => tensorOf("i64", [], BigInt64Array.of(BigInt(value)));

function model(
  nodes: readonly NodeSpec[],
  outputs: readonly string[],
  more: Partial<ModelSpec> = {},
) {
  return writeModel({ opset: 20, inputs: [x], outputs, nodes, ...more });
}

function run(bytes: Uint8Array, options: ImportOptions = {}): HostValue[] {
  const imported = importOnnx(bytes, options);
  if (!imported.ok) throw new Error(imported.diagnostics.map((d) => d.message).join());
  const { graph, weights, outputs } = imported.value;
  const given = graph.inputs.map((id) => {
    const [count] = graph.values[id]!.type.shape;
    return refTensor(
      "f32",
      [count!.constant],
      Array.from({ length: count!.constant }, (_, i) => i + 1),
    );
  });
  const results = runGraph(graph, given, weights);
  if (!results.ok) throw new Error("run");
  const tensors = results.value.map((r) => ({ ...r, data: Float64Array.from(r.data, Number) }));
  return outputs.map((form) => assembleOutput(form, tensors));
}

const numbers = (value: HostValue): unknown => {
  if (isTensor(value))
    return value.data instanceof Float64Array ? [...value.data] : [...indicesOf(toRef(value))];
  return value.kind === "sequence" ? value.elements.map(numbers) : value;
};
test("a split, an element of it and the whole as output", () => {
  const nodes: NodeSpec[] = [
    { op: "SplitToSequence", inputs: ["x", "size"], outputs: ["parts"] },
    { op: "SequenceAt", inputs: ["parts", "last"], outputs: ["y"] },
    { op: "SequenceLength", inputs: ["parts"], outputs: ["n"] },
    { op: "ConcatFromSequence", inputs: ["parts"], outputs: ["z"], attributes: { axis: 0n } },
  ];
  const bytes = model(nodes, ["parts", "y", "n", "z"], {
    weights: { size: scalar(3), last: scalar(-1) },
  });
  expect(run(bytes).map(numbers)).toEqual([[[1, 2, 3], [4]], [4], [2], [1, 2, 3, 4]]);
});

test("a loop whose carried tensor grows becomes its copies", () => {
  const nodes: NodeSpec[] = [
    { op: "Loop", inputs: ["trips", "", "x"], outputs: ["y"], attributes: { body: growing } },
  ];
  const found = run(model(nodes, ["y"], { weights: { trips: scalar(2) } }));
  expect(found.map(numbers)).toEqual([[1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4]]);
});

test("a sequence that is an input is told its length and types", () => {
  const nodes: NodeSpec[] = [
    { op: "SequenceInsert", inputs: ["s", "x", "at"], outputs: ["longer"] },
  ];
  const bytes = model(nodes, ["longer"], {
    inputs: [x, { name: "s", dtype: "f32", shape: [] }],
    weights: { at: scalar(0) },
  });
  const part = { kind: "runtime", dtype: "f32", shape: [2] } as const;
  const values = { s: { kind: "sequence", elements: [part] } } as const;
  expect(run(bytes, { values }).map(numbers)).toEqual([
    [
      [1, 2, 3, 4],
      [1, 2],
    ],
  ]);
});

test("an optional is there or not, and a branch follows", () => {
  const branch = (name: string, source: string): GraphSpec => ({
    inputs: [],
    outputs: [name],
    nodes: [{ op: "Identity", inputs: [source], outputs: [name] }],
  });
  const nodes: NodeSpec[] = [
    { op: "OptionalHasElement", inputs: ["o"], outputs: ["has"] },
    {
      op: "If",
      inputs: ["has"],
      outputs: ["y"],
      attributes: { then_branch: branch("t", "o"), else_branch: branch("e", "x") },
    },
  ];
  const bytes = model(nodes, ["y"], { inputs: [x, { name: "o", dtype: "f32", shape: [] }] });
  expect(run(bytes, { values: { o: { kind: "none" } } }).map(numbers)).toEqual([[1, 2, 3, 4]]);
  const given = { kind: "runtime", dtype: "f32", shape: [1] } as const;
  expect(run(bytes, { values: { o: given } }).map(numbers)).toEqual([[1]]);
});

test("an optional input is a tensor that is fed, unless it is told to be none", () => {
  const nodes: NodeSpec[] = [
    { op: "OptionalHasElement", inputs: ["o"], outputs: ["has"] },
    { op: "OptionalGetElement", inputs: ["o"], outputs: ["y"] },
  ];
  const o = { name: "o", dtype: "f32", shape: [3], isOptional: true } as const;
  expect(run(model(nodes, ["has", "y"], { inputs: [o] })).map(numbers)).toEqual([[1], [1, 2, 3]]);
  const asked = model(nodes.slice(0, 1), ["has"], { inputs: [o] });
  expect(run(asked, { values: { o: { kind: "none" } } }).map(numbers)).toEqual([[0]]);
});

test("strings are computed at import", () => {
  const text = (name: string, ...values: string[]): NodeSpec => ({
    op: "Constant",
    inputs: [],
    outputs: [name],
    attributes: { value_strings: values },
  });
  const nodes: NodeSpec[] = [
    text("a", "the", "Cat", "sat"),
    text("b", "!"),
    { op: "StringConcat", inputs: ["a", "b"], outputs: ["c"] },
    { op: "Gather", inputs: ["c", "order"], outputs: ["d"] },
    { op: "Equal", inputs: ["a", "d"], outputs: ["same"] },
    {
      op: "StringNormalizer",
      inputs: ["a"],
      outputs: ["n"],
      attributes: { case_change_action: "UPPER", stopwords: ["THE"] },
    },
    { op: "StringSplit", inputs: ["a"], outputs: ["s", "counts"], attributes: { delimiter: "a" } },
    { op: "RegexFullMatch", inputs: ["a"], outputs: ["r"], attributes: { pattern: "[a-z]+" } },
  ];
  const bytes = model(nodes, ["d", "same", "n", "s", "counts", "r"], {
    weights: { order: i64(2, 0, 1) },
  });
  const [d, same, n, s, counts, r] = run(bytes);
  expect(d).toEqual({ kind: "strings", shape: [3], elements: ["sat!", "the!", "Cat!"] });
  expect(n).toEqual({ kind: "strings", shape: [2], elements: ["CAT", "SAT"] });
  expect(s).toEqual({ kind: "strings", shape: [3, 2], elements: ["the", "", "C", "t", "s", "t"] });
  expect([same, counts, r].map((v) => numbers(v!))).toEqual([
    [0, 0, 0],
    [1, 2, 2],
    [1, 0, 1],
  ]);
});

test("what a small file may make of texts is bounded", () => {
  const text = (name: string, ...values: string[]): NodeSpec => ({
    op: "Constant",
    inputs: [],
    outputs: [name],
    attributes: { value_strings: values },
  });
  const doubled = Array.from(
    { length: 40 },
    (_, i): NodeSpec => ({
      op: "StringConcat",
      inputs: [`a${i}`, `a${i}`],
      outputs: [`a${i + 1}`],
    }),
  );
  const wide: NodeSpec[] = [
    text("a", "x ".repeat(3000), ...Array<string>(999).fill("x")),
    { op: "StringSplit", inputs: ["a"], outputs: ["y", "counts"], attributes: { delimiter: " " } },
  ];
  const slow: NodeSpec[] = [
    text("a", "a".repeat(50_000)),
    {
      op: "RegexFullMatch",
      inputs: ["a"],
      outputs: ["y"],
      attributes: { pattern: "((a{1,99}){1,99})*" },
    },
  ];
  for (const bytes of [
    model([text("a0", "abcdefgh"), ...doubled], ["a40"]),
    model(wide, ["y"]),
    model(slow, ["y"]),
  ]) {
    const found = importOnnx(bytes);
    expect(found.ok ? [] : found.diagnostics.map((d) => d.code)).toEqual(["ONX009"]);
  }
});

test.each([0, -3])("parts of size %i are refused", (size) => {
  const nodes: NodeSpec[] = [{ op: "SplitToSequence", inputs: ["x", "size"], outputs: ["y"] }];
  const found = importOnnx(model(nodes, ["y"], { weights: { size: scalar(size) } }));
  expect(found.ok ? [] : found.diagnostics.map((d) => d.code)).toEqual(["ONX009"]);
});

// ONNX, SplitToSequence: "keepdims" is ignored where "split" is given, be it a size or a list of them.
test.each([
  ["a size", scalar(1), [1]],
  ["a list", i64(1, 1, 1, 1), [1]],
  ["nothing", undefined, []],
] as const)("keepdims 0, split by %s", (_how, split, shape) => {
  const inputs = ["x", ...(split ? ["split"] : [])];
  const nodes: NodeSpec[] = [
    { op: "SplitToSequence", inputs, outputs: ["s"], attributes: { keepdims: 0n } },
    { op: "SequenceAt", inputs: ["s", "at"], outputs: ["y"] },
  ];
  const weights = { at: scalar(2), ...(split && { split }) };
  const [y] = run(model(nodes, ["y"], { weights }));
  expect(isTensor(y!) && y.shape).toEqual(shape);
});

test("what cannot be decided at import is refused", () => {
  const at: NodeSpec[] = [
    { op: "SequenceConstruct", inputs: ["x", "x"], outputs: ["s"] },
    { op: "ArgMax", inputs: ["x"], outputs: ["p"], attributes: { axis: 0n, keepdims: 0n } },
    { op: "SequenceAt", inputs: ["s", "p"], outputs: ["y"] },
  ];
  const found = importOnnx(model(at, ["y"]));
  expect(found.ok ? [] : found.diagnostics.map((d) => d.code)).toEqual(["ONX013"]);
  const relu = importOnnx(
    model(
      [
        { op: "SequenceConstruct", inputs: ["x"], outputs: ["s"] },
        { op: "Relu", inputs: ["s"], outputs: ["y"] },
      ],
      ["y"],
    ),
  );
  expect(relu.ok ? [] : relu.diagnostics.map((d) => d.code)).toEqual(["ONX009"]);
});
