/**
 * Random kernels of the families that GPUs have strategies for: products and batched products of operands
 * that lie in any order, convolutions, norms and softmax, folds over any axes, attention, elementwise chains
 * over permuted operands; each with a random shape (mostly ragged), element type and epilogue. Seeds from
 * `firstOfBytes` on are products of bytes, whose sums are integers.
 */
import { GraphBuilder } from "../src/graph/builder.ts";
import type { Graph, TensorType, ValueId } from "../src/graph/graph.ts";
import type { DType } from "../src/semantics/dtype.ts";
import { toIndex } from "../src/semantics/index-expr.ts";
import { Rng } from "../src/support/rng.ts";

export interface RandomKernel {
  readonly name: string;
  readonly graph: Graph;
}

type Float = "f32" | "bf16" | "f16";

class KernelDraft {
  readonly g = new GraphBuilder("kernel");
  readonly rng: Rng;
  readonly dtype: Float;
  /** What the kernel is, in words. */
  readonly words: string[] = [];
  readonly inputTypes: TensorType[] = [];
  readonly #declared: readonly ValueId[];

  /** @param inputs types of all inputs, which come before all else, where they are known already */
  constructor(seed: number, inputs: readonly TensorType[]) {
    this.rng = new Rng(seed);
    this.dtype = this.rng.pick(["f32", "bf16", "bf16", "f16"] as const);
    this.#declared = inputs.map((type, i) => this.g.input(`x${i}`, type));
  }

  input(shape: readonly number[], dtype: DType = this.dtype): ValueId {
    const type = { dtype, shape: shape.map(toIndex) };
    const at = this.inputTypes.push(type) - 1;
    return this.#declared[at] ?? this.g.weight(`x${at}`, type);
  }

  /** Wide where the rest is computed in f32, as in a network's own code or by itself. */
  wide(value: ValueId): ValueId {
    return this.g.cast(value, "f32");
  }

  /** Small, a multiple of what the strategies like, or ragged. */
  extent(most: number): number {
    const { rng } = this;
    const kind = rng.uniform();
    if (kind < 0.15) return rng.integer(1, Math.min(9, most));
    if (kind < 0.5) return Math.min(most, 16 * rng.integer(1, Math.max(1, Math.floor(most / 16))));
    return rng.integer(1, most);
  }

  /** Axes in a random order. */
  order(rank: number): number[] {
    const axes = Array.from({ length: rank }, (_, i) => i);
    for (let i = rank - 1; i > 0; i--) {
      const j = this.rng.integer(0, i);
      [axes[i], axes[j]] = [axes[j]!, axes[i]!];
    }
    return axes;
  }
}

type Maker = (d: KernelDraft) => { readonly value: ValueId; readonly shape: readonly number[] };

const product: Maker = (d) => {
  const { rng } = d;
  const sizes: Record<string, number> = { i: d.extent(400), j: d.extent(400), k: d.extent(700) };
  const batched = rng.uniform() < 0.35;
  if (batched) sizes.b = rng.integer(1, 6);
  const axes = (...names: string[]): string[] => {
    const all = batched ? ["b", ...names] : names;
    // Batches lie outermost in most networks, but not in all.
    if (batched && rng.uniform() < 0.7) return ["b", ...permuted(d, names)];
    return permuted(d, all);
  };
  const [left, right, result] = [axes("i", "k"), axes("j", "k"), axes("i", "j")];
  const operand = (names: readonly string[]): ValueId => d.input(names.map((n) => sizes[n]!));
  const equation = `${left.join(" ")}, ${right.join(" ")} -> ${result.join(" ")}`;
  d.words.push(`einsum ${equation} of ${JSON.stringify(sizes)}`);
  const value = d.g.einsum(equation, operand(left), operand(right), "f32");
  return { value, shape: result.map((n) => sizes[n]!) };
};

function permuted(d: KernelDraft, names: readonly string[]): string[] {
  return d.order(names.length).map((i) => names[i]!);
}

