import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Graph } from "../../../graph/graph.ts";
import { printType } from "../../../graph/tensor-type.ts";
import type { DType } from "../../../semantics/dtype.ts";
import { fromRef, refTensor, type Tensor, tensorBytes } from "../../../semantics/tensor.ts";
import { diagnostic, fail, ok, type Result } from "../../../support/diagnostic.ts";
import { growing } from "../growing-loop.test-support.ts";
import { readModelFile } from "../model-file.ts";
import { type ModelSpec, type NodeSpec, type ValueSpec, writeModel } from "../model-writer.ts";
import { writeExternalTensorProto } from "../tensor-proto.ts";
import { type ImportedModel, type ImportOptions, importModel, importOnnx } from "./import-model.ts";
import { parseShapeOverride } from "./shape-override.ts";

function constant(dtype: DType, shape: readonly number[], values: readonly number[]): Tensor {
  return fromRef(refTensor(dtype, shape, values));
}

const i64 = (...values: readonly number[]) => constant("i64", [values.length], values);

function value(name: string, ...shape: ValueSpec["shape"]): ValueSpec {
  return { name, dtype: "f32", shape };
}

/** A model of nodes over f32 inputs; the last node's first output is the output. */
function model(
  inputs: readonly ValueSpec[],
  nodes: readonly NodeSpec[],
  extra: Partial<ModelSpec> = {},
): Uint8Array {
  return writeModel({
    name: "test",
    opset: 18,
    inputs,
    outputs: [nodes.at(-1)?.outputs[0] ?? inputs[0]!.name],
    nodes,
    ...extra,
  });
}

/** One node a line; attributes as JSON with dimensions by their text. */
function lines(graph: Graph): string[] {
  const name = (id: number) => graph.values[id]!.name;
  return graph.nodes.map((node) => {
    const outputs = node.outputs.map((id) => `${name(id)}: ${printType(graph.values[id]!.type)}`);
    const attrs = JSON.stringify(node.attrs, (_k, v) =>
      typeof v === "object" && v !== null && "terms" in v ? (v as { key: string }).key : v,
    );
    const inputs = node.inputs.map(name).join(" ");
    const body = attrs === "{}" ? `${node.op} ${inputs}` : `${node.op} ${inputs} ${attrs}`;
    return `${outputs.join(", ")} = ${body}`;
  });
}

function imported(bytes: Uint8Array, options: ImportOptions = {}): ImportedModel {
  const result = importOnnx(bytes, options);
  if (!result.ok) throw new Error(result.diagnostics.map((d) => d.message).join("\n"));
  return result.value;
}

function codes(result: Result<unknown>): readonly string[] {
  return result.ok ? [] : result.diagnostics.map((d) => d.code);
}

