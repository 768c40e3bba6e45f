import { describe, expect, it } from "vitest";
import { GraphBuilder } from "../graph/builder.ts";
import type { Graph, OpAttrs, OpKind, ValueId } from "../graph/graph.ts";
import { tensorType } from "../graph/tensor-type.ts";
import { buildNests } from "../region/builders/build-nests.ts";
import { parseNests } from "../region/nest-reader.ts";
import { canonicalNests, printNests } from "../region/nest-text.ts";
import type { DType } from "../semantics/dtype.ts";
import {
  constant,
  floorDiv,
  type IndexLike,
  mul,
  toIndex,
  variable,
} from "../semantics/index-expr.ts";
import { type ScalarOp, scalarOps } from "../semantics/scalar-expr.ts";
import { fromRef, refTensor } from "../semantics/tensor.ts";
import { Rng } from "../support/rng.ts";
import { checkNests } from "./check-nests.ts";

/** The text form of the nests reads back as the nests. */
function checkText(graph: Graph): void {
  const nests = buildNests(graph);
  if (!nests.ok) throw new Error(nests.diagnostics[0]!.message);
  const text = printNests(nests.value);
  const parsed = parseNests(text);
  expect(parsed).toEqual({ ok: true, value: canonicalNests(nests.value), warnings: [] });
  if (parsed.ok) expect(printNests(parsed.value)).toBe(text);
}

type Extents = Readonly<Record<string, number>>;

/** A graph under test: what `check` needs to build and bind it. */
class Case {
  readonly g = new GraphBuilder("case");
  readonly rng: Rng;
  readonly extents: Extents;
  #started = false;
  constructor(extents: Extents = {}, seed = 1) {
    this.rng = new Rng(seed);
    this.extents = extents;
  }
  symbol(name: string, min = 1, max = 64) {
    return this.g.symbol(name, min, max);
  }
  /** An input, or a weight once other values exist. */
  input(name: string, dtype: DType, ...shape: readonly IndexLike[]): ValueId {
    const type = tensorType(dtype, ...shape);
    return this.#started ? this.g.weight(name, type) : this.g.input(name, type);
  }
  ints(dtype: DType, shape: readonly number[], values: readonly number[]): ValueId {
    this.#started = true;
    return this.g.constant(fromRef(refTensor(dtype, shape, values)));
  }
  scalar(dtype: DType, value: number): ValueId {
    return this.ints(dtype, [], [value]);
  }
  add<K extends OpKind>(op: K, inputs: readonly ValueId[], attrs: OpAttrs[K]): ValueId {
    this.#started = true;
    return this.g.nodes(op, inputs, attrs)[0]!;
  }
  /** Nests and oracle agree on random inputs. */
  check(outputs: readonly ValueId[], bounds: readonly [number, number] = [-1000, 1000]): void {
    const graph = this.g.finish(outputs);
    for (const nests of [{}, forProcessors]) {
      checkNests(graph, { rng: this.rng, extents: this.extents, bounds, nests });
    }
    checkText(graph);
  }
}

/** Ways to build nests that GPUs do not take. */
const forProcessors = { selectionLanes: 4, separatesFilters: true };

const window = (rank: number, over: Partial<Record<string, readonly number[]>> = {}) => ({
  strides: new Array<number>(rank).fill(1),
  dilations: new Array<number>(rank).fill(1),
  padLow: new Array<number>(rank).fill(0),
  padHigh: new Array<number>(rank).fill(0),
  ...over,
});