const convolution: Maker = (d) => {
  const { rng } = d;
  const groups = rng.uniform() < 0.25 ? 4 * rng.integer(1, 6) : 1;
  const from = groups > 1 ? groups : d.extent(96);
  const to = groups > 1 ? groups * rng.integer(1, 2) : d.extent(96);
  const size = rng.pick([1, 3, 3, 5]);
  const sides = [0, 1].map(() => rng.integer(size, 24));
  const pad = rng.integer(0, size >> 1);
  const stride = rng.integer(1, 2);
  const batch = rng.integer(1, 3);
  const x = d.input([batch, from, ...sides]);
  const w = d.input([to, from / groups, size, size]);
  const attrs = {
    strides: [stride, stride],
    dilations: [1, 1],
    padLow: [pad, pad],
    padHigh: [pad, pad],
    groups,
  };
  d.words.push(
    `convolution ${batch}x${from}x${sides.join("x")} to ${to}, ${JSON.stringify(attrs)}`,
  );
  const value = d.wide(d.g.node("convolution", [x, w], attrs));
  const reach = sides.map((s) => Math.floor((s + 2 * pad - size) / stride) + 1);
  return { value, shape: [batch, to, ...reach] };
};

const rows: Maker = (d) => {
  const shape = [d.extent(300), d.rng.uniform() < 0.3 ? d.extent(6000) : d.extent(700)];
  const x = d.wide(d.input(shape));
  const scale = (): ValueId => d.wide(d.input([shape[1]!]));
  const op = d.rng.pick(["softmax", "layerNorm", "rmsNorm"] as const);
  d.words.push(`${op} ${shape.join("x")}`);
  const norm = { axis: 1, epsilon: 1e-5 };
  if (op === "softmax") return { value: d.g.node("softmax", [x], { axis: 1 }), shape };
  if (op === "rmsNorm") return { value: d.g.node("rmsNorm", [x, scale()], norm), shape };
  return { value: d.g.node("layerNorm", [x, scale(), scale()], norm), shape };
};

const fold: Maker = (d) => {
  const rank = d.rng.integer(1, 4);
  const most = [40_000, 300, 40, 16][rank - 1]!;
  const shape = Array.from({ length: rank }, () => d.extent(most));
  const axes = shape.map((_, i) => i).filter(() => d.rng.uniform() < 0.5);
  if (axes.length === 0) axes.push(d.rng.integer(0, rank - 1));
  const kind = d.rng.pick(["sum", "max", "min"] as const);
  d.words.push(`${kind} of ${shape.join("x")} over ${axes.join()}`);
  const value = d.g.reduce(kind, d.wide(d.input(shape)), axes, true);
  return { value, shape: shape.map((e, i) => (axes.includes(i) ? 1 : e)) };
};

const chain: Maker = (d) => {
  const rank = d.rng.integer(1, 4);
  const most = [100_000, 400, 60, 20][rank - 1]!;
  const shape = Array.from({ length: rank }, () => d.extent(most));
  const order = d.order(rank);
  const inverse = shape.map((_, axis) => order.indexOf(axis));
  const x = d.input(order.map((axis) => shape[axis]!));
  d.words.push(`elementwise ${shape.join("x")} read in order ${order.join()}`);
  return { value: d.wide(d.g.transpose(x, inverse)), shape };
};

const attention: Maker = (d) => {
  const { rng } = d;
  const groups = rng.integer(1, 3);
  const heads = groups * rng.integer(1, 3);
  const [batch, depth] = [rng.integer(1, 2), 16 * rng.pick([2, 4, 8])];
  const columns = d.extent(300);
  const causal = rng.uniform() < 0.5;
  const lines = causal ? Math.min(columns, d.extent(300)) : d.extent(300);
  const q = d.input([batch, heads, lines, depth]);
  const [k, v] = [0, 1].map(() => d.input([batch, groups, columns, depth]));
  const attrs = { scale: 1 / Math.sqrt(depth), causal: causal ? "end" : "none" };
  d.words.push(
    `attention ${batch}x${heads}/${groups} ${lines}x${columns}x${depth} ${attrs.causal}`,
  );
  const all = { ...attrs, mask: false, softcap: 0 } as never;
  const value = d.wide(d.g.node("attention", [q, k!, v!], all));
  return { value, shape: [batch, heads, lines, depth] };
};

const bytes = ["u8", "i8"] as const;

/** Mostly whole vectors of 16 bytes, as layers have; else words, or ragged. */
function extentOfBytes({ rng }: KernelDraft, most: number): number {
  const kind = rng.uniform();
  const unit = kind < 0.6 ? 16 : kind < 0.8 ? 4 : 1;
  return unit * rng.integer(1, Math.floor(most / unit));
}

