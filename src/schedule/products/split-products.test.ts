import { describe, expect, it } from "vitest";
import { compileModel } from "../../compile.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import { tensorType } from "../../graph/tensor-type.ts";
import { noWeights } from "../../interp/graph.ts";
import { runNests } from "../../interp/nest.ts";
import { runProgram } from "../../interp/program.ts";
import { lowerRegionProgram } from "../../lower/region-program.ts";
import { printProgram } from "../../program/program-text.ts";
import { validateProgram } from "../../program/validate/validate.ts";
import type { NestProgram, NestTensor, Region, TensorRole } from "../../region/nest.ts";
import { parseRegion } from "../../region/nest-reader.ts";
import { constant } from "../../semantics/index-expr.ts";
import { numbersOf, randomRef } from "../../semantics/tensor.ts";
import type { Result } from "../../support/diagnostic.ts";
import { Rng } from "../../support/rng.ts";
import { targets } from "../../target/index.ts";
import { applySchedule } from "../apply.ts";
import { enumerateBlockSchedules } from "../blocks/block-candidates.ts";
import type { Schedule } from "../directive.ts";
import { parseSchedule } from "../directive-text.ts";
import { enumerateProducts } from "./product-candidates.ts";
import { splitFold, splitProduct } from "./split-products.ts";
import { cutRows, cutsOf } from "./tail-products.ts";

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(JSON.stringify(result.diagnostics));
  return result.value;
}

const regionOf = (text: string): Region =>
  take(parseRegion(`region r group r anchor S0 inlined () epilogue () { ${text} }`));

const matrices = regionOf(`input x : f32[3, 1024] input w : f32[5, 1024] input b : f32[5]
  output y : f32[3, 5]
  statement S0 "" {i in 3, j in 5, reduce k in 1024} {
    y[i, j] = reduce<sum, f32, reassociates>(mul(x[i, k], w[j, k])) finish (relu(add(_0, b[j]))) }`);
const windows = regionOf(`input x : f32[2, 32, 6] input w : f32[3, 32, 4] output y : f32[2, 3, 6]
  statement S0 "" {n in 2, o in 3, p in 6, reduce c in 32, reduce q in 4} {
    y[n, o, p] = reduce<sum, f32, reassociates>(
      mul((x[n, c, p + q - 1] if p + q - 1 >= 0 && 6 - p - q >= 0 else 0), w[o, c, q])) }`);

const heads =
  regionOf(`input x : f32[3, 512] input w : f32[32, 512] input b : f32[32] output y : f32[4, 3, 8]
  statement S0 "" {i in 3, j in 32, reduce k in 512} {
    y[floorDiv(j, 8), i, mod(j, 8)] =
      reduce<sum, f32, reassociates>(mul(x[i, k], w[j, k])) finish (relu(add(_0, b[j]))) }`);

const odd = regionOf(`input x : f32[3, 1031] input w : f32[1031, 5] input b : f32[5]
  output y : f32[3, 5]
  statement S0 "" {i in 3, j in 5, reduce k in 1031} {
    y[i, j] = reduce<sum, f32, reassociates>(mul(x[i, k], w[k, j])) finish (relu(add(_0, b[j]))) }`);
const oddWindows =
  regionOf(`input x : f32[2, 257, 6] input w : f32[3, 257, 3] output y : f32[2, 3, 6]
  statement S0 "" {n in 2, o in 3, p in 6, reduce c in 257, reduce q in 3} {
    y[n, o, p] = reduce<sum, f32, reassociates>(
      mul((x[n, c, p + q - 1] if p + q - 1 >= 0 && 6 - p - q >= 0 else 0), w[o, c, q])) }`);

