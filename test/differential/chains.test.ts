/**
 * Chains of statements (attention, softmax, layer norm) against the oracle: random shapes, masks and heads,
 * each compiled for a machine whose threads meet so slowly that everything is fused that may be, and every
 * cut of a chain proved, run and compared.
 */
import { describe, expect, it } from "vitest";
import { codePriceOf } from "../../src/code-price.ts";
import { compileModel } from "../../src/compile.ts";
import { analyticalModel } from "../../src/cost/calibration.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import type { AttentionAttrs } from "../../src/graph/composites.ts";
import type { Graph, Model } from "../../src/graph/graph.ts";
import { prepareModel, weightReader } from "../../src/graph/prepare.ts";
import { noWeights, runGraph } from "../../src/interp/graph.ts";
import { buildNests } from "../../src/region/builders/build-nests.ts";
import { ChainFinder, type ChainRegion } from "../../src/region/chains.ts";
import { type LayOut, regionsOf } from "../../src/region/regions-of.ts";
import { probeWasmFeatures } from "../../src/runtime/wasm/features.ts";
import { nodeWorkerHost } from "../../src/runtime/wasm/node-worker-host.ts";
import { createWasmSession } from "../../src/runtime/wasm/session.ts";
import { applySchedule } from "../../src/schedule/apply.ts";
import { ChainSpace } from "../../src/schedule/chains/chain-space.ts";
import { checkSchedule } from "../../src/schedule/legality/legality.ts";
import { constant, type IndexExpr } from "../../src/semantics/index-expr.ts";
import {
  fromRef,
  numbersOf,
  type RefTensor,
  refTensor,
  toRef,
} from "../../src/semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../src/support/diagnostic.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";
import { checkLowering } from "./check-lowering.ts";

function unwrap<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
}

const wasm = targets.get("wasm")!;
const slowToMeet = { ...wasm, barrierNs: { ...wasm.barrierNs, value: 1e9 } };

interface Case {
  readonly graph: Graph;
  readonly inputs: readonly RefTensor[];
}

/** The outputs in WebAssembly, and the statements of the longest region. */
function compiled({ graph, inputs }: Case): { values: Float64Array; longest: number } {
  const model: Model = { graph, weights: noWeights };
  const {
    model: chosen,
    nests,
    plan,
    regions,
  } = unwrap(compileModel(model, { target: slowToMeet }));
  const features = { ...probeWasmFeatures(), threads: false };
  const options = { weight: weightReader(chosen), threads: 1, features, host: nodeWorkerHost };
  const session = unwrap(createWasmSession(plan.program, options));
  const named = graph.inputs.map((id, i) => [graph.values[id]!.name, fromRef(inputs[i]!)] as const);
  const outputs = unwrap(session.run(Object.fromEntries(named)));
  const values = numbersOf(toRef(outputs[nests.outputs[0]!]!)).slice();
  session.dispose();
  const longest = Math.max(...regions.map((r) => r.scheduled.region.statements.length));
  return { values, longest };
}

function expectLikeOracle(one: Case): number {
  const { values, longest } = compiled(one);
  const want = numbersOf(unwrap(runGraph(one.graph, one.inputs))[0]!);
  expect(values.length).toBe(want.length);
  for (const [i, value] of want.entries()) {
    // A row of which nothing may be looked at has no weights.
    if (Number.isNaN(value)) expect(values[i]).toBeNaN();
    else expect(Math.abs(values[i]! - value)).toBeLessThan(2e-5 * (1 + Math.abs(value)));
  }
  return longest;
}

interface Shape {
  readonly batch: number;
  readonly heads: number;
  readonly groups: number;
  readonly rows: number;
  readonly keys: number;
  readonly size: number;
}

const drawn = (rng: Rng, shape: readonly number[]): RefTensor =>
  refTensor(
    "f32",
    shape,
    Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => Math.fround(rng.normal())),
  );

/** Softmax of scaled scores times values, with the first rows open to nothing where `shut`. */
function attention(s: Shape, attrs: Partial<AttentionAttrs>, rng: Rng, shut = 0): Case {
  const b = new GraphBuilder("attention");
  // The number of rows is known when the program runs.
  const symbol = b.symbol("N", 1, Math.max(s.rows, 8));
  const at = (...dims: (number | IndexExpr)[]): IndexExpr[] =>
    dims.map((d) => (typeof d === "number" ? constant(d) : d));
  const q = b.input("q", { dtype: "f32", shape: at(s.batch, s.heads, symbol, s.size) });
  const [k, v] = ["k", "v"].map((name) =>
    b.input(name, { dtype: "f32", shape: at(s.batch, s.groups, s.keys, s.size) }),
  );
  const inputs = [
    drawn(rng, [s.batch, s.heads, s.rows, s.size]),
    drawn(rng, [s.batch, s.groups, s.keys, s.size]),
    drawn(rng, [s.batch, s.groups, s.keys, s.size]),
  ];
  const operands = [q, k!, v!];
  if (attrs.mask) {
    operands.push(b.input("mask", { dtype: "bool", shape: at(symbol, s.keys) }));
    const open = Array.from({ length: s.rows * s.keys }, (_, i) =>
      i < shut * s.keys ? 0 : rng.integer(0, 3) > 0 || i % s.keys === 0 ? 1 : 0,
    );
    inputs.push(refTensor("bool", [s.rows, s.keys], open));
  }
  const whole = { scale: 0.4, causal: "none", mask: false, softcap: 0, ...attrs } as const;
  return { graph: b.finish(b.nodes("attention", operands, whole)), inputs };
}

