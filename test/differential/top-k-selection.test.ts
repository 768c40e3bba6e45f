/**
 * topK of lines that processors select from: in the program's interpreter, as WebAssembly and as machine code
 * where it runs, against the oracle. Ties, NaN, infinities, both zeros, the ends of integer types, and extents that
 * fill no group.
 */
import { describe, expect, it } from "vitest";
import { GraphBuilder } from "../../src/graph/builder.ts";
import type { Graph } from "../../src/graph/graph.ts";
import { type DType, dtypes } from "../../src/semantics/dtype.ts";
import { toIndex } from "../../src/semantics/index-expr.ts";
import {
  fromRef,
  type RefTensor,
  refTensor,
  refTensorsEqual,
  toRef,
} from "../../src/semantics/tensor.ts";
import { Rng } from "../../src/support/rng.ts";
import { checkOnProcessor, processors } from "./on-processors.ts";

interface Case {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly axis: number;
  readonly k: number;
  readonly largest: boolean;
  /** The extent of the axis is a symbol of up to so much. */
  readonly most?: number;
}

const ofFloats = [Number.NaN, Infinity, -Infinity, 0, -0, 1e-40, -1e-40];

/** All equal, few different values or many; of every type also its ends. */
function operand({ dtype, shape }: Case, rng: Rng): RefTensor {
  const { kind, min, max, bits } = dtypes[dtype];
  const isFloat = kind === "float";
  const ends = bits === 64 && !isFloat ? [] : [min, max];
  const special = isFloat ? [...ofFloats, ...ends] : ends;
  const distinct = rng.pick([1, 3, 100_000]);
  const one = (): number => {
    if (rng.uniform() < 0.1 && special.length > 0) return rng.pick(special);
    const value = rng.integer(0, distinct - 1);
    return isFloat ? (value - distinct / 2) / 8 : value % (kind === "uint" ? 200 : 120);
  };
  const count = shape.reduce((n, d) => n * d, 1);
  const values = Array.from({ length: count }, one);
  return toRef(fromRef(refTensor(dtype, shape, values)));
}

function graphOf({ dtype, shape, axis, k, largest, most }: Case): Graph {
  const b = new GraphBuilder("first");
  const dims = shape.map((d, i) =>
    most !== undefined && i === axis ? b.symbol("N", k, most) : toIndex(d),
  );
  const x = b.input("x", { dtype, shape: dims });
  return b.finish(b.nodes("topK", [x], { axis, k: toIndex(k), largest, sorted: true }));
}

function expectEqual(how: string, found: readonly RefTensor[], want: readonly RefTensor[]): void {
  for (const [i, tensor] of want.entries()) {
    expect(refTensorsEqual(found[i]!, tensor), `${how}: output ${i}`).toBe(true);
  }
}

/** Whether a program for any of these machines selects. */
async function check(c: Case, rng: Rng, machines: readonly string[]): Promise<boolean> {
  const graph = graphOf(c);
  const input = operand(c, rng);
  const symbols = c.most === undefined ? {} : { N: c.shape[c.axis]! };
  let selects = false;
  for (const name of machines) {
    const how = { name, rng, compare: expectEqual };
    const { nests } = await checkOnProcessor({ graph, input, symbols }, how);
    selects ||= nests.items.some((i) => i.kind === "routine");
  }
  return selects;
}

/** Another for every commit (property-seed.ts). */
const seed = Number(process.env.PROPERTY_SEED ?? 1);

describe("topK by selection", () => {
  const types = ["f32", "f16", "bf16", "f64", "i8", "u8", "i16", "i32", "u32", "i64"] as const;

  it.each(types)(
    "is topK: lines of %s",
    async (dtype) => {
      const rng = new Rng(seed + types.indexOf(dtype));
      for (const largest of [true, false]) {
        const extent = rng.integer(65, 420);
        const k = rng.pick([2, 3, 11]);
        const lines = rng.integer(1, 3);
        const last = { dtype, largest, shape: [lines, extent], axis: 1, k };
        expect(await check(last, rng, [rng.pick(processors)])).toBe(true);
      }
    },
    60_000,
  );

  const cases: readonly Case[] = [
    { dtype: "f32", shape: [2, 300, 3], axis: 1, k: 4, largest: true },
    { dtype: "i32", shape: [257, 2], axis: 0, k: 3, largest: false },
    { dtype: "f32", shape: [400], axis: 0, k: 7, largest: false },
    { dtype: "f32", shape: [1, 1100], axis: 1, k: 40, largest: true },
    // Every element, in order.
    { dtype: "f32", shape: [2, 200], axis: 1, k: 200, largest: true },
    { dtype: "i32", shape: [1, 150], axis: 1, k: 150, largest: true },
    { dtype: "f32", shape: [2, 17], axis: 1, k: 5, largest: true, most: 500 },
    { dtype: "f32", shape: [2, 333], axis: 1, k: 5, largest: false, most: 500 },
  ];

  it.each(cases)(
    "is topK: %j",
    async (c) => {
      expect(await check(c, new Rng(seed + c.k), processors)).toBe(true);
    },
    60_000,
  );
});
