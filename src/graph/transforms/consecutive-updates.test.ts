import { describe, expect, it } from "vitest";
import { compileModel } from "../../compile.ts";
import { noWeights, runGraph } from "../../interp/graph.ts";
import { constant } from "../../semantics/index-expr.ts";
import { type RefTensor, refTensor } from "../../semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { targets } from "../../target/index.ts";
import { GraphBuilder } from "../builder.ts";
import type { Graph, ValueId } from "../graph.ts";
import { tensorType } from "../tensor-type.ts";
import { consecutiveUpdates } from "./consecutive-updates.ts";

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

const [batch, heads, length, depth] = [2, 3, 9, 4];

type Index = (g: GraphBuilder, begin: ValueId, rows: number) => ValueId;

const forms: Readonly<Record<string, Index>> = {
  "a number beside each row": (g, begin, rows) => {
    const row = g.iota([1, rows], 1, "i64");
    return g.reshape(g.add(row, begin), [batch, 1, rows, 1]);
  },
  "rows counted first": (g, begin, rows) =>
    g.add(g.reshape(begin, [batch, 1, 1, 1]), g.iota([1, 1, rows, 1], 2, "i64")),
};

function graphOf(index: Index, rows: number): Graph {
  const g = new GraphBuilder("updates");
  const data = g.input("data", tensorType("f32", batch, heads, length, depth));
  const updates = g.input("updates", tensorType("f32", batch, heads, rows, depth));
  const begin = g.input("begin", tensorType("i64", batch, 1));
  const shape = [batch, heads, rows, depth].map((d) => constant(d));
  const places = g.node("broadcast", [index(g, begin, rows)], { shape });
  const attrs = { axis: 2, reduction: "none" as const };
  return g.finish([g.node("scatterElements", [data, places, updates], attrs)]);
}

function operands(rows: number, begin: readonly number[]): readonly RefTensor[] {
  const counted = (n: number, from: number) => Array.from({ length: n }, (_, i) => from + i);
  return [
    refTensor("f32", [batch, heads, length, depth], counted(batch * heads * length * depth, 0)),
    refTensor("f32", [batch, heads, rows, depth], counted(batch * heads * rows * depth, 1000)),
    refTensor("i64", [batch, 1], begin.map(BigInt)),
  ];
}

const opsOf = ({ nodes }: Graph): readonly string[] => nodes.map((n) => n.op);

describe("updates behind each other", () => {
  it.each(Object.keys(forms))("are chosen from where they are known to be, %s", (form) => {
    for (const rows of [1, 4, length]) {
      const graph = graphOf(forms[form]!, rows);
      const chosen = consecutiveUpdates(graph).graph;
      expect(opsOf(chosen)).toContain("gatherElements");
      for (const begin of [0, 5, length - rows, -1, -rows, -length].filter(
        (at) => at + rows <= length,
      )) {
        const inputs = operands(rows, [begin, 0]);
        expect(take(runGraph(chosen, inputs))).toEqual(take(runGraph(graph, inputs)));
      }
    }
  });

  it("are an error of the run where they end behind the data", () => {
    const graph = graphOf(forms["rows counted first"]!, 4);
    const chosen = consecutiveUpdates(graph).graph;
    for (const begin of [length - 3, -length - 1]) {
      const inputs = operands(4, [0, begin]);
      expect(() => take(runGraph(graph, inputs))).toThrow();
      expect(() => take(runGraph(chosen, inputs))).toThrow();
    }
  });

  it("leave other updates alone", () => {
    const others: readonly Index[] = [
      (g, begin, rows) =>
        g.add(g.iota([batch, 1, rows, 1], 0, "i64"), g.reshape(begin, [batch, 1, 1, 1])),
      (g, begin, rows) => {
        const row = g.applyNumber("mul", g.iota([1, 1, rows, 1], 2, "i64"), 2);
        return g.add(row, g.reshape(begin, [batch, 1, 1, 1]));
      },
    ];
    for (const index of others)
      expect(opsOf(consecutiveUpdates(graphOf(index, 2)).graph)).toContain("scatterElements");
  });

  it("are no loop in order on machines of many threads", () => {
    const model = { graph: graphOf(forms["a number beside each row"]!, 4), weights: noWeights };
    const { regions } = take(compileModel(model, { target: targets.get("h200")! }));
    const loops = regions.flatMap((r) => r.scheduled.region.statements.flatMap((s) => s.loops));
    expect(loops.map((l) => l.kind)).not.toContain("scan");
    expect(regions.length).toBeLessThanOrEqual(2);
  });
});
