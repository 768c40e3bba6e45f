import { describe, expect, it } from "vitest";
import {
  attentionOf,
  attentionProgram,
  attentionRegion,
} from "../../../campaign/ptx/attention-programs.ts";
import { compileModel } from "../../compile.ts";
import { priceOnBlocks } from "../../cost/block-cost.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import type { Graph, ValueId } from "../../graph/graph.ts";
import { prepareModel } from "../../graph/prepare.ts";
import { noWeights, runGraph } from "../../interp/graph.ts";
import { runProgram } from "../../interp/program.ts";
import { printProgram } from "../../program/program-text.ts";
import { buildNests } from "../../region/builders/build-nests.ts";
import { type LayOut, regionsOf } from "../../region/regions-of.ts";
import { applySchedule } from "../../schedule/apply.ts";
import { enumerateAttention } from "../../schedule/attention/attention-candidates.ts";
import { attentionForm } from "../../schedule/attention/attention-form.ts";
import { attendFault, windowSteps } from "../../schedule/attention/attention-limits.ts";
import { AttentionFinder } from "../../schedule/attention/join-attention.ts";
import { parseSchedule } from "../../schedule/directive-text.ts";
import { decodeFloat } from "../../semantics/float-codec.ts";
import { constant } from "../../semantics/index-expr.ts";
import { fromRef, randomRef, refTensor } from "../../semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { Rng } from "../../support/rng.ts";
import { targets } from "../../target/index.ts";

const target = targets.get("h200")!;

it("is not found among regions that are nothing of the program: conversions of layouts", () => {
  const model = prepareModel({
    graph: attention({ rows: 64, columns: 64, depth: 64 }),
    weights: noWeights,
  });
  const layOut: LayOut = (regions, nests) => {
    const others = regions.map((r) => {
      return { ...r, statements: r.statements.map((s) => ({ ...s, name: `${s.name}.moved` })) };
    });
    const last = regions.length - 1;
    expect(new AttentionFinder(regions, nests).find(last)).toBeDefined();
    expect(new AttentionFinder(others, nests).find(last)).toBeUndefined();
    return { regions, tensors: new Map() };
  };
  regionsOf(take(buildNests(model.graph)), { layOut });
});

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

type Type = "bf16" | "f16" | "f32";

interface Shape {
  readonly heads?: number;
  readonly groups?: number;
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
  readonly dtype?: Type;
  readonly causal?: "none" | "start" | "end";
  /** Columns before the last one that a row meets as well. */
  readonly behind?: number;
  /** Added to the scores, or true where they count: of each row, or of each column alone. */
  readonly mask?: "each" | "column" | "bool";
  /** Problems of the batch, each of a length that is data: columns before it, or up to the row's place at its end. */
  readonly lengths?: "padded" | "cached" | "window" | "packed";
  readonly batch?: number;
  readonly softcap?: number;
}

/** The composite as the importer emits it. */
function attention({ heads = 1, groups = heads, dtype = "bf16", batch = 1, ...s }: Shape): Graph {
  const g = new GraphBuilder("attention");
  const input = (name: string, of: Type | "bool", shape: readonly number[]): ValueId =>
    g.input(name, { dtype: of, shape: shape.map((d) => constant(d)) });
  const operands = [
    input("q", dtype, [batch, heads, s.rows, s.depth]),
    input("k", dtype, [batch, groups, s.columns, s.depth]),
    input("v", dtype, [batch, groups, s.columns, s.depth]),
  ];
  const rows = s.mask === "column" ? 1 : s.rows;
  if (s.mask)
    operands.push(input("m", s.mask === "bool" ? "bool" : dtype, [1, 1, rows, s.columns]));
  if (s.lengths) operands.push(lengthMask(g, { ...s, batch }));
  const attrs = {
    scale: 1 / Math.sqrt(s.depth),
    causal: s.causal ?? "none",
    ...(s.behind !== undefined && { behind: s.behind }),
    mask: s.mask !== undefined || s.lengths !== undefined,
    softcap: s.softcap ?? 0,
  };
  return g.finish([g.node("attention", operands, attrs as never)]);
}

