import { describe, expect, it } from "vitest";
import { firstDifference } from "../../../campaign/random-values.ts";
import { type CompiledModel, compileModel } from "../../compile.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import type { Graph, ValueId } from "../../graph/graph.ts";
import { noWeights, runGraph } from "../../interp/graph.ts";
import { runProgram } from "../../interp/program.ts";
import { applySchedule } from "../../schedule/apply.ts";
import type { RowsDirective } from "../../schedule/directive.ts";
import { parseSchedule } from "../../schedule/directive-text.ts";
import { decideSchedule } from "../../schedule/legality/legality.ts";
import { rowsFault } from "../../schedule/rows/rows-form.ts";
import { constant, type IndexLike, toIndex, variable } from "../../semantics/index-expr.ts";
import { fromRef, randomRef, toRef } from "../../semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { Rng } from "../../support/rng.ts";
import { targets } from "../../target/index.ts";

const target = targets.get("h200")!;

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

type Type = "f32" | "f16" | "bf16";
type Build = (g: GraphBuilder, x: ValueId, vectors: readonly ValueId[]) => readonly ValueId[];

const softmax: Build = (g, x) => [g.node("softmax", [x], { axis: g.rankOf(x) - 1 })];
const norm: Build = (g, x, [s, b]) => [
  g.node("layerNorm", [x, s!, b!], { axis: g.rankOf(x) - 1, epsilon: 1e-5 }),
];
const rms: Build = (g, x, [s]) => [
  g.node("rmsNorm", [x, s!], { axis: g.rankOf(x) - 1, epsilon: 1e-5 }),
];
/** A sum that others want as well as its norm. */
const residual: Build = (g, x, [s]) => {
  const sum = g.add(x, g.apply("relu", x));
  return [sum, g.node("rmsNorm", [sum, s!], { axis: g.rankOf(x) - 1, epsilon: 1e-5 })];
};

/** Elements and a value a row for others, as what picks one element a row leaves of a softmax. */
const picked: Build = (g, x) => {
  const most = g.node("reduce", [x], { kind: "max", axes: [1], keepDims: true });
  const near = g.sub(x, most);
  const sum = g.node("reduce", [g.apply("exp", near)], { kind: "sum", axes: [1], keepDims: true });
  return [near, g.apply("log", sum)];
};

/** Statistics of groups of channels, with a scale and an offset for each channel. */
function groupGraph(dtype: Type, shape: readonly IndexLike[], groups: number): Graph {
  const g = new GraphBuilder("groups");
  if (shape.some((n) => typeof n !== "number")) g.symbol("W", 8, 64);
  const input = (name: string, dims: readonly IndexLike[]) =>
    g.input(name, { dtype, shape: dims.map(toIndex) });
  const [x, s, b] = [input("x", shape), input("s", [shape[1]!]), input("b", [shape[1]!])];
  return g.finish([g.node("groupNorm", [x, s, b], { groups, epsilon: 1e-5 })]);
}

function graphOf(build: Build, dtype: Type, shape: readonly IndexLike[]): Graph {
  const g = new GraphBuilder("rows");
  const x = g.input("x", { dtype, shape: shape.map(toIndex) });
  const vector = (name: string) => g.input(name, { dtype, shape: [toIndex(shape.at(-1)!)] });
  const scaled: readonly Build[] = [norm, rms, residual];
  const vectors = scaled.includes(build)
    ? [vector("s"), ...(build === norm ? [vector("b")] : [])]
    : [];
  return g.finish(build(g, x, vectors));
}

/** Along an axis that has others behind it: neighbours in memory are rows. */
const alongFirst =
  (axis: number): Build =>
  (g, x) => [g.node("softmax", [x], { axis })];
const centred =
  (axis: number): Build =>
  (g, x) => {
    const axes = [axis];
    const count = g.scalarLike(1 / (g.shapeOf(x)[axis]!.constant || 1), x);
    const mean = g.mul(g.reduce("sum", x, axes, true), count);
    const near = g.sub(x, mean);
    const size = g.mul(g.reduce("sum", g.mul(near, near), axes, true), count);
    return [size, g.div(near, g.apply("sqrt", g.applyNumber("add", size, 1e-3)))];
  };

