/**
 * Kernels that memory bounds, for memory-suite.ts: what each computes, of which elements a line of its results is
 * made, and the same in float64 and in torch. Lines are what samples are taken of: rows, columns, lines along a
 * middle axis, groups. A case is made for each type, of about 256 MB an input.
 */
import type { GraphBuilder } from "../../src/graph/builder.ts";
import type { ValueId } from "../../src/graph/graph.ts";
import { constant } from "../../src/semantics/index-expr.ts";

export type Kind = "f32" | "bf16" | "f16";

/** Elements of a tensor as it lies in memory. */
export interface Places {
  readonly start: number;
  readonly step: number;
  readonly count: number;
}

export interface MemoryCase {
  readonly name: string;
  readonly family: Family;
  readonly dtype: Kind;
  /** Of the operands, all of the case's type. */
  readonly shapes: readonly (readonly number[])[];
  readonly results: { readonly dtype: Kind | "i64"; readonly count: number };
  readonly build: (g: GraphBuilder, operands: readonly ValueId[]) => ValueId;
  readonly lines: number;
  /** Of a line: what it is made of, an operand each, and where its results are. */
  readonly madeOf: (line: number) => readonly Places[];
  readonly placesOf: (line: number) => Places;
  /** Its results in float64. */
  readonly line: (operands: readonly Float64Array[], line: number) => ArrayLike<number>;
  /** The same of torch tensors `t`. */
  readonly torch: string;
}

const count = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);
const whole = (n: number): Places => ({ start: 0, step: 1, count: n });
const near = (line: number, n: number): Places => ({ start: line * n, step: 1, count: n });
const one = (start: number): Places => ({ start, step: 1, count: 1 });

export const sum = (x: ArrayLike<number>): number =>
  Array.prototype.reduce.call(x, add, 0) as number;
function add(a: unknown, b: unknown): number {
  return (a as number) + (b as number);
}
const largest = (x: Float64Array): number => x.reduce((a, b) => Math.max(a, b));
const gelu = (x: number): number => 0.5 * x * (1 + Math.tanh(0.79788456 * (x + 0.044715 * x ** 3)));

function softmaxOf(x: Float64Array): Float64Array {
  const e = x.map((v) => Math.exp(v));
  const total = sum(e);
  return e.map((v) => v / total);
}

const epsilon = 1e-5;

function standardised(x: Float64Array): Float64Array {
  const mean = sum(x) / x.length;
  const size = Math.sqrt(sum(x.map((v) => (v - mean) ** 2)) / x.length + epsilon);
  return x.map((v) => (v - mean) / size);
}

function upToEach(x: Float64Array): Float64Array {
  let total = 0;
  return x.map((v) => {
    total += v;
    return total;
  });
}

/** What a line gives: as many results as it has elements, one, a number of them; and their type, if another. */
interface Result {
  readonly perLine: "each" | number;
  readonly dtype?: Kind | "i64";
}

type Made = Omit<MemoryCase, "name" | "family" | "dtype">;
type Maker = (dtype: Kind, elements: number) => Made;
type Computed = Pick<MemoryCase, "build" | "line" | "torch">;

const each: Result = { perLine: "each" };
const single: Result = { perLine: 1 };

interface Rows extends Computed {
  /** Inputs of the rows' shape, default 1, vectors along the columns, and inputs with as many rows of so many elements. */
  readonly inputs?: number;
  readonly vectors?: number;
  readonly tables?: readonly number[];
  readonly result: Result;
}

/** Lines are rows of so many columns. */
function rows(columns: number, of: Rows): Maker {
  const { inputs = 1, vectors = 0, tables = [], result, ...computed } = of;
  return (dtype, elements) => {
    const m = Math.ceil(elements / columns);
    const perLine = result.perLine === "each" ? columns : result.perLine;
    return {
      ...computed,
      shapes: [
        ...new Array<number[]>(inputs).fill([m, columns]),
        ...new Array<number[]>(vectors).fill([columns]),
        ...tables.map((length) => [m, length]),
      ],
      results: { dtype: result.dtype ?? dtype, count: m * perLine },
      lines: m,
      madeOf: (line) => [
        ...new Array<Places>(inputs).fill(near(line, columns)),
        ...new Array<Places>(vectors).fill(whole(columns)),
        ...tables.map((length) => near(line, length)),
      ],
      placesOf: (line) => near(line, perLine),
    };
  };
}

