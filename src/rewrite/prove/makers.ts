/**
 * One maker an op for proofs of rules: attributes and operand types that give a wanted result, or fit
 * operands that are known. Extents are small and odd, broadcasts and ones are frequent. A maker that
 * finds nothing gives undefined and is asked again with other random numbers; inference has the last word.
 */
import type { AnyAttrs } from "../../graph/attr-schema.ts";
import type { OpKind } from "../../graph/graph.ts";
import type { ContractAttrs, ConvolutionAttrs, ReduceAttrs } from "../../semantics/core-ops.ts";
import { type DType, isFloatDType } from "../../semantics/dtype.ts";
import { constantValue, type IndexExpr, toIndex } from "../../semantics/index-expr.ts";
import { type ScalarOp, scalarOps } from "../../semantics/scalar-expr.ts";
import { broadcastShapes, elementCount } from "../../semantics/shape.ts";
import type { Rng } from "../../support/rng.ts";

/** A concrete type. */
export interface Want {
  readonly dtype: DType;
  readonly shape: readonly number[];
}

export interface Ask {
  readonly rng: Rng;
  readonly op: OpKind;
  /** The result that is wanted; any when absent. */
  readonly out?: Want;
  readonly operands: readonly (Want | undefined)[];
  /** Attributes that are decided already. */
  readonly attrs?: AnyAttrs;
  /** Element type of values that nothing else decides. */
  readonly dtype: DType;
}

export interface Made {
  readonly attrs: AnyAttrs;
  readonly operands: readonly Want[];
}

type Maker = (ask: Ask) => Made | undefined;

const extents = [1, 2, 3, 3, 4, 5] as const;

export function randomShape(rng: Rng, rank = rng.integer(0, 4)): number[] {
  return Array.from({ length: rank }, () => rng.pick(extents));
}

const dims = (shape: readonly number[]): readonly IndexExpr[] => shape.map(toIndex);
const numbers = (list: readonly IndexExpr[]): number[] => list.map((d) => constantValue(d)!);

function shuffled(rng: Rng, count: number): number[] {
  const order = Array.from({ length: count }, (_, i) => i);
  for (let i = count - 1; i > 0; i--) {
    const j = rng.integer(0, i);
    [order[i], order[j]] = [order[j]!, order[i]!];
  }
  return order;
}

/** A shape that broadcasts to the given one: whole, along one axis, ones, shorter, or any. */
function narrowed(rng: Rng, shape: readonly number[]): readonly number[] {
  const kept = rng.integer(0, Math.max(0, shape.length - 1));
  switch (rng.integer(0, 5)) {
    case 0:
      return [];
    case 1:
      return shape.map((d, i) => (i === kept ? d : 1));
    case 2:
      return shape.slice(kept).map((d, i) => (i === 0 ? d : 1));
    case 3:
      return shape.slice(kept);
    case 4:
      return shape.map((d) => (rng.uniform() < 0.5 ? 1 : d));
    default:
      return shape;
  }
}

const elementwise: Maker = ({ rng, op, out, operands, dtype }) => {
  const { typing, arity } = scalarOps[op as ScalarOp];
  if (operands.length !== arity) return undefined;
  const known = operands.flatMap((o) => (o ? [o.shape] : []));
  const common = broadcastShapes(...known);
  if (!common) return undefined;
  const shape = out?.shape ?? (known.length > 0 ? common : randomShape(rng));
  const valueType = operands.slice(typing === "select" ? 1 : 0).find((o) => o)?.dtype;
  const own = valueType ?? (typing === "predicate" ? dtype : (out?.dtype ?? dtype));
  const covered = known.length > 0 && common.join() === shape.join();
  const free = operands.flatMap((o, i) => (o ? [] : [i]));
  const whole = covered ? -1 : free[rng.integer(0, Math.max(0, free.length - 1))];
  return {
    attrs: {},
    operands: operands.map((o, i) => {
      if (o) return o;
      const type = typing === "select" && i === 0 ? "bool" : own;
      return { dtype: type, shape: i === whole ? shape : narrowed(rng, shape) };
    }),
  };
};

