import { describe, expect, it } from "vitest";
import { compileModel } from "../../compile.ts";
import { priceRegion } from "../../cost/region-price.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import type { Graph } from "../../graph/graph.ts";
import { tensorType } from "../../graph/tensor-type.ts";
import { noWeights, runGraph } from "../../interp/graph.ts";
import { runNests } from "../../interp/nest.ts";
import { runProgram } from "../../interp/program.ts";
import { lowerProgram } from "../../lower/lower-program.ts";
import { validateProgram } from "../../program/validate/validate.ts";
import type { NestProgram, NestTensor, Region, TensorRole } from "../../region/nest.ts";
import type { DType } from "../../semantics/dtype.ts";
import { fromRef, randomRef, toRef } from "../../semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { Rng } from "../../support/rng.ts";
import { targets } from "../../target/index.ts";
import { applySchedule } from "../apply.ts";
import { enumerateBlockSchedules } from "../blocks/block-candidates.ts";
import { decideSchedule } from "../legality/legality.ts";
import { splitFold } from "../products/split-products.ts";
import { rowsForm } from "./rows-form.ts";
import { splitScan } from "./split-scans.ts";

const target = targets.get("h200")!;

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

function compiled(graph: Graph) {
  return take(compileModel({ graph, weights: noWeights }, { target }));
}

const valuesOf = ({ data }: ReturnType<typeof randomRef>): readonly (number | bigint)[] => [
  ...(data as Iterable<number | bigint>),
];

interface Scan {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly exclusive: boolean;
  readonly reverse: boolean;
  readonly kind?: "sum" | "prod";
  readonly axis?: number;
}

function scanGraph({ dtype, shape, exclusive, reverse, kind = "sum", axis = 1 }: Scan): Graph {
  const g = new GraphBuilder("scan");
  const x = g.input("x", tensorType(dtype, ...shape));
  return g.finish([g.node("cumulative", [x], { kind, axis, exclusive, reverse })]);
}

/** The regions, one after another, as a program. */
function nestsOf(regions: readonly Region[], output: string): NestProgram {
  const tensors = new Map<string, NestTensor & { readonly role: TensorRole }>();
  for (const { tensors: own } of regions) {
    for (const [name, { role, ...rest }] of own) {
      tensors.set(name, { ...rest, role: role === "local" ? "intermediate" : role });
    }
  }
  // What comes in and goes out may be seen through a view.
  const written = regions.flatMap((r) =>
    r.statements.flatMap((s) => s.writes.map((w) => w.tensor)),
  );
  const input = [...tensors.values()].find((t) => !written.includes(t.name))!;
  tensors.set(input.name, { ...input, role: "input" });
  tensors.set(output, { ...tensors.get(output)!, role: "output" });
  return {
    ...{ name: "r", symbols: [], tensors, inputs: [input.name], outputs: [output] },
    items: regions.flatMap((r) => r.statements.map((s) => ({ kind: "statement", statement: s }))),
  };
}

/** What the statements of the regions make of x. */
function resultOf(regions: readonly Region[], output: string, x: ReturnType<typeof randomRef>) {
  const program = nestsOf(regions, output);
  const [name] = program.inputs as readonly [string];
  const shape = program.tensors.get(name)!.shape.map((e) => e.constant);
  const given = new Map([[name, { ...x, shape }]]);
  return valuesOf(take(runNests(program, { given, symbols: new Map() }))[0]!);
}