interface Middle extends Computed {
  /** Extents along the axis that lines lie along and behind it; those before it are as many as make the elements. */
  readonly along: number;
  readonly behind: number;
  readonly result: Result;
}

/** Lines lie along the middle axis of [before, along, behind], or the first one of [along, behind]. */
function middle({ along, behind, result, ...computed }: Middle): Maker {
  return (dtype, elements) => {
    const isFirst = along === 0;
    const before = isFirst ? 1 : Math.ceil(elements / (along * behind));
    const length = isFirst ? Math.ceil(elements / behind) : along;
    const lines = before * behind;
    const strided = (line: number): Places => {
      const start = Math.floor(line / behind) * length * behind + (line % behind);
      return { start, step: behind, count: length };
    };
    return {
      ...computed,
      shapes: [isFirst ? [length, behind] : [before, length, behind]],
      results: {
        dtype: result.dtype ?? dtype,
        count: result.perLine === "each" ? lines * length : lines,
      },
      lines,
      madeOf: (line) => [strided(line)],
      placesOf: (line) => (result.perLine === "each" ? strided(line) : one(line)),
    };
  };
}

interface Groups extends Computed {
  /** Channels and pixels of a picture, and groups of channels. */
  readonly channels: number;
  readonly pixels: readonly [number, number];
  readonly groups: number;
}

/** Lines are groups of the channels of a picture, each with a scale and an offset. */
function groups({ channels, pixels, groups: number, ...computed }: Groups): Maker {
  return (dtype, elements) => {
    const area = pixels[0] * pixels[1];
    const pictures = Math.ceil(elements / (channels * area));
    const inGroup = channels / number;
    const shape = [pictures, channels, ...pixels];
    return {
      ...computed,
      shapes: [shape, [channels], [channels]],
      results: { dtype, count: count(shape) },
      lines: pictures * number,
      madeOf: (line) => {
        const vector = near(line % number, inGroup);
        return [near(line, inGroup * area), vector, vector];
      },
      placesOf: (line) => near(line, inGroup * area),
    };
  };
}

/** (x - mean) / deviation of a line, with a scale and an offset for each of its channels. */
function scaledGroup([x, s, b]: readonly Float64Array[]): Float64Array {
  const area = x!.length / s!.length;
  return standardised(x!).map((v, i) => v * s![Math.floor(i / area)]! + b![Math.floor(i / area)]!);
}

/** [a, b, c] of the result's lines along its last axis: axes of the input in the order of `permutation`. */
function transpose(permutation: readonly [number, number, number]): Maker {
  return (dtype, elements) => {
    const shape = [Math.ceil(elements / (1024 * 2048)), 1024, 2048];
    const steps = [1024 * 2048, 2048, 1];
    const [a, b, c] = permutation;
    return {
      build: (g, [x]) => g.transpose(x!, permutation),
      line: ([x]) => x!,
      torch: `t[0].permute(${permutation.join(", ")}).contiguous()`,
      shapes: [shape],
      results: { dtype, count: count(shape) },
      lines: shape[a]! * shape[b]!,
      madeOf: (line) => {
        const [i, j] = [Math.floor(line / shape[b]!), line % shape[b]!];
        return [{ start: i * steps[a]! + j * steps[b]!, step: steps[c]!, count: shape[c]! }];
      },
      placesOf: (line) => near(line, shape[c]!),
    };
  };
}

/** Elements of a head. */
const headSize = 128;

/** Every token's heads turned by its angles. */
function rotary(columns: number, interleaved: boolean): Maker {
  const half = headSize / 2;
  const step = interleaved ? 1 : half;
  const first = (pair: number): number => (interleaved ? 2 * pair : pair);
  return rows(columns, {
    ...{ tables: [half, half], result: each },
    build: (g, [x, cos, sin]) => {
      const tokens = g.shapeOf(x!)[0]!;
      const [heads, ...tables] = [
        g.reshape(x!, [tokens, columns / headSize, headSize]),
        ...[cos!, sin!].map((table) => g.reshape(table, [tokens, 1, half])),
      ];
      const attrs = { interleaved, rotaryDims: headSize };
      return g.reshape(g.node("rotaryEmbedding", [heads, ...tables], attrs), [tokens, columns]);
    },
    line: ([x, cos, sin]) =>
      x!.map((v, i) => {
        const [head, place] = [Math.floor(i / headSize) * headSize, i % headSize];
        const pair = interleaved ? place >> 1 : place % half;
        const isFirst = place === first(pair);
        const other = x![head + first(pair) + (isFirst ? step : 0)]!;
        return v * cos![pair]! + (isFirst ? -other : other) * sin![pair]!;
      }),
    torch: interleaved
      ? `(lambda h, c, s: torch.stack((h[..., 0] * c - h[..., 1] * s, h[..., 1] * c + h[..., 0] * s), -1))(t[0].view(t[0].shape[0], -1, ${half}, 2), t[1][:, None], t[2][:, None])`
      : `(lambda h, c, s: torch.cat((h[..., 0, :] * c - h[..., 1, :] * s, h[..., 1, :] * c + h[..., 0, :] * s), -1))(t[0].view(t[0].shape[0], -1, 2, ${half}), t[1][:, None], t[2][:, None])`,
  });
}