/** One operand of the same type, or the known one. */
const same: Maker = ({ rng, out, operands, attrs, dtype }) => ({
  attrs: attrs ?? {},
  operands: [operands[0] ?? out ?? { dtype, shape: randomShape(rng, rng.integer(1, 4)) }],
});

const transpose: Maker = ({ rng, out, operands, attrs, dtype }) => {
  const [known] = operands;
  const result = out ?? { dtype, shape: randomShape(rng, rng.integer(1, 4)) };
  const rank = known?.shape.length ?? result.shape.length;
  const given = attrs?.permutation as readonly number[] | undefined;
  const permutation = given ?? shuffled(rng, rank);
  if (permutation.length !== result.shape.length && !known) return undefined;
  if (known) return { attrs: { permutation }, operands: [known] };
  const shape = permutation.map((_, axis) => result.shape[permutation.indexOf(axis)]!);
  return { attrs: { permutation }, operands: [{ dtype: result.dtype, shape }] };
};

/** Another shape of as many elements. */
function regrouped(rng: Rng, shape: readonly number[]): number[] {
  const result: number[] = [];
  for (const d of shape) {
    const last = result.length - 1;
    if (last >= 0 && rng.uniform() < 0.4) result[last] = result[last]! * d;
    else if (d === 4 && rng.uniform() < 0.5) result.push(2, 2);
    else result.push(d);
    if (rng.uniform() < 0.2) result.push(1);
  }
  return result.filter((d) => d !== 1 || rng.uniform() < 0.6);
}

const reshape: Maker = ({ rng, out, operands, attrs, dtype }) => {
  const [known] = operands;
  const given = attrs ? numbers(attrs.shape as readonly IndexExpr[]) : undefined;
  const shape = given ?? out?.shape ?? regrouped(rng, known?.shape ?? randomShape(rng));
  const from = known ?? { dtype: out?.dtype ?? dtype, shape: regrouped(rng, shape) };
  if (elementCount(from.shape) !== elementCount(shape)) return undefined;
  return { attrs: { shape: dims(shape) }, operands: [from] };
};

const broadcast: Maker = ({ rng, out, operands, attrs, dtype }) => {
  const given = attrs ? numbers(attrs.shape as readonly IndexExpr[]) : undefined;
  const shape = given ?? out?.shape ?? randomShape(rng);
  const from = operands[0] ?? { dtype: out?.dtype ?? dtype, shape: narrowed(rng, shape) };
  return { attrs: { shape: dims(shape) }, operands: [from] };
};

const slice: Maker = ({ rng, out, operands, attrs, dtype }) => {
  const [known] = operands;
  if (attrs) {
    if (known) return { attrs, operands: [known] };
    const [starts, sizes] = [attrs.starts, attrs.sizes].map((l) => numbers(l as IndexExpr[])) as [
      number[],
      number[],
    ];
    const steps = attrs.steps as readonly number[];
    const shape = starts.map((s, i) => s + (sizes[i]! - 1) * steps[i]! + 1 + rng.integer(0, 2));
    return { attrs, operands: [{ dtype: out?.dtype ?? dtype, shape }] };
  }
  const sizes =
    out?.shape ?? (known ?? { shape: randomShape(rng, 3) }).shape.map((d) => rng.integer(1, d));
  const steps = sizes.map(() => (rng.uniform() < 0.1 ? 2 : 1));
  const wide = rng.integer(0, Math.max(0, sizes.length - 1));
  const ends = known !== undefined && rng.uniform() < 0.8;
  const starts = sizes.map((d, i) => {
    if (ends) return Math.max(0, (known.shape[i] ?? 0) - ((d - 1) * steps[i]! + 1));
    return rng.uniform() < 0.6 ? 0 : rng.integer(0, 2);
  });
  const shape = sizes.map(
    (d, i) => starts[i]! + (d - 1) * steps[i]! + 1 + (i !== wide ? 0 : rng.integer(0, 2)),
  );
  return {
    attrs: { starts: dims(starts), steps, sizes: dims(sizes) },
    operands: [known ?? { dtype: out?.dtype ?? dtype, shape }],
  };
};

