import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { allDTypes } from "../semantics/dtype.ts";
import { fromRef, refTensor } from "../semantics/tensor.ts";
import { GraphBuilder } from "./builder.ts";
import type { Graph } from "./graph.ts";
import { parseGraph, printGraph } from "./graph-text.ts";
import { randomGraph } from "./random-graph.ts";
import { tensorType } from "./tensor-type.ts";
import { verifyGraph } from "./verify.ts";

function parsed(text: string): Graph {
  const result = parseGraph(text);
  if (!result.ok) throw new Error(result.diagnostics.map((d) => d.message).join("\n"));
  return result.value;
}

/** The code and place of the first diagnostic of a text. */
function check(text: string): string {
  const result = parseGraph(text);
  return result.ok ? "ok" : result.diagnostics.map((d) => d.code).join(" ");
}

describe("graph text", () => {
  it("reads as its header says", () => {
    const text = `graph "mlp" (x: f32[M, 4], h: f32[2]) -> (y, n, k) states (h -> k) where 1 <= M <= 4096, 0 <= N <= inf, M == 2*N from "Add_3" {
  w = weight "fc1.weight" : f32[4, 8]
  c = constant f32[2] (1, -0)
  t0 = contract(x, w) {lhs: "i k", rhs: "k j", output: "i j", accumulator: f32} : f32[M, 8] from "Gemm \\"1\\""
  (y, n) = topK(t0) {axis: 1, k: 5, largest: true, sorted: false} : (f32[M, 5], i64[M, 5])
  k = add(c, h) : f32[2]
}
`;
    expect(printGraph(parsed(text))).toBe(text);
  });

  it("answers sizes beyond 2^53 with a diagnostic, wherever they stand", () => {
    const big = String(Number.MAX_SAFE_INTEGER);
    const graph = (dims: string, body: string): string =>
      `graph g (x: f32[${dims}]) -> (y) where 1 <= N <= 16 { y = ${body} : f32[${dims}] }`;
    expect(check(graph("N, 3", "relu(x)"))).toBe("ok");
    const extents = [`${big}`, `${big}, ${big}`, `${big}*N`, "4294967296, 4294967296"];
    for (const dims of extents) {
      expect(check(graph(dims, "relu(x)")), dims).toMatch(/^SHP004/);
      expect(check(graph(dims, "concat(x, x) {axis: 0}")), dims).toMatch(/SHP004/);
    }
    const numbers = [
      `${big}0`,
      `${big} + 1`,
      `2*${big}`,
      `${big}*N + N`,
      `(${big} + N)*3`,
      "1e300",
    ];
    for (const dims of numbers) expect(check(graph(dims, "relu(x)")), dims).toBe("TXT001");
    const slice = `slice(x) {starts: [${big}*2], steps: [1], sizes: [3]}`;
    expect(check(graph("3", slice))).toBe("TXT001");
  });

  it("round-trips random graphs, which verify", () => {
    fc.assert(
      fc.property(fc.nat(), fc.nat({ max: 25 }), fc.boolean(), (seed, nodes, symbolic) => {
        const graph = randomGraph({ seed, nodes, symbolic });
        expect(verifyGraph(graph)).toEqual([]);
        expect(parsed(printGraph(graph))).toEqual(graph);
      }),
      { numRuns: 150 },
    );
  });

  it("round-trips constants of every element type", () => {
    const b = new GraphBuilder("constants");
    const outputs = allDTypes.map((dtype) => {
      const values = dtype === "bool" ? [1, 0, 1] : [1, 0.5, 2].map((x) => x);
      const whole = dtype.startsWith("i") || dtype.startsWith("u") ? [1, 0, 1] : values;
      return b.constant(fromRef(refTensor(dtype, [3], whole)), dtype);
    });
    const big = refTensor("i64", [2], [-(2n ** 63n), 2n ** 63n - 1n]);
    const odd = refTensor("f32", [3], [Number.NaN, -Infinity, Math.fround(1e-40)]);
    outputs.push(b.constant(fromRef(big)), b.constant(fromRef(odd)));
    const graph = b.finish(outputs);
    expect(parsed(printGraph(graph))).toEqual(graph);
  });

  it("refuses what does not parse or verify", () => {
    const body = (line: string) => check(`graph g (x: f32[2]) -> (x) { ${line} }`);
    expect(body("y = frobnicate(x) : f32[2]")).toBe("GRF010");
    expect(body("y = softmax(x) {axle: 0} : f32[2]")).toBe("TXT001");
    expect(body("y = softmax(x) {axis: 0.5} : f32[2]")).toBe("TXT001");
    expect(body("y = softmax(x) : f32[2]")).toBe("GRF003");
    expect(body("y = add(x, z) : f32[2]")).toBe("GRF007");
    expect(body("x = neg(x) : f32[2]")).toBe("GRF005");
    expect(body("y = neg(x) : f32[3]")).toBe("GRF008");
    expect(body("y = neg(x) : f32[K]")).toBe("GRF006 GRF008");
    expect(body("y = constant f32[2] (1)")).toBe("TXT001");
    expect(check("graph g (x: f32[2]) -> (z) { }")).toBe("GRF007");
    expect(check("graph g (x: f32[2]) -> (x) { } graph")).toBe("TXT001");
  });
});