/** The region that a graph becomes, compiled (and so proved) with the schedule, and compared with the oracle. */
function difference(graph: Graph, how: string, symbols: Readonly<Record<string, number>> = {}) {
  const plain = take(compileModel({ graph, weights: noWeights }, { target }));
  const joined = plain.regions.find((r) => r.scheduled.statements.length > 1);
  if (!joined) throw new Error("no region of several statements");
  const last = joined.scheduled.statements.at(-1)!.statement.name;
  const text = `schedule "${joined.name}" for "h200" { rows ${last} ${how} }`;
  const measured = new Map([[joined.name, take(parseSchedule(text))]]);
  const compiled = take(compileModel({ graph, weights: noWeights }, { target, measured }));
  expect(compiled.plan.program.kernels.length).toBe(1);
  const rng = new Rng(5);
  const at = new Map(Object.entries(symbols));
  const inputs = graph.inputs.map((id) => {
    const { dtype, shape } = graph.values[id]!.type;
    return randomRef(
      dtype,
      shape.map((e) => (e.terms.length > 0 ? at.get(e.key)! : e.constant)),
      rng,
    );
  });
  const want = take(runGraph(graph, inputs));
  const contents = new Map(
    compiled.model.graph.inputs.map((id, i) => {
      const { data } = fromRef(inputs[i]!);
      const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
      return [compiled.model.graph.values[id]!.name, bytes] as const;
    }),
  );
  const { program } = compiled.plan;
  const outcome = runProgram(program, { parameters: symbols, contents, threads: 1, seed: 2 });
  if (outcome.kind === "fault") return JSON.stringify(outcome.fault);
  const differences = compiled.nests.outputs.map((output, i) => {
    const bytes = outcome.contents.get(output)!.slice();
    const isNarrow = want[i]!.dtype !== "f32";
    const data = isNarrow ? new Uint16Array(bytes.buffer) : new Float32Array(bytes.buffer);
    const found = { ...fromRef(want[i]!), data } as ReturnType<typeof fromRef>;
    return firstDifference(toRef(found), want[i]!);
  });
  return differences.find((d) => d !== undefined);
}

function directiveOf([region]: CompiledModel["regions"]): RowsDirective {
  return region!.scheduled.rows!.directive;
}