/** From which column on, and up to which, a row meets columns: numbers of its own. */
function rowMask(g: GraphBuilder, { rows, columns }: Shape): ValueId {
  const numbers = ["starts", "ends"].map((name) =>
    g.input(name, { dtype: "i32", shape: [constant(rows)] }),
  );
  const given = numbers.map((n) =>
    g.node("reshape", [n], { shape: [constant(rows), constant(1)] }),
  );
  const shape = [constant(1), constant(columns)];
  const column = g.node("iota", [], { shape, axis: 1, dtype: "i32" });
  const isBehind = g.node("lessEqual", [given[0]!, column], {});
  return g.node("and", [isBehind, g.node("less", [column, given[1]!], {})], {});
}

/** Which columns count, from the lengths of an operand: as importers say it of padding and of caches. */
function lengthMask(g: GraphBuilder, shape: Shape): ValueId {
  const { batch, rows, columns, lengths } = shape;
  if (lengths === "packed") return rowMask(g, shape);
  const given = g.input("lengths", { dtype: "i64", shape: [constant(batch!)] });
  const one = constant(1);
  const length = g.node("reshape", [given], { shape: [constant(batch!), one, one, one] });
  const iota = (extent: number, axis: number): ValueId =>
    g.node("iota", [], {
      shape: axis === 0 ? [constant(extent), one] : [one, constant(extent)],
      axis,
      dtype: "i64",
    });
  const [row, column] = [iota(rows, 0), iota(columns, 1)];
  const before = g.node("less", [column, length], {});
  if (lengths === "padded") return before;
  // The last row stands at the last column before the length.
  const place = g.node("add", [row, g.applyNumber("sub", length, rows)], {});
  const upTo = g.node("lessEqual", [column, place], {});
  if (lengths === "cached") return g.node("and", [before, upTo], {});
  const near = g.node("less", [g.applyNumber("sub", place, 20), column], {});
  return g.node("and", [upTo, near], {});
}

/** Keys as columns of a matrix, scaled on both sides, results beside each other: as exporters write it. */
function primitive(dtype: Type, [heads, length, depth]: readonly number[]): Graph {
  const g = new GraphBuilder("attention");
  const width = heads! * depth!;
  const shape = [constant(length!), constant(width)];
  const inputs = ["q", "k", "v"].map((name) => g.input(name, { dtype, shape }));
  const parts = inputs.map((x) => {
    const split = g.node("reshape", [x], {
      shape: [length!, heads!, depth!].map((d) => constant(d)),
    });
    return g.node("transpose", [split], { permutation: [1, 0, 2] });
  });
  const [q, k, v] = parts as [ValueId, ValueId, ValueId];
  const turned = g.node("transpose", [k], { permutation: [0, 2, 1] });
  const half = depth! ** -0.25;
  const scores = g.einsum(
    "h s d, h d t -> h s t",
    g.applyNumber("mul", q, half),
    g.applyNumber("mul", turned, half),
  );
  const weights = g.node("softmax", [scores], { axis: 2 });
  const mixed = g.einsum("h s t, h t e -> h s e", weights, v);
  const back = g.node("transpose", [mixed], { permutation: [1, 0, 2] });
  return g.finish([g.node("reshape", [back], { shape })]);
}

type Make = (dtype: Type) => Graph;

const composite =
  (s: Shape): Make =>
  (dtype) =>
    attention({ ...s, dtype });

/**
 * Lowered and proved, run by the interpreter, compared with the oracle of the same graph in f32: the kernel
 * rounds weights and results alone, the narrow graph every value.
 */
