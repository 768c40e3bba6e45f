import { describe, expect, it } from "vitest";
import { productDifference } from "../../../campaign/ptx/product-difference.ts";
import { compileModel } from "../../compile.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import type { Graph } from "../../graph/graph.ts";
import { noWeights } from "../../interp/graph.ts";
import { applySchedule } from "../../schedule/apply.ts";
import type { Schedule } from "../../schedule/directive.ts";
import { parseSchedule, printSchedule } from "../../schedule/directive-text.ts";
import { productForm } from "../../schedule/products/product-form.ts";
import type { DType } from "../../semantics/dtype.ts";
import { constant } from "../../semantics/index-expr.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { targets } from "../../target/index.ts";

const target = targets.get("h200")!;

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

interface Shape {
  readonly equation: string;
  readonly left: readonly number[];
  readonly right: readonly number[];
  readonly bias?: number;
  readonly dtype?: "f32" | "bf16";
  /** Of the operands, where it is not that of the result. */
  readonly of?: "f8e4m3fn" | "f8e5m2";
  /** A tensor like the result is added as well. */
  readonly isResidual?: true;
  /** What goes into the last step of the epilogue is a result too. */
  readonly isKept?: boolean;
}

function graphOf({
  equation,
  left,
  right,
  bias,
  dtype = "f32",
  of,
  isKept,
  isResidual,
}: Shape): Graph {
  const g = new GraphBuilder("product");
  const type = (shape: readonly number[], own: DType = dtype) => ({
    dtype: own,
    shape: shape.map((n) => constant(n)),
  });
  const [x, w] = [g.input("x", type(left, of)), g.input("w", type(right, of))];
  const b = bias === undefined ? undefined : g.input("b", type([bias]));
  const r = isResidual && g.input("r", type([left[0]!, right[0]!]));
  const sums = g.cast(g.einsum(equation, x, w, "f32"), dtype);
  const product = r ? g.add(sums, r) : sums;
  if (b === undefined) return g.finish([product]);
  const sum = g.add(product, b);
  return g.finish([...(isKept ? [sum] : []), g.apply("relu", sum)]);
}

function scheduleOf(how: string) {
  return take(parseSchedule(`schedule "S0" for "h200" { multiply S0 ${how} }`));
}

/** Compiled (and so proved) with the schedule, run thread by thread, compared with the oracle. */
function difference(shape: Shape, how: string): string | undefined {
  return differenceOf(graphOf(shape), new Map([["S0", scheduleOf(how)]]));
}

function differenceOf(graph: Graph, measured: ReadonlyMap<string, Schedule>): string | undefined {
  return productDifference({ graph, measured, target });
}