const reverse: Maker = (ask) => {
  const made = same(ask)!;
  const axes = made.operands[0]!.shape.flatMap((_, i) => (ask.rng.uniform() < 0.5 ? [i] : []));
  return { ...made, attrs: ask.attrs ?? { axes } };
};

const concat: Maker = ({ rng, out, operands, attrs, dtype }) => {
  const known = operands.find((o) => o);
  const base = out ?? known ?? { dtype, shape: randomShape(rng, rng.integer(1, 4)) };
  if (base.shape.length === 0) return undefined;
  const axis = (attrs?.axis as number | undefined) ?? rng.integer(0, base.shape.length - 1);
  const whole = out?.shape[axis];
  const firstExtent = whole === undefined ? undefined : rng.integer(1, Math.max(1, whole - 1));
  const extent = (i: number): number => {
    if (whole === undefined || firstExtent === undefined) return rng.pick(extents);
    return i === 0 ? firstExtent : whole - firstExtent;
  };
  if (whole !== undefined && whole < 2) return undefined;
  return {
    attrs: { axis },
    operands: operands.map(
      (o, i) =>
        o ?? { dtype: base.dtype, shape: base.shape.map((d, j) => (j === axis ? extent(i) : d)) },
    ),
  };
};

const pad: Maker = ({ rng, out, operands, attrs, dtype }) => {
  const base = out?.shape ?? randomShape(rng, 4);
  const amounts = (at: number) =>
    at >= base.length - 2 ? rng.integer(0, 1) : rng.uniform() < 0.1 ? 1 : 0;
  const low = base.map((_, i) => amounts(i));
  const high = base.map((_, i) => amounts(i));
  const shape = base.map((d, i) => d - low[i]! - high[i]!);
  if (shape.some((d) => d < 1)) return undefined;
  const own = out?.dtype ?? dtype;
  return {
    attrs: attrs ?? { low: dims(low), high: dims(high), mode: "constant" },
    operands: [operands[0] ?? { dtype: own, shape }, operands[1] ?? { dtype: own, shape: [] }],
  };
};

const reduce: Maker = ({ rng, out, operands, attrs, dtype }) => {
  const given = attrs as ReduceAttrs | undefined;
  const [known] = operands;
  const keepDims = given?.keepDims ?? rng.uniform() < 0.5;
  const kind = given?.kind ?? rng.pick(["sum", "sum", "max", "min"] as const);
  if (known) {
    const axes = given?.axes ?? known.shape.flatMap((_, i) => (rng.uniform() < 0.5 ? [i] : []));
    return { attrs: { kind, axes, keepDims }, operands: [known] };
  }
  const result = out ?? { dtype, shape: randomShape(rng, rng.integer(0, 3)) };
  if (keepDims) {
    const axes =
      given?.axes ?? result.shape.flatMap((d, i) => (d === 1 && rng.uniform() < 0.8 ? [i] : []));
    const shape = result.shape.map((d, i) => (axes.includes(i) ? rng.pick(extents) : d));
    return { attrs: { kind, axes, keepDims }, operands: [{ dtype: result.dtype, shape }] };
  }
  const rank = result.shape.length + (given?.axes.length ?? rng.integer(1, 2));
  const axes =
    given?.axes ??
    shuffled(rng, rank)
      .slice(0, rank - result.shape.length)
      .sort((a, b) => a - b);
  if (axes.some((axis) => axis >= rank)) return undefined;
  const rest = [...result.shape];
  const shape = Array.from({ length: rank }, (_, i) =>
    axes.includes(i) ? rng.pick(extents) : rest.shift()!,
  );
  return { attrs: { kind, axes, keepDims }, operands: [{ dtype: result.dtype, shape }] };
};