const converted = {
  result: each,
  build: (g: GraphBuilder, [x]: readonly ValueId[]): ValueId => {
    const isWide = g.typeOf(x!).dtype === "f32";
    return g.node("cast", [x!], { to: isWide ? "bf16" : "f32", saturate: true });
  },
  line: ([x]: readonly Float64Array[]) => x!,
  torch: "t[0].to(torch.bfloat16 if t[0].dtype == torch.float32 else torch.float32)",
};

function cumulative(g: GraphBuilder, x: ValueId, reverse: boolean, axis = 1): ValueId {
  return g.node("cumulative", [x], { kind: "sum", axis, exclusive: false, reverse });
}

/** Elements of an update, and how many updates there are at most, as many as places. */
const [updateSize, mostUpdates] = [64, 2 ** 16];

/** Updates of 16 MB, whose places are drawn near the first ones, where most of them meet. */
function updates(reduction: "add" | "none"): Maker {
  return (dtype, elements) => {
    const number = Math.min(mostUpdates, Math.ceil(elements / 1024));
    const placeOf = (v: number): number =>
      Math.min(number - 1, Math.trunc(Math.abs(v) * (number / 4)));
    const places = `(t[2].abs() * ${number / 4}).long().clamp(max=${number - 1}).squeeze(1)`;
    return {
      build: (g, [x, u, t]) => {
        const scaled = g.mul(g.apply("abs", t!), g.scalar(number / 4, dtype));
        const whole = g.node("cast", [scaled], { to: "i64", saturate: true });
        const places = g.apply("min", whole, g.scalar(BigInt(number - 1), "i64"));
        return g.node("scatterNd", [x!, places, u!], { reduction });
      },
      line: ([x, u, t], line) => {
        const found = Float64Array.from(x!);
        t!.forEach((v, update) => {
          if (placeOf(v) !== line) return;
          for (let i = 0; i < updateSize; i++) {
            const value = u![update * updateSize + i]!;
            found[i] = reduction === "add" ? found[i]! + value : value;
          }
        });
        return found;
      },
      torch: `t[0].index_${reduction === "add" ? "add" : "copy"}(0, ${places}, t[1])`,
      shapes: [
        [number, updateSize],
        [number, updateSize],
        [number, 1],
      ],
      results: { dtype, count: number * updateSize },
      lines: number,
      madeOf: (line) => [near(line, updateSize), whole(number * updateSize), whole(number)],
      placesOf: (line) => near(line, updateSize),
    };
  };
}

function softmaxAlong(axis: number): Computed & { readonly result: Result } {
  return {
    result: each,
    build: (g, [x]) => g.node("softmax", [x!], { axis }),
    line: ([x]) => softmaxOf(x!),
    torch: `F.softmax(t[0], ${axis})`,
  };
}

function foldAlong(axis: number, kind: "sum" | "max"): Computed & { readonly result: Result } {
  return {
    result: single,
    build: (g, [x]) => g.reduce(kind, x!, [axis], false),
    line: ([x]) => [kind === "sum" ? sum(x!) : largest(x!)],
    torch: `t[0].${kind === "sum" ? "sum" : "amax"}(${axis})`,
  };
}

function placeAlong(axis: number): Computed & { readonly result: Result } {
  return {
    result: { perLine: 1, dtype: "i64" },
    build: (g, [x]) =>
      g.node("argReduce", [x!], { kind: "max", axis, keepDims: false, selectLast: false }),
    line: ([x]) => [x!.indexOf(largest(x!))],
    torch: `t[0].argmax(${axis})`,
  };
}