describe("elementwise", () => {
  const integerOnly = new Set(["bitNot", "bitAnd", "bitOr", "bitXor", "shiftLeft", "shiftRight"]);
  const onBool = new Set(["not", "and", "or", "xor"]);
  it.each(Object.keys(scalarOps) as ScalarOp[])("%s", (op) => {
    const c = new Case({ N: 3 });
    const n = c.symbol("N");
    const dtype = integerOnly.has(op) ? "i32" : onBool.has(op) ? "bool" : "f32";
    const condition = c.input("c", "bool", n, 4);
    const full = c.input("x", dtype, n, 4);
    const row = c.input("y", dtype, 1, 4);
    const operands = [full, row].slice(0, scalarOps[op].arity);
    const inputs = op === "select" ? [condition, full, row] : operands;
    c.check([c.g.nodes(op, inputs, {} as never)[0]!]);
  });

  it("reads constants of one repeated element as literals", () => {
    const c = new Case();
    const y = c.add("add", [c.input("x", "i64", 2), c.ints("i64", [2], [5, 5])], {});
    const nests = buildNests(c.g.finish([y]));
    expect(nests.ok && nests.value.items).toMatchObject([
      { statement: { reads: [{ tensor: "x" }] } },
    ]);
    c.check([y]);
  });

  it.each([
    ["f32", 2, "= (mul(x[i0], x[i0]))"],
    ["f32", 3, "= (mul(mul(x[i0], x[i0]), x[i0]))"],
    ["f16", 2, "= (mul(x[i0], x[i0]))"],
    ["f16", 3, "pow"],
    ["i32", 2, "pow"],
    ["f32", 0.5, "pow"],
  ] as const)("multiplies for a power of %s by %d", (dtype, exponent, spelled) => {
    const c = new Case();
    const y = c.add("pow", [c.input("x", dtype, 4), c.scalar(dtype, exponent)], {});
    const nests = buildNests(c.g.finish([y]));
    expect(nests.ok && printNests(nests.value)).toContain(spelled);
    c.check([y], [-8, 8]);
  });

  it("converts and detects infinities", () => {
    const c = new Case();
    const x = c.input("x", "f32", 5);
    const inf = c.add("div", [x, c.scalar("f32", 0)], {});
    c.check([
      c.add("cast", [x], { to: "i8", saturate: true }),
      c.add("isInf", [inf], { detectNegative: true, detectPositive: false }),
    ]);
  });
});

describe("data movement", () => {
  it("iota, dimSize", () => {
    const c = new Case({ N: 3 });
    const n = c.symbol("N");
    const x = c.input("x", "f32", 2, n);
    const iota = c.add("iota", [], { shape: [n, constant(2)], axis: 0, dtype: "i32" });
    c.check([iota, c.add("dimSize", [x], { axis: 1 })]);
  });

  it("diagonal of either pair of axes", () => {
    const c = new Case({ N: 3 });
    const N = c.symbol("N");
    const x = c.input("x", "f32", N, 4, N);
    const outer = c.add("diagonal", [x], { axis: 0, other: 2 });
    const inner = c.add("diagonal", [x], { axis: 2, other: 0 });
    c.check([outer, inner]);
  });

  it("reshape, transpose, broadcast and slice, as views where the order stays", () => {
    const c = new Case({ N: 3 });
    const n = c.symbol("N");
    const x = c.input("x", "f32", n, 1, 4);
    const flat = c.add("reshape", [x], { shape: [mul(n, 4)] });
    const view = c.add("transpose", [x], { permutation: [1, 0, 2] });
    const moved = c.add("transpose", [x], { permutation: [2, 1, 0] });
    const wide = c.add("broadcast", [x], { shape: [n, toIndex(2), toIndex(4)] });
    const part = c.add("slice", [x], {
      starts: [constant(0), constant(0), constant(1)],
      steps: [1, 1, 2],
      sizes: [n, constant(1), constant(2)],
    });
    const doubled = c.add("reshape", [c.add("neg", [x], {})], { shape: [mul(n, 2), constant(2)] });
    c.check([flat, view, moved, wide, part, doubled, x, flat]);
  });

  it("reverse and concat", () => {
    const c = new Case({ N: 3 });
    const x = c.input("x", "f32", c.symbol("N"), 2);
    const y = c.input("y", "f32", 2, 2);
    const z = c.input("z", "f32", 0, 2);
    const back = c.add("reverse", [x], { axes: [0] });
    c.check([c.add("concat", [back, z, y, x], { axis: 0 })]);
  });

  it.each(["constant", "reflect", "edge", "wrap"] as const)("pad %s", (mode) => {
    const c = new Case({ N: 4 });
    const x = c.input("x", "f32", c.symbol("N"), 3, 1);
    const amounts = {
      low: [constant(2), constant(-1), constant(0)],
      high: [constant(3), constant(2), constant(mode === "constant" ? 1 : 0)],
      mode,
    };
    const fills = [c.scalar("f32", 7), c.input("v", "f32")];
    const inputs = (f: ValueId) => (mode === "constant" ? [x, f] : [x]);
    c.check(fills.map((f) => c.add("pad", inputs(f), amounts)));
  });
});

