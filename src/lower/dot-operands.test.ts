import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Region } from "../region/nest.ts";
import { applySchedule } from "../schedule/apply.ts";
import type { Directive } from "../schedule/directive.ts";
import { dotAxes, dotLayout } from "../schedule/states/dot-form.ts";
import { packedAxis } from "../schedule/states/nest-figures.ts";
import type { DType } from "../semantics/dtype.ts";
import { constant, variable } from "../semantics/index-expr.ts";
import { layoutFault, packTensor } from "../semantics/layout.ts";
import { simpleMonoid } from "../semantics/monoids.ts";
import { apply, argument, cast } from "../semantics/scalar-expr.ts";
import { targets } from "../target/index.ts";
import { lowerRegion } from "./lower-region.ts";

const vnni = targets.get("x64-avx512-vnni")!;
const wasm = targets.get("wasm")!;
const [i, j, k] = [variable("i"), variable("j"), variable("k")];

/** y[i, j] = sum over k of x[i, k] w[k, j] */
function product(left: DType, right: DType, depth: number, sum: "i32" | "f32" = "i32"): Region {
  const tensor = (
    name: string,
    dtype: DType,
    shape: readonly number[],
    role: "input" | "weight" | "output",
  ) => [name, { name, dtype, shape: shape.map((n) => constant(n)), role }] as const;
  return {
    name: "r",
    group: { name: "r", anchor: "S0", inlined: [], epilogue: [] },
    symbols: [],
    tensors: new Map([
      tensor("x", left, [3, depth], "input"),
      tensor("w", right, [depth, 32], "weight"),
      tensor("y", sum, [3, 32], "output"),
    ]),
    statements: [
      {
        name: "S0",
        loops: [
          { name: "i", extent: constant(3), kind: "space" },
          { name: "j", extent: constant(32), kind: "space" },
          { name: "k", extent: constant(depth), kind: "reduce" },
        ],
        guard: [],
        indirects: [],
        reads: [
          { tensor: "x", index: [i, k], guard: [], fill: 0 },
          { tensor: "w", index: [k, j], guard: [], fill: 0 },
        ],
        body: [
          apply("mul", cast(argument(0, left), sum, false), cast(argument(1, right), sum, false)),
        ],
        reduction: { monoid: simpleMonoid("sum", sum), numericClass: "exact" },
        finishReads: [],
        writes: [{ tensor: "y", index: [i, j], combine: "overwrite" }],
        origin: "matmul",
      },
    ],
  };
}

function dots(region: Region, terms: number, lanes = 16): readonly Directive[] {
  const statement = "S0";
  const { shape } = region.tensors.get("w")!;
  const split = (loop: string, factor: number, outer: string, inner: string): Directive => ({
    kind: "split",
    statement,
    loop,
    factor,
    outer,
    inner,
  });
  return [
    split("j", lanes, "jo", "ji"),
    { kind: "vectorize", statement, loop: "ji" },
    split("k", terms, "ko", "kq"),
    { kind: "vectorize", statement, loop: "kq" },
    { kind: "layout", tensor: "w", layout: dotLayout(shape, { lane: 1, depth: 0, terms }, lanes) },
    { kind: "reorder", statement, order: ["jo", "i", "ko", "kq", "ji"] },
  ];
}

function scheduled(region: Region, terms: number, lanes = 16) {
  const directives = dots(region, terms, lanes);
  return applySchedule(region, { region: "r", target: vnni.name, directives });
}