describe("products by blocks", () => {
  it("by threads: ragged, every way the operands lie, batches, an epilogue", () => {
    const tile = "by fma tile (16, 32, 4) warps (1, 1) stages 3 swizzle 0";
    const cases: readonly Shape[] = [
      { equation: "i k, k j -> i j", left: [17, 9], right: [9, 36], bias: 36 },
      { equation: "i k, j k -> i j", left: [16, 8], right: [33, 8] },
      { equation: "b k i, b k j -> b i j", left: [2, 12, 20], right: [2, 12, 8] },
    ];
    for (const shape of cases) expect(difference(shape, tile)).toBeUndefined();
  });

  it("by warps: fragments of both operands across and along, copies through registers", () => {
    const along = "by mma tile (16, 16, 32) warps (1, 1) stages 3 swizzle 64";
    const bf16 = { dtype: "bf16" } as const;
    const cases: readonly Shape[] = [
      { ...bf16, equation: "i k, j k -> i j", left: [24, 40], right: [17, 40], bias: 17 },
      { ...bf16, equation: "k i, k j -> i j", left: [33, 16], right: [33, 24] },
      { ...bf16, equation: "i k, j k -> i j", left: [9, 35], right: [18, 35] },
    ];
    for (const shape of cases) expect(difference(shape, along)).toBeUndefined();
  });

  it("axes of one element behind the depth are no place for a vector", () => {
    const tile = "by mma tile (16, 16, 32) warps (1, 1) stages 3 swizzle 64";
    const equation = "i k u v, k j -> i j";
    const shape = { equation, left: [16, 40, 1, 1], right: [40, 32], dtype: "bf16" } as const;
    expect(difference(shape, tile)).toBeUndefined();
  });

  it("by warpgroups from a stream: ragged, in groups of tiles, with an epilogue", () => {
    const stream = "by wgmma tile (64, 16, 64) warps (4, 1) stages 2 swizzle 128 group 2";
    const shape = { equation: "i k, j k -> i j", left: [72, 136], right: [20, 136] } as const;
    expect(difference({ ...shape, bias: 20, dtype: "bf16" }, stream)).toBeUndefined();
  });

  it("by warpgroups, results gathered and copied out: ragged, buffers that take turns", () => {
    const stream = "by wgmma tile (64, 48, 64) warps (4, 1) stages 2 swizzle 128 results 2";
    const shape = { equation: "i k, j k -> i j", left: [72, 72], right: [56, 72] } as const;
    expect(difference({ ...shape, dtype: "bf16" }, stream)).toBeUndefined();
  });

  it("by warpgroups, results gathered with an epilogue's operands: whole tiles, ragged ones, in turns", () => {
    const stream = "by wgmma tile (64, 48, 64) warps (4, 1) stages 2 swizzle 128";
    const shape = { equation: "i k, j k -> i j", left: [64, 72], dtype: "bf16" } as const;
    expect(
      difference({ ...shape, right: [96, 72], bias: 96 }, `${stream} results 1`),
    ).toBeUndefined();
    const ragged = { ...shape, left: [72, 72], right: [56, 72], bias: 56 } as const;
    expect(difference(ragged, `${stream} results 1`)).toBeUndefined();
    expect(difference(ragged, `${stream} group 2 results 1 blocks 3`)).toBeUndefined();
  });

  it("by warpgroups, of rows from some line on", () => {
    const g = new GraphBuilder("product");
    const type = (...shape: readonly number[]) =>
      ({ dtype: "bf16", shape: shape.map((n) => constant(n)) }) as const;
    const [x, w] = [g.input("x", type(192, 72)), g.input("w", type(48, 72))];
    const part = g.sliceAxis(x, 0, 40, 128);
    const graph = g.finish([g.cast(g.einsum("i k, j k -> i j", part, w, "f32"), "bf16")]);
    const stream = "by wgmma tile (64, 48, 64) warps (4, 1) stages 2 swizzle 128 results 1";
    const text = `schedule "S1" for "h200" { multiply S1 ${stream} }`;
    expect(differenceOf(graph, new Map([["S1", take(parseSchedule(text))]]))).toBeUndefined();
  });

  it("by warpgroups, operands of the results loaded ahead: ragged, in turns", () => {
    const stream = "by wgmma tile (64, 48, 64) warps (4, 1) stages 2 swizzle 128";
    const equation = "i k, j k -> i j";
    const shape = { equation, left: [72, 72], right: [56, 72], dtype: "bf16" } as const;
    const residual = { ...shape, bias: 56, isResidual: true } as const;
    expect(difference(residual, `${stream} results 1 ahead`)).toBeUndefined();
    expect(difference(residual, `${stream} group 2 results 1 blocks 3 ahead`)).toBeUndefined();
  });

  it("by warpgroups that go on from tile to tile: one more tile than blocks", () => {
    const stream = "by wgmma tile (64, 32, 64) warps (4, 1) stages 2 swizzle 128";
    const shape = { equation: "i k, j k -> i j", left: [72, 72], right: [40, 72] } as const;
    const how = `${stream} group 2 results 1 blocks 3`;
    expect(difference({ ...shape, dtype: "bf16" }, how)).toBeUndefined();
    // Stored by the threads that hold them, with an operand.
    const narrow = { ...shape, right: [24, 72], bias: 24, dtype: "bf16" } as const;
    expect(difference(narrow, `${stream} blocks 1`)).toBeUndefined();
  });

  it("by clusters whose blocks take a part of the depth each: ragged, two rows of instructions, columns as rows", () => {
    const stream = "by wgmma tile (64, 32, 64) warps (4, 1) stages 2 swizzle 128";
    const equation = "i k, j k -> i j";
    const shape = { equation, left: [40, 200], right: [56, 200], dtype: "bf16" } as const;
    const tall = stream.replace("64, 32", "128, 16");
    expect(difference({ ...shape, bias: 56 }, `${stream} parts 2`)).toBeUndefined();
    expect(difference(shape, `${stream} parts 4`)).toBeUndefined();
    expect(difference(shape, `${tall} parts 2`)).toBeUndefined();
    expect(difference({ ...shape, left: [9, 200] }, `${tall} parts 2 swapped`)).toBeUndefined();
  });

  it("by warpgroups in clusters that bring a tile together: of rows, of columns, in turns", () => {
    const stream = "by wgmma tile (64, 32, 64) warps (4, 1) stages 2 swizzle 128";
    const shape = { equation: "i k, j k -> i j", left: [72, 72], right: [40, 72] } as const;
    for (const how of ["cluster 2", "group 2 results 1 blocks 2 cluster 2"])
      expect(difference({ ...shape, dtype: "bf16" }, `${stream} ${how}`)).toBeUndefined();
  });

  it("by teams of warpgroups that take turns: two of three tiles", () => {
    const stream = "by wgmma tile (64, 32, 64) warps (4, 1) stages 2 swizzle 128";
    const shape = { equation: "i k, j k -> i j", left: [40, 72], right: [72, 72] } as const;
    const how = `${stream} results 1 blocks 1 teams 2`;
    expect(difference({ ...shape, dtype: "bf16" }, how)).toBeUndefined();
  });

  it("by warpgroups, elements of 8 bits: sums of each step added by threads, ragged, in turns", () => {
    const stream = "by wgmma tile (64, 48, 128) warps (4, 1) stages 2 swizzle 128";
    const shape = { equation: "i k, j k -> i j", dtype: "bf16" } as const;
    const kinds = [
      [{ of: "f8e4m3fn", left: [40, 272], right: [56, 272], bias: 56 }, `${stream} results 1`],
      [{ of: "f8e5m2", left: [72, 144], right: [56, 144] }, `${stream} group 2 results 1 blocks 3`],
      [{ of: "f8e4m3fn", left: [24, 144], right: [20, 144], bias: 20 }, `${stream} blocks 1`],
    ] as const;
    for (const [kind, how] of kinds) expect(difference({ ...shape, ...kind }, how)).toBeUndefined();
  });

  it("by warpgroups with the columns as rows: few rows, an epilogue", () => {
    const stream = "by wgmma tile (64, 16, 64) warps (4, 1) stages 2 swizzle 128 swapped";
    const shape = { equation: "i k, j k -> i j", left: [9, 72], right: [70, 72] } as const;
    expect(difference({ ...shape, bias: 70, dtype: "bf16" }, stream)).toBeUndefined();
  });

  it("every result of an epilogue that keeps what it computes on the way", () => {
    const tile = "by mma tile (16, 16, 32) warps (1, 1) stages 3 swizzle 64";
    const equation = "i k, k j -> i j";
    const shape = { equation, left: [24, 40], right: [40, 18], dtype: "bf16", bias: 18 } as const;
    expect(difference({ ...shape, isKept: true }, tile)).toBeUndefined();
  });

  it("pixels are the columns of a convolution, two at once where that is a vector", () => {
    const tile = "by mma tile (16, 16, 32) warps (1, 1) stages 3 swizzle 64";
    const equation = "n c h w, o c -> n o h w";
    for (const width of [9, 18]) {
      const shape = { equation, left: [1, 40, 3, width], right: [16, 40], dtype: "bf16" } as const;
      expect(difference(shape, tile)).toBeUndefined();
    }
  });

  it("two pixels of different lines, of which each has its line's own summand", () => {
    const g = new GraphBuilder("lines");
    const type = (...shape: number[]) => ({
      dtype: "bf16" as const,
      shape: shape.map((n) => constant(n)),
    });
    const [x, w, b] = [type(1, 40, 4, 9), type(16, 40), type(4, 1)].map((t, i) =>
      g.input(`x${i}`, t),
    );
    const sums = g.einsum("n c h w, o c -> n o h w", x!, w!, "f32");
    const graph = g.finish([g.add(g.cast(sums, "bf16"), b!)]);
    const how = "by mma tile (16, 16, 32) warps (1, 1) stages 3 swizzle 64";
    expect(differenceOf(graph, new Map([["S0", scheduleOf(how)]]))).toBeUndefined();
  });

  it("windows, strides, odd widths, pictures beside each other and parts of a concatenation", () => {
    const g = new GraphBuilder("windows");
    const type = (...shape: number[]) => ({
      dtype: "f32" as const,
      shape: shape.map((n) => constant(n)),
    });
    const x = g.input("x", type(2, 3, 4, 5));
    const window = { dilations: [1, 1], padLow: [1, 1], padHigh: [1, 1], groups: 1 };
    const [wide, far] = [g.input("w", type(17, 3, 3, 3)), g.input("v", type(5, 3, 3, 3))];
    const near = g.node("convolution", [x, wide], { ...window, strides: [1, 1] });
    const apart = g.node("convolution", [x, far], { ...window, strides: [2, 2] });
    const graph = g.finish([g.concat([x, g.apply("relu", near)], 1), apart]);
    const tile = "by fma tile (16, 32, 8) warps (1, 1) stages 3 swizzle 0";
    const { regions } = take(compileModel({ graph, weights: noWeights }, { target }));
    const products = regions.filter(({ scheduled: { region } }) => {
      const [statement] = region.statements;
      return typeof productForm(region, statement!) !== "string";
    });
    expect(products).toHaveLength(2);
    const measured = new Map(
      products.map(({ name }) => {
        const text = `schedule "${name}" for "h200" { multiply ${name} ${tile} }`;
        return [name, take(parseSchedule(text))] as const;
      }),
    );
    expect(differenceOf(graph, measured)).toBeUndefined();
  });
});