function randomLabels(rng: Rng, rank: number): Omit<ContractAttrs, "accumulator"> {
  const output = Array.from({ length: rank }, (_, i) => `o${i}`);
  const lhs: string[] = [];
  const rhs: string[] = [];
  for (const [i, label] of output.entries()) {
    const where = rank === 2 && rng.uniform() < 0.6 ? i : rng.integer(0, 2);
    if (where !== 1) lhs.push(label);
    if (where !== 0) rhs.push(label);
  }
  const summed = Array.from(
    { length: rng.uniform() < 0.8 ? 1 : rng.integer(0, 2) },
    (_, i) => `s${i}`,
  );
  const mix = (list: readonly string[]) => shuffled(rng, list.length).map((i) => list[i]!);
  return { lhs: mix([...lhs, ...summed]), rhs: mix([...rhs, ...summed]), output };
}

const contract: Maker = ({ rng, out, operands, attrs, dtype }) => {
  const own = out?.dtype ?? operands.find((o) => o)?.dtype ?? dtype;
  const given = attrs as unknown as ContractAttrs | undefined;
  const rank = out?.shape.length ?? rng.integer(1, 3);
  const labels = given ?? { ...randomLabels(rng, rank), accumulator: own };
  const sizes = new Map<string, number>();
  const bind = (names: readonly string[], shape: readonly number[] | undefined): boolean =>
    !shape ||
    (names.length === shape.length &&
      names.every((n, i) => {
        const before = sizes.get(n);
        sizes.set(n, before ?? shape[i]!);
        return before === undefined || before === shape[i];
      }));
  const fits =
    bind(labels.output, out?.shape) &&
    bind(labels.lhs, operands[0]?.shape) &&
    bind(labels.rhs, operands[1]?.shape);
  if (!fits) return undefined;
  const sizeOf = (name: string): number => {
    const size = sizes.get(name) ?? rng.pick(extents);
    sizes.set(name, size);
    return size;
  };
  return {
    attrs: labels as unknown as AnyAttrs,
    operands: [
      operands[0] ?? { dtype: own, shape: labels.lhs.map(sizeOf) },
      operands[1] ?? { dtype: own, shape: labels.rhs.map(sizeOf) },
    ],
  };
};

function randomWindow(rng: Rng, spatial: number): ConvolutionAttrs {
  const list = (most: number, usual: number) =>
    Array.from({ length: spatial }, () => (rng.uniform() < 0.6 ? usual : rng.integer(usual, most)));
  const padded = rng.uniform() < 0.5;
  const pads = () => (padded ? list(2, 1) : list(0, 0).fill(0));
  return { strides: list(2, 1), dilations: list(2, 1), padLow: pads(), padHigh: pads(), groups: 1 };
}

const convolution: Maker = ({ rng, out, operands, attrs, dtype }) => {
  const [x, w] = operands;
  const own = out?.dtype ?? x?.dtype ?? dtype;
  const result = out?.shape ?? [
    rng.integer(1, 2),
    rng.integer(1, 6),
    rng.integer(1, 5),
    rng.integer(1, 5),
  ];
  const rank = x?.shape.length ?? w?.shape.length ?? result.length;
  if (rank < 3 || rank > 4) return undefined;
  const given = attrs as unknown as ConvolutionAttrs | undefined;
  const window = given ?? randomWindow(rng, rank - 2);
  if (window.strides.length !== rank - 2) return undefined;
  const outputs = w?.shape[0] ?? result[1]!;
  const groups = given?.groups ?? rng.pick([1, 1, 1, outputs, 2]);
  if (outputs % groups !== 0) return undefined;
  const perGroup =
    w?.shape[1] ?? (x ? x.shape[1]! / groups : groups === outputs ? 1 : rng.integer(1, 3));
  const kernel = window.strides.map((_, i) => w?.shape[i + 2] ?? rng.integer(1, 3));
  const weights = w ?? { dtype: own, shape: [outputs, perGroup, ...kernel] };
  const space = window.strides.map((stride, i) => {
    const reach = window.dilations[i]! * (kernel[i]! - 1) + 1;
    return (result[i + 2]! - 1) * stride + reach - window.padLow[i]! - window.padHigh[i]!;
  });
  const data = x ?? { dtype: own, shape: [result[0]!, perGroup * groups, ...space] };
  if (![...data.shape, ...weights.shape].every((d) => Number.isInteger(d) && d > 0))
    return undefined;
  return { attrs: { ...window, groups } as unknown as AnyAttrs, operands: [data, weights] };
};