/** Sums in i32 as they are, with a summand, or scaled to real numbers. */
function byteProduct(d: KernelDraft): ValueId {
  const { g, rng } = d;
  const types = [rng.pick(bytes), rng.pick(bytes)] as const;
  const [m, n, k] = [1500, 1500, 3000].map((most) => extentOfBytes(d, most));
  const rhs = rng.uniform() < 0.85 ? ["j", "k"] : ["k", "j"];
  const right = rhs[0] === "k" ? [k!, n!] : [n!, k!];
  const operands = [d.input([m!, k!], types[0]), d.input(right, types[1])];
  d.words.push(`product ${m}x${n}x${k} of ${types.join(" and ")}, ${rhs.join(" ")}`);
  const labels = { lhs: ["i", "k"], rhs, output: ["i", "j"], accumulator: "i32" } as const;
  return byteEpilogue(d, g.node("contract", operands, labels), [1, n!]);
}

function byteEpilogue(d: KernelDraft, sums: ValueId, bias: readonly number[]): ValueId {
  const { g, rng } = d;
  const kind = rng.pick(["none", "bias", "real"] as const);
  d.words.push(kind);
  if (kind === "none") return sums;
  if (kind === "bias") return g.add(sums, d.input(bias, "i32"));
  return g.applyNumber("mul", g.cast(sums, "f32"), 2 ** -9);
}

type Epilogue = (d: KernelDraft, x: ValueId, shape: readonly number[]) => ValueId;

const epilogues: Readonly<Record<string, Epilogue>> = {
  bias: (d, x, shape) => {
    const axis = d.rng.integer(0, shape.length - 1);
    return d.g.add(x, d.wide(d.input(shape.map((e, i) => (i === axis ? e : 1)))));
  },
  residual: (d, x, shape) => d.g.add(x, d.wide(d.input(shape))),
  gate: (d, x, shape) => d.g.mul(x, d.g.node("sigmoid", [d.wide(d.input(shape))], {})),
  relu: (d, x) => d.g.apply("max", x, d.g.scalarLike(0, x)),
  gelu: (d, x) => d.g.node("gelu", [x], { approximate: d.rng.pick(["none", "tanh"]) } as never),
  silu: (d, x) => d.g.node("silu", [x], {}),
  scale: (d, x) => d.g.applyNumber("mul", x, d.rng.pick([0.125, -3, 1 / 3])),
  clip: (d, x) =>
    d.g.apply("min", d.g.apply("max", x, d.g.scalarLike(-1, x)), d.g.scalarLike(6, x)),
};

const makers: readonly (readonly [Maker, number])[] = [
  [product, 0.45],
  [convolution, 0.15],
  [rows, 0.12],
  [fold, 0.1],
  [chain, 0.1],
  [attention, 0.08],
];

function pickMaker(at: number): Maker {
  let sum = 0;
  for (const [make, share] of makers) {
    sum += share;
    if (at < sum) return make;
  }
  return product;
}

/** Seeds from here on. */
export const firstOfBytes = 100_000;

/** The same seed gives the same kernel. */
export function randomKernel(seed: number): RandomKernel {
  const isOfBytes = seed >= firstOfBytes;
  const make = isOfBytes ? byteProduct : draw;
  const rehearsal = new KernelDraft(seed, []);
  make(rehearsal);
  const d = new KernelDraft(seed, rehearsal.inputTypes);
  const value = make(d);
  const type = isOfBytes ? "" : `${d.dtype} `;
  return { name: `${seed}: ${type}${d.words.join(", ")}`, graph: d.g.finish([value]) };
}

function draw(d: KernelDraft): ValueId {
  const made = pickMaker(d.rng.uniform())(d);
  let { value } = made;
  const count = d.rng.integer(0, 3);
  for (let i = 0; i < count; i++) {
    const name = d.rng.pick(Object.keys(epilogues));
    value = epilogues[name]!(d, value, made.shape);
    d.words.push(name);
  }
  const result = d.rng.uniform() < 0.75 ? d.dtype : "f32";
  d.words.push(`to ${result}`);
  return d.g.cast(value, result);
}