/** What the statements of the regions, one after another, write to y. */
function resultOf(regions: readonly Region[], given: Region): readonly number[] {
  const tensors = new Map<string, NestTensor & { readonly role: TensorRole }>();
  for (const { tensors: own } of regions) {
    for (const [name, { role, ...rest }] of own) {
      tensors.set(name, { ...rest, role: role === "local" ? "intermediate" : role });
    }
  }
  const inputs = [...given.tensors.values()].filter((t) => t.role === "input");
  const program: NestProgram = {
    name: "r",
    symbols: [],
    tensors,
    items: regions.flatMap((r) => r.statements.map((s) => ({ kind: "statement", statement: s }))),
    inputs: inputs.map((t) => t.name),
    outputs: ["y"],
  };
  const rng = new Rng(3);
  const drawn = inputs.map(({ name, dtype, shape }) => {
    const extents = shape.map((e) => e.constant);
    return [name, randomRef(dtype, extents, rng)] as const;
  });
  const [y] = take(runNests(program, { given: new Map(drawn), symbols: new Map() }));
  return [...numbersOf(y!)];
}

describe("a product in parts and their sum", () => {
  it.each([
    ["matrices", matrices, [2, 4, 8]],
    ["windows at the edge", windows, [1]],
    ["heads apart", heads, [2, 4]],
    ["matrices of a prime depth", odd, [2, 4, 8]],
    ["windows of prime channels", oddWindows, [2]],
  ] as const)("are the product: %s", (_, region, counts) => {
    const want = resultOf([region], region);
    for (const parts of counts) {
      const [pair] = splitProduct(region, parts, 132);
      expect(pair![1].statements[0]!.loops.at(-1)!.extent.constant).toBe(parts);
      resultOf(pair!, region).forEach((value, i) => {
        expect(Math.abs(value - want[i]!)).toBeLessThan(1e-4 * Math.max(1, Math.abs(want[i]!)));
      });
    }
  });

  it("leave heads to loops that are proved: places of columns are divided nowhere", () => {
    const gpu = targets.get("h200")!;
    const [pair] = splitProduct(heads, 4, 132);
    const schedules = enumerateBlockSchedules(pair![1], gpu);
    expect(schedules.length).toBeGreaterThan(4);
    for (const schedule of schedules.filter((_, i) => i % 5 === 0)) {
      const scheduled = take(applySchedule(pair![1], schedule));
      const { program } = take(lowerRegionProgram(scheduled, gpu));
      take(validateProgram(program));
    }
  });

  it("of a single row are those of a fold", () => {
    const row = regionOf(`input x : f32[1024] input w : f32[1024, 5] output y : f32[5]
      statement S0 "" {j in 5, reduce k in 1024} {
        y[j] = reduce<sum, f32, reassociates>(mul(x[k], w[k, j])) }`);
    const want = resultOf([row], row);
    const [pair] = splitFold(row, 8, targets.get("h200")!.blocks!);
    resultOf(pair!, row).forEach((value, i) => {
      expect(Math.abs(value - want[i]!)).toBeLessThan(1e-4 * Math.max(1, Math.abs(want[i]!)));
    });
    expect(splitFold(matrices, 8, targets.get("h200")!.blocks!)).toEqual([]);
  });

  it("of a few results over several loops are parts of one that divides, however short the first one is", () => {
    const channels = regionOf(`input x : i32[6, 3, 128] output y : i32[3]
      statement S0 "" {c in 3, reduce n in 6, reduce p in 128} {
        y[c] = reduce<sum, i32, exact>(x[n, c, p]) }`);
    const { blocks } = targets.get("h200")!;
    const [pair] = splitFold(channels, 16, blocks!);
    expect(pair!.map((r) => r.statements[0]!.loops.map((l) => l.extent.key).join(" "))).toEqual([
      "16 3 6 8",
      "3 16",
    ]);
    expect(resultOf(pair!, channels)).toEqual(resultOf([channels], channels));
    expect(splitFold(channels, 32, blocks!)).toEqual([]);
  });

  it.each([
    ["whole", "reduce k in 4096", "k", "4096", 64],
    ["ragged", "reduce k in 20011", "k", "20011", 64],
    ["of several loops", "reduce j in 64, reduce k in 40", "j, k", "64, 40", 64],
    [
      "of several loops, none of which divides",
      "reduce j in 131, reduce k in 37",
      "j, k",
      "131, 37",
      64,
    ],
  ] as const)(
    "of all elements are proved and those of one fold: %s",
    (_, loops, at, shape, parts) => {
      const given = regionOf(`input x : i32[${shape}] output y : i32[]
      statement S0 "" {${loops}} { y[] = reduce<sum, i32, exact>(x[${at}]) }`);
      const gpu = targets.get("h200")!;
      const [pair] = splitFold(given, parts, gpu.blocks!);
      expect(pair).toHaveLength(2);
      expect(resultOf(pair!, given)).toEqual(resultOf([given], given));
      const x = Int32Array.from(
        { length: shape.split(", ").reduce((n, e) => n * Number(e), 1) },
        (_, k) => (k % 11) - 3,
      );
      for (const region of pair!) {
        const schedules = enumerateBlockSchedules(region, gpu);
        const shared = schedules.filter((s) => s.directives.some((d) => d.kind === "bind"));
        expect(shared.length).toBeGreaterThan(0);
        const [out] = region.statements[0]!.writes;
        // A warp that adds two parts side by side, the last of which ends where the other goes on.
        const has = (s: Schedule, kind: string): boolean =>
          s.directives.some((d) => d.kind === kind);
        const beside = shared.find((s) => has(s, "unroll") && has(s, "vectorize"));
        if (region === pair![0] && !loops.includes(",")) expect(beside).toBeDefined();
        const tried = [beside, ...shared.filter((_, i) => i % 8 === 0).slice(-4)];
        for (const schedule of tried.filter((s) => s !== undefined)) {
          const scheduled = take(applySchedule(region, schedule));
          const { program } = take(lowerRegionProgram(scheduled, gpu));
          take(validateProgram(program));
          if (region !== pair![0]) continue;
          const contents = new Map([["x", new Uint8Array(x.buffer)]]);
          const run = runProgram(program, { parameters: {}, contents, threads: 1, seed: 1 });
          if (run.kind === "fault") throw new Error(JSON.stringify(run.fault));
          const sums = new Int32Array(run.contents.get(out!.tensor)!.buffer);
          expect(sums.reduce((a, b) => a + b, 0)).toBe(x.reduce((a, b) => a + b, 0));
        }
      }
    },
  );

  it("of axes that no number of parts divides are those of one flat axis, which a view sees", () => {
    const gpu = targets.get("h200")!;
    const program = (...shape: readonly number[]) => {
      const g = new GraphBuilder("fold");
      const x = g.input("x", { dtype: "i32", shape: shape.map((e) => constant(e)) });
      const all = shape.map((_, axis) => axis);
      const graph = g.finish([g.reduce("sum", x, all, false)]);
      return take(compileModel({ graph, weights: noWeights }, { target: gpu }));
    };
    for (const shape of [
      [131, 139],
      [7, 2503],
      [3, 59, 103],
    ]) {
      const { regions, plan } = program(...shape);
      const count = shape.reduce((n, e) => n * e, 1);
      const [loops] = regions.map((r) =>
        r.scheduled.region.statements[0]!.loops.map((l) => l.kind),
      );
      expect(regions).toHaveLength(2);
      expect(loops).toEqual(["space", "reduce"]);
      const x = Int32Array.from({ length: count }, (_, k) => (k % 11) - 3);
      const input = plan.program.buffers.find((b) => b.kind === "input")!;
      const output = plan.program.buffers.find((b) => b.kind === "output")!;
      const contents = new Map([[input.name, new Uint8Array(x.buffer)]]);
      const run = runProgram(plan.program, { parameters: {}, contents, threads: 1, seed: 1 });
      if (run.kind === "fault") throw new Error(JSON.stringify(run.fault));
      const [sum] = new Int32Array(run.contents.get(output.name)!.buffer);
      expect(sum).toBe(x.reduce((a, b) => a + b, 0));
    }
  });

  it.each([16_384, 20_011])(
    "of elements that data picks are picked in parts: %i of them",
    (rows) => {
      const gpu = targets.get("h200")!;
      const g = new GraphBuilder("picked");
      const x = g.input("x", tensorType("i32", rows, 3));
      const at = g.input("at", tensorType("i64", rows, 1));
      const picked = g.node("gatherElements", [x, at], { axis: 1 });
      const graph = g.finish([g.reduce("sum", picked, [0, 1], false)]);
      const { regions, plan } = take(compileModel({ graph, weights: noWeights }, { target: gpu }));
      expect(regions).toHaveLength(2);
      const kinds = regions.map((r) => {
        const { loops, indirects } = r.scheduled.region.statements[0]!;
        return [loops.map((l) => l.kind).join(), indirects.length];
      });
      expect(kinds).toEqual([
        ["space,reduce", 1],
        ["reduce", 0],
      ]);
      const values = Int32Array.from({ length: 3 * rows }, (_, k) => (k % 23) - 7);
      const columns = BigInt64Array.from({ length: rows }, (_, k) => BigInt((k * k) % 3));
      const given = new Map<string, ArrayBuffer>([
        ["x", values.buffer],
        ["at", columns.buffer],
      ]);
      const contents = new Map(
        plan.program.buffers
          .filter((b) => b.kind === "input")
          .map((b) => [b.name, new Uint8Array(given.get(b.source!)!)] as const),
      );
      const run = runProgram(plan.program, { parameters: {}, contents, threads: 1, seed: 1 });
      if (run.kind === "fault") throw new Error(JSON.stringify(run.fault));
      const output = plan.program.buffers.find((b) => b.kind === "output")!;
      const [sum] = new Int32Array(run.contents.get(output.name)!.buffer);
      const want = Array.from(columns, (c, k) => values[3 * k + Number(c)]!);
      expect(sum).toBe(want.reduce((a, b) => a + b, 0));
    },
  );

  it("leave what is written at a place that data names to one", () => {
    const named = regionOf(`input x : i32[4096] input at : i64[1] output y : i32[8]
      statement S0 "" {i in 1, reduce k in 4096} {
        index v0 in 8 checked = at[i]
        y[v0] = reduce<sum, i32, exact>(x[k]) }`);
    expect(splitFold(named, 64, targets.get("h200")!.blocks!)).toEqual([]);
  });

  it("are not tried where blocks are many, or depths short", () => {
    expect(splitProduct(matrices, 16, 132)).toEqual([]);
    expect(splitProduct(odd, 16, 132)).toEqual([]);
    expect(splitProduct(matrices, 2, 0)).toEqual([]);
  });

  it("are chosen by their prices: for few results of long sums, not for many", () => {
    const kernels = (m: number, n: number, k: number): readonly string[] => {
      const g = new GraphBuilder("product");
      const type = (...dims: number[]) =>
        ({ dtype: "bf16", shape: dims.map((d) => constant(d)) }) as const;
      const product = g.einsum(
        "i k, j k -> i j",
        g.input("x", type(m, k)),
        g.input("w", type(n, k)),
        "f32",
      );
      const graph = g.finish([g.cast(product, "bf16")]);
      const target = targets.get("h200")!;
      const { regions } = take(compileModel({ graph, weights: noWeights }, { target }));
      return regions.map((r) => r.scheduled.products[0]?.directive.by ?? "loops");
    };
    expect(kernels(64, 512, 16384)).toEqual(["wgmma", "loops"]);
    expect(kernels(2048, 2048, 256)).toEqual(["wgmma"]);
  });
});

