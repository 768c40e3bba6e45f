/**
 * Random convolutional networks: chains of convolutions of every kind with biases and activations,
 * shortcuts, channel attention, pooling, concatenation, slices and transposition, some written as minimal
 * filterings, over few pixels and up to 50 channels, so that channels fill blocks of lanes, end within one, or are fewer. Weights are constants
 * that keep values near 1; the height may be a symbol.
 */
import { GraphBuilder } from "../src/graph/builder.ts";
import type { Model, ValueId } from "../src/graph/graph.ts";
import { filter, four, two } from "../src/rewrite/filtering.ts";
import { evaluate, type IndexExpr, toIndex, variable } from "../src/semantics/index-expr.ts";
import type { Tensor } from "../src/semantics/tensor.ts";
import { Rng } from "../src/support/rng.ts";

export interface RandomNet {
  readonly model: Model;
  readonly extents: Readonly<Record<string, number>>;
}

const channelCounts = [1, 3, 4, 8, 12, 16, 17, 20, 24, 32, 40, 48] as const;
const height = "N";

/** A network of one to six layers; the same seed gives the same one. */
export function randomConvNet(seed: number): RandomNet {
  const draft = new NetDraft(new Rng(seed));
  const layers = draft.rng.integer(1, 6);
  for (let i = 0; i < layers; i++) draft.rng.pick(layerMakers)(draft);
  return draft.finish();
}

type LayerMaker = (d: NetDraft) => void;

class NetDraft {
  readonly rng: Rng;
  readonly builder = new GraphBuilder("net");
  /** The height is a symbol: windows may not outgrow it, so they are padded to keep it. */
  readonly isOpen: boolean;
  readonly #extents: ReadonlyMap<string, number>;
  readonly #made: ValueId[];
  /** The newest feature map: [batch, channels, height, width]. */
  now: ValueId;

  constructor(rng: Rng) {
    this.rng = rng;
    this.isOpen = rng.uniform() < 0.3;
    if (this.isOpen) this.builder.symbol(height, 2, 24);
    this.#extents = new Map(this.isOpen ? [[height, rng.integer(2, 12)]] : []);
    const tall = this.isOpen ? variable(height) : toIndex(rng.integer(1, 12));
    const shape = [rng.pick([1, 1, 2]), rng.pick(channelCounts), tall, rng.integer(1, 20)];
    this.now = this.builder.input("x", { dtype: "f32", shape: shape.map(toIndex) });
    this.#made = [this.now];
  }

  get shape(): readonly IndexExpr[] {
    return this.builder.typeOf(this.now).shape;
  }