describe("fused attention", () => {
  const rng = new Rng(41);
  const among = <T>(list: readonly T[]): T => list[rng.integer(0, list.length - 1)]!;
  it.each(Array.from({ length: 2 }, (_, i) => i))("of a random shape (%i)", () => {
    const heads = among([1, 2, 4]);
    const shape = {
      batch: among([1, 1, 2]),
      heads,
      groups: among([1, heads]),
      rows: among([1, 2, 5, 9, 13]),
      keys: among([1, 3, 8, 11, 20]),
      size: among([1, 4, 6, 8]),
    };
    const mask = rng.integer(0, 1) === 1;
    const causal = among(["none", "start", "end"] as const);
    expectLikeOracle(attention(shape, { mask, causal }, rng));
  });

  const square = { batch: 2, heads: 3, groups: 3, rows: 9, keys: 9, size: 8 };
  it("is one region under masks, with rows that may look at nothing", () => {
    const one = attention(square, { mask: true, causal: "start" }, rng, 2);
    expect(expectLikeOracle(one)).toBeGreaterThanOrEqual(6);
  });

  it("of one row", () => {
    expectLikeOracle(attention({ ...square, batch: 1, rows: 1, keys: 21 }, {}, rng));
  });
});

describe("rows of norms", () => {
  const rng = new Rng(42);
  const norm = (op: "softmax" | "layerNorm" | "rmsNorm", rows: number, width: number): Case => {
    const b = new GraphBuilder("norm");
    const x = b.input("x", { dtype: "f32", shape: [constant(rows), constant(width)] });
    const inputs = [drawn(rng, [rows, width])];
    if (op === "softmax") return { graph: b.finish([b.node(op, [x], { axis: 1 })]), inputs };
    const count = op === "rmsNorm" ? 1 : 2;
    const operands = Array.from({ length: count }, (_, i) =>
      b.input(`w${i}`, { dtype: "f32", shape: [constant(width)] }),
    );
    const attrs = { axis: 1, epsilon: 1e-5 };
    const graph = b.finish([b.node(op, [x, ...operands], attrs as never)]);
    return { graph, inputs: [...inputs, ...operands.map(() => drawn(rng, [width]))] };
  };
  it.each([
    ["softmax", 1, 7],
    ["layerNorm", 6, 41],
    ["rmsNorm", 33, 5],
  ] as const)("%s, %i of %i", (op, rows, width) => {
    const longest = expectLikeOracle(norm(op, rows, width));
    if (rows > 1) expect(longest).toBeGreaterThan(1);
  });
});

/** The longest chain of a graph. */
function chainOf(graph: Graph): ChainRegion {
  const prepared = prepareModel({ graph, weights: noWeights });
  const nests = unwrap(buildNests(prepared.graph));
  let chain: ChainRegion | undefined;
  const layOut: LayOut = (regions, program) => {
    const finder = new ChainFinder(regions, program);
    const [longest] = [...finder.longest()].sort((a, b) => b.length - a.length);
    chain = finder.join(longest!);
    return { regions, tensors: new Map() };
  };
  regionsOf(nests, { layOut });
  return chain!;
}

it("every cut of a chain is legal and computes the same", () => {
  const rng = new Rng(43);
  const shape = { batch: 1, heads: 2, groups: 2, rows: 6, keys: 6, size: 4 };
  const chain = chainOf(attention(shape, { causal: "start" }, rng).graph);
  expect(chain.statements.length).toBeGreaterThanOrEqual(6);
  const [out] = chain.statements.at(-1)!.writes;
  const asOutput = (name: string): string => (name === out!.tensor ? "y" : name);
  const tensors = new Map(
    [...chain.tensors].map(([name, t]) => {
      const role = t.role === "local" ? t.role : asOutput(name) === "y" ? "output" : "input";
      return [asOutput(name), { ...t, name: asOutput(name), role } as const];
    }),
  );
  const statements = chain.statements.map((s) => ({
    ...s,
    writes: s.writes.map((w) => ({ ...w, tensor: asOutput(w.tensor) })),
  }));
  const region = { ...chain, statements, tensors };
  const space = new ChainSpace(region, wasm);
  const plain = { schedule: () => ({ region: "", target: "wasm", directives: [] }) } as never;
  const tiles = statements.map(() => plain);
  for (const cut of space.cuts()) {
    for (const parallel of [undefined, ...Array.from({ length: space.shared }, (_, i) => i)]) {
      const schedule = space.schedule({ cut, tiles, ...(parallel !== undefined && { parallel }) });
      unwrap(checkSchedule(unwrap(applySchedule(region, schedule))));
      expect(checkLowering(region, schedule, rng, wasm)).toBeUndefined();
    }
  }
});

it("every cut of a chain has a price, of tensors that no cache holds too", () => {
  const shape = { batch: 1, heads: 12, groups: 12, rows: 512, keys: 512, size: 64 };
  const chain = chainOf(attention(shape, { causal: "start" }, new Rng(44)).graph);
  const space = new ChainSpace(chain, wasm);
  const plain = { schedule: () => ({ region: "", target: "wasm", directives: [] }) } as never;
  const tiles = chain.statements.map(() => plain);
  const cuts = space.cuts();
  expect(cuts.length).toBeGreaterThan(1);
  for (const cut of cuts) {
    const scheduled = unwrap(applySchedule(chain, space.schedule({ cut, tiles })));
    const price = codePriceOf(scheduled, wasm, analyticalModel(wasm));
    expect(price?.estimateNs).toBeGreaterThan(0);
    expect(price?.estimateNs).toBeLessThan(1e12);
  }
});