describe("gather and scatter", () => {
  const bounds = [-3, 2] as const;
  it("gather", () => {
    const c = new Case({ N: 3 });
    const data = c.input("data", "f32", 2, c.symbol("N", 3), 2);
    const at = c.input("at", "i64", 2, 1);
    const fixed = c.ints("i64", [2], [-1, 0]);
    const one = c.ints("i32", [], [-2]);
    const other = c.input("fixed", "f32", 2, 3);
    const gathers = [at, fixed, one].map((i) => c.add("gather", [data, i], { axis: 1 }));
    c.check([...gathers, c.add("gather", [other, one], { axis: 1 })], bounds);
  });

  it("gatherElements and gatherNd", () => {
    const c = new Case();
    const data = c.input("data", "f32", 3, 3, 2);
    const at = c.input("at", "i64", 3, 2, 2);
    const tuples = c.input("tuples", "i32", 3, 2, 1);
    const elements = c.add("gatherElements", [data, at], { axis: 1 });
    const batched = c.add("gatherNd", [data, tuples], { batchDims: 1 });
    c.check([elements, batched, c.add("gatherNd", [data, tuples], { batchDims: 0 })], bounds);
  });

  it.each(["none", "add", "mul", "max", "min"] as const)("scatter with %s", (reduction) => {
    const c = new Case();
    const data = c.input("data", "f32", 3, 3);
    const at = c.input("at", "i64", 4, 2);
    const updates = c.input("updates", "f32", 4, 2);
    const tuples = c.input("tuples", "i64", 4, 1);
    const rows = c.input("rows", "f32", 4, 3);
    const elements = c.add("scatterElements", [data, at, updates], { axis: 0, reduction });
    c.check([elements, c.add("scatterNd", [data, tuples, rows], { reduction })], bounds);
  });

  it("reports an index out of range", () => {
    const c = new Case();
    const y = c.add("gather", [c.input("d", "f32", 3), c.input("i", "i64", 40)], { axis: 0 });
    expect(() => c.check([y])).toThrow(/SEM001/);
  });
});

describe("reductions", () => {
  it.each(["sum", "prod", "max", "min"] as const)("reduce %s", (kind) => {
    const c = new Case({ N: 3 });
    const n = c.symbol("N");
    for (const dtype of ["f32", "f16", "i64"] as const) {
      const x = c.input(`x${dtype}`, dtype, 2, n, 4, 1);
      const y = c.add("reduce", [x], { kind, axes: [1, 2], keepDims: true });
      const z = c.add("reduce", [x], { kind, axes: [0, 3], keepDims: false });
      const unit = c.add("reduce", [x], { kind, axes: [3], keepDims: false });
      c.check([y, z, unit]);
    }
  });

  it("reduce and, or", () => {
    const c = new Case();
    const x = c.input("x", "bool", 4, 3);
    c.check([
      c.add("reduce", [x], { kind: "and", axes: [1], keepDims: false }),
      c.add("reduce", [x], { kind: "or", axes: [1], keepDims: false }),
    ]);
  });

  it("argReduce takes the first or last of equal extremes", () => {
    const c = new Case({ N: 9 });
    const x = c.input("x", "i8", 2, c.symbol("N"));
    const outputs = (["max", "min"] as const).flatMap((kind) =>
      [true, false].map((selectLast) =>
        c.add("argReduce", [x], { kind, axis: 1, keepDims: selectLast, selectLast }),
      ),
    );
    c.check(outputs, [0, 2]);
  });

  it.each(["sum", "prod", "max"] as const)("cumulative %s", (kind) => {
    const c = new Case({ N: 5 });
    const x = c.input("x", "f32", 2, c.symbol("N"), 2);
    const outputs = [0, 1, 2, 3].map((bits) =>
      c.add("cumulative", [x], {
        kind,
        axis: 1,
        exclusive: (bits & 1) === 1,
        reverse: (bits & 2) === 2,
      }),
    );
    const single = c.input("s", "f32", 2, 1);
    const units = [true, false].map((exclusive) =>
      c.add("cumulative", [single], { kind, axis: 1, exclusive, reverse: false }),
    );
    c.check([...outputs, ...units]);
  });
});