describe("verifyGraph", () => {
  const good = parsed(
    "graph g (x: f32[N], h: f32[N]) -> (y) states (h -> y) where 1 <= N <= 8 { c = constant f32[1] (2) y = mul(x, c) : f32[N] }",
  );
  const broken: readonly (readonly [string, Partial<Graph>])[] = [
    ["GRF005", { symbols: [...good.symbols, ...good.symbols] }],
    ["GRF003", { symbols: [{ name: "N", min: 9, max: 8 }] }],
    ["GRF014", { values: good.values.map((v) => ({ ...v, id: v.id + 1 })) }],
    ["GRF005", { values: good.values.map((v) => ({ ...v, name: "x" })) }],
    ["GRF007", { nodes: [] }],
    ["GRF007", { outputs: [17] }],
    ["GRF014", { inputs: [0, 1, 2] }],
    ["GRF011", { states: [{ input: 1, output: 0 }] }],
    ["GRF011", { states: [...good.states, ...good.states] }],
    ["GRF011", { states: [{ input: 1, output: 17 }] }],
    ["GRF001", { nodes: good.nodes.map((n) => ({ ...n, inputs: [0] })) as never }],
    ["GRF010", { nodes: good.nodes.map((n) => ({ ...n, op: "frob" })) as never }],
    [
      "GRF009",
      {
        weights: [
          {
            value: 2,
            source: { kind: "inline", tensor: fromRef(refTensor("f64", [1], [2])) },
          },
        ],
      },
    ],
  ];
  it.each(broken)("reports %s", (code, change) => {
    const codes = verifyGraph({ ...good, ...change }).map((d) => d.code);
    expect(codes).toContain(code);
  });

  it("wants every constraint recorded", () => {
    const text = (where: string) =>
      check(
        `graph g (x: f32[M], y: f32[N]) -> (z) where 1 <= M <= 8, 1 <= N <= 8${where} { z = add(x, y) : f32[M] }`,
      );
    expect(text("")).toBe("GRF012");
    expect(text(', N == M from "model"')).toBe("ok");
  });

  it("checks subgraphs and the names of their symbols", () => {
    const text = (inner: string, type: string) =>
      check(
        `graph g (p: bool[], x: f32[4]) -> (y) where 0 <= K <= 4 { y = if(p, x) {then: graph a (x: f32[4]) -> (n) ${inner} { n = nonZero(x) : i64[1, L] }, else: graph b (x: f32[4]) -> (n) { n = iota() {shape: [1, 4], axis: 1, dtype: i64} : i64[1, 4] }} : ${type} }`,
      );
    expect(text("where 0 <= L <= 4", "i64[1, K]")).toBe("ok");
    expect(text("where 0 <= L <= 4", "i64[1, L]")).toBe("GRF006");
    expect(text("where 0 <= L <= 5", "i64[1, K]")).toBe("GRF008");
    expect(text("", "i64[1, K]")).toContain("GRF006");
  });

  it("matches a data-dependent extent by its range", () => {
    const text = (max: number) =>
      check(`graph g (x: f32[4]) -> (n) where 0 <= K <= ${max} { n = nonZero(x) : i64[1, K] }`);
    expect([text(4), text(9)]).toEqual(["ok", "GRF008"]);
  });

  it("refuses one symbol for the extents of two nodes, or of an input and a node", () => {
    const text = (input: string, second: string) =>
      check(
        `graph g (x: f32[4], y: f32[${input}]) -> (n) where 0 <= K <= 4, 0 <= L <= 4 { n = nonZero(x) : i64[1, K] m = nonZero(x) : i64[1, ${second}] }`,
      );
    expect([text("4", "L"), text("4", "K"), text("K", "L")]).toEqual(["ok", "GRF008", "GRF008"]);
  });

  it("accepts an empty tensor type and the builder's stored constants", () => {
    const b = new GraphBuilder("stored");
    const x = b.input("x", tensorType("f32", 0));
    const big = b.constant(fromRef(refTensor("f32", [2000], new Float64Array(2000))), "big");
    const table = fromRef(refTensor("f32", [2000], new Float64Array(2000).fill(1)));
    const branch = (name: string) => b.subgraph(name, [], (w) => [w.constant(table, "big")]);
    const attrs = { then: branch("yes"), else: branch("no") };
    const picked = b.node("if", [b.scalar(1, "bool")], attrs);
    const graph = b.finish([x, big, picked]);
    expect(verifyGraph(graph)).toEqual([]);
    // The same name in three graphs: three keys.
    expect([...b.storedConstants.keys()]).toEqual(["big", "big#1", "big#2"]);
  });
});