/** What kernels of the regions make of x, each the cheapest of its own, proved together. */
function kernelResult(regions: readonly Region[], output: string, x: ReturnType<typeof randomRef>) {
  const scheduled = regions.map((region) => {
    const priced = enumerateBlockSchedules(region, target).flatMap((schedule) => {
      const applied = applySchedule(region, schedule);
      if (!applied.ok || (region.statements.length > 1 && !applied.value.rows)) return [];
      return [{ scheduled: applied.value, ns: priceRegion(applied.value, target).estimateNs }];
    });
    priced.sort((a, b) => a.ns - b.ns);
    return take(decideSchedule(priced[0]!.scheduled));
  });
  const nests = nestsOf(regions, output);
  const { program } = take(lowerProgram({ nests, scheduled, requires: [], states: [] }, target));
  take(validateProgram(program));
  const { data } = fromRef(x);
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const contents = new Map([[nests.inputs[0]!, bytes]]);
  const outcome = runProgram(program, { parameters: {}, contents, threads: 1, seed: 3 });
  if (outcome.kind === "fault") throw new Error(JSON.stringify(outcome.fault));
  const found = fromRef(x);
  new Uint8Array(found.data.buffer).set(outcome.contents.get(output)!);
  return valuesOf(toRef(found));
}

describe("a scan in parts", () => {
  it.each([
    { dtype: "i32", shape: [3, 2048], exclusive: false, reverse: false },
    { dtype: "i32", shape: [1, 4096], exclusive: true, reverse: false },
    { dtype: "i64", shape: [2, 2048], exclusive: false, reverse: true },
    { dtype: "u8", shape: [2, 2048], exclusive: true, reverse: true },
    { dtype: "i32", shape: [2, 2048], exclusive: true, reverse: true, kind: "prod" },
  ] as const)("is the scan: %o", (scan) => {
    const graph = scanGraph(scan);
    const { region } = compiled(graph).regions[0]!.scheduled;
    const output = region.statements.at(-1)!.writes[0]!.tensor;
    const x = randomRef(scan.dtype, scan.shape, new Rng(4));
    const want = valuesOf(take(runGraph(graph, [x]))[0]!);
    const [cut] = splitScan(region, 8, 132);
    expect(cut).toHaveLength(3);
    expect(resultOf(cut!, output, x)).toEqual(want);
    // Each is rows for blocks again.
    for (const part of cut!.slice(1)) expect(typeof rowsForm(part)).not.toBe("string");
    expect(splitScan(region, 8, 0)).toEqual([]);
  });

  it.each([
    { dtype: "i32", shape: [2, 2100], exclusive: false, reverse: false },
    { dtype: "i64", shape: [1, 2301], exclusive: true, reverse: true },
    { dtype: "u8", shape: [2, 2064], exclusive: false, reverse: true },
    { dtype: "i32", shape: [2048, 6], axis: 0, exclusive: true, reverse: false },
    { dtype: "i32", shape: [2176, 40], axis: 0, exclusive: false, reverse: true },
    { dtype: "i64", shape: [2, 2101, 3], exclusive: false, reverse: false },
  ] as const)("ends with the line, and lies along any axis, in kernels too: %o", (scan) => {
    const graph = scanGraph(scan);
    const { region } = compiled(graph).regions[0]!.scheduled;
    const output = region.statements.at(-1)!.writes[0]!.tensor;
    const x = randomRef(scan.dtype, scan.shape, new Rng(8));
    const want = valuesOf(take(runGraph(graph, [x]))[0]!);
    const [cut] = splitScan(region, 8, 132);
    expect(resultOf(cut!, output, x)).toEqual(want);
    expect(kernelResult(cut!, output, x)).toEqual(want);
  });

  it.each([66_000, 100_003, 1_000_000, 1_000_001, 128_256])(
    "of %i elements is proved, in parts or not",
    (length) => {
      for (const shape of [[length], [4, length]]) {
        const g = new GraphBuilder("scan");
        const x = g.input("x", tensorType("f32", ...shape));
        const attrs = {
          kind: "sum",
          axis: shape.length - 1,
          exclusive: true,
          reverse: true,
        } as const;
        const { warnings } = compileModel(
          { graph: g.finish([g.node("cumulative", [x], attrs)]), weights: noWeights },
          { target },
        ) as { readonly warnings: readonly unknown[] };
        expect(warnings).toEqual([]);
      }
    },
  );

  it("fills the machine with a few long lines of any length, and with lines beside each other", () => {
    const shapes = (shape: readonly number[], axis: number): readonly string[] => {
      const scan = { dtype: "f32", shape, axis, exclusive: false, reverse: false } as const;
      return compiled(scanGraph(scan)).plan.program.kernels.map(({ grid, roles }) => {
        return `${grid.axes.map((a) => a.extent.key).join("x")} of ${roles[0]!.copies * roles[0]!.threads}`;
      });
    };
    expect(shapes([4, 1_000_000], 1)).toEqual(["1x977 of 64", "4 of 1024", "4x123 of 128"]);
    expect(shapes([100_000, 8], 0)).toEqual(["196x2 of 32", "2 of 128", "196x1 of 256"]);
    expect(shapes([4096, 4096], 0)).toEqual(["128 of 512"]);
    expect(shapes([32, 1024, 64], 1)).toEqual(["32x8 of 256"]);
  });

  it("is proved with the schedule that is cheapest, from either end", () => {
    for (const reverse of [false, true]) {
      // The last parts of lines beside each other, too, are turns of all threads.
      for (const shape of [
        [4, 65_536],
        [64, 4099, 3],
      ]) {
        const scan = { dtype: "f32", shape, exclusive: false, reverse } as const;
        const made = compileModel({ graph: scanGraph(scan), weights: noWeights }, { target });
        expect(made.ok ? made.warnings : made.diagnostics).toEqual([]);
      }
    }
  });

  it("is taken for a few long lines, and proved; of many lines each is a block's", () => {
    const long = { dtype: "f32", shape: [1, 2 ** 20], exclusive: false, reverse: false } as const;
    expect(compiled(scanGraph(long)).plan.program.kernels).toHaveLength(3);
    const many = { ...long, shape: [4096, 1024] };
    const { regions } = compiled(scanGraph(many));
    const kinds = regions.flatMap((r) => r.scheduled.schedule.directives.map((d) => d.kind));
    expect(kinds).toEqual(["rows"]);
  });
});