  get channels(): number {
    return evaluate(this.shape[1]!, this.#extents);
  }

  /** Extent now, where the height is a symbol as it is bound in this run. */
  extent(axis: number): number {
    return evaluate(this.shape[axis]!, this.#extents);
  }

  become(id: ValueId): void {
    this.now = id;
    this.#made.push(id);
  }

  /** An earlier feature map of the same shape. */
  twin(): ValueId | undefined {
    const key = (id: ValueId): string =>
      this.builder
        .typeOf(id)
        .shape.map((e) => e.key)
        .join();
    const twins = this.#made.filter((id) => id !== this.now && key(id) === key(this.now));
    return twins.length === 0 ? undefined : this.rng.pick(twins);
  }

  /** Weights whose sums over `terms` stay near 1. */
  weights(shape: readonly number[], terms: number): ValueId {
    const count = shape.reduce((a, b) => a * b, 1);
    const data = Float32Array.from({ length: count }, () => this.rng.normal() / Math.sqrt(terms));
    return this.builder.constant({ dtype: "f32", shape, data });
  }

  scalar(value: number): ValueId {
    return this.builder.constant({ dtype: "f32", shape: [], data: Float32Array.of(value) });
  }

  finish(): RandomNet {
    const outputs = [this.now];
    const results = this.#made.slice(1);
    // Every layer may have declined: then there is no other result, and the input is the output.
    if (this.rng.uniform() < 0.3 && results.length > 0) outputs.push(this.rng.pick(results));
    const graph = this.builder.finish([...new Set(outputs)]);
    const stored = new Map<string, Tensor>(this.builder.storedConstants);
    const weights = { read: (key: string) => stored.get(key)! };
    return { model: { graph, weights }, extents: Object.fromEntries(this.#extents) };
  }
}

function windowOf(d: NetDraft, size: readonly number[], mostStride = 2) {
  const pads = () => size.map((s) => d.rng.integer(d.isOpen ? s >> 1 : 0, s - 1));
  const padLow = size.map((s, i) => Math.max(pads()[i]!, s - d.extent(2 + i), 0));
  return {
    strides: size.map(() => d.rng.integer(1, mostStride)),
    dilations: size.map(() => 1),
    padLow,
    padHigh: d.rng.uniform() < 0.7 ? padLow : pads(),
  };
}

function sizeOf(d: NetDraft): readonly number[] {
  return [0, 1].map(() => d.rng.pick([1, 3, 3, 5]));
}

/** Bias, then an activation or a clip. */
function finishLayer(d: NetDraft, id: ValueId): void {
  const b = d.builder;
  const channels = b.typeOf(id).shape[1]!.constant;
  let value = id;
  if (d.rng.uniform() < 0.7) {
    value = b.node("add", [value, d.weights([1, channels, 1, 1], 4)], {});
  }
  const kind = d.rng.integer(0, 4);
  if (kind === 0) value = b.node("relu", [value], {});
  if (kind === 1) value = b.node("sigmoid", [value], {});
  if (kind === 2) value = b.node("min", [b.node("max", [value, d.scalar(0)], {}), d.scalar(2)], {});
  if (kind === 3) value = b.node("mul", [value, d.weights([1, channels, 1, 1], 1)], {});
  d.become(value);
}

const convolution: LayerMaker = (d) => {
  const size = sizeOf(d);
  const outputs = d.rng.pick(channelCounts);
  const terms = d.channels * size[0]! * size[1]!;
  const w = d.weights([outputs, d.channels, ...size], terms);
  finishLayer(d, d.builder.node("convolution", [d.now, w], { ...windowOf(d, size), groups: 1 }));
};

const pointwise: LayerMaker = (d) => {
  const w = d.weights([d.rng.pick(channelCounts), d.channels, 1, 1], d.channels);
  const attrs = { strides: [1, 1], dilations: [1, 1], padLow: [0, 0], padHigh: [0, 0], groups: 1 };
  finishLayer(d, d.builder.node("convolution", [d.now, w], attrs));
};

const grouped: LayerMaker = (d) => {
  const size = sizeOf(d);
  const divisors = [d.channels, 2, 4].filter((g) => d.channels % g === 0);
  const groups = d.rng.pick(divisors);
  const inner = d.channels / groups;
  const each = groups === d.channels ? 1 : d.rng.integer(1, 8);
  const w = d.weights([groups * each, inner, ...size], inner * size[0]! * size[1]!);
  finishLayer(d, d.builder.node("convolution", [d.now, w], { ...windowOf(d, size), groups }));
};

const upwards: LayerMaker = (d) => {
  const outputs = d.rng.pick(channelCounts);
  const w = d.weights([d.channels, outputs, 2, 2], d.channels);
  const attrs = { strides: [2, 2], dilations: [1, 1], padLow: [0, 0], padHigh: [0, 0], groups: 1 };
  const id = d.builder.node("transposedConvolution", [d.now, w], {
    ...attrs,
    outputPadding: [0, 0],
  });
  finishLayer(d, id);
};

const pool: LayerMaker = (d) => {
  const size = [d.rng.integer(1, 3), d.rng.integer(1, 3)];
  const { padLow, ...window } = windowOf(d, size);
  const kind = d.rng.pick(["max", "average"] as const);
  const attrs = { ...window, padLow, padHigh: padLow, kind, window: size, ceil: false };
  d.become(d.builder.node("pool", [d.now], { ...attrs, countPadding: false, exponent: 2 }));
};

const shortcut: LayerMaker = (d) => {
  const twin = d.twin();
  if (twin !== undefined) d.become(d.builder.node("add", [d.now, twin], {}));
};

/** The mean of each channel through two small layers scales the channel. */
const attention: LayerMaker = (d) => {
  const b = d.builder;
  const { channels } = d;
  const mean = b.node(
    "mul",
    [
      b.node("reduce", [d.now], { kind: "sum", axes: [2, 3], keepDims: true }),
      d.scalar(1 / (d.extent(2) * d.extent(3))),
    ],
    {},
  );
  const few = d.rng.pick([4, 8, 16]);
  const attrs = { strides: [1, 1], dilations: [1, 1], padLow: [0, 0], padHigh: [0, 0], groups: 1 };
  const narrow = b.node("convolution", [mean, d.weights([few, channels, 1, 1], channels)], attrs);
  const wide = [b.node("relu", [narrow], {}), d.weights([channels, few, 1, 1], few)];
  const scale = b.node("sigmoid", [b.node("convolution", wide, attrs)], {});
  d.become(b.node("mul", [d.now, scale], {}));
};

const joined: LayerMaker = (d) => {
  // Parts of an open height are not proved to cover the whole yet.
  if (d.isOpen) return;
  const parts = [d.now];
  const before = d.now;
  for (let i = d.rng.integer(1, 2); i > 0; i--) {
    d.now = before;
    pointwise(d);
    parts.push(d.now);
  }
  d.become(d.builder.node("concat", d.rng.uniform() < 0.5 ? parts : parts.reverse(), { axis: 1 }));
};

/** Layers that each read all before them, joined anew: what is new stands behind it, or in front. */
const dense: LayerMaker = (d) => {
  if (d.isOpen) return;
  const b = d.builder;
  const maps = [d.now];
  const behind = d.rng.uniform() < 0.7;
  const nests = d.rng.uniform() < 0.5;
  // Sums of many channels are rounded more than the judge allows for.
  for (let layer = d.rng.integer(2, 4); layer > 0 && d.channels < 32; layer--) {
    const joined = d.now;
    if (d.rng.uniform() < 0.6) {
      const scaled = b.mul(joined, d.weights([d.channels, 1, 1], 1));
      d.now = b.apply("relu", b.add(scaled, d.weights([d.channels, 1, 1], 4)));
    }
    pointwise(d);
    const made = d.now;
    const before = nests ? [joined] : [...maps];
    const parts = behind ? [...before, made] : [made, ...before];
    maps.splice(0, maps.length, ...(behind ? [...maps, made] : [made, ...maps]));
    d.become(b.concat(parts, 1));
  }
};

/** Channels last, and back by way of elementwise work. */
const turned: LayerMaker = (d) => {
  const b = d.builder;
  const last = b.node("transpose", [d.now], { permutation: [0, 2, 3, 1] });
  const scaled = b.node("mul", [last, d.weights([d.channels], 1)], {});
  d.become(b.node("transpose", [scaled], { permutation: [0, 3, 1, 2] }));
};

/** A convolution as rewriting filters it: tiles cut out by strides, small products, and tiles joined. */
const filtered: LayerMaker = (d) => {
  if (d.isOpen) return;
  const b = d.builder;
  const padLow = [0, 1].map((i) => d.rng.integer(d.extent(2 + i) < 3 ? 1 : 0, 1));
  const [outputs, inputs] = [d.rng.pick(channelCounts), d.channels];
  const [batch, , ...size] = d.shape;
  const rows = size.map((_, i) => Math.max(1, d.extent(2 + i) + 2 * padLow[i]! - 2));
  const found = filter(
    { add: (op, of, attrs) => b.node(op, of, attrs), constant: (tensor) => b.constant(tensor) },
    {
      x: d.now,
      w: d.weights([outputs, inputs, 3, 3], 9 * inputs),
      dtype: "f32",
      padLow,
      data: d.shape,
      result: [batch!, ...[outputs, ...rows].map(toIndex)],
    },
    d.rng.pick([two, two, four]),
  );
  if (found !== undefined) finishLayer(d, found);
};

const layerMakers: readonly LayerMaker[] = [
  convolution,
  convolution,
  pointwise,
  pointwise,
  grouped,
  grouped,
  upwards,
  pool,
  shortcut,
  attention,
  joined,
  dense,
  turned,
  filtered,
];
