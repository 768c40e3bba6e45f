/** Projections that are split into heads: the product itself writes each head where the transpose would put it. */
import { describe, expect, it } from "vitest";
import { productDifference } from "../../../campaign/ptx/product-difference.ts";
import { compileModel } from "../../compile.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import type { Graph, ValueId } from "../../graph/graph.ts";
import { noWeights } from "../../interp/graph.ts";
import { parseSchedule } from "../../schedule/directive-text.ts";
import { constant } from "../../semantics/index-expr.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { targets } from "../../target/index.ts";

const target = targets.get("h200")!;

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

interface Sizes {
  readonly batch?: number;
  readonly tokens: number;
  readonly heads: number;
  readonly width: number;
  readonly depth: number;
}

type Type = "f32" | "bf16";

/** x w + b of [batch, tokens, heads * width] as [batch, heads, tokens, width]; of several, each a part of the columns. */
function graphOf({ batch = 1, tokens, heads, width, depth }: Sizes, dtype: Type, parts = 1): Graph {
  const g = new GraphBuilder("heads");
  const type = (...shape: readonly number[]) => ({ dtype, shape: shape.map((n) => constant(n)) });
  const columns = heads * width;
  const x = g.input("x", type(batch, tokens, depth));
  const w = g.input("w", type(depth, parts * columns));
  const b = g.input("b", type(parts * columns));
  const sums = g.einsum("b i k, k j -> b i j", x, w, "f32");
  const made = g.cast(g.add(sums, g.cast(b, "f32")), dtype);
  const split = (value: ValueId): ValueId => {
    return g.transpose(g.reshape(value, [batch, tokens, heads, width]), [0, 2, 1, 3]);
  };
  if (parts === 1) return g.finish([split(made)]);
  const of = (part: number): ValueId => g.sliceAxis(made, 2, part * columns, columns);
  return g.finish(Array.from({ length: parts }, (_, part) => split(of(part))));
}

/** Compiled (and so proved) with the schedule, run thread by thread, compared with the oracle. */
function difference(
  graph: Graph,
  how: string,
  names: readonly string[] = ["S4"],
): string | undefined {
  const measured = new Map(
    names.map((name) => {
      const text = `schedule "${name}" for "h200" { multiply ${name} ${how} }`;
      return [name, take(parseSchedule(text))] as const;
    }),
  );
  return productDifference({ graph, measured, target });
}

/** Of what is chosen by price: a kernel has the name of its region. */
function kernelsOf(graph: Graph): readonly string[] {
  const { plan } = take(compileModel({ graph, weights: noWeights }, { target }));
  return plan.program.kernels.map((k) => k.name);
}

describe("heads that a product's epilogue writes apart", () => {
  const stream = "by wgmma tile (64, 64, 64) warps (4, 1) stages 2 swizzle 128";
  const sizes = { batch: 2, tokens: 40, heads: 2, width: 32, depth: 64 };

  it.each([
    ["a tile of two heads, copied out one by one", "tile (64, 64, 64)", "results 1"],
    ["a head a tile, in turns", "tile (64, 32, 64)", "results 1 blocks 3"],
    ["half a head", "tile (64, 16, 64)", "results 1"],
    ["from registers, parts of the depth", "tile (64, 64, 64)", "parts 2"],
  ])("by warpgroups: %s", (_, tile, more) => {
    const deep = more.startsWith("parts") ? { ...sizes, depth: 128 } : sizes;
    const how = `${stream.replace("tile (64, 64, 64)", tile)} ${more}`;
    expect(difference(graphOf(deep, "bf16"), how)).toBeUndefined();
  });

  it.each([
    ["two heads, a warp beside another in each", "mma tile (32, 64, 32) warps (2, 2)"],
    ["half a head, of which warps have halves", "mma tile (16, 32, 32) warps (1, 2)"],
  ])("by warps: %s", (_, how) => {
    const of = graphOf({ ...sizes, tokens: 24, width: how.includes("16, 32") ? 64 : 32 }, "bf16");
    expect(difference(of, `by ${how} stages 2 swizzle 64`)).toBeUndefined();
  });

  it("by threads, f32", () => {
    const how = "by fma tile (16, 64, 8) warps (1, 2) stages 2 swizzle 0";
    expect(difference(graphOf({ ...sizes, tokens: 20 }, "f32"), how, ["S2"])).toBeUndefined();
  });

  it("queries, keys and values of one product are three products", () => {
    const graph = graphOf({ ...sizes, batch: 1, tokens: 40 }, "bf16", 3);
    const kernels = kernelsOf(graph);
    expect(kernels).toHaveLength(3);
    expect(difference(graph, `${stream} results 1`, kernels)).toBeUndefined();
  });
});