/** In f32, whatever the operand is. */
function standardiseAlong(axis: number): Computed & { readonly result: Result } {
  return {
    result: each,
    build: (g, [x]) => {
      const dtype = g.typeOf(x!).dtype;
      const wide = g.cast(x!, "f32");
      const share = 1 / g.shapeOf(x!)[axis]!.constant;
      const mean = (v: ValueId): ValueId =>
        g.applyNumber("mul", g.reduce("sum", v, [axis], true), share);
      const centred = g.sub(wide, mean(wide));
      const variance = g.applyNumber("add", mean(g.mul(centred, centred)), epsilon);
      return g.cast(g.div(centred, g.apply("sqrt", variance)), dtype);
    },
    line: ([x]) => standardised(x!),
    torch: `(lambda w: ((w - w.mean(${axis}, True)) * torch.rsqrt(w.var(${axis}, correction=0, keepdim=True) + ${epsilon})).to(t[0].dtype))(t[0].float())`,
  };
}

type Makers = Readonly<Record<string, Maker>>;

function elementwise(columns: number): Makers {
  return {
    "rotary embedding of halves": rotary(columns, false),
    "rotary embedding of pairs": rotary(columns, true),
    add: rows(columns, {
      ...{ inputs: 2, result: each, torch: "t[0] + t[1]" },
      build: (g, [x, y]) => g.add(x!, y!),
      line: ([x, y]) => x!.map((v, i) => v + y![i]!),
    }),
    "add a value a row": rows(columns, {
      ...{ tables: [1], result: each, torch: "t[0] + t[1]" },
      build: (g, [x, y]) => g.add(x!, y!),
      line: ([x, y]) => x!.map((v) => v + y![0]!),
    }),
    "bias, gelu": rows(columns, {
      ...{ vectors: 1, result: each, torch: "F.gelu(t[0] + t[1], approximate='tanh')" },
      build: (g, [x, b]) => g.node("gelu", [g.add(x!, b!)], { approximate: "tanh" } as never),
      line: ([x, b]) => x!.map((v, i) => gelu(v + b![i]!)),
    }),
    "silu, gate": rows(columns, {
      ...{ inputs: 2, result: each, torch: "F.silu(t[0]) * t[1]" },
      build: (g, [x, y]) => g.mul(g.mul(x!, g.apply("sigmoid", x!)), y!),
      line: ([x, y]) => x!.map((v, i) => (v / (1 + Math.exp(-v))) * y![i]!),
    }),
    conversion: (dtype, elements) =>
      rows(columns, {
        ...converted,
        result: { perLine: "each", dtype: dtype === "f32" ? "bf16" : "f32" },
      })(dtype, elements),
  };
}

function transposes(): Makers {
  return {
    "transpose 0 2 1": transpose([0, 2, 1]),
    "transpose 1 0 2": transpose([1, 0, 2]),
    "transpose 2 1 0": transpose([2, 1, 0]),
  };
}

function reductions(columns: number): Makers {
  return {
    "sum of rows": rows(columns, foldAlong(1, "sum")),
    "sum of columns": middle({ along: 0, behind: columns, ...foldAlong(0, "sum") }),
    "sum of a middle axis": middle({ along: 1024, behind: 2048, ...foldAlong(1, "sum") }),
    "largest of columns": middle({ along: 0, behind: columns, ...foldAlong(0, "max") }),
    "largest of a middle axis": middle({ along: 1024, behind: 2048, ...foldAlong(1, "max") }),
    "place of the largest": rows(columns, placeAlong(1)),
    "place of the largest of columns": middle({ along: 0, behind: columns, ...placeAlong(0) }),
  };
}

function softmaxes(columns: number): Makers {
  return {
    softmax: rows(columns, softmaxAlong(1)),
    "softmax of columns": middle({ along: 0, behind: columns, ...softmaxAlong(0) }),
    "softmax of a middle axis": middle({ along: 1024, behind: 2048, ...softmaxAlong(1) }),
    "softmax of a short middle axis": middle({ along: 128, behind: 4096, ...softmaxAlong(1) }),
  };
}