describe("rows of whole rounds and those that are left", () => {
  const product = (m: number, n: number, k: number): Region =>
    regionOf(`input x : bf16[${m}, ${k}] input w : bf16[${n}, ${k}] output y : bf16[${m}, ${n}]
      statement S0 "" {i in ${m}, j in ${n}, reduce k in ${k}} {
        y[i, j] = reduce<sum, f32, reassociates>(mul(cast<f32>(x[i, k]), cast<f32>(w[j, k])))
          finish (cast<bf16>(_0)) }`);

  it("are the product, element by element", () => {
    const want = resultOf([matrices], matrices);
    for (const rows of [1, 2]) expect(resultOf(cutRows(matrices, rows), matrices)).toEqual(want);
  });

  it("are rows of tiles of which as many fill all multiprocessors", () => {
    // 18 times 12 tiles of 128 by 192: 11 rows of them are one round of 132.
    expect(cutsOf(product(2304, 2304, 4096), 132)).toContain(11 * 128);
    expect(cutsOf(product(128, 128, 512), 132)).toEqual([]);
    expect(cutsOf(product(2048, 2048, 4096), 132)).toEqual([]);
  });

  it("are chosen by their prices, as two kernels that write one result: where a round would be half empty", () => {
    const g = new GraphBuilder("product");
    const [x, w] = ["x", "w"].map((name) =>
      g.input(name, { dtype: "bf16", shape: [constant(2304), constant(4096)] }),
    );
    const graph = g.finish([g.cast(g.einsum("i k, j k -> i j", x!, w!, "f32"), "bf16")]);
    const target = targets.get("h200")!;
    const { regions, plan } = take(compileModel({ graph, weights: noWeights }, { target }));
    expect(regions.map((r) => r.scheduled.products[0]?.form.rows.extent)).toEqual([1408, 896]);
    expect(plan.program.buffers.filter((b) => b.kind === "output")).toHaveLength(1);
    expect(printProgram(plan.program)).toMatch(/issue bulk.store.2d\(\w+\[[^\]]*\+ 1408,/);
  });
});

describe("a part of the results whose depth a cluster shares", () => {
  it("has tiles whose sums leave registers for its places", () => {
    const region =
      regionOf(`input x : bf16[1536, 1024] input w : bf16[512, 1024] output y : bf16[1536, 512]
      statement S0 "" {i in 1536, j in 512, reduce k in 1024} {
        y[i, j] = reduce<sum, f32, reassociates>(mul(cast<f32>(x[i, k]), cast<f32>(w[j, k])))
          finish (cast<bf16>(_0)) }`);
    const [, rest] = cutRows(region, 1024);
    const faultOf = (of: Region, name: string, columns: number) => {
      const how = `by wgmma tile (128, ${columns}, 64) warps (8, 1) stages 3 swizzle 128 parts 2`;
      const text = `schedule "${of.name}" for "h200" { multiply ${name} ${how} }`;
      const applied = applySchedule(of, take(parseSchedule(text)));
      return applied.ok ? undefined : applied.diagnostics[0]!.message;
    };
    expect(faultOf(region, "S0", 256)).toBeUndefined();
    expect(faultOf(rest, "S0.rest", 256)).toMatch(/registers/);
    expect(faultOf(rest, "S0.rest", 128)).toBeUndefined();
  });
});

describe("clusters of four", () => {
  const partsOf = (columns: number): readonly number[] => {
    const region =
      regionOf(`input x : bf16[64, 4096] input w : bf16[${columns}, 4096] output y : bf16[64, ${columns}]
      statement S0 "" {i in 64, j in ${columns}, reduce k in 4096} {
        y[i, j] = reduce<sum, f32, reassociates>(mul(cast<f32>(x[i, k]), cast<f32>(w[j, k])))
          finish (cast<bf16>(_0)) }`);
    const found = enumerateProducts(region, targets.get("h200")!).flatMap((d) =>
      d.parts === 4 ? [Math.ceil(columns / d.tile[1])] : [],
    );
    return [...new Set(found)];
  };

  it("are tried where they leave multiprocessors idle: 32 of them take two rounds of 132", () => {
    expect(partsOf(1024)).toContain(16);
    expect(partsOf(4096)).toContain(26);
    for (const tiles of [...partsOf(1024), ...partsOf(4096)]) expect(tiles).toBeLessThan(29);
  });
});