describe("a scan beside axes of one element", () => {
  it.each([
    { shape: [331, 1], axis: 0, exclusive: false, reverse: false },
    { shape: [1, 331, 1], axis: 1, exclusive: true, reverse: true },
    { shape: [3, 1, 211, 1, 1], axis: 2, exclusive: false, reverse: true },
  ])("is one over rows: $shape along $axis", (given) => {
    const graph = scanGraph({ dtype: "i32", ...given });
    const { regions, plan } = compiled(graph);
    const kinds = regions.flatMap((r) => r.scheduled.schedule.directives.map((d) => d.kind));
    expect(kinds).toEqual(["rows"]);
    const x = randomRef("i32", given.shape, new Rng(4));
    const { program } = plan;
    const nameOf = (kind: string): string => program.buffers.find((b) => b.kind === kind)!.name;
    const contents = new Map([[nameOf("input"), new Uint8Array(fromRef(x).data.buffer)]]);
    const run = runProgram(program, { parameters: {}, contents, threads: 1, seed: 1 });
    if (run.kind === "fault") throw new Error(JSON.stringify(run.fault));
    const found = new Int32Array(run.contents.get(nameOf("output"))!.slice().buffer);
    expect([...found]).toEqual(valuesOf(take(runGraph(graph, [x]))[0]!).map(Number));
  });

  it.each([
    { shape: [20_011, 1], axis: 0, exclusive: false, reverse: true },
    { shape: [1, 20_011, 1, 1], axis: 1, exclusive: true, reverse: false, kind: "prod" },
    { shape: [9001, 1, 2, 1], axis: 0, exclusive: false, reverse: true },
  ] as const)("is cut in parts as without them: $shape along $axis", (given) => {
    const scan = { dtype: "i32", ...given } as const;
    const graph = scanGraph(scan);
    const made = compileModel({ graph, weights: noWeights }, { target });
    expect(made.ok ? made.warnings : made.diagnostics).toEqual([]);
    const without = given.shape.filter((n) => n > 1);
    const axis = given.shape.slice(0, given.axis).filter((n) => n > 1).length;
    const same = compiled(scanGraph({ ...scan, shape: without, axis }));
    const { plan, regions, nests } = take(made);
    expect(regions).toHaveLength(3);
    expect(regions.map((r) => r.price.estimateNs)).toEqual(
      same.regions.map((r) => r.price.estimateNs),
    );
    const x = randomRef("i32", given.shape, new Rng(4));
    const contents = new Map([["x", new Uint8Array(fromRef(x).data.buffer)]]);
    const run = runProgram(plan.program, { parameters: {}, contents, threads: 1, seed: 1 });
    if (run.kind === "fault") throw new Error(JSON.stringify(run.fault));
    const found = new Int32Array(run.contents.get(nests.outputs[0]!)!.slice().buffer);
    expect([...found]).toEqual(valuesOf(take(runGraph(graph, [x]))[0]!).map(Number));
  });

  it("is cut where others read it, and behind another one", () => {
    const g = new GraphBuilder("scan");
    const x = g.input("x", tensorType("i32", 2, 1, 50_021, 1));
    const attrs = { kind: "sum", axis: 2, exclusive: false, reverse: false } as const;
    const first = g.node("cumulative", [g.add(x, x)], attrs);
    const second = g.node("cumulative", [first], { ...attrs, reverse: true });
    const graph = g.finish([first, second, g.mul(second, x)]);
    const made = compileModel({ graph, weights: noWeights }, { target });
    expect(made.ok ? made.warnings : made.diagnostics).toEqual([]);
    const names = take(made).regions.map((r) => r.scheduled.region.name);
    expect(names.filter((name) => name.endsWith(".before"))).toHaveLength(2);
  });
});