function norms(columns: number): Makers {
  const norm = { axis: 1, epsilon };
  return {
    "rms norm": rows(columns, {
      ...{ vectors: 1, result: each, torch: `F.rms_norm(t[0], t[1].shape, t[1], ${epsilon})` },
      build: (g, [x, s]) => g.node("rmsNorm", [x!, s!], norm),
      line: ([x, s]) => {
        const size = Math.sqrt(sum(x!.map((v) => v * v)) / x!.length + epsilon);
        return x!.map((v, i) => (v / size) * s![i]!);
      },
    }),
    "layer norm": rows(columns, {
      ...{ vectors: 2, result: each },
      torch: `F.layer_norm(t[0], t[1].shape, t[1], t[2], ${epsilon})`,
      build: (g, [x, s, b]) => g.node("layerNorm", [x!, s!, b!], norm),
      line: ([x, s, b]) => standardised(x!).map((v, i) => v * s![i]! + b![i]!),
    }),
    "norm of a middle axis": middle({ along: 1024, behind: 2048, ...standardiseAlong(1) }),
    "group norm": groups({
      ...{ channels: 320, pixels: [64, 64], groups: 32, line: scaledGroup },
      build: (g, [x, s, b]) => g.node("groupNorm", [x!, s!, b!], { groups: 32, epsilon }),
      torch: `F.group_norm(t[0], 32, t[1], t[2], ${epsilon})`,
    }),
    "instance norm": groups({
      ...{ channels: 256, pixels: [128, 128], groups: 256, line: scaledGroup },
      build: (g, [x, s, b]) => g.node("instanceNorm", [x!, s!, b!], { epsilon }),
      torch: `F.instance_norm(t[0], weight=t[1], bias=t[2], eps=${epsilon})`,
    }),
  };
}

function scans(columns: number): Makers {
  return {
    "sum up to each": rows(columns, {
      ...{ result: each, torch: "t[0].cumsum(1)" },
      build: (g, [x]) => cumulative(g, x!, false),
      line: ([x]) => upToEach(x!),
    }),
    "sum from each on": rows(columns, {
      ...{ result: each, torch: "t[0].flip(1).cumsum(1).flip(1)" },
      build: (g, [x]) => cumulative(g, x!, true),
      line: ([x]) => upToEach(x!.toReversed()).toReversed(),
    }),
    "sum up to each of few": (dtype, elements) =>
      rows(elements / 4, {
        ...{ result: each, torch: "t[0].cumsum(1)" },
        build: (g, [x]) => cumulative(g, x!, false),
        line: ([x]) => upToEach(x!),
      })(dtype, elements),
    "sum down each column": middle({
      ...{ along: 0, behind: columns, result: each, torch: "t[0].cumsum(0)" },
      build: (g, [x]) => cumulative(g, x!, false, 0),
      line: ([x]) => upToEach(x!),
    }),
    "sum up from below, few columns": middle({
      ...{ along: 0, behind: 8, result: each, torch: "t[0].flip(0).cumsum(0).flip(0)" },
      build: (g, [x]) => cumulative(g, x!, true, 0),
      line: ([x]) => upToEach(x!.toReversed()).toReversed(),
    }),
  };
}

function selections(columns: number): Makers {
  return {
    "updates added": updates("add"),
    "updates in place": updates("none"),
    "largest 50": rows(columns, {
      ...{ result: { perLine: 50 }, torch: "t[0].topk(50)" },
      build: (g, [x]) =>
        g.nodes("topK", [x!], { axis: 1, k: constant(50), largest: true, sorted: true })[0]!,
      line: ([x]) => x!.toSorted().toReversed().slice(0, 50),
    }),
  };
}

export const families = [
  "elementwise",
  "transpose",
  "reduction",
  "softmax",
  "norm",
  "scan",
  "selection",
] as const;
export type Family = (typeof families)[number];

function makersOf(columns: number): Readonly<Record<Family, Makers>> {
  return {
    elementwise: elementwise(columns),
    transpose: transposes(),
    reduction: reductions(columns),
    softmax: softmaxes(columns),
    norm: norms(columns),
    scan: scans(columns),
    selection: selections(columns),
  };
}

/** All cases, of rows of so many columns where a case has rows, and of so many elements of 32 bits. */
export function memoryCases(columns: number, words = 2 ** 26): readonly MemoryCase[] {
  const makers = makersOf(columns);
  return families.flatMap((family) =>
    Object.entries(makers[family]).flatMap(([name, make]) =>
      (["f32", "bf16"] as const).map((dtype): MemoryCase => {
        const made = make(dtype, dtype === "f32" ? words : 2 * words);
        return { ...made, family, dtype, name: `${name} ${dtype} ${made.shapes[0]!.join("x")}` };
      }),
    ),
  );
}