describe("the directive", () => {
  const shape = { equation: "i k, k j -> i j", left: [64, 16], right: [16, 64] } as const;
  const graphRegion = (given: Shape) => {
    const compiled = take(compileModel({ graph: graphOf(given), weights: noWeights }, { target }));
    return compiled.regions[0]!.scheduled.region;
  };
  const region = () => graphRegion(shape);
  const codeOf = (how: string, before = ""): string | undefined => {
    const schedule = take(
      parseSchedule(`schedule "S0" for "h200" { ${before} multiply S0 ${how} }`),
    );
    const applied = applySchedule(region(), schedule);
    return applied.ok ? undefined : applied.diagnostics[0]!.code;
  };

  it("parses back", () => {
    const more = [
      "",
      " group 4",
      " results 2",
      " group 2 results 3",
      " results 2 ahead",
      " swapped",
    ];
    for (const how of [...more, " blocks 132", " results 2 blocks 7 teams 2 swapped"]) {
      const schedule = scheduleOf(
        `by wgmma tile (128, 64, 64) warps (8, 1) stages 3 swizzle 128${how}`,
      );
      expect(take(parseSchedule(printSchedule(schedule)))).toEqual(schedule);
    }
  });

  it("SCH034 where other directives change the loops, SCH035 where the tile does not fit", () => {
    const fits = "by fma tile (16, 32, 4) warps (1, 1) stages 2 swizzle 0";
    expect(codeOf(fits)).toBeUndefined();
    expect(codeOf(fits, "split S0:i by 2 -> a b")).toBe("SCH034");
    expect(codeOf(fits.replace("16, 32", "16, 40"))).toBe("SCH035");
    expect(codeOf(fits.replace("stages 2", "stages 1"))).toBe("SCH035");
    expect(codeOf(fits.replace("fma", "mma"))).toBe("SCH035");
    const stream = "by wgmma tile (64, 16, 64) warps (4, 1) stages 2 swizzle 128";
    const streamed = (how: string, right: string) =>
      applySchedule(
        graphRegion({
          equation: `i k, ${right} -> i j`,
          left: [64, 64],
          right: [64, 64],
          dtype: "bf16",
        }),
        scheduleOf(how),
      ).ok;
    expect(streamed(stream, "j k")).toBe(true);
    // Neighbouring columns come in panels of 16 at least.
    expect(streamed(stream, "k j")).toBe(true);
    expect(streamed(stream.replace("16, 64)", "24, 64)"), "k j")).toBe(false);
    expect(streamed(stream.replace("swizzle 128", "swizzle 64"), "j k")).toBe(false);
    expect(streamed(stream.replace("(4, 1)", "(4, 2)"), "j k")).toBe(false);
    expect(streamed(stream.replace("16, 64)", "264, 64)"), "j k")).toBe(false);
    expect(streamed(`${stream} results 2`, "j k")).toBe(true);
    expect(streamed(`${stream} swapped`, "j k")).toBe(true);
    // Results that are gathered are columns by rows of the tiles, 16 at a time.
    expect(streamed(`${stream} results 2 swapped`, "j k")).toBe(false);
    expect(streamed(`${stream.replace("16, 64)", "24, 64)")} results 2`, "j k")).toBe(false);
    expect(codeOf(`${fits} results 2`)).toBe("SCH035");
    expect(codeOf(`${fits} swapped`)).toBe("SCH035");
    expect(streamed(`${stream} blocks 4`, "j k")).toBe(true);
    expect(streamed(`${stream} blocks 5`, "j k")).toBe(false);
    expect(streamed(`${stream} blocks 2 teams 3`, "j k")).toBe(true);
    expect(streamed(`${stream} blocks 2 teams 4`, "j k")).toBe(false);
    expect(streamed(`${stream} teams 2`, "j k")).toBe(false);
    expect(streamed(`${stream} parts 16`, "j k")).toBe(false);
    expect(streamed(`${stream} cluster 16`, "j k")).toBe(false);
    expect(codeOf(`${fits} blocks 2`)).toBe("SCH035");
  });

  it("every knob is visible in the program", () => {
    const base = "by fma tile (16, 32, 8) warps (1, 1) stages 2 swizzle 0";
    const texts = [
      base,
      base.replace("stages 2", "stages 3"),
      base.replace("32, 8", "32, 4"),
      `${base} group 2`,
      base.replace("(16, 32, 8) warps (1, 1)", "(32, 32, 8) warps (2, 1)"),
    ].map((how) => {
      const measured = new Map([["S0", scheduleOf(how)]]);
      const model = { graph: graphOf(shape), weights: noWeights };
      return JSON.stringify(take(compileModel(model, { target, measured })).plan.program);
    });
    expect(new Set(texts).size).toBe(texts.length);
  });
});