describe("long scans", () => {
  it.each([
    { dtype: "i64", shape: [1, 20_000_000], exclusive: false, reverse: false },
    { dtype: "f16", shape: [1, 20_000_001], exclusive: true, reverse: true },
  ] as const)("are proved in parts: %o", (scan) => {
    const made = compileModel({ graph: scanGraph(scan), weights: noWeights }, { target });
    expect(made.ok ? made.warnings : made.diagnostics).toEqual([]);
    expect(take(made).regions.map((r) => r.scheduled.region.name)).toHaveLength(3);
    expect(take(made).regions.every((r) => r.scheduled.schedule.directives.length > 0)).toBe(true);
  });
});

describe("the place of the largest", () => {
  it.each(["f32", "bf16", "i64", "u8"] as const)("in parts, of %s", (dtype) => {
    const g = new GraphBuilder("largest");
    const x = g.input("x", tensorType(dtype, 3, 1024));
    const attrs = { kind: "max", axis: 1, keepDims: false, selectLast: false } as const;
    const graph = g.finish([g.node("argReduce", [x], attrs)]);
    const { region } = compiled(graph).regions[0]!.scheduled;
    const given = randomRef(dtype, [3, 1024], new Rng(6));
    const [cut] = splitFold(region, 8, target.blocks!);
    expect(cut).toHaveLength(2);
    const output = cut![1].statements[0]!.writes[0]!.tensor;
    const want = valuesOf(take(runGraph(graph, [given]))[0]!);
    expect(resultOf(cut!, output, given)).toEqual(want);
  });

  it("of few long rows is found by the whole machine", () => {
    const g = new GraphBuilder("largest");
    const x = g.input("x", tensorType("bf16", 2, 131_072));
    const attrs = { kind: "max", axis: 1, keepDims: false, selectLast: false } as const;
    const { regions } = compiled(g.finish([g.node("argReduce", [x], attrs)]));
    expect(regions).toHaveLength(2);
  });
});
