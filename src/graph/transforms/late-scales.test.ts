import { describe, expect, it } from "vitest";
import { runGraph } from "../../interp/graph.ts";
import type { DType } from "../../semantics/dtype.ts";
import {
  fromRef,
  numbersOf,
  type RefTensor,
  randomRef,
  refTensor,
} from "../../semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { Rng } from "../../support/rng.ts";
import { GraphBuilder } from "../builder.ts";
import type { Graph } from "../graph.ts";
import { tensorType } from "../tensor-type.ts";
import { lateScales } from "./late-scales.ts";

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

interface Given {
  readonly equation?: string;
  readonly shape?: readonly number[];
  readonly axis?: number;
  readonly blockSize?: number;
  readonly zeros?: readonly number[];
  readonly accumulator?: DType;
}

const rng = new Rng(4);
const noStore = { read: () => expect.fail("a weight was read") };

/** Data [3, 8] by stored bytes, scaled along an axis. */
function graphOf({
  equation = "i k, j k -> i j",
  shape = [5, 8],
  axis,
  blockSize,
  zeros,
  accumulator = "f32",
}: Given): Graph {
  const g = new GraphBuilder("product");
  const x = g.input("x", tensorType("f32", 3, 8));
  const places =
    axis === undefined
      ? []
      : [blockSize ? shape.map((n, a) => (a === axis ? n / blockSize : n)) : [shape[axis]!]].flat();
  const w = g.constant(fromRef(randomRef("u8", shape, rng)), "w");
  const s = g.constant(fromRef(randomRef("f32", places, rng)), "s");
  const z = zeros ? [g.constant(fromRef(refTensor("u8", places, zeros)))] : [];
  const how = { ...(axis !== undefined && { axis }), ...(blockSize && { blockSize }) };
  const right = g.node("dequantize", [w, s, ...z], { ...how, to: "f32" });
  const operands = equation.startsWith("j") ? [right, x] : [x, right];
  return g.finish([g.einsum(equation, operands[0]!, operands[1]!, accumulator)]);
}

const results = (graph: Graph, x: RefTensor) => numbersOf(take(runGraph(graph, [x]))[0]!);

describe("scales of dequantised weights", () => {
  it("leave the sums where the results have their axis, or they are one for all", () => {
    const cases: readonly Given[] = [
      { axis: 0 },
      { axis: 0, zeros: [7, 7, 7, 7, 7] },
      { axis: 0, equation: "j k, i k -> j i" },
      { axis: 1, equation: "i k, k j -> i j", shape: [8, 5] },
      { zeros: [128] },
      { axis: 0, equation: "i k, j l k -> j i l", shape: [5, 2, 8] },
    ];
    for (const given of cases) {
      const graph = graphOf(given);
      const made = lateScales(graph, noStore).graph;
      expect(made.nodes.map((n) => n.op)).toContain("mul");
      const x = randomRef("f32", [3, 8], rng);
      const [want, found] = [results(graph, x), results(made, x)];
      const size = Math.max(...want.map(Math.abs));
      want.forEach((n, i) => {
        expect(Math.abs(n - found[i]!)).toBeLessThan(1e-5 * size);
      });
    }
  });

  it("stay where they change along the depth, zero points differ, or results are no floats that hold them", () => {
    const cases: readonly Given[] = [
      { axis: 1 },
      { axis: 1, blockSize: 4 },
      { axis: 0, zeros: [1, 2, 3, 4, 5] },
    ];
    for (const given of cases) {
      const ops = lateScales(graphOf(given), noStore).graph.nodes.map((n) => n.op);
      expect(ops).toEqual(["dequantize", "contract"]);
    }
  });
});