describe("importOnnx", () => {
  it("makes symbols of dynamic dimensions and names the unnamed ones", () => {
    const bytes = model(
      [value("x", "N", 3, null), value("y", 1, "a-b")],
      [{ op: "Relu", inputs: ["x"], outputs: ["z"] }],
    );
    const { graph, inputNames, outputNames } = imported(bytes);
    expect(graph.symbols.map((s) => s.name)).toEqual(["N", "x_dim2", "a_b"]);
    expect(lines(graph)).toEqual(["z: f32[N, 3, x_dim2] = relu x"]);
    expect([inputNames, outputNames]).toEqual([["x", "y"], ["z"]]);
  });

  it("applies values, ranges and expressions to dimensions", () => {
    const bytes = model(
      [value("x", "N", "H", "W")],
      [{ op: "Relu", inputs: ["x"], outputs: ["z"] }],
    );
    const parse = (text: string) => {
      const parsed = parseShapeOverride(text);
      if (!parsed.ok) throw new Error(text);
      return parsed.value;
    };
    const shapes = { N: parse("2"), H: parse("32*h"), h: parse("1..30"), W: parse("8..16") };
    const { graph } = imported(bytes, { shapes });
    expect(lines(graph)).toEqual(["z: f32[2, 32*h, W] = relu x"]);
    expect(graph.symbols).toEqual([
      { name: "h", min: 1, max: 30 },
      { name: "W", min: 8, max: 16 },
    ]);
    const fixed = imported(bytes, { shapes: { ...shapes, h: 3 } }).graph;
    expect(fixed.symbols[0]).toEqual({ name: "h", min: 3, max: 3 });
  });

  it("evaluates shape arithmetic, so that it vanishes from the graph", () => {
    // Reshape(x, [shape[0], 4, floor(shape[1] * 0.5) / 2]) through Gather, floats, Concat.
    const nodes: NodeSpec[] = [
      { op: "Shape", inputs: ["x"], outputs: ["s"] },
      { op: "Gather", inputs: ["s", "one"], outputs: ["w"] },
      { op: "Cast", inputs: ["w"], outputs: ["wf"], attributes: { to: 1n } },
      { op: "Mul", inputs: ["wf", "half"], outputs: ["wh"] },
      { op: "Floor", inputs: ["wh"], outputs: ["wfl"] },
      { op: "Cast", inputs: ["wfl"], outputs: ["wi"], attributes: { to: 7n } },
      { op: "Div", inputs: ["wi", "two"], outputs: ["q"] },
      { op: "Slice", inputs: ["s", "zero1", "one1"], outputs: ["n"] },
      { op: "Unsqueeze", inputs: ["q", "zero1"], outputs: ["q1"] },
      { op: "Concat", inputs: ["n", "four1", "q1"], outputs: ["target"], attributes: { axis: 0n } },
      { op: "Reshape", inputs: ["x", "target"], outputs: ["y"] },
    ];
    const weights = {
      one: constant("i64", [], [1]),
      two: constant("i64", [], [2]),
      half: constant("f32", [], [0.5]),
      zero1: i64(0),
      one1: i64(1),
      four1: i64(4),
    };
    const { graph } = imported(model([value("x", "N", "W")], nodes, { weights }));
    expect(lines(graph)).toEqual([
      'y: f32[N, 4, floorDiv(W, 4)] = reshape x {"shape":["N","4","floorDiv(W, 4)"]}',
    ]);
    expect(graph.constraints.map((c) => `${c.left.key} = ${c.right.key}`)).toEqual([
      "N*W = 4*N*floorDiv(W, 4)",
    ]);
  });

  it("turns scales that are quotients of extents into sizes", () => {
    const nodes: NodeSpec[] = [
      { op: "Shape", inputs: ["x"], outputs: ["s"] },
      { op: "Cast", inputs: ["s"], outputs: ["sf"], attributes: { to: 1n } },
      { op: "Mul", inputs: ["sf", "factors"], outputs: ["target"] },
      { op: "Div", inputs: ["target", "sf"], outputs: ["scales"] },
      { op: "Resize", inputs: ["x", "", "scales"], outputs: ["y"] },
    ];
    const weights = { factors: constant("f32", [4], [1, 1, 2, 2]) };
    const { graph } = imported(model([value("x", "N", 3, "H", 8)], nodes, { weights }));
    expect(graph.values[graph.outputs[0]!]!.type.shape.map((d) => d.key)).toEqual([
      "N",
      "3",
      "2*H",
      "16",
    ]);
    expect(graph.nodes[0]!.attrs).toMatchObject({ axes: [2, 3], scales: [2, 2] });
  });

  it("materialises extents that are used as data", () => {
    const nodes: NodeSpec[] = [
      { op: "Size", inputs: ["x"], outputs: ["n"] },
      { op: "Cast", inputs: ["n"], outputs: ["nf"], attributes: { to: 1n } },
      { op: "Div", inputs: ["x", "nf"], outputs: ["y"] },
    ];
    const { graph } = imported(model([value("x", "N", 2)], nodes));
    expect(lines(graph)).toEqual([
      't1: i64[] = dimSize x {"axis":0}',
      "t3: i64[] = mul t1 const",
      't4: f32[] = cast t3 {"to":"f32","saturate":false}',
      't5: f32[1] = reshape t4 {"shape":["1"]}',
      't6: f32[] = reshape t5 {"shape":[]}',
      "y: f32[N, 2] = div x t6",
    ]);
  });

  it("computes constants at import, but not huge ones", () => {
    const nodes: NodeSpec[] = [
      { op: "Transpose", inputs: ["w"], outputs: ["wt"] },
      { op: "ConstantOfShape", inputs: ["big"], outputs: ["z"] },
      { op: "ReduceSum", inputs: ["z"], outputs: ["sum"], attributes: { keepdims: 0n } },
      { op: "MatMul", inputs: ["x", "wt"], outputs: ["m"] },
      { op: "Add", inputs: ["m", "sum"], outputs: ["y"] },
    ];
    const weights = { w: constant("f32", [2, 3], [1, 2, 3, 4, 5, 6]), big: i64(16000, 16000) };
    const { graph, weights: store } = imported(model([value("x", "N", 3)], nodes, { weights }));
    expect(graph.nodes.map((n) => n.op)).toEqual(["broadcast", "reduce", "contract", "add"]);
    const inline = graph.weights.flatMap((w) =>
      w.source.kind === "inline" ? [[...w.source.tensor.data]] : [],
    );
    expect(inline).toEqual([[0], [1, 4, 2, 5, 3, 6]]);
    expect(() => store.read("none")).toThrow("no weight none");
  });

  it("stops computing constants when the budget is spent, and keeps quantised weights", () => {
    const nodes: NodeSpec[] = [{ op: "MatMul", inputs: ["w", "w"], outputs: ["p0"] }];
    for (let i = 0; i < 20; i++) {
      nodes.push({ op: "MatMul", inputs: [`p${i}`, "w"], outputs: [`p${i + 1}`] });
    }
    nodes.push({ op: "DequantizeLinear", inputs: ["q", "s"], outputs: ["d"] });
    nodes.push({ op: "Add", inputs: ["p20", "d"], outputs: ["y"] });
    const weights = {
      w: constant("f32", [256, 256], new Array<number>(65536).fill(0)),
      q: constant("i8", [256], new Array<number>(256).fill(1)),
      s: constant("f32", [], [0.5]),
    };
    const { graph } = imported(model([value("x", 1)], nodes, { weights }));
    const ops = graph.nodes.map((n) => n.op);
    expect(ops.slice(-3)).toEqual(["contract", "dequantize", "add"]);
    expect(ops.length).toBeLessThan(20);
  });

  it("keeps large weights in the store and reads external ones by range", () => {
    const type = { dtype: "f32" as const, shape: [64, 64] };
    const tensors = [writeExternalTensorProto("w", type, { location: "w.bin", offset: 16 })];
    const nodes: NodeSpec[] = [{ op: "MatMul", inputs: ["x", "w"], outputs: ["y"] }];
    const bytes = model([value("x", 1, 64)], nodes, { tensors });
    const asked: unknown[] = [];
    const readExternal = (location: string, offset: number, length: number) => {
      asked.push([location, offset, length]);
      return ok(new Uint8Array(length).fill(1));
    };
    const { graph, weights } = imported(bytes, { readExternal });
    // The last byte alone: the file is there, and long enough.
    expect(asked).toEqual([["w.bin", 16 + 64 * 64 * 4 - 1, 1]]);
    asked.length = 0;
    expect(graph.weights[0]!.source).toEqual({ kind: "stored", key: "w" });
    expect(tensorBytes(weights.read("w"))[7]).toBe(1);
    expect(asked).toEqual([["w.bin", 16, 64 * 64 * 4]]);
    expect(codes(importOnnx(bytes))).toEqual(["ONX016"]);
  });

  it("tells a data file that is not there once, with the tensors that need it", () => {
    const type = { dtype: "f32" as const, shape: [1, 1] };
    const names = ["a", "b", "c", "d", "e"];
    const tensors = names.map((name, i) =>
      writeExternalTensorProto(name, type, { location: i < 4 ? "w.bin" : "v.bin", offset: 4 * i }),
    );
    const nodes: NodeSpec[] = [{ op: "Sum", inputs: ["x", ...names], outputs: ["y"] }];
    const bytes = model([value("x", 1, 1)], nodes, { tensors });
    const gone = (location: string) => fail(diagnostic("RUN030", `${location} is gone`));
    expect(importOnnx(bytes, { readExternal: gone })).toMatchObject({
      diagnostics: [
        {
          message: "w.bin is gone",
          notes: [
            '4 tensors are read from it: initializer "a", initializer "b", initializer "c", …',
          ],
        },
        { message: "v.bin is gone", notes: ['initializer "e" is read from it'] },
      ],
    });
    expect(codes(importOnnx(bytes))).toEqual(["ONX016", "ONX016"]);
  });

  it("says what is to be done about a window that is larger than the picture", () => {
    const nodes: NodeSpec[] = [
      { op: "MaxPool", inputs: ["x"], outputs: ["y"], attributes: { kernel_shape: [2n, 5n] } },
    ];
    expect(importOnnx(model([value("x", 1, 3, 4, 4)], nodes))).toMatchObject({
      diagnostics: [
        {
          code: "SHP004",
          message: expect.stringContaining("spatial axis 1, 4 less 5, is -1, which is negative"),
          help: expect.stringContaining("give a larger input (--shape)"),
        },
      ],
    });
  });

  it("inlines the branch of an If that is decided", () => {
    const branch = (op: string) => ({
      inputs: [],
      outputs: [`${op}_out`],
      nodes: [{ op, inputs: ["x"], outputs: [`${op}_out`] }],
    });
    const nodes: NodeSpec[] = [
      { op: "Equal", inputs: ["rate", "k16"], outputs: ["c"] },
      {
        op: "If",
        inputs: ["c"],
        outputs: ["y"],
        attributes: { then_branch: branch("Relu"), else_branch: branch("Neg") },
      },
    ];
    const weights = { k16: constant("i64", [], [16]) };
    const inputs: ValueSpec[] = [value("x", "N"), { name: "rate", dtype: "i64", shape: [] }];
    const bytes = model(inputs, nodes, { weights });
    const fixed = (rate: number) =>
      lines(imported(bytes, { values: { rate: constant("i64", [], [rate]) } }).graph);
    expect(fixed(16)).toEqual(["y: f32[N] = relu x"]);
    expect(fixed(8)).toEqual(["y: f32[N] = neg x"]);
  });

  it("expands model-local functions with their attributes", () => {
    const bytes = model(
      [value("x", "N")],
      [{ op: "Leaky", domain: "my", inputs: ["x"], outputs: ["y"], attributes: { slope: 0.5 } }],
      {
        domains: { my: 1 },
        functions: [
          {
            domain: "my",
            name: "Leaky",
            inputs: ["a"],
            outputs: ["b"],
            attributes: ["slope"],
            nodes: [
              {
                op: "LeakyRelu",
                inputs: ["a"],
                outputs: ["b"],
                attributes: { alpha: { reference: "slope" } },
              },
            ],
          },
        ],
      },
    );
    expect(lines(imported(bytes).graph)).toEqual(['y: f32[N] = leakyRelu x {"alpha":0.5}']);
  });

  it("migrates attributes that became operands", () => {
    const old = model(
      [value("x", 2, 3)],
      [
        { op: "Clip", inputs: ["x"], outputs: ["c"], attributes: { min: 0, max: 6 } },
        {
          op: "Slice",
          inputs: ["c"],
          outputs: ["s"],
          attributes: { axes: [1n], starts: [-2n], ends: [9223372036854775807n] },
        },
        { op: "Unsqueeze", inputs: ["s"], outputs: ["u"], attributes: { axes: [0n] } },
        { op: "Softmax", inputs: ["u"], outputs: ["y"] },
      ],
      { opset: 9 },
    );
    expect(lines(imported(old).graph)).toEqual([
      'c: f32[2, 3] = clip x const const_1 {"low":true,"high":true}',
      's: f32[2, 2] = slice c {"starts":["0","1"],"steps":[1,1],"sizes":["2","2"]}',
      'u: f32[1, 2, 2] = reshape s {"shape":["1","2","2"]}',
      't6: f32[1, 4] = reshape u {"shape":["1","4"]}',
      't7: f32[1, 4] = softmax t6 {"axis":1}',
      'y: f32[1, 2, 2] = reshape t7 {"shape":["1","2","2"]}',
    ]);
  });

  it("leaves batch axes of extent 1 out of matrix products", () => {
    const nodes: NodeSpec[] = [{ op: "MatMul", inputs: ["a", "b"], outputs: ["y"] }];
    const bytes = model([value("a", "N", 1, 4, 5), value("b", 7, 5, 6)], nodes);
    expect(lines(imported(bytes).graph)).toEqual([
      't2: f32[N, 4, 5] = reshape a {"shape":["N","4","5"]}',
      'y: f32[N, 7, 4, 6] = contract t2 b {"lhs":["b0","i","k"],"rhs":["b1","k","j"],"output":["b0","b1","i","j"],"accumulator":"f32"}',
    ]);
  });

  it("notes each equality of dimensions that it has to assume", () => {
    const nodes: NodeSpec[] = [{ op: "Add", inputs: ["a", "b"], outputs: ["y"] }];
    const result = importOnnx(model([value("a", "N"), value("b", "M")], nodes));
    expect(result.ok && result.warnings.map((d) => [d.code, d.severity])).toEqual([
      ["ONX017", "info"],
    ]);
  });
});