describe("contractions", () => {
  it("contract with batch, free and summed labels", () => {
    const c = new Case({ M: 3 });
    const x = c.input("x", "f32", 2, c.symbol("M"), 4);
    const w = c.input("w", "f32", 2, 4, 5);
    const h = c.input("h", "f16", 4, 3);
    const accumulator = "f32" as const;
    c.check([
      c.add("contract", [x, w], {
        lhs: ["b", "M", "k"],
        rhs: ["b", "k", "j"],
        output: ["b", "M", "j"],
        accumulator,
      }),
      c.add("contract", [h, h], {
        lhs: ["k", "i"],
        rhs: ["k", "j"],
        output: ["j", "i"],
        accumulator: "f16",
      }),
    ]);
  });

  it.each([
    [1, 3, 4, {}],
    [2, 4, 6, { padLow: [1, 2], padHigh: [2, 0] }],
    [4, 4, 4, { strides: [2, 1], padLow: [1, 1], padHigh: [1, 1] }],
    [2, 2, 6, { dilations: [2, 1], strides: [1, 2] }],
  ] as const)("convolution of %d groups, %d to %d channels", (groups, from, to, over) => {
    const c = new Case({ H: 6, W: 5 });
    const x = c.input("x", "f32", 2, from, c.symbol("H", 3), c.symbol("W", 3));
    const w = c.input("w", "f32", to, from / groups, 3, 2);
    c.check([c.add("convolution", [x, w], { ...window(2, over), groups })]);
  });

  it.each([
    [2, 1, { strides: [2], padLow: [0], padHigh: [0] }, 0],
    [4, 2, { strides: [2], padLow: [1], padHigh: [1] }, 0],
    [3, 1, { strides: [2], padLow: [1], padHigh: [1] }, 1],
    [2, 2, { strides: [2], dilations: [2], padLow: [0], padHigh: [0] }, 1],
    [2, 1, { strides: [3], padLow: [0], padHigh: [0] }, 0],
    [3, 1, { strides: [1], padLow: [1], padHigh: [0] }, 0],
  ] as const)("transposedConvolution, window %d, groups %d, %o", (size, groups, over, extra) => {
    const c = new Case({ L: 5 });
    const x = c.input("x", "f32", 2, 2 * groups, c.symbol("L", 2));
    const w = c.input("w", "f32", 2 * groups, 3, size);
    const attrs = { ...window(1, over), groups, outputPadding: [extra] };
    c.check([c.add("transposedConvolution", [x, w], attrs)]);
  });

  it("transposedConvolution in the plane, phases of both axes", () => {
    const c = new Case({ H: 3, W: 4 });
    const x = c.input("x", "f32", 1, 2, c.symbol("H"), c.symbol("W"));
    const w = c.input("w", "f32", 2, 2, 2, 3);
    const attrs = { ...window(2, { strides: [2, 2] }), groups: 1, outputPadding: [0, 1] };
    c.check([c.add("transposedConvolution", [x, w], attrs)]);
  });
});

describe("pools", () => {
  const shapes = [
    { ...window(2), ceil: false },
    { ...window(2, { strides: [2, 2], padLow: [1, 1], padHigh: [1, 0] }), ceil: false },
    { ...window(2, { strides: [2, 3], dilations: [2, 1], padLow: [1, 0] }), ceil: true },
  ];
  const kinds = ["max", "sum", "average", "lp"] as const;
  it.each(kinds.flatMap((kind) => shapes.map((shape) => ({ kind, shape }))))(
    "$kind $shape",
    ({ kind, shape }) => {
      const c = new Case({ H: 7, W: 6 });
      const x = c.input("x", "f32", 1, 2, c.symbol("H", 5), c.symbol("W", 5));
      const outputs = [true, false].map((countPadding) =>
        c.add("pool", [x], { ...shape, kind, window: [3, 2], countPadding, exponent: 2 }),
      );
      c.check(outputs);
    },
  );

  it.each([true, false])("poolIndices, column major %s", (columnMajor) => {
    const c = new Case({ W: 5 });
    const x = c.input("x", "f32", 2, 2, 6, c.symbol("W", 3));
    const outputs = shapes.map((shape) =>
      c.add("poolIndices", [x], {
        ...shape,
        kind: "max",
        window: [3, 2],
        countPadding: false,
        exponent: 2,
        columnMajor,
      }),
    );
    c.check(outputs);
  });
});

