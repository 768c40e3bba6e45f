import { expect, it } from "vitest";
import { compileModel } from "../../compile.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import { tensorType } from "../../graph/tensor-type.ts";
import { noWeights } from "../../interp/graph.ts";
import { buildNests } from "../../region/builders/build-nests.ts";
import { regionsOf } from "../../region/regions-of.ts";
import { fromRef, refTensor } from "../../semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { targets } from "../../target/index.ts";
import { joinParts } from "./join-parts.ts";

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

const target = targets.get("h200")!;

it("joins parts of a concat in one statement, with a short loop copied out", () => {
  const g = new GraphBuilder("parts");
  const x = g.input("x", tensorType("f32", 6, 16));
  const y = g.input("y", tensorType("f32", 6, 3, 16));
  const parts = [g.reshape(g.applyNumber("mul", x, 2), [6, 1, 16]), g.apply("tanh", y)];
  const graph = g.finish([g.concat(parts, 1)]);
  const { regions } = take(compileModel({ graph, weights: noWeights }, { target }));
  const [statement, ...others] = regions.flatMap((r) => r.scheduled.region.statements);
  expect(others).toEqual([]);
  expect(statement!.writes).toHaveLength(4);
});

it("leaves a copy before what is written over it", () => {
  const g = new GraphBuilder("over");
  const data = g.input("data", tensorType("f32", 2, 3, 8));
  const row = g.input("row", tensorType("f32", 2, 1, 8));
  const places = g.constant(fromRef(refTensor("i64", [2, 1, 8], new Array(16).fill(1n))));
  const graph = g.finish([
    g.node("scatterElements", [data, places, row], { axis: 1, reduction: "none" }),
  ]);
  const { regions } = take(compileModel({ graph, weights: noWeights }, { target }));
  expect(regions.map((r) => r.scheduled.region.statements[0]!.writes.length)).toEqual([1, 1]);
});

it("passes over what is written into a layout of its own, which is no tensor of the program", () => {
  const g = new GraphBuilder("layouts");
  const graph = g.finish([g.apply("tanh", g.input("x", tensorType("f32", 6, 16)))]);
  const nests = take(buildNests(graph));
  const [region] = regionsOf(nests, { forBlocks: true }).regions;
  const [statement] = region!.statements;
  const [write] = statement!.writes;
  const moved = {
    ...region!,
    statements: [{ ...statement!, writes: [{ ...write!, tensor: "y.last" }] }],
    tensors: new Map([...region!.tensors, ["y.last", region!.tensors.get(write!.tensor)!]]),
  };
  const { regions } = joinParts(() => 1)([moved], nests);
  expect(regions).toEqual([moved]);
});