function difference(
  make: Make,
  how: string,
  dtype: "bf16" | "f16" = "bf16",
  lengths: readonly number[] = [],
) {
  const graph = make(dtype);
  const scheduled = attentionOf(graph, `by ${how}`);
  const program = attentionProgram(scheduled);
  expect(program.kernels.length).toBe(how.includes("splits") ? 2 : 1);
  const rng = new Rng(5);
  const inputs = graph.inputs.map((id) => {
    const { name, type: of } = graph.values[id]!;
    const { dtype: type, shape } = of;
    const dims = shape.map((e) => e.constant);
    if (type === "i32") {
      // Lengths are pairs here: where rows in turn begin and end.
      const part = lengths.filter((_, n) => n % 2 === (name === "starts" ? 0 : 1));
      const numbers = Array.from({ length: dims[0]! }, (_, row) => part[row % part.length]!);
      return refTensor("i32", dims, numbers);
    }
    return type === "i64" ? refTensor("i64", dims, lengths) : randomRef(type, dims, rng);
  });
  const wide = inputs.map((x) =>
    x.dtype === "bf16" || x.dtype === "f16" ? { ...x, dtype: "f32" as const } : x,
  );
  const want = fromRef(take(runGraph(make("f32"), wide))[0]!);
  const contents = new Map(
    graph.inputs.map((id, i) => {
      const { data } = fromRef(inputs[i]!);
      const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
      return [graph.values[id]!.name, bytes] as const;
    }),
  );
  const outcome = runProgram(program, { parameters: {}, contents, threads: 1, seed: 2 });
  if (outcome.kind === "fault") return JSON.stringify(outcome.fault);
  const [output] = scheduled.statements.at(-1)!.statement.writes;
  const bytes = outcome.contents.get(output!.tensor)!.slice();
  const found = Array.from(new Uint16Array(bytes.buffer), (b) => decodeFloat(dtype, b));
  const values = Array.from(want.data, Number);
  const usual = Math.sqrt(values.reduce((sum, v) => sum + (v || 0) ** 2, 0) / values.length);
  const unit = dtype === "bf16" ? 2 ** -8 : 2 ** -11;
  const at = found.findIndex((v, i) => {
    const off = Math.abs(v - values[i]!);
    return Number.isNaN(values[i]) ? !Number.isNaN(v) : !(off <= unit * (Math.abs(v) + 2 * usual));
  });
  return at < 0 ? undefined : `element ${at} is ${found[at]}, the oracle says ${values[at]}`;
}

const small = { rows: 32, columns: 64, depth: 16 };

