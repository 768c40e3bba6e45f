/** Blocks whose clusters share the tiles of the last round: `multiply ... blocks B parts P`. */
import { describe, expect, it } from "vitest";
import { productDifference } from "../../../campaign/ptx/product-difference.ts";
import { compileModel } from "../../compile.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import type { Graph } from "../../graph/graph.ts";
import { tensorType } from "../../graph/tensor-type.ts";
import { noWeights } from "../../interp/graph.ts";
import { applySchedule } from "../../schedule/apply.ts";
import { parseSchedule } from "../../schedule/directive-text.ts";
import { enumerateProducts } from "../../schedule/products/product-candidates.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { targets } from "../../target/index.ts";

const target = targets.get("h200")!;

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

interface Shape {
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
  readonly dtype?: "bf16" | "f16";
  /** A bias, a tensor like the result and a relu behind the sums. */
  readonly isFinished?: boolean;
}

function graphOf({ rows, columns, depth, dtype = "bf16", isFinished }: Shape): Graph {
  const g = new GraphBuilder("product");
  const x = g.input("x", tensorType(dtype, rows, depth));
  const w = g.input("w", tensorType(dtype, columns, depth));
  const [r, b] = isFinished
    ? [g.input("r", tensorType(dtype, rows, columns)), g.input("b", tensorType(dtype, columns))]
    : [];
  const sums = g.cast(g.einsum("i k, j k -> i j", x, w, "f32"), dtype);
  if (r === undefined || b === undefined) return g.finish([sums]);
  return g.finish([g.apply("relu", g.add(g.add(sums, r), b))]);
}

function scheduleOf(how: string) {
  return take(parseSchedule(`schedule "S0" for "h200" { multiply S0 by wgmma ${how} }`));
}

/** Compiled (and so proved) with the schedule, run thread by thread, compared with the oracle. */
function difference(shape: Shape, how: string): string | undefined {
  const measured = new Map([["S0", scheduleOf(how)]]);
  return productDifference({ graph: graphOf(shape), measured, target });
}

/** Why the schedule is refused. */
function faultOf(shape: Shape, how: string): string | undefined {
  const compiled = take(compileModel({ graph: graphOf(shape), weights: noWeights }, { target }));
  const applied = applySchedule(compiled.regions[0]!.scheduled.region, scheduleOf(how));
  if (applied.ok) return undefined;
  const [first] = applied.diagnostics;
  return `${first!.code} ${first!.message} ${first!.notes.join(" ")}`;
}

const stream = "tile (64, 32, 64) warps (4, 1) stages 2 swizzle 128";

describe("tiles of the last round, shared by clusters", () => {
  it.each([
    [
      "f16 in an odd ring, by one of two clusters, stored by threads",
      { rows: 40, columns: 72, depth: 72, dtype: "f16" },
      `${stream.replace("32, 64", "16, 64").replace("stages 2", "stages 3")} blocks 4 parts 2`,
    ],
    [
      "ragged, gathered in turns, a bias and a residual",
      { rows: 40, columns: 72, depth: 72, isFinished: true },
      `${stream} results 1 blocks 2 parts 2`,
    ],
  ] as const)("%s", (_, shape, how) => {
    expect(faultOf(shape, how)).toBeUndefined();
    expect(difference(shape, how)).toBeUndefined();
  });

  it("are refused (SCH035) where there are none, or more than clusters", () => {
    const shape = { rows: 72, columns: 72, depth: 128 };
    const why = (how: string, given: Shape = shape): string => faultOf(given, `${stream} ${how}`)!;
    expect(why("blocks 3 parts 2")).toMatch(/^SCH035 .*3 blocks in clusters of 2/);
    expect(why("blocks 6 parts 2")).toMatch(
      /6 tiles fill whole rounds of 6 blocks: none is shared/,
    );
    expect(why("blocks 4 parts 4")).toMatch(/2 tiles of the last round for 1 clusters of 4 blocks/);
    expect(why("blocks 4 teams 2 parts 2")).toMatch(/take turns with tiles do not share one/);
    expect(why("results 1 blocks 4 parts 2 ahead")).toMatch(/need the registers/);
    expect(why("blocks 4 parts 2 cluster 2")).toMatch(/without teams and parts/);
    expect(why("blocks 4 parts 2", { ...shape, depth: 120 + 64 })).toMatch(/3 steps .* in 2 parts/);
    expect(why("results 1 parts 2")).toMatch(/of their one tile store it/);
  });
});

it("are among the candidates where as many clusters take them, and of no other", () => {
  const sharing = (rows: number): readonly (readonly [number, number])[] => {
    const { regions } = take(
      compileModel(
        { graph: graphOf({ rows, columns: 2304, depth: 512 }), weights: noWeights },
        { target },
      ),
    );
    const found = enumerateProducts(regions[0]!.scheduled.region, target);
    const shared = found.filter((d) => d.blocks > 0 && d.parts > 1);
    return shared.map((d) => [Math.ceil(rows / d.tile[0]), Math.ceil(2304 / d.tile[1])] as const);
  };
  const tiles = sharing(2304).map(([tall, wide]) => tall * wide);
  expect(tiles).toContain(324);
  expect(tiles.every((n) => n > 132 && n % 132 > 0 && n % 132 <= 66)).toBe(true);
});