const cast: Maker = ({ rng, out, operands, attrs, dtype }) => {
  const other = rng.pick(["f64", "f32", "f16", "i32", "i8", "u8"] as const);
  const own = rng.uniform() < 0.5 ? dtype : other;
  const to = (attrs?.to as DType | undefined) ?? out?.dtype ?? own;
  const shape = operands[0]?.shape ?? out?.shape ?? randomShape(rng);
  const from = rng.uniform() < 0.3 ? other : dtype;
  return {
    attrs: attrs ?? { to, saturate: true },
    operands: [operands[0] ?? { dtype: from, shape }],
  };
};

const softmax: Maker = (ask) => {
  const made = same(ask)!;
  const rank = made.operands[0]!.shape.length;
  return rank === 0
    ? undefined
    : { ...made, attrs: ask.attrs ?? { axis: ask.rng.integer(0, rank - 1) } };
};

const quantized: Maker = ({ rng, op, out, operands, attrs }) => {
  const shape = out?.shape ?? operands[0]?.shape ?? randomShape(rng, rng.integer(1, 3));
  const stored = rng.pick(["u8", "i8"] as const);
  const known = operands[0];
  if (op === "quantize") {
    const to = (attrs?.to as DType | undefined) ?? out?.dtype ?? stored;
    return {
      attrs: attrs ?? { to, saturate: true },
      operands: [
        known ?? { dtype: "f32", shape },
        operands[1] ?? { dtype: "f32", shape: [] },
        operands[2] ?? { dtype: to, shape: [] },
      ],
    };
  }
  const from = known?.dtype ?? operands[2]?.dtype ?? stored;
  return {
    attrs: attrs ?? { to: "f32" },
    operands: [
      known ?? { dtype: from, shape },
      operands[1] ?? { dtype: "f32", shape: [] },
      operands[2] ?? { dtype: from, shape: [] },
    ],
  };
};

/** x with scale and bias along the last axes. */
const norm: Maker = ({ rng, dtype, operands }) => {
  const shape = randomShape(rng, rng.integer(1, 3));
  const axis = rng.integer(0, shape.length - 1);
  const inner = { dtype, shape: shape.slice(axis) };
  return {
    attrs: { axis, epsilon: 2 ** -10 },
    operands: operands.map((_, i) => (i === 0 ? { dtype, shape } : inner)),
  };
};

const attention: Maker = ({ rng, dtype, operands }) => {
  const [b, h, s, d, t, e] = randomShape(rng, 6) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  return {
    attrs: { scale: 0.5, causal: "none", mask: operands.length > 3, softcap: 0 },
    operands: [[b, h, s, d], [b, h, t, d], [b, h, t, e], narrowed(rng, [b, h, s, t])]
      .slice(0, operands.length)
      .map((shape) => ({ dtype, shape })),
  };
};

const makers: Partial<Record<OpKind, Maker>> = {
  transpose,
  reshape,
  broadcast,
  slice,
  reverse,
  concat,
  pad,
  reduce,
  contract,
  convolution,
  cast,
  softmax,
  logSoftmax: softmax,
  layerNorm: norm,
  rmsNorm: norm,
  attention,
  quantize: quantized,
  dequantize: quantized,
};

/** Operators that a pattern's `map[?f]` may stand for. */
const unary = ["neg", "abs", "exp", "relu", "tanh", "sigmoid", "floor", "sin"] as const;
const binary = ["add", "mul", "sub", "max", "min", "less"] as const;

export function randomScalarOp(rng: Rng, arity: number, dtype: DType): ScalarOp {
  const all: readonly ScalarOp[] = arity === 1 ? unary : binary;
  if (isFloatDType(dtype)) return rng.pick(all);
  return rng.pick(arity === 1 ? (["neg", "abs", "relu"] as const) : binary);
}

export function makeOperands(ask: Ask): Made | undefined {
  if (Object.hasOwn(scalarOps, ask.op)) return elementwise(ask);
  return (makers[ask.op] ?? same)(ask);
}
