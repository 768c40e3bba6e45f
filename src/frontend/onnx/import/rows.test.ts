import { describe, expect, it } from "vitest";
import { printGraph } from "../../../graph/graph-text.ts";
import { verifyGraph } from "../../../graph/verify.ts";
import type { DType } from "../../../semantics/dtype.ts";
import { fromRef, refTensor, type Tensor } from "../../../semantics/tensor.ts";
import { formatDiagnostic } from "../../../support/diagnostic.ts";
import {
  type GraphSpec,
  type ModelSpec,
  type NodeSpec,
  type ValueSpec,
  writeModel,
} from "../model-writer.ts";
import { importOnnx } from "./import-model.ts";
import { newestOpset } from "./operator-row.ts";
import { operatorTables } from "./operator-table.ts";

function value(name: string, shape: ValueSpec["shape"], dtype: DType = "f32"): ValueSpec {
  return { name, dtype, shape };
}

function constant(dtype: DType, shape: readonly number[], values: readonly number[]): Tensor {
  return fromRef(refTensor(dtype, shape, values));
}

/** The text form of an imported model, which must verify. */
function text(
  inputs: readonly ValueSpec[],
  nodes: readonly NodeSpec[],
  extra: Partial<ModelSpec> = {},
): string {
  const outputs = [...(nodes.at(-1)?.outputs ?? [])];
  const result = importOnnx(
    writeModel({ name: "test", opset: 18, inputs, outputs, nodes, ...extra }),
  );
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  expect(verifyGraph(result.value.graph)).toEqual([]);
  return printGraph(result.value.graph).replaceAll(/ +# .*/g, "");
}

describe("the operator table", () => {
  it("has ascending versions up to the newest operator set", () => {
    for (const table of Object.values(operatorTables)) {
      for (const [op, { since }] of Object.entries(table)) {
        const sorted = [...since].sort((a, b) => a - b);
        expect([op, since]).toEqual([op, sorted]);
        expect([op, since.length > 0 && since.at(-1)! <= newestOpset]).toEqual([op, true]);
      }
    }
  });
});

describe("control flow", () => {
  const branch = (op: string, extra: Partial<GraphSpec> = {}): GraphSpec => ({
    name: op,
    inputs: [],
    outputs: [`${op}_y`],
    nodes: [{ op, inputs: ["x", "w"], outputs: [`${op}_y`] }],
    ...extra,
  });

  it("keeps an If that data decide, with the captures of both branches", () => {
    const w = constant("f32", [2], [1, 2]);
    const nodes: NodeSpec[] = [
      { op: "Relu", inputs: ["a"], outputs: ["x"] },
      {
        op: "If",
        inputs: ["c"],
        outputs: ["y"],
        attributes: {
          then_branch: branch("Add"),
          else_branch: {
            ...branch("Mul"),
            nodes: [{ op: "Mul", inputs: ["a", "w"], outputs: ["Mul_y"] }],
          },
        },
      },
    ];
    expect(
      text([value("a", ["N", 2]), value("c", [1], "bool")], nodes, { weights: { w } }),
    ).toMatchInlineSnapshot(`
      "graph "test" (a: f32[N, 2], c: bool[1]) -> (y) where 1 <= N <= inf {
        x = relu(a) : f32[N, 2] from "#0 (Relu)"
        t3 = reshape(c) {shape: []} : bool[] from "#1 (If)"
        y = if(t3, x, a) {then: graph "Add" (capture_0: f32[N, 2], capture_1: f32[N, 2]) -> (Add_y) {
          w = constant f32[2] (1, 2)
          Add_y = add(capture_0, w) : f32[N, 2] from "#0 (Add)"
        }, else: graph "Mul" (capture_1: f32[N, 2], capture_0: f32[N, 2]) -> (Mul_y) {
          w = constant f32[2] (1, 2)
          Mul_y = mul(capture_0, w) : f32[N, 2] from "#0 (Mul)"
        }} : f32[N, 2] from "#1 (If)"
      }
      "
    `);
  });

  it("refuses branches of different rank with ONX013", () => {
    const squeeze = { op: "Squeeze", inputs: ["x"], outputs: ["s"] };
    const attributes = {
      then_branch: { inputs: [], outputs: ["s"], nodes: [squeeze] },
      else_branch: { inputs: [], outputs: ["x"], nodes: [] },
    };
    const nodes = [{ op: "If", inputs: ["c"], outputs: ["y"], attributes }];
    const inputs = [value("x", [1, 2]), value("c", [], "bool")];
    const result = importOnnx(writeModel({ opset: 18, inputs, outputs: ["y"], nodes }));
    expect(result.ok ? [] : result.diagnostics.map((d) => d.code)).toEqual(["ONX013"]);
  });

  it("turns Loop into a loop with carried and collected values", () => {
    const body: GraphSpec = {
      name: "body",
      inputs: [value("i", [], "i64"), value("go", [], "bool"), value("s", [2])],
      outputs: ["go_on", "next", "seen"],
      nodes: [
        { op: "Add", inputs: ["s", "x"], outputs: ["next"] },
        { op: "Identity", inputs: ["go"], outputs: ["go_on"] },
        { op: "Neg", inputs: ["next"], outputs: ["seen"] },
      ],
    };
    const nodes: NodeSpec[] = [
      { op: "Loop", inputs: ["n", "", "x"], outputs: ["last", "all"], attributes: { body } },
    ];
    const weights = { n: constant("i64", [], [5]) };
    expect(text([value("x", [2])], nodes, { weights })).toMatchInlineSnapshot(`
      "graph "test" (x: f32[2]) -> (last, all) where 0 <= trips <= 5 {
        n = constant i64[] (5)
        const = constant bool[] (1)
        (last, all) = loop(n, const, x, x) {body: graph "body" (i: i64[], go: bool[], s: f32[2], capture_0: f32[2]) -> (go, next, seen) {
          next = add(s, capture_0) : f32[2] from "#0 (Add)"
          seen = neg(next) : f32[2] from "#2 (Neg)"
        }, carried: 1, maxTrips: 5} : (f32[2], f32[trips, 2]) from "#0 (Loop)"
      }
      "
    `);
  });

  it("turns Scan into a scan, with axes and directions", () => {
    const body: GraphSpec = {
      name: "step",
      inputs: [value("s", [3]), value("e", [3])],
      outputs: ["s2", "o"],
      nodes: [
        { op: "Max", inputs: ["s", "e"], outputs: ["s2"] },
        { op: "Exp", inputs: ["s2"], outputs: ["o"] },
      ],
    };
    const attributes = {
      body,
      num_scan_inputs: 1n,
      scan_input_axes: [1n],
      scan_input_directions: [1n],
      scan_output_axes: [-1n],
    };
    const nodes: NodeSpec[] = [
      { op: "Scan", inputs: ["s0", "x"], outputs: ["s", "y"], attributes },
    ];
    expect(text([value("s0", [3]), value("x", [3, "T"])], nodes)).toMatchInlineSnapshot(`
      "graph "test" (s0: f32[3], x: f32[3, T]) -> (s, y) where 1 <= T <= inf {
        (s, y) = scan(s0, x) {body: graph "step" (s: f32[3], e: f32[3]) -> (s2, o) {
          s2 = max(s, e) : f32[3] from "#0 (Max)"
          o = exp(s2) : f32[3] from "#1 (Exp)"
        }, carried: 1, sequences: 1, inputAxes: [1], inputReversed: [true], outputAxes: [1], outputReversed: [false]} : (f32[3], f32[3, T]) from "#0 (Scan)"
      }
      "
    `);
  });
});

describe("constants", () => {
  it("stay in the graph when a symbol decides what is taken of them", () => {
    const weights = {
      table: constant("f32", [4], [1, 2, 3, 4]),
      zero: constant("i64", [1], [0]),
      one: constant("i64", [1], [1]),
    };
    const nodes: NodeSpec[] = [
      { op: "Shape", inputs: ["x"], outputs: ["n"] },
      { op: "Sub", inputs: ["n", "one"], outputs: ["start"] },
      { op: "Slice", inputs: ["table", "start", "n"], outputs: ["y"] },
    ];
    expect(text([value("x", ["N"])], nodes, { weights })).toMatchInlineSnapshot(`
      "graph "test" (x: f32[N]) -> (y) where 1 <= N <= inf {
        table = constant f32[4] (1, 2, 3, 4)
        y = slice(table) {starts: [min(4, N - 1)], steps: [1], sizes: [max(-min(4, N - 1) + min(4, N), 0)]} : f32[max(-min(4, N - 1) + min(4, N), 0)] from "#2 (Slice)"
      }
      "
    `);
  });
});

describe("layers", () => {
  it("imports an LSTM with its optional operands", () => {
    const inputs = [
      value("x", ["S", "B", 4]),
      value("w", [1, 12, 4]),
      value("r", [1, 12, 3]),
      value("h", [1, "B", 3]),
      value("c", [1, "B", 3]),
    ];
    const nodes: NodeSpec[] = [
      {
        op: "LSTM",
        inputs: ["x", "w", "r", "", "", "h", "c"],
        outputs: ["y", "yh", "yc"],
        attributes: { hidden_size: 3n },
      },
    ];
    expect(text(inputs, nodes)).toMatchInlineSnapshot(`
      "graph "test" (x: f32[S, B, 4], w: f32[1, 12, 4], r: f32[1, 12, 3], h: f32[1, B, 3], c: f32[1, B, 3]) -> (y, yh, yc) where 1 <= S <= inf, 1 <= B <= inf {
        (y, yh, yc) = lstm(x, w, r, h, c) {hiddenSize: 3, direction: forward, activations: [sigmoid, tanh, tanh], bias: false, lengths: false, initialHidden: true, initialCell: true, peepholes: false, inputForget: false} : (f32[S, 1, B, 3], f32[1, B, 3], f32[1, B, 3]) from "#0 (LSTM)"
      }
      "
    `);
  });

  it("imports attention with grouped heads, a cache and a causal mask", () => {
    const inputs = [
      value("q", ["B", "S", 8]),
      value("k", ["B", "S", 4]),
      value("v", ["B", "S", 4]),
      value("pk", ["B", 1, "P", 4]),
      value("pv", ["B", 1, "P", 4]),
    ];
    const nodes: NodeSpec[] = [
      {
        op: "Attention",
        inputs: ["q", "k", "v", "", "pk", "pv"],
        outputs: ["y", "nk", "nv"],
        attributes: { q_num_heads: 2n, kv_num_heads: 1n, is_causal: 1n },
      },
    ];
    expect(text(inputs, nodes, { opset: 23 })).toMatchInlineSnapshot(`
      "graph "test" (q: f32[B, S, 8], k: f32[B, S, 4], v: f32[B, S, 4], pk: f32[B, 1, P, 4], pv: f32[B, 1, P, 4]) -> (y, nk, nv) where 1 <= B <= inf, 1 <= S <= inf, 1 <= P <= inf {
        t5 = reshape(q) {shape: [B, S, 2, 4]} : f32[B, S, 2, 4] from "#0 (Attention)"
        t6 = transpose(t5) {permutation: [0, 2, 1, 3]} : f32[B, 2, S, 4] from "#0 (Attention)"
        t7 = reshape(k) {shape: [B, S, 1, 4]} : f32[B, S, 1, 4] from "#0 (Attention)"
        t8 = transpose(t7) {permutation: [0, 2, 1, 3]} : f32[B, 1, S, 4] from "#0 (Attention)"
        t9 = reshape(v) {shape: [B, S, 1, 4]} : f32[B, S, 1, 4] from "#0 (Attention)"
        t10 = transpose(t9) {permutation: [0, 2, 1, 3]} : f32[B, 1, S, 4] from "#0 (Attention)"
        nk = concat(pk, t8) {axis: 2} : f32[B, 1, P + S, 4] from "#0 (Attention)"
        nv = concat(pv, t10) {axis: 2} : f32[B, 1, P + S, 4] from "#0 (Attention)"
        t13 = attention(t6, nk, nv) {scale: 0.5, causal: end, mask: false, softcap: 0} : f32[B, 2, S, 4] from "#0 (Attention)"
        t14 = transpose(t13) {permutation: [0, 2, 1, 3]} : f32[B, S, 2, 4] from "#0 (Attention)"
        y = reshape(t14) {shape: [B, S, 8]} : f32[B, S, 8] from "#0 (Attention)"
      }
      "
    `);
  });

  it("imports a convolution with SAME padding, bias and a pool", () => {
    const inputs = [value("x", ["N", 3, 7, 7]), value("w", [8, 3, 3, 3]), value("b", [8])];
    const nodes: NodeSpec[] = [
      {
        op: "Conv",
        inputs: ["x", "w", "b"],
        outputs: ["c"],
        attributes: { auto_pad: "SAME_UPPER", strides: [2n, 2n] },
      },
      { op: "MaxPool", inputs: ["c"], outputs: ["y"], attributes: { kernel_shape: [2n, 2n] } },
    ];
    expect(text(inputs, nodes)).toMatchInlineSnapshot(`
      "graph "test" (x: f32[N, 3, 7, 7], w: f32[8, 3, 3, 3], b: f32[8]) -> (y) where 1 <= N <= inf {
        t3 = convolution(x, w) {strides: [2, 2], dilations: [1, 1], padLow: [1, 1], padHigh: [1, 1], groups: 1} : f32[N, 8, 4, 4] from "#0 (Conv)"
        t4 = reshape(b) {shape: [8, 1, 1]} : f32[8, 1, 1] from "#0 (Conv)"
        c = add(t3, t4) : f32[N, 8, 4, 4] from "#0 (Conv)"
        y = pool(c) {strides: [1, 1], dilations: [1, 1], padLow: [0, 0], padHigh: [0, 0], kind: max, window: [2, 2], ceil: false, countPadding: false, exponent: 1} : f32[N, 8, 3, 3] from "#1 (MaxPool)"
      }
      "
    `);
  });

  it("slices backwards and from the end, clamped", () => {
    const weights = {
      s: constant("i64", [2], [-1, 1]),
      e: fromRef(refTensor("i64", [2], [-1000, 1000])),
      a: constant("i64", [2], [0, 1]),
      t: constant("i64", [2], [-2, 1]),
    };
    const nodes: NodeSpec[] = [{ op: "Slice", inputs: ["x", "s", "e", "a", "t"], outputs: ["y"] }];
    expect(text([value("x", [5, "W"])], nodes, { weights })).toMatchInlineSnapshot(`
      "graph "test" (x: f32[5, W]) -> (y) where 1 <= W <= inf {
        t1 = reverse(x) {axes: [0]} : f32[5, W] from "#0 (Slice)"
        t2 = slice(t1) {starts: [0, 0], steps: [2, 1], sizes: [3, W]} : f32[3, W] from "#0 (Slice)"
        y = slice(t2) {starts: [0, 1], steps: [1, 1], sizes: [3, min(1000, W) - 1]} : f32[3, min(1000, W) - 1] from "#0 (Slice)"
      }
      "
    `);
  });

  it("dequantises per channel", () => {
    const weights = {
      s: constant("f32", [2], [0.5, 0.25]),
      z: constant("i8", [2], [1, -1]),
    };
    const nodes: NodeSpec[] = [
      { op: "DequantizeLinear", inputs: ["x", "s", "z"], outputs: ["y"], attributes: { axis: 0n } },
    ];
    expect(text([value("x", [2, "N"], "i8")], nodes, { weights })).toMatchInlineSnapshot(`
      "graph "test" (x: i8[2, N]) -> (y) where 1 <= N <= inf {
        s = constant f32[2] (0.5, 0.25)
        z = constant i8[2] (1, -1)
        y = dequantize(x, s, z) {axis: 0, to: f32} : f32[2, N] from "#0 (DequantizeLinear)"
      }
      "
    `);
  });
});