describe("resize", () => {
  const plain = {
    nearest: "floor",
    cubicCoefficient: -0.75,
    excludeOutside: false,
    antialias: false,
    extrapolation: 9,
  } as const;
  const coordinates = [
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_crop_and_resize",
  ] as const;
  const modes = ["nearest", "linear", "cubic"] as const;
  it.each(coordinates.flatMap((c) => modes.map((mode) => ({ coordinates: c, mode }))))(
    "$mode, $coordinates",
    (how) => {
      const c = new Case({ H: 5 });
      const h = c.symbol("H");
      const x = c.input("x", "f32", 2, h, 6);
      const region = how.coordinates === "tf_crop_and_resize";
      for (const sizes of [
        [mul(h, 2), constant(9)],
        [floorDiv(h, 2), constant(3)],
      ]) {
        const attrs = { ...plain, ...how, axes: [1, 2], sizes };
        const crop = { regionStart: [0.1, -0.2], regionEnd: [0.8, 1.1] };
        c.check([c.add("resize", [x], region ? { ...attrs, ...crop } : attrs)]);
      }
    },
  );

  it.each(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"] as const)(
    "nearest by whole scales, %s",
    (nearest) => {
      const c = new Case({ H: 5 });
      const h = c.symbol("H", 2);
      const x = c.input("x", "f32", h, 4);
      const outputs = (["half_pixel", "asymmetric"] as const).flatMap((how) =>
        [
          { sizes: [mul(h, 4), constant(12)], scales: [4, 3] },
          { sizes: [floorDiv(h, 2), constant(1)], scales: [0.5, 0.25] },
        ].map((size) =>
          c.add("resize", [x], {
            ...plain,
            mode: "nearest",
            coordinates: how,
            nearest,
            axes: [0, 1],
            ...size,
          }),
        ),
      );
      c.check(outputs);
    },
  );

  it("cubic with excludeOutside", () => {
    const c = new Case();
    const x = c.input("x", "f32", 5);
    const attrs = { ...plain, mode: "cubic", coordinates: "half_pixel" } as const;
    c.check([
      c.add("resize", [x], { ...attrs, excludeOutside: true, axes: [0], sizes: [constant(8)] }),
    ]);
  });

  it.each([
    { coordinates: "half_pixel", excludeOutside: false },
    { coordinates: "half_pixel", excludeOutside: true },
    { coordinates: "align_corners", excludeOutside: false },
    { coordinates: "tf_crop_and_resize", excludeOutside: true },
  ] as const)("antialiased: $coordinates, excludeOutside $excludeOutside", (how) => {
    const c = new Case({ H: 9 });
    const x = c.input("x", "f32", 7, c.symbol("H"));
    const region = how.coordinates === "tf_crop_and_resize";
    const crop = region && { regionStart: [0.1, -0.2], regionEnd: [0.8, 1.1] };
    const extents = { axes: [0, 1], scales: [0.3, 0.5] };
    const sizes = [constant(2), floorDiv(variable("H"), 2)];
    c.check(
      modes.map((mode) =>
        c.add("resize", [x], {
          ...plain,
          antialias: true,
          mode,
          ...how,
          ...extents,
          sizes,
          ...crop,
        }),
      ),
    );
  });

  it("antialiased to sizes: smaller ones, larger ones, and open ones, whose filter is open (REG001)", () => {
    const c = new Case({ H: 9 });
    const x = c.input("x", "f32", 7, c.symbol("H"));
    const attrs = { ...plain, antialias: true, coordinates: "half_pixel" } as const;
    const resized = (mode: "linear" | "cubic", axis: number, size: number): ValueId =>
      c.add("resize", [x], { ...attrs, mode, axes: [axis], sizes: [constant(size)] });
    c.check([resized("linear", 0, 3), resized("cubic", 0, 2), resized("cubic", 0, 12)]);
    const open = c.g.finish([resized("linear", 1, 3)]);
    expect(buildNests(open)).toMatchObject({ diagnostics: [{ code: "REG001" }] });
  });
});

describe("quantised values", () => {
  it.each([{}, { axis: 1 }, { axis: 1, blockSize: 2 }])("%o", (granularity) => {
    const c = new Case({ N: 3 });
    const x = c.input("x", "f32", c.symbol("N"), 4);
    const q = c.input("q", "i8", variable("N"), 4);
    const shape = !("axis" in granularity)
      ? []
      : "blockSize" in granularity
        ? [variable("N"), 2]
        : [4];
    const scale = c.add(
      "add",
      [c.add("abs", [c.input("s", "f32", ...shape)], {}), c.scalar("f32", 0.01)],
      {},
    );
    const zero = c.input("z", "i8", ...shape);
    c.check(
      [
        c.add("quantize", [x, scale, zero], { ...granularity, to: "i8", saturate: true }),
        c.add("dequantize", [q, scale, zero], { ...granularity, to: "f32" }),
        c.add("dequantize", [q, scale], { ...granularity, to: "f16" }),
      ],
      [-100, 100],
    );
  });
});

it("leaves sorting to a routine", () => {
  const c = new Case();
  const x = c.input("x", "f32", 7);
  const attrs = { axis: 0, k: constant(3), largest: true, sorted: true };
  const [values, indices] = c.g.nodes("topK", [x], attrs);
  c.check([c.add("neg", [values!], {}), indices!]);
});

it("refuses composites with REG002", () => {
  const c = new Case();
  const y = c.add("silu", [c.input("x", "f32", 7)], {});
  expect(buildNests(c.g.finish([y]))).toMatchObject({ diagnostics: [{ code: "REG002" }] });
});
