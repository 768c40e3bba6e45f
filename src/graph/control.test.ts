import { describe, expect, it } from "vitest";
import { constant } from "../semantics/index-expr.ts";
import { attempt } from "../support/diagnostic.ts";
import { GraphBuilder } from "./builder.ts";
import type { Graph, TensorType, ValueId } from "./graph.ts";
import type { OpWriter } from "./op-writer.ts";
import { tensorType } from "./tensor-type.ts";

const row = tensorType("f32", 8);
const flag = tensorType("bool");
const count = tensorType("i64");

type Results = (w: OpWriter, inputs: readonly ValueId[]) => readonly ValueId[];

function subgraphOf(b: GraphBuilder, types: readonly TensorType[], results: Results): Graph {
  const inputs = types.map((type, i) => ({ name: `in${i}`, type }));
  return b.subgraph("body", inputs, (w, given) => [...results(w, given)]);
}

/** The code and message by which an op with a subgraph is refused. */
function refusal(build: (b: GraphBuilder, x: ValueId, go: ValueId) => unknown): string {
  const b = new GraphBuilder("test");
  const x = b.input("x", row);
  const go = b.input("go", flag);
  const result = attempt(() => build(b, x, go));
  if (result.ok) return "ok";
  const [first] = result.diagnostics;
  return `${first!.code} ${first!.message}`;
}

function branches(types: readonly TensorType[], yes: Results, no: Results): string {
  return refusal((b, x, go) => {
    const sides = { then: subgraphOf(b, types, yes), else: subgraphOf(b, types, no) };
    return b.nodes("if", [go, x], sides);
  });
}

function loop(types: readonly TensorType[], results: Results): string {
  return refusal((b, x, go) => {
    const attrs = { body: subgraphOf(b, types, results), carried: 1, maxTrips: constant(5) };
    return b.nodes("loop", [b.scalar(5n, "i64"), go, x], attrs);
  });
}

/** A scan over the rows of f32[3, 8] that carries a row. */
function scan(types: readonly TensorType[], results: Results): string {
  return refusal((b, x) => {
    const rows = b.node("broadcast", [b.scalarLike(0, x)], {
      shape: tensorType("f32", 3, 8).shape,
    });
    const order = { inputAxes: [0], inputReversed: [false], outputAxes: [], outputReversed: [] };
    const attrs = { body: subgraphOf(b, types, results), carried: 1, sequences: 1, ...order };
    return b.nodes("scan", [x, rows], attrs);
  });
}

/** A tensor whose extent is a symbol of the subgraph itself. */
function unsized(w: OpWriter, x: ValueId): ValueId {
  return w.node("nonZero", [x], {});
}

describe("a subgraph that does not fit its op (GRF004)", () => {
  it("is refused as a branch", () => {
    const same: Results = (_, [x]) => [x!];
    expect(branches([row], same, same)).toBe("ok");
    expect(branches([row, row], same, same)).toMatch(/^GRF004 the then branch takes 2 inputs/);
    expect(branches([flag], same, same)).toMatch(/^GRF004 input 0 of the then branch/);
    expect(branches([row], same, (_, [x]) => [x!, x!])).toMatch(
      /^GRF004 the branches give 1 and 2/,
    );
    expect(branches([row], same, (w) => [w.scalar(1, "f32")])).toMatch(/^GRF004 output 0 of/);
  });

  it("is refused as the body of a loop", () => {
    const types = [count, flag, row];
    expect(loop(types, (_, [, go, x]) => [go!, x!])).toBe("ok");
    expect(loop([flag, row], (_, [go, x]) => [go!, x!])).toMatch(/^GRF004 the body takes 2 inputs/);
    expect(loop(types, () => [])).toMatch(/^GRF004 the body gives no condition/);
    expect(loop(types, (_, [i, , x]) => [i!, x!])).toMatch(/^GRF004 the condition of the body/);
    expect(loop(types, (_, [, go]) => [go!])).toMatch(/^GRF004 the body gives 0 of 1 carried/);
    expect(loop(types, (_, [i, go]) => [go!, i!])).toMatch(/^GRF004 carried value 0/);
    const escaping: Results = (w, [, go, x]) => [go!, x!, unsized(w, x!)];
    expect(loop(types, escaping)).toMatch(/^GRF004 a result .* depends on a symbol inside/);
  });

  it("is refused as the body of a scan", () => {
    expect(scan([row, row], (w, [sum, x]) => [w.add(sum!, x!)])).toBe("ok");
    expect(scan([row], (_, [sum]) => [sum!])).toMatch(/^GRF004 the body takes 1 inputs/);
    expect(scan([row, row], () => [])).toMatch(/^GRF004 the body gives 0 of 1 carried/);
    expect(scan([row, row], (w) => [w.scalar(1, "f32")])).toMatch(/^GRF004 carried value 0/);
  });
});