describe("attention as one kernel", () => {
  it("whole tiles, warps of 16 and 32 rows, two and three stages", () => {
    for (const how of [
      "mma tile (32, 32) warps 2 stages 2",
      "mma tile (32, 16) warps 1 stages 3",
      "mma tile (16, 32) warps 1 stages 2",
    ]) {
      expect(difference(composite(small), how)).toBeUndefined();
    }
  });

  it("one step of columns in one stage, which blocks of a cluster may have one each of", () => {
    const one = "mma tile (32, 64) warps 2 stages 1";
    expect(difference(composite(small), one)).toBeUndefined();
    expect(difference(composite({ ...small, columns: 37 }), one)).toBeUndefined();
    const parts = "mma tile (32, 32) warps 2 stages 1 parts 2";
    expect(difference(composite(small), parts, "f16")).toBeUndefined();
    const wide = composite({ rows: 70, columns: 40, depth: 64, causal: "start" });
    expect(difference(wide, "wgmma tile (128, 48) warps 8 stages 1 gathered")).toBeUndefined();
    for (const shape of [small, { rows: 200, columns: 128, depth: 64 }]) {
      const graph = composite(shape)("bf16");
      const [region] = take(compileModel({ graph, weights: noWeights }, { target })).regions;
      const { directive, form } = region!.scheduled.attention!;
      const isOne = form.columns <= directive.tile[1] * directive.parts * directive.splits;
      expect(directive.stages === 1).toBe(isOne);
    }
  });

  it("rows and columns that are no whole tiles, also odd ones", () => {
    for (const [rows, columns] of [
      [20, 50],
      [33, 37],
      [1, 40],
    ] as const) {
      const make = composite({ rows, columns, depth: 16 });
      expect(difference(make, "mma tile (16, 32) warps 1 stages 2", "f16")).toBeUndefined();
    }
  });

  it("a triangle, steps right of it left out; one that is not square", () => {
    for (const s of [
      { rows: 64, columns: 64, causal: "end" },
      { rows: 50, columns: 50, causal: "start" },
      { rows: 40, columns: 72, causal: "end" },
      { rows: 16, columns: 40, causal: "end" },
      { rows: 40, columns: 24, causal: "start" },
    ] as const) {
      const how = "mma tile (32, 16) warps 2 stages 2";
      expect(difference(composite({ ...s, depth: 16 }), how)).toBeUndefined();
    }
  });

  it("a band is the mask of the columns from some before the last one to the last one", () => {
    const size = { rows: 6, columns: 9, depth: 4, dtype: "f32" } as const;
    const rng = new Rng(3);
    const [q, k, v] = [size.rows, size.columns, size.columns].map((n) =>
      randomRef("f32", [1, 1, n, size.depth], rng),
    );
    const inBand = (row: number, column: number) => column <= row + 3 && column >= row + 1;
    const truths = Array.from({ length: 54 }, (_, i) => Number(inBand(Math.floor(i / 9), i % 9)));
    const mask = refTensor("bool", [1, 1, 6, 9], truths);
    const banded = attention({ ...size, causal: "end", behind: 2 });
    const [one] = take(runGraph(banded, [q!, k!, v!]));
    const [other] = take(runGraph(attention({ ...size, mask: "bool" }), [q!, k!, v!, mask]));
    expect(one!.data).toEqual(other!.data);
  });

  it("a band: steps before it are left out, the same number in every block", () => {
    for (const s of [
      { rows: 128, columns: 128, behind: 20 },
      { rows: 128, columns: 128, behind: 0 },
      { rows: 50, columns: 50, behind: 40, causal: "start" },
      { rows: 40, columns: 104, behind: 33 },
      { rows: 96, columns: 96, behind: 500 },
      { rows: 16, columns: 200, behind: 70 },
      { rows: 40, columns: 24, behind: 5, causal: "start" },
    ] as const) {
      const how = "mma tile (32, 16) warps 2 stages 2";
      expect(difference(composite({ causal: "end", ...s, depth: 16 }), how)).toBeUndefined();
    }
  });

  it("masks that are read, of each element or column, and of truth values", () => {
    for (const [mask, columns] of [
      ["each", 40],
      ["each", 21],
      ["column", 21],
      ["bool", 24],
    ] as const) {
      const make = composite({ rows: 16, columns, depth: 16, mask });
      expect(difference(make, "mma tile (16, 16) warps 1 stages 2")).toBeUndefined();
    }
  });

  it("lengths that are data: columns beyond them are left out, rows without any are NaN", () => {
    const how = "mma tile (32, 16) warps 2 stages 2";
    for (const [s, lengths] of [
      [{ rows: 20, columns: 50, lengths: "padded" }, [0, 17, 50, -(2 ** 40)]],
      [{ rows: 40, columns: 48, lengths: "cached" }, [5, 32, 2 ** 40]],
      [{ rows: 1, columns: 48, lengths: "cached" }, [1, 33]],
      [{ rows: 40, columns: 64, lengths: "window" }, [64, 41]],
    ] as const) {
      const make = composite({ ...s, batch: lengths.length, depth: 16 });
      expect(difference(make, how, "bf16", lengths)).toBeUndefined();
    }
  });

  it("columns of each row that are data: tokens of several sequences behind each other, rows in any order", () => {
    const sequences = (...lengths: readonly number[]): readonly number[] => {
      let start = 0;
      return lengths.flatMap((n) => {
        const range = [start, start + n];
        start += n;
        return Array.from({ length: n }, () => range).flat();
      });
    };
    for (const [s, ranges, how] of [
      [{ rows: 48, heads: 2 }, sequences(1, 20, 0, 27), "tile (16, 16) warps 1 stages 2"],
      [{ rows: 50 }, sequences(30, 3, 17), "tile (32, 16) warps 2 stages 2"],
      [
        { rows: 32, columns: 72 },
        [70, 72, -4, 9, 40, 99, 5, 5, 33, 40],
        "tile (32, 16) warps 1 stages 3",
      ],
      [{ rows: 48 }, sequences(16, 32), "tile (16, 16) warps 1 stages 2 parts 2"],
    ] as const) {
      const make = composite({ columns: s.rows, ...s, depth: 16, lengths: "packed" });
      expect(difference(make, `mma ${how}`, "bf16", ranges)).toBeUndefined();
    }
  });

  it("heads that share keys and values", () => {
    const make = composite({ ...small, heads: 4, groups: 2, causal: "end" });
    expect(difference(make, "mma tile (32, 32) warps 2 stages 2")).toBeUndefined();
  });

  it("columns dealt out to the blocks of a cluster: ragged, one row, a triangle of one tile, masks that are read", () => {
    const ragged = composite({ rows: 20, columns: 60, depth: 32 });
    expect(difference(ragged, "mma tile (16, 16) warps 1 stages 2 parts 4")).toBeUndefined();
    expect(difference(ragged, "mma tile (32, 16) warps 2 stages 3 parts 2")).toBeUndefined();
    const one = composite({ ...small, heads: 2, groups: 1, rows: 1, causal: "end" });
    expect(difference(one, "mma tile (16, 16) warps 1 stages 2 parts 2", "f16")).toBeUndefined();
    const late = composite({ rows: 16, columns: 64, depth: 16, causal: "end", mask: "each" });
    expect(difference(late, "mma tile (16, 16) warps 1 stages 2 parts 2")).toBeUndefined();
  });

  it("lengths that are data, the steps up to them dealt out in turns: blocks that meet none give nothing", () => {
    const how = "mma tile (16, 16) warps 1 stages 2 parts";
    for (const [s, lengths, parts] of [
      [{ rows: 1, columns: 36, lengths: "padded" }, [0, 1, 36], 2],
      [{ rows: 3, columns: 40, lengths: "cached" }, [2 ** 40], 2],
      [{ rows: 16, columns: 64, lengths: "window" }, [41], 4],
    ] as const) {
      const make = composite({ ...s, batch: lengths.length, depth: 8 * Math.max(2, parts) });
      expect(difference(make, `${how} ${parts}`, "f16", lengths)).toBeUndefined();
    }
  });

  it("is proved over many steps though blocks of a cluster meet at the end alone", () => {
    const graph = attention({ rows: 1, columns: 8192, depth: 64, heads: 2 });
    const scheduled = attentionOf(graph, "by mma tile (16, 32) warps 1 stages 3 parts 4");
    expect(attentionProgram(scheduled).kernels).toHaveLength(1);
  });

  it("columns dealt out to blocks that meet in memory: ragged, grouped heads, a triangle of one tile, masks", () => {
    const ragged = composite({ rows: 20, columns: 60, depth: 32 });
    expect(difference(ragged, "mma tile (16, 16) warps 1 stages 2 splits 4")).toBeUndefined();
    expect(difference(ragged, "mma tile (32, 16) warps 2 stages 3 splits 2")).toBeUndefined();
    const one = composite({ ...small, heads: 4, groups: 2, rows: 1, causal: "end" });
    expect(difference(one, "mma tile (16, 16) warps 1 stages 2 splits 4", "f16")).toBeUndefined();
    const late = composite({ rows: 16, columns: 64, depth: 16, causal: "end", mask: "each" });
    expect(difference(late, "mma tile (16, 16) warps 1 stages 2 splits 2")).toBeUndefined();
    // Heads that fill no warp of the second kernel, and more parts than it reads at once.
    const many = composite({ rows: 2, columns: 160, depth: 80 });
    expect(difference(many, "mma tile (16, 16) warps 1 stages 2 splits 10")).toBeUndefined();
  });

  it("steps up to a length that is data, dealt out so: parts that meet none leave nothing", () => {
    const how = "mma tile (16, 16) warps 1 stages 2 splits";
    for (const [s, lengths, splits] of [
      [{ rows: 1, columns: 36, lengths: "padded" }, [0, 1, 36], 3],
      [{ rows: 3, columns: 40, lengths: "cached" }, [2 ** 40], 2],
      [{ rows: 16, columns: 64, lengths: "window" }, [41], 4],
      [{ rows: 1, columns: 120, lengths: "padded" }, [17, 120], 7],
    ] as const) {
      const make = composite({ ...s, batch: lengths.length, depth: 16 });
      expect(difference(make, `${how} ${splits}`, "f16", lengths)).toBeUndefined();
    }
  });

  it("of few problems with many columns is one strategy, with a length that is data too", () => {
    const how = "by mma tile (16, 64) warps 1 stages 3 splits";
    const long = { heads: 32, groups: 8, rows: 1, columns: 131072, depth: 128 };
    for (const [lengths, splits] of [
      [false, 32],
      [true, 33],
    ] as const) {
      const given = { ...long, dtype: "bf16", causal: false, mask: false, lengths } as const;
      const scheduled = attentionRegion({ ...given, how: `${how} ${splits}` });
      expect(attentionProgram(scheduled).kernels).toHaveLength(2);
      // By clusters it takes longer, and apart the products read all of the cache.
      const cluster = attentionRegion({ ...given, how: how.replace("splits", "parts 8") });
      const price = (s: typeof scheduled): number => priceOnBlocks(s, target.blocks!).estimateNs;
      expect(price(scheduled)).toBeLessThan(price(cluster));
      const tried = enumerateAttention(scheduled.region, target);
      expect(tried.some((d) => d.splits > 8)).toBe(true);
    }
  });

  it("longer heads, in panels, and such as fill none", () => {
    for (const depth of [80, 144]) {
      const make = composite({ rows: 16, columns: 16, depth });
      expect(difference(make, "mma tile (16, 16) warps 1 stages 2")).toBeUndefined();
    }
  });

  it("operands that are moved and scaled on the way are read where they were, by the one kernel there is", () => {
    const graph = primitive("f16", [2, 24, 16]);
    const { regions } = take(compileModel({ graph, weights: noWeights }, { target }));
    expect(regions.map((r) => r.scheduled.attention?.form.key.along)).toEqual(["@depth"]);
  });
});

