/** Products of extents that a run decides: one program, right at every size up to the bound. */
import { describe, expect, it } from "vitest";
import { productDifference } from "../../../campaign/ptx/product-difference.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import type { Graph } from "../../graph/graph.ts";
import { parseSchedule } from "../../schedule/directive-text.ts";
import type { DType } from "../../semantics/dtype.ts";
import type { IndexLike } from "../../semantics/index-expr.ts";
import { toIndex } from "../../semantics/index-expr.ts";
import { targets } from "../../target/index.ts";

interface Open {
  readonly equation: string;
  readonly left: readonly (number | string)[];
  readonly right: readonly (number | string)[];
  readonly bounds: Readonly<Record<string, number>>;
  readonly dtype?: DType;
  /** Whether a bias, an activation and a residual follow. */
  readonly isFused?: true;
  /** Whether results are rounded to the operands' type. */
  readonly isNarrow?: true;
}

/** A product; extents that are names are open, from 1 up to their bounds. */
function graphOf({
  equation,
  left,
  right,
  bounds,
  dtype = "bf16",
  isFused,
  isNarrow,
}: Open): Graph {
  const g = new GraphBuilder("product");
  const symbols = new Map(
    Object.entries(bounds).map(([name, most]) => [name, g.symbol(name, 1, most)] as const),
  );
  const type = (shape: readonly (number | string)[], own: DType = dtype) => ({
    dtype: own,
    shape: shape.map((e): IndexLike => (typeof e === "string" ? symbols.get(e)! : e)).map(toIndex),
  });
  const [x, w] = [g.input("x", type(left)), g.input("w", type(right))];
  const bias = isFused && g.input("b", type([right[0]!], "f32"));
  const residual = isFused && g.input("r", type([left[0]!, right[0]!], "f32"));
  const sums = g.einsum(equation, x, w, "f32");
  if (!bias || !residual) return g.finish([isNarrow ? g.cast(sums, dtype) : sums]);
  return g.finish([g.apply("relu", g.add(g.add(sums, bias), residual))]);
}

function scheduleOf(target: string, how: string) {
  const read = parseSchedule(`schedule "S0" for "${target}" { multiply S0 ${how} }`);
  if (!read.ok) throw new Error(read.diagnostics[0]!.message);
  return read.value;
}

const rows: Open = {
  equation: "i k, j k -> i j",
  left: ["M", 96],
  right: [40, 96],
  bounds: { M: 200 },
};
const mma = "by mma tile (32, 32, 32) warps (2, 1) stages 3 swizzle 64";
const wgmma = "by wgmma tile (64, 16, 64) warps (4, 1) stages 2 swizzle 128";
const fma = "by fma tile (32, 32, 8) warps (2, 1) stages 2 swizzle 0";

describe("products of open extents", () => {
  it.each<readonly [string, Open, string, readonly Readonly<Record<string, number>>[]]>([
    ["rows", rows, mma, [{ M: 1 }, { M: 32 }, { M: 77 }, { M: 200 }]],
    ["rows", { ...rows, isFused: true }, mma, [{ M: 31 }, { M: 64 }]],
    ["rows in groups", rows, `${mma} group 4`, [{ M: 3 }, { M: 129 }]],
    ["rows of floats", { ...rows, dtype: "f32" }, fma, [{ M: 5 }, { M: 64 }, { M: 100 }]],
    ["rows by streams", rows, wgmma, [{ M: 1 }, { M: 64 }, { M: 70 }]],
    ["rows by streams", { ...rows, isNarrow: true }, `${wgmma} results 2`, [{ M: 9 }, { M: 65 }]],
    [
      "rows that are neighbours",
      { ...rows, equation: "k i, j k -> i j", left: [96, "M"] },
      mma,
      [{ M: 3 }, { M: 40 }],
    ],
    [
      "whole tiles",
      { ...rows, equation: "b i k, j k -> b i j", left: ["B", 32, 96], bounds: { B: 4 } },
      mma,
      [{ B: 1 }, { B: 3 }],
    ],
    [
      "tokens of sequences",
      { ...rows, equation: "b i k, j k -> b i j", left: ["B", "M", 96], bounds: { B: 3, M: 40 } },
      mma,
      [
        { B: 1, M: 1 },
        { B: 2, M: 33 },
        { B: 3, M: 40 },
      ],
    ],
    [
      "problems of a batch",
      {
        equation: "b h i k, b h j k -> b h i j",
        left: ["B", 2, "M", 32],
        right: ["B", 2, "M", 32],
        bounds: { B: 2, M: 40 },
      },
      mma.replace("stages 3", "stages 2"),
      [
        { B: 1, M: 7 },
        { B: 2, M: 40 },
      ],
    ],
    [
      "pictures of a batch, of which there are few",
      {
        equation: "j k, b k i -> b j i",
        left: [128, 64],
        right: ["B", 64, 196],
        bounds: { B: 8 },
        dtype: "f32",
      },
      "by fma tile (32, 64, 8) warps (1, 1) stages 3 swizzle 0",
      [{ B: 1 }],
    ],
    [
      "columns",
      { ...rows, right: ["N", 96], bounds: { M: 70, N: 70 } },
      mma,
      [
        { M: 1, N: 1 },
        { M: 33, N: 70 },
      ],
    ],
    [
      "the depth",
      { ...rows, left: ["M", "K"], right: [40, "K"], bounds: { M: 70, K: 200 } },
      mma,
      [
        { M: 3, K: 1 },
        { M: 33, K: 64 },
        { M: 70, K: 200 },
      ],
    ],
  ])("%s: %o %s", (_, open, how, sizes) => {
    const target = targets.get("h200")!;
    const measured = new Map([["S0", scheduleOf("h200", how)]]);
    for (const at of sizes) {
      expect(
        productDifference({ graph: graphOf(open), measured, target, sizes: at }),
      ).toBeUndefined();
    }
  });
});