describe("dot products of bytes", () => {
  it("load four bytes for all lanes and the weights of all lanes", () => {
    const applied = scheduled(product("u8", "i8", 24), 4);
    const lowered = applied.ok ? lowerRegion(applied.value, vnni) : applied;
    const text = JSON.stringify(lowered.ok ? lowered.value : lowered.diagnostics);
    expect(text).toContain('"intrinsic":"vpdpbusd.i32x16"');
    expect(text).toContain('"dtype":"u8","lanes":4');
    expect(text).toContain('"dtype":"i8","lanes":64');
  });

  it.each([
    ["both are signed", product("i8", "i8", 24), 4],
    ["the weights are unsigned", product("u8", "u8", 24), 4],
    ["data are wider than the instruction takes", product("i16", "i8", 24), 4],
    ["weights are wider than the instruction takes", product("u8", "i16", 24), 4],
    ["bf16 is summed in i32", product("bf16", "bf16", 24), 2],
    ["bytes are summed in f32", product("u8", "i8", 24, "f32"), 2],
    ["halves are no bf16", product("f16", "f16", 24, "f32"), 2],
    ["four bf16 would be summed", product("bf16", "bf16", 24, "f32"), 4],
    ["groups have three elements", product("u8", "i8", 24), 3],
    ["groups do not divide the depth", product("u8", "i8", 22), 4],
  ])("are refused where %s", (_, region, terms) => {
    const applied = scheduled(region, terms);
    expect(applied.ok ? [] : applied.diagnostics.map((d) => d.code)).toEqual(["SCH038"]);
  });

  it("widen pairs of bytes where sums are of 16 bits", () => {
    const applied = scheduled(product("u8", "i8", 22), 2, 4);
    const lowered = applied.ok ? lowerRegion(applied.value, wasm) : applied;
    const text = JSON.stringify(lowered.ok ? lowered.value : lowered.diagnostics);
    expect(text).toContain('"intrinsic":"vpdpwssd.i32x4"');
    expect(text).toContain('"dtype":"u8","lanes":2');
    expect(text).toContain('"kind":"cast","dtype":"i16","lanes":8');
  });

  it.each(["u8", "i16"] as const)("take weights of 16 bits beside %s as they are", (data) => {
    const applied = scheduled(product(data, "i16", 22), 2, 4);
    const lowered = applied.ok ? lowerRegion(applied.value, wasm) : applied;
    const text = JSON.stringify(lowered.ok ? lowered.value : lowered.diagnostics);
    expect(text).toContain('"intrinsic":"vpdpwssd.i32x4"');
    expect(text).toContain('"kind":"load","dtype":"i16","lanes":8');
    expect(text.includes('"kind":"cast","dtype":"i16"')).toBe(data === "u8");
  });

  it("widen weights beside pairs of 16 bits", () => {
    const applied = scheduled(product("i16", "i8", 22), 2, 4);
    const lowered = applied.ok ? lowerRegion(applied.value, wasm) : applied;
    const text = JSON.stringify(lowered.ok ? lowered.value : lowered.diagnostics);
    expect(text).toContain('"intrinsic":"vpdpwssd.i32x4"');
    expect(text).toContain('"dtype":"i16","lanes":2');
    expect(text).toContain('"kind":"cast","dtype":"i16","lanes":8');
  });

  it("load pairs of bf16 as they are", () => {
    const brain = targets.get("x64-avx512-bf16")!;
    const applied = scheduled(product("bf16", "bf16", 22, "f32"), 2);
    const lowered = applied.ok ? lowerRegion(applied.value, brain) : applied;
    const text = JSON.stringify(lowered.ok ? lowered.value : lowered.diagnostics);
    expect(text).toContain('"dtype":"f32","lanes":16,"intrinsic":"vdpbf16ps.f32x16"');
    expect(text).toContain('"dtype":"bf16","lanes":2');
    expect(text).toContain('"kind":"load","dtype":"bf16","lanes":32');
    const elsewhere = applied.ok ? lowerRegion(applied.value, vnni) : applied;
    expect(elsewhere.ok ? [] : elsewhere.diagnostics.map((d) => d.code)).toEqual(["SCH039"]);
  });

  it("are refused on a target without them", () => {
    const applied = scheduled(product("u8", "i8", 24), 4);
    const lowered = applied.ok ? lowerRegion(applied.value, targets.get("wasm")!) : applied;
    expect(lowered.ok ? [] : lowered.diagnostics.map((d) => d.code)).toEqual(["SCH039"]);
  });
});

describe("the layout of their weights", () => {
  const shapes = fc.tuple(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 9 }));
  const widths = fc.integer({ min: 1, max: 5 });
  it("holds every element once, the four or two of a lane side by side", () => {
    fc.assert(
      fc.property(shapes, widths, fc.constantFrom(2, 4), ([depth, columns], width, terms) => {
        const shape = [depth, columns];
        const layout = dotLayout(
          shape.map((n) => constant(n)),
          { lane: 1, depth: 0, terms },
          width,
        );
        expect(
          layoutFault(
            layout,
            shape.map((n) => constant(n)),
          ),
        ).toBeUndefined();
        const data = Int8Array.from({ length: depth * columns }, (_, at) => at + 1);
        const packed = packTensor({ dtype: "i8", shape, data }, layout);
        for (let d = 0; d < depth; d++) {
          for (let c = 0; c < columns; c++) {
            const panel = Math.floor(c / width) * packed.shape[1]! + Math.floor(d / terms);
            const at = panel * terms * width + terms * (c % width) + (d % terms);
            expect(packed.data[at]).toBe(data[d * columns + c]);
          }
        }
      }),
      { numRuns: 40 },
    );
  });

  it.each([2, 4])("is read back from the schedule: %i a lane", (terms) => {
    const region = product(terms === 4 ? "u8" : "i16", "i8", 24);
    const layout = dotLayout(region.tensors.get("w")!.shape, { lane: 1, depth: 0, terms }, 16);
    const depth = { axis: 0, terms };
    expect(packedAxis("w", layout)).toEqual({ tensor: "w", axis: 1, width: 16, depth });
    const axes = dotAxes(region, region.statements[0]!, { lane: "j", depth: "k", terms });
    expect(axes).toEqual({ tensor: "w", lane: 1, depth: 0 });
  });
});