describe("attention by warpgroups", () => {
  it("two groups, rows and columns that are no whole tiles", () => {
    const make = composite({ rows: 70, columns: 40, depth: 64 });
    expect(
      difference(make, "wgmma tile (128, 16) warps 8 stages 2 gathered", "f16"),
    ).toBeUndefined();
  });

  it("a band, steps before it left out: tiles at the start begin before the first column", () => {
    const make = composite({ rows: 200, columns: 200, depth: 64, causal: "end", behind: 50 });
    expect(difference(make, "wgmma tile (64, 32) warps 4 stages 2 gathered")).toBeUndefined();
    const { attention: made } = attentionOf(
      make("bf16"),
      "by wgmma tile (64, 32) warps 4 stages 2",
    );
    // Two steps of the tile's own columns, and two before them.
    expect(windowSteps(made!.directive, made!.form)).toBe(4);
    const single = composite({ rows: 9, columns: 200, depth: 64, causal: "end", behind: 50 });
    expect(difference(single, "wgmma tile (64, 32) warps 4 stages 2")).toBeUndefined();
  });

  it("a triangle, steps right of it left out, blocks of different length", () => {
    const make = composite({ rows: 70, columns: 70, depth: 64, causal: "end" });
    expect(difference(make, "wgmma tile (64, 32) warps 4 stages 2")).toBeUndefined();
  });

  it("lengths that are data, beside a triangle that ends with them", () => {
    const how = "wgmma tile (64, 32) warps 4 stages 2";
    const make = composite({ rows: 9, columns: 96, depth: 64, batch: 2, lengths: "window" });
    expect(difference(make, how, "bf16", [94, 33])).toBeUndefined();
  });

  it("columns of each row that are data, by both roles", () => {
    const how = "wgmma tile (64, 16) warps 4 stages 2 gathered";
    const make = composite({ rows: 64, columns: 72, depth: 64, lengths: "packed" });
    const { form, directive } = attentionOf(make("bf16"), `by ${how}`).attention!;
    expect([form.reach?.ends[0]?.ofRow, form.scoreReads.length]).toEqual([true, 0]);
    // ptxas spills 64 bytes of a thread of the last tile of 200 rows.
    expect(attendFault(directive, { ...form, rows: 200, rowCount: constant(200) })).toMatch(
      /200 rows, each with columns/,
    );
    const warps = { ...directive, by: "mma", gathered: false } as const;
    expect(attendFault(warps, { ...form, rows: 200, rowCount: constant(200) })).toBeUndefined();
    const ranges = Array.from({ length: 128 }, (_, i) => (i % 2) * 9 + 16 * Math.floor(i / 32));
    expect(difference(make, how, "bf16", ranges)).toBeUndefined();
  });

  it("a mask that is read, longer heads in panels, one step", () => {
    const make = composite({ rows: 20, columns: 16, depth: 128, mask: "each" });
    expect(difference(make, "wgmma tile (64, 16) warps 4 stages 2")).toBeUndefined();
  });

  it("scores of many instructions, in tiles that are narrower than where they are multiples of sums", () => {
    const shape = { rows: 128, columns: 256, depth: 128 } as const;
    const fault = (columns: number, given: Partial<Shape>): string | undefined => {
      const how = "by wgmma tile (64, 16) warps 4 stages 2 gathered";
      const { form, directive } = attentionOf(attention({ ...shape, ...given }), how).attention!;
      return attendFault({ ...directive, tile: [64, columns] }, form);
    };
    expect(fault(128, {})).toBeUndefined();
    expect(fault(128, { mask: "each" })).toBeUndefined();
    // ptxas spills 40 and 8 bytes.
    expect(fault(128, { softcap: 30 })).toMatch(/160 words .* and 120 of what scores are made of/);
    expect(fault(96, { softcap: 30, mask: "each" })).toMatch(/136 words .* and 140/);
    expect(fault(64, { softcap: 30, mask: "each" })).toBeUndefined();
    const make = composite({ rows: 20, columns: 32, depth: 64, softcap: 2 });
    expect(difference(make, "wgmma tile (64, 32) warps 4 stages 2")).toBeUndefined();
  });

  it("operands between whose lines those of other heads stand, through a view", () => {
    const make: Make = (dtype) => {
      const g = new GraphBuilder("attention");
      const shape = [40, 2, 64].map((n) => constant(n));
      const inputs = ["q", "k", "v"].map((name) => g.input(name, { dtype, shape }));
      const turned = inputs.map((x) => g.node("transpose", [x], { permutation: [1, 0, 2] }));
      const [q, k, v] = turned as [ValueId, ValueId, ValueId];
      const scores = g.einsum("h s d, h t d -> h s t", q, k);
      const weights = g.node("softmax", [g.applyNumber("mul", scores, 1 / 8)], { axis: 2 });
      return g.finish([g.einsum("h s t, h t e -> h s e", weights, v)]);
    };
    const how = "wgmma tile (64, 32) warps 4 stages 2";
    const text = printProgram(attentionProgram(attentionOf(make("bf16"), `by ${how}`)));
    expect(text).toMatch(/k\.j1 : scratch memory bf16 \[40, 128\] view k/);
    expect(text).toMatch(/k\.j1\[32, 64\*problem\d+\] box \[32, 64\]/);
  });
});