describe("diagnostics of the importer", () => {
  const x = value("x", "N", 4);
  const one = (node: Partial<NodeSpec>, extra: Partial<ModelSpec> = {}) =>
    importOnnx(
      model([x], [{ op: "Relu", inputs: ["x"], outputs: ["y"], name: "n1", ...node }], extra),
    );

  it("names node, operator, attribute, value and cure, and collects all problems", () => {
    const result = importOnnx(
      model(
        [x],
        [
          { op: "Frobnicate", inputs: ["x"], outputs: ["a"], name: "first" },
          { op: "Relu", inputs: ["a"], outputs: ["b"], name: "skipped" },
          { op: "Mystery", inputs: ["b"], outputs: ["c"], name: "second" },
          { op: "Gelu", inputs: ["x"], outputs: ["d"], attributes: { approximate: "cubic" } },
        ],
        { opset: 20 },
      ),
    );
    expect(result.ok ? [] : result.diagnostics).toMatchObject([
      { code: "ONX007", at: 'node "first" (Frobnicate)' },
      { code: "ONX007", at: 'node "second" (Mystery)' },
      {
        code: "ONX009",
        at: 'node "#3" (Gelu) attribute "approximate"',
        message: 'attribute "approximate" is "cubic"; supported: none, tanh',
      },
    ]);
  });

  it("says what is wrong with an equation (ONX009)", () => {
    const inputs: ValueSpec[] = [
      { name: "a", dtype: "f32", shape: [2, 3, 4] },
      { name: "b", dtype: "f32", shape: [3, 4] },
    ];
    const refusal = (equation: string, names = ["a", "b"]): unknown => {
      const node = { op: "Einsum", inputs: names, outputs: ["y"], attributes: { equation } };
      const result = importOnnx(model(inputs, [node]));
      return result.ok ? undefined : result.diagnostics.map((d) => `${d.code} ${d.message}`)[0];
    };
    const twice = refusal("...i...,ij->");
    expect(twice).toMatch(/^ONX009 .*"\.\.\.i\.\.\.,ij->".*at most one "\.\.\." each/);
    expect(refusal("...i...,ij->", ["a"])).toEqual(twice);
    expect(refusal("bij->b")).toMatch(/2 terms, one for each operand/);
    expect(refusal("ij,ij->i")).toMatch(/operand 0 has 3 for the term "ij"/);
    expect(refusal("bij,...hij->b")).toMatch(/operand 1 has 2 for the term "...hij"/);
    expect(refusal("b...,...->b")).toBeUndefined();
  });

  it("says what is wrong with the parts of a split (ONX009)", () => {
    const inputs: ValueSpec[] = [{ name: "a", dtype: "f32", shape: [2] }];
    const refusal = (
      names: string[],
      weights: Record<string, Tensor>,
      attributes = {},
    ): unknown => {
      const outputs = ["y", "z", "u", "v"].slice(0, weights.s ? 2 : 4);
      const node = { op: "Split", inputs: names, outputs, attributes };
      const result = importOnnx(model(inputs, [node], { weights }));
      return result.ok ? undefined : result.diagnostics.map((d) => `${d.code} ${d.message}`);
    };
    const many = refusal(["a"], {}, { num_outputs: 4n });
    expect(many).toEqual([expect.stringMatching(/^ONX009 4 parts of 1 elements of an axis of 2/)]);
    const few = refusal(["a", "s"], { s: i64(1, 3) });
    expect(few).toEqual([expect.stringMatching(/^ONX009 parts of 1, 3 elements of an axis of 2/)]);
    expect(refusal(["a", "s"], { s: i64(2, 0) })).toBeUndefined();
  });

  it("refuses unknown and mistyped attributes with ONX008", () => {
    expect(codes(one({ attributes: { alpha: 1 } }))).toEqual(["ONX008"]);
    expect(codes(one({ op: "LeakyRelu", attributes: { alpha: 1n } }))).toEqual(["ONX008"]);
  });

  it("refuses undefined and missing operands and outputs with ONX010", () => {
    expect(codes(one({ inputs: ["nothing"] }))).toEqual(["ONX010"]);
    expect(codes(one({ op: "Add" }))).toEqual(["ONX010"]);
    expect(codes(one({}, { outputs: ["nothing"] }))).toEqual(["ONX010"]);
  });

  it("refuses names assigned twice with ONX011", () => {
    expect(codes(one({ outputs: ["x"] }))).toEqual(["ONX011"]);
    const w = constant("f32", [], [1]);
    expect(codes(one({}, { weights: { y: w } }))).toEqual(["ONX011"]);
  });

  it("refuses inputs of one name, of functions and bodies too, with ONX011", () => {
    const twice = model([x, x], [{ op: "Relu", inputs: ["x"], outputs: ["y"] }]);
    expect(codes(importOnnx(twice))).toEqual(["ONX011"]);
    const add = { op: "Add", inputs: ["a", "a"], outputs: ["b"] };
    const sum = { domain: "my", name: "Sum2", inputs: ["a", "a"], outputs: ["b"], nodes: [add] };
    const call = { op: "Sum2", domain: "my", inputs: ["x", "x"] };
    expect(codes(one(call, { functions: [sum], domains: { my: 1 } }))).toEqual(["ONX011"]);
    const { inputs, ...rest } = growing;
    const body = { ...rest, inputs: [inputs[0]!, inputs[1]!, { ...inputs[2]!, name: "go" }] };
    const weights = { trips: constant("i64", [], [3]) };
    const loop = { op: "Loop", inputs: ["trips", "", "x"], attributes: { body } };
    expect(codes(one(loop, { weights }))).toContain("ONX011");
  });

  it("refuses operator sets that do not fit with ONX012", () => {
    expect(codes(one({ op: "Sin" }, { opset: 5 }))).toContain("ONX012");
    expect(codes(one({ op: "Gelu" }, { opset: 17 }))).toEqual(["ONX012"]);
    const newer = one({}, { opset: 99 });
    expect(newer.ok && newer.warnings.map((d) => d.code)).toEqual(["ONX012"]);
  });

  it("names the option that gives a value which decides the structure", () => {
    const bytes = writeModel({
      opset: 18,
      inputs: [
        { name: "x", dtype: "f32", shape: [4] },
        { name: "parts", dtype: "i64", shape: [2] },
      ],
      outputs: ["y"],
      weights: {},
      nodes: [{ op: "Split", inputs: ["x", "parts"], outputs: ["y", "z"] }],
    });
    const result = importOnnx(bytes);
    expect(result.ok ? [] : result.diagnostics).toMatchObject([
      { code: "ONX013", help: expect.stringContaining("--value") },
    ]);
  });

  it("refuses shapes that depend on data with ONX013", () => {
    const inputs: ValueSpec[] = [x, { name: "s", dtype: "i64", shape: [2] }];
    const nodes: NodeSpec[] = [{ op: "Reshape", inputs: ["x", "s"], outputs: ["y"] }];
    const bytes = model(inputs, nodes);
    expect(codes(importOnnx(bytes))).toEqual(["ONX013"]);
    expect(lines(imported(bytes, { values: { s: i64(-1, 2) } }).graph)).toEqual([
      'y: f32[2*N, 2] = reshape x {"shape":["2*N","2"]}',
    ]);
  });

  it("refuses functions that call themselves with ONX014", () => {
    const call = { op: "F", domain: "my", inputs: ["x"], outputs: ["y"] };
    const functions = [{ domain: "my", name: "F", inputs: ["x"], outputs: ["y"], nodes: [call] }];
    expect(codes(one(call, { functions, domains: { my: 1 } }))).toEqual(["ONX014"]);
  });

  it("refuses functions that grow exponentially with ONX014", () => {
    const functions = Array.from({ length: 23 }, (_, i) => ({
      domain: "my",
      name: `F${i}`,
      inputs: ["a"],
      outputs: ["c"],
      nodes: [
        { op: `F${i + 1}`, domain: "my", inputs: ["a"], outputs: ["b"] },
        { op: `F${i + 1}`, domain: "my", inputs: ["b"], outputs: ["c"] },
      ],
    }));
    const leaf = [{ op: "Relu", inputs: ["a"], outputs: ["c"] }];
    const last = { domain: "my", name: "F23", inputs: ["a"], outputs: ["c"], nodes: leaf };
    const call = { op: "F0", domain: "my", inputs: ["x"], outputs: ["y"] };
    const result = one(call, { functions: [...functions, last], domains: { my: 1 } });
    expect(new Set(codes(result))).toEqual(new Set(["ONX014"]));
  });

  it("refuses overrides that name nothing or are no extents with ONX015", () => {
    const bytes = model([x], [{ op: "Relu", inputs: ["x"], outputs: ["y"] }]);
    expect(codes(importOnnx(bytes, { shapes: { M: 3 } }))).toEqual(["ONX015"]);
    expect(codes(importOnnx(bytes, { shapes: { N: -3 } }))).toEqual(["ONX015"]);
    expect(codes(importOnnx(bytes, { shapes: { N: { min: 5, max: 3 } } }))).toEqual(["ONX015"]);
    // A second override is not blamed for dimensions that the refusal kept from being seen.
    const both = importOnnx(bytes, { shapes: { N: { min: 5, max: 3 }, M: 3 } });
    expect(both.ok ? [] : both.diagnostics.map((d) => d.message)).toEqual([
      "N = 5..3 is no extent",
    ]);
    expect(codes(importOnnx(bytes, { values: { z: i64(1) } }))).toEqual(["ONX015"]);
  });

  it("refuses shapes that overflow with ONX004", () => {
    const huge = value("x", 2 ** 39, 2 ** 39);
    const nodes: NodeSpec[] = [{ op: "Relu", inputs: ["x"], outputs: ["y"] }];
    expect(codes(importOnnx(model([huge], nodes)))).toEqual(["ONX004"]);
  });
});

