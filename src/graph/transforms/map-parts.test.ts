import { describe, expect, it } from "vitest";
import { runGraph } from "../../interp/graph.ts";
import { refTensor } from "../../semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { Rng } from "../../support/rng.ts";
import { GraphBuilder } from "../builder.ts";
import type { Graph } from "../graph.ts";
import { tensorType } from "../tensor-type.ts";
import { eliminateDeadCode } from "./clean.ts";
import { mapParts } from "./map-parts.ts";

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

const opsOf = ({ nodes }: Graph): readonly string[] => nodes.map((n) => n.op);

/** x cos + (-second half, first half) sin, also given as it is joined where `isShown`. */
function turned(isShown: boolean): Graph {
  const g = new GraphBuilder("turned");
  const x = g.input("x", tensorType("f32", 2, 3, 8));
  const [cos, sin] = ["cos", "sin"].map((name) => g.input(name, tensorType("f32", 3, 8)));
  const [first, second] = [g.sliceAxis(x, 2, 0, 4), g.sliceAxis(x, 2, 4, 4)];
  const joined = g.concat([g.apply("neg", second), first], 2);
  const y = g.add(g.mul(x, cos!), g.mul(joined, sin!));
  return g.finish(isShown ? [y, joined] : [y]);
}

function inputsOf(shapes: readonly (readonly number[])[]) {
  const rng = new Rng(1);
  return shapes.map((shape) => {
    const count = shape.reduce((n, d) => n * d, 1);
    return refTensor(
      "f32",
      shape,
      Array.from({ length: count }, () => Math.fround(rng.normal())),
    );
  });
}

describe("maps of a joined value", () => {
  it("are maps of its parts, and what is joined comes last", () => {
    const graph = turned(false);
    const made = eliminateDeadCode(mapParts(graph).graph);
    expect(opsOf(made).filter((op) => op === "concat")).toHaveLength(1);
    expect(opsOf(made).at(-1)).toBe("concat");
    const inputs = inputsOf([
      [2, 3, 8],
      [3, 8],
      [3, 8],
    ]);
    expect(take(runGraph(made, inputs))).toEqual(take(runGraph(graph, inputs)));
  });

  it("stay where others read the whole", () => {
    const made = eliminateDeadCode(mapParts(turned(true)).graph);
    expect(opsOf(made)).toEqual(opsOf(turned(true)));
  });

  it("take parts that meet as they are, and repeat what has none along the axis", () => {
    const g = new GraphBuilder("two");
    const [a, b, c, d] = ["a", "b", "c", "d"].map((name, i) =>
      g.input(name, tensorType("f32", 2, i % 2 === 0 ? 3 : 5)),
    );
    const e = g.input("e", tensorType("f32", 2, 1));
    const sum = g.add(g.concat([a!, b!], 1), g.concat([c!, d!], 1));
    const graph = g.finish([g.apply("tanh", g.mul(sum, e))]);
    const made = eliminateDeadCode(mapParts(graph).graph);
    expect(opsOf(made)).not.toContain("slice");
    const inputs = inputsOf([
      [2, 3],
      [2, 5],
      [2, 3],
      [2, 5],
      [2, 1],
    ]);
    expect(take(runGraph(made, inputs))).toEqual(take(runGraph(graph, inputs)));
  });
});