describe("attend", () => {
  const region = () => {
    const graph = attention(small);
    return attentionOf(graph, "by mma tile (32, 32) warps 2 stages 2").region;
  };

  it("names what no block can be given", () => {
    const own = region();
    const last = own.statements.at(-1)!.name;
    const codeOf = (how: string, statement = last): string | undefined => {
      const text = `schedule "${own.name}" for "h200" { attend ${statement} by ${how} }`;
      const applied = applySchedule(own, take(parseSchedule(text)));
      return applied.ok ? undefined : applied.diagnostics[0]!.code;
    };
    expect(codeOf("mma tile (32, 32) warps 2 stages 2")).toBeUndefined();
    expect(codeOf("mma tile (24, 32) warps 1 stages 2")).toBe("SCH045");
    expect(codeOf("mma tile (32, 24) warps 1 stages 2")).toBe("SCH045");
    expect(codeOf("mma tile (32, 32) warps 2 stages 1")).toBe("SCH045");
    expect(codeOf("mma tile (32, 512) warps 1 stages 2")).toBe("SCH045");
    expect(codeOf("mma tile (32, 32) warps 2 stages 2 gathered")).toBe("SCH045");
    expect(codeOf("wgmma tile (64, 32) warps 4 stages 2")).toBe("SCH045");
    expect(codeOf("mma tile (32, 32) warps 2 stages 2 parts 2")).toBeUndefined();
    expect(codeOf("mma tile (32, 64) warps 2 stages 2 parts 2")).toBe("SCH045");
    expect(codeOf("mma tile (32, 16) warps 2 stages 2 parts 4")).toBe("SCH045");
    // Lengths go round among any number of blocks that have a step each.
    const open = attentionOf(
      attention({ ...small, columns: 40, lengths: "padded" }),
      "by mma tile (16, 16) warps 1 stages 2 parts 2",
    );
    const partsFault = (parts: number) =>
      attendFault({ ...open.attention!.directive, parts }, open.attention!.form);
    expect(partsFault(2)).toBeUndefined();
    expect(partsFault(4)).toMatch(/3 steps of columns in 4 parts/);
    const splitsFault = (splits: number, parts = 1) =>
      attendFault({ ...open.attention!.directive, parts, splits }, open.attention!.form);
    expect(splitsFault(3)).toBeUndefined();
    expect(splitsFault(4)).toMatch(/3 steps of columns in 4 parts/);
    expect(splitsFault(2, 2)).toMatch(/not in both/);
    const first = own.statements[0]!.name;
    expect(codeOf("mma tile (32, 32) warps 2 stages 2", first)).toBe("SCH044");
  });

  it("is refused where the softmax is not of its scores", () => {
    const own = region();
    const statements = own.statements.map((s) =>
      s.reduction?.monoid.name === "max"
        ? { ...s, body: s.body.map((e) => ({ ...e, kind: "literal", value: 0 }) as never) }
        : s,
    );
    expect(attentionForm({ ...own, statements })).toMatch(/folds something else/);
    const firm = own.statements.map((s) =>
      s.reduction?.monoid.name === "sum"
        ? { ...s, reduction: { ...s.reduction, numericClass: "approximates" as const } }
        : s,
    );
    expect(attentionForm({ ...own, statements: firm })).toMatch(/reassociated/);
  });
});