describe("rows by blocks", () => {
  it("a warp, a part of one, several: whole rows", () => {
    for (const how of [
      "threads 8 lanes 4 together 4 keep registers",
      "threads 32 lanes 1 together 2 keep registers",
      "threads 64 lanes 2 together 1 keep memory",
    ]) {
      expect(difference(graphOf(softmax, "f32", [2, 128]), how)).toBeUndefined();
    }
  });

  it("rows that are no whole vectors of the block, blocks of more rows than there are", () => {
    for (const how of [
      "threads 64 lanes 1 together 2 keep registers",
      "threads 16 lanes 2 together 2 keep memory",
    ]) {
      expect(difference(graphOf(norm, "f32", [3, 150]), how)).toBeUndefined();
    }
  });

  it("narrow types in vectors, results that others want on the way", () => {
    const wide = "threads 64 lanes 8 together 1 keep registers";
    for (const build of [softmax, residual]) {
      expect(difference(graphOf(build, "bf16", [1, 520]), wide)).toBeUndefined();
    }
    expect(difference(graphOf(rms, "f16", [1, 520]), wide)).toBeUndefined();
    const how = "threads 32 lanes 4 together 1 keep memory";
    expect(difference(graphOf(residual, "f32", [2, 200]), how)).toBeUndefined();
  });

  it("elements with an end that is cut, and a value a row, both for others: too many to be run whole", () => {
    const how = "threads 512 lanes 8 together 1 keep registers";
    expect(difference(graphOf(picked, "bf16", [3, 6000]), how)).toBeUndefined();
  });

  it("rows that no thread keeps, longer than a turn of the block, and more than can be listed", () => {
    const how = "threads 64 lanes 2 together 1 keep memory";
    expect(difference(graphOf(softmax, "f32", [2, 450]), how)).toBeUndefined();
    expect(difference(graphOf(norm, "f32", [2, 450]), how)).toBeUndefined();
    for (const [dtype, length] of [
      ["f32", 50_257],
      ["f16", 50_256],
    ] as const) {
      // Clusters share rows out among their blocks, which keep them, where the cache does not hold all of them.
      for (const [name, how] of [
        ["a100-40gb", { keep: "memory", parts: 1 }],
        ["h200", { keep: "registers", parts: 4 }],
      ] as const) {
        const graph = graphOf(softmax, dtype, [2600, length]);
        const compiled = compileModel(
          { graph, weights: noWeights },
          { target: targets.get(name)! },
        );
        expect(compiled).toMatchObject({ ok: true, warnings: [] });
        const { regions } = take(compiled);
        expect(regions).toHaveLength(1);
        const [directive] = regions[0]!.scheduled.schedule.directives;
        expect(directive).toMatchObject({ kind: "rows", ...how });
      }
    }
  });

  it("rows of any number and any length", () => {
    const [rows, length] = [variable("M"), variable("N")];
    const g = new GraphBuilder("rows");
    g.symbol("M", 1, 64);
    g.symbol("N", 1, 500);
    const x = g.input("x", { dtype: "f32", shape: [rows, length] });
    const graph = g.finish(softmax(g, x, []));
    for (const how of [
      "threads 64 lanes 1 together 1 keep memory",
      "threads 32 lanes 1 together 2 keep memory",
    ]) {
      expect(difference(graph, how, { M: 3, N: 77 })).toBeUndefined();
    }
  });

  it("across: neighbours are rows, whose elements threads share, in warps and beyond", () => {
    for (const how of [
      "threads 8 lanes 4 together 4 across keep registers",
      "threads 16 lanes 2 together 8 across keep operands",
      "threads 4 lanes 1 together 32 across keep memory",
      "threads 64 lanes 4 together 1 across keep registers",
      "threads 2 lanes 1 together 64 across keep registers",
    ]) {
      expect(difference(graphOf(alongFirst(0), "f32", [37, 40]), how)).toBeUndefined();
    }
    // Elements behind each other as lanes, which are whole vectors of the rows.
    for (const how of [
      "threads 4 lanes 1 together 8 across items 4 keep registers",
      "threads 8 lanes 1 together 16 across items 2 keep memory",
      "threads 4 lanes 1 together 8 across items 4 parts 2 keep operands",
    ]) {
      expect(difference(graphOf(alongFirst(0), "f32", [36, 40]), how)).toBeUndefined();
    }
    const how = "threads 8 lanes 8 together 4 across keep registers";
    expect(difference(graphOf(alongFirst(1), "bf16", [2, 33, 48]), how)).toBeUndefined();
    expect(difference(graphOf(alongFirst(0), "f16", [64, 64]), how)).toBeUndefined();
    expect(difference(graphOf(centred(1), "f32", [2, 21, 40]), how)).toBeUndefined();
    expect(difference(graphOf(centred(0), "f32", [70, 24]), how)).toBeUndefined();
  });

  it("across: the last vectors of a thread in shared memory, or all", () => {
    for (const how of [
      "threads 4 lanes 4 together 8 across keep operands shared 3",
      "threads 4 lanes 4 together 8 across parts 2 keep operands shared 5",
      "threads 8 lanes 1 together 16 across keep operands shared 5",
    ]) {
      expect(difference(graphOf(alongFirst(0), "f32", [37, 40]), how)).toBeUndefined();
      expect(difference(graphOf(centred(0), "f32", [37, 40]), how)).toBeUndefined();
    }
    const narrow = "threads 8 lanes 8 together 4 across keep operands shared 2";
    expect(difference(graphOf(alongFirst(1), "bf16", [2, 33, 48]), narrow)).toBeUndefined();
    const along = "threads 32 lanes 4 together 1 keep operands shared 1";
    expect(difference(graphOf(norm, "f32", [3, 200]), along)).toBeUndefined();
  });

  it("across, of any number and any length", () => {
    const [rows, length] = [variable("M"), variable("N")];
    const g = new GraphBuilder("rows");
    g.symbol("M", 1, 64);
    g.symbol("N", 1, 500);
    const x = g.input("x", { dtype: "f32", shape: [length, rows] });
    const graph = g.finish([g.node("softmax", [x], { axis: 0 })]);
    const how = "threads 4 lanes 1 together 8 across keep memory";
    expect(difference(graph, how, { M: 3, N: 77 })).toBeUndefined();
    const { regions } = take(compileModel({ graph, weights: noWeights }, { target }));
    const fault = (parts: number) =>
      rowsFault({ ...directiveOf(regions), parts }, regions[0]!.scheduled.rows!.form);
    expect([fault(1), fault(2)]).toEqual([undefined, "clusters for M rows are not proved"]);
  });

  it("parts of rows for the blocks of a cluster, which send each other what they folded", () => {
    for (const how of [
      "threads 8 lanes 4 together 4 across parts 2 keep registers",
      "threads 4 lanes 2 together 8 across parts 4 keep memory",
    ]) {
      expect(difference(graphOf(alongFirst(0), "f32", [37, 40]), how)).toBeUndefined();
      expect(difference(graphOf(centred(1), "f32", [2, 21, 40]), how)).toBeUndefined();
    }
    for (const how of [
      "threads 64 lanes 2 together 1 parts 2 keep registers",
      "threads 32 lanes 4 together 1 parts 4 keep operands",
      "threads 32 lanes 1 together 1 parts 2 keep memory",
    ]) {
      expect(difference(graphOf(norm, "f32", [3, 200]), how)).toBeUndefined();
    }
    const wide = "threads 32 lanes 8 together 1 parts 2 keep registers";
    expect(difference(graphOf(residual, "bf16", [2, 520]), wide)).toBeUndefined();
  });

  it("groups of channels are rows, along which each channel has a scale", () => {
    const graph = groupGraph("f32", [2, 6, 4, 8], 3);
    for (const how of [
      "threads 16 lanes 4 together 2 keep operands",
      "threads 32 lanes 2 together 1 parts 2 keep registers",
      "threads 32 lanes 1 together 1 keep memory",
    ]) {
      expect(difference(graph, how)).toBeUndefined();
    }
    // Pixels of no known number are no digits: statistics and what follows stay apart, and are proved.
    const open = groupGraph("f32", [1, 64, 32, variable("W")], 8);
    expect(compileModel({ graph: open, weights: noWeights }, { target })).toMatchObject({
      ok: true,
      warnings: [],
    });
    const ragged = groupGraph("bf16", [2, 4, 5, 7], 2);
    expect(difference(ragged, "threads 32 lanes 2 together 2 keep operands")).toBeUndefined();
    for (const dims of [
      [32, 320, 64, 64],
      [4, 96, 55, 55],
    ]) {
      const chosen = take(
        compileModel({ graph: groupGraph("bf16", dims, 32), weights: noWeights }, { target }),
      );
      expect(chosen.regions.map((r) => r.scheduled.rows !== undefined)).toEqual([true]);
    }
  });

  it("numbers that no block can be given are refused, statements that are no rows too", () => {
    const graph = graphOf(softmax, "f32", [8, constant(128)]);
    const { regions } = take(compileModel({ graph, weights: noWeights }, { target }));
    const { region } = regions[0]!.scheduled;
    const last = region.statements.at(-1)!.name;
    const codeOf = (how: string, of = region) => {
      const schedule = take(parseSchedule(`schedule "${of.name}" for "h200" { rows ${how} }`));
      const applied = applySchedule(of, schedule);
      if (!applied.ok) return applied.diagnostics[0]!.code;
      return decideSchedule(applied.value).ok ? "legal" : "illegal";
    };
    expect(codeOf(`${last} threads 32 lanes 4 together 4 keep registers`)).toBe("legal");
    expect(codeOf(`${last} threads 48 lanes 4 together 4 keep registers`)).toBe("SCH043");
    expect(codeOf(`${last} threads 8 lanes 1 together 1 keep memory`)).toBe("SCH043");
    expect(codeOf(`${last} threads 32 lanes 1 together 64 keep memory`)).toBe("SCH043");
    // Shared memory keeps what comes from memory of vectors that a thread has.
    const shared = `${last} threads 32 lanes 4 together 4 keep`;
    expect(codeOf(`${shared} operands shared 1`)).toBe("legal");
    expect(codeOf(`${shared} operands shared 2`)).toBe("SCH043");
    expect(codeOf(`${shared} registers shared 1`)).toBe("SCH043");
    expect(codeOf(`${shared} memory shared 1`)).toBe("SCH043");
    // Blocks of a cluster have one row, vectors across whole rows, parts a power of two.
    expect(codeOf(`${last} threads 32 lanes 1 together 1 parts 2 keep registers`)).toBe("legal");
    expect(codeOf(`${last} threads 32 lanes 1 together 2 parts 2 keep registers`)).toBe("SCH043");
    expect(codeOf(`${last} threads 32 lanes 1 together 1 parts 16 keep registers`)).toBe("SCH043");
    expect(codeOf(`${last} threads 32 lanes 8 together 4 across keep registers`)).toBe("legal");
    expect(codeOf(`${last} threads 32 lanes 16 together 4 across keep registers`)).toBe("SCH043");
    // Lanes are rows or elements, elements are whole vectors where they are folded, and along memory they are lanes.
    expect(codeOf(`${last} threads 4 lanes 1 together 8 across items 8 keep registers`)).toBe(
      "legal",
    );
    expect(codeOf(`${last} threads 4 lanes 2 together 8 across items 8 keep registers`)).toBe(
      "SCH043",
    );
    expect(codeOf(`${last} threads 4 lanes 1 together 8 across items 3 keep registers`)).toBe(
      "SCH043",
    );
    expect(codeOf(`${last} threads 32 lanes 1 together 1 items 2 keep registers`)).toBe("SCH043");
    const [first] = region.statements;
    expect(codeOf(`${first!.name} threads 32 lanes 4 together 4 keep registers`)).toBe("SCH042");
    const shifted = {
      ...region,
      statements: region.statements.map((s) => ({
        ...s,
        reads: s.reads.map((r) =>
          r.index.length > 1 && r !== s.reads[0]
            ? { ...r, index: [constant(0), ...r.index.slice(1)] }
            : r,
        ),
      })),
    };
    expect(codeOf(`${last} threads 32 lanes 4 together 4 keep registers`, shifted)).toBe("SCH042");
  });
});