describe("importModel", () => {
  it("imports a decoded model like its bytes", () => {
    const bytes = model([value("x", "N")], [{ op: "Relu", inputs: ["x"], outputs: ["y"] }]);
    const proto = readModelFile(bytes);
    if (!proto.ok) throw new Error("expected a model");
    expect(importModel(proto.value)).toMatchObject({ value: { graph: imported(bytes).graph } });
  });
});

describe("hostile models", () => {
  const weights = {
    w: constant("f32", [3, 3], [1, 2, 3, 4, 5, 6, 7, 8, 9]),
    shape: i64(0, -1, 3),
    starts: i64(1),
    ends: i64(3),
  };
  const nodes: NodeSpec[] = [
    { op: "MatMul", inputs: ["x", "w"], outputs: ["m"] },
    { op: "Reshape", inputs: ["m", "shape"], outputs: ["r"] },
    { op: "Slice", inputs: ["r", "starts", "ends", "starts"], outputs: ["s"] },
    { op: "ReduceMean", inputs: ["s"], outputs: ["y"], attributes: { keepdims: 0n } },
  ];
  const original = model([value("x", "N", 6, 3)], nodes, { weights });

  it("give a Result, whatever bytes are changed", () => {
    expect(importOnnx(original).ok).toBe(true);
    const mutation = fc.record({ at: fc.nat(original.length - 1), to: fc.nat(255) });
    fc.assert(
      fc.property(fc.array(mutation, { minLength: 1, maxLength: 5 }), (mutations) => {
        const bytes = original.slice();
        for (const { at, to } of mutations) bytes[at] = to;
        expect(typeof importOnnx(bytes).ok).toBe("boolean");
      }),
      { numRuns: 1500 },
    );
  });
});
