import { describe, expect, it } from "vitest";
import { productDifference } from "../../../campaign/ptx/product-difference.ts";
import { compileModel } from "../../compile.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import type { Graph } from "../../graph/graph.ts";
import { noWeights } from "../../interp/graph.ts";
import { applySchedule } from "../../schedule/apply.ts";
import { parseSchedule } from "../../schedule/directive-text.ts";
import { constant } from "../../semantics/index-expr.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { targets } from "../../target/index.ts";

const target = targets.get("h200")!;

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

type Sizes = readonly [rows: number, columns: number, depth: number];

/** The two operands as they are named for BLAS: `n` as the product has them, `t` the other way. */
const orders = ["nn", "nt", "tn", "tt"] as const;

interface Given {
  readonly batch?: number;
  readonly result?: "f32" | "bf16";
}

function graphOf(order: string, [m, n, k]: Sizes, given: Given = {}): Graph {
  const { batch, result = "f32" } = given;
  const g = new GraphBuilder("product");
  const type = (...shape: readonly number[]) =>
    ({ dtype: "bf16", shape: shape.map((e) => constant(e)) }) as const;
  const b = batch === undefined ? [] : [batch];
  const lead = batch === undefined ? "" : "b ";
  const left = order[0] === "n" ? "i k" : "k i";
  const right = order[1] === "n" ? "k j" : "j k";
  const sizes = { i: m, j: n, k } as const;
  const shapeOf = (letters: string): readonly number[] =>
    letters.split(" ").map((letter) => sizes[letter as keyof typeof sizes]);
  const x = g.input("x", type(...b, ...shapeOf(left)));
  const w = g.input("w", type(...b, ...shapeOf(right)));
  const equation = `${lead}${left}, ${lead}${right} -> ${lead}i j`;
  return g.finish([g.cast(g.einsum(equation, x, w, "f32"), result)]);
}

/** Compiled (and so proved) with the schedule, run thread by thread, compared with the oracle. */
function difference(graph: Graph, how: string): string | undefined {
  const schedule = take(parseSchedule(`schedule "S0" for "h200" { multiply S0 ${how} }`));
  const measured = new Map([["S0", schedule]]);
  return productDifference({ graph, measured, target });
}

describe("products of operands in either order by warpgroups", () => {
  const stream = "by wgmma tile (64, 32, 64) warps (4, 1) stages 2 swizzle 128";
  const wide = stream.replace("64, 32", "64, 96");
  const tall = stream.replace("64, 32", "128, 16");

  it.each(orders)("%s: ragged, a depth that ends within a step", (order) => {
    expect(difference(graphOf(order, [72, 40, 72]), `${stream} group 2`)).toBeUndefined();
  });

  it.each(orders)("%s: columns in several panels, rows in two instructions", (order) => {
    expect(difference(graphOf(order, [40, 96, 64]), wide)).toBeUndefined();
    expect(difference(graphOf(order, [128, 16, 64]), tall)).toBeUndefined();
  });

  it.each([
    ["nn", "group 2 results 1 blocks 3"],
    ["tt", "group 2 results 1 blocks 3"],
    ["tn", "results 2"],
    ["nn", "results 1 blocks 1 teams 2"],
    ["tt", "blocks 1 teams 2"],
  ] as const)("%s: gathered, in turns, %s", (order, how) => {
    const graph = graphOf(order, [72, 48, 72], { result: "bf16" });
    expect(difference(graph, `${stream} ${how}`)).toBeUndefined();
  });

  it.each(["nn", "tt"])("%s: parts of the depth in a cluster, and of the last tiles", (order) => {
    expect(difference(graphOf(order, [40, 56, 200]), `${stream} parts 2`)).toBeUndefined();
    const shared = stream.replace("64, 32", "64, 16");
    const how = `${shared} blocks 2 parts 2`;
    expect(difference(graphOf(order, [40, 48, 256]), how)).toBeUndefined();
  });

  it.each(["nn", "tt"])("%s: the columns as rows", (order) => {
    const how = `${stream.replace("64, 32", "64, 16")} swapped`;
    expect(difference(graphOf(order, [16, 72, 72]), how)).toBeUndefined();
  });

  it.each(["nn", "tt"])("%s: tiles that neighbouring blocks bring together", (order) => {
    expect(difference(graphOf(order, [72, 32, 72]), `${tall} cluster 2`)).toBeUndefined();
  });

  it("a panel is brought whole: three of 32 columns are no two parts, nor are 8 columns a panel", () => {
    const faultOf = (order: string, how: string): string | undefined => {
      const { regions } = take(
        compileModel({ graph: graphOf(order, [128, 96, 64]), weights: noWeights }, { target }),
      );
      const schedule = take(parseSchedule(`schedule "S0" for "h200" { multiply S0 ${how} }`));
      const applied = applySchedule(regions[0]!.scheduled.region, schedule);
      return applied.ok ? undefined : applied.diagnostics[0]!.message;
    };
    const together = `${wide} group 2 cluster 2`;
    expect(faultOf("nt", together)).toBeUndefined();
    expect(faultOf("nn", together)).toMatch(/no multiple of 32 rows/);
    const few = stream.replace("64, 32", "64, 24");
    expect(faultOf("nt", few)).toBeUndefined();
    expect(faultOf("nn", few)).toMatch(/24 columns that are neighbours/);
  });

  it.each(orders)("%s: problems of a batch, each by its own axis, a ragged depth", (order) => {
    const graph = graphOf(order, [40, 24, 72], { batch: 2, result: "bf16" });
    expect(difference(graph, `${stream} results 1`)).toBeUndefined();
  });
});
