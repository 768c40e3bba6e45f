/**
 * Parts of the networks on which TASO and Tensat report what they find, as graphs of primitives: a layer of
 * BERT, the cell of NasRNN, a block of ResNeXt-50, of Inception, of SqueezeNet; and a transformer of any
 * number of layers. Extents are those of the networks; weights have types alone.
 */
import { GraphBuilder } from "../../src/graph/builder.ts";
import type { Graph, ValueId } from "../../src/graph/graph.ts";
import { tensorType } from "../../src/graph/tensor-type.ts";

/** Weights by running numbers. */
class Network {
  readonly b: GraphBuilder;
  #weights = 0;

  constructor(name: string) {
    this.b = new GraphBuilder(name);
  }

  weight(...shape: readonly number[]): ValueId {
    return this.b.weight(`w${this.#weights++}`, tensorType("f32", ...shape));
  }

  extent(x: ValueId, axis: number): number {
    return this.b.shapeOf(x)[axis]!.constant;
  }

  /** x · w + bias on the last axis. */
  linear(x: ValueId, width: number): ValueId {
    const inner = this.extent(x, this.b.rankOf(x) - 1);
    return this.b.add(this.b.matMul(x, this.weight(inner, width)), this.weight(width));
  }

  /** Padded so that the picture keeps its size. */
  convolution(x: ValueId, channels: number, kernel: number, groups = 1): ValueId {
    const same = (kernel - 1) / 2;
    const inner = this.extent(x, 1) / groups;
    return this.b.node("convolution", [x, this.weight(channels, inner, kernel, kernel)], {
      strides: [1, 1],
      dilations: [1, 1],
      padLow: [same, same],
      padHigh: [same, same],
      groups,
    });
  }

  biased(x: ValueId): ValueId {
    return this.b.add(x, this.weight(1, this.extent(x, 1), 1, 1));
  }

  unit(x: ValueId, channels: number, kernel: number, groups = 1): ValueId {
    return this.b.apply("relu", this.biased(this.convolution(x, channels, kernel, groups)));
  }

  layerNorm(x: ValueId): ValueId {
    const { b } = this;
    const axis = b.rankOf(x) - 1;
    const width = this.extent(x, axis);
    const mean = (v: ValueId) => b.applyNumber("div", b.reduce("sum", v, [axis], true), width);
    const centred = b.sub(x, mean(x));
    const variance = b.applyNumber("add", mean(b.mul(centred, centred)), 1e-12);
    const normed = b.div(centred, b.apply("sqrt", variance));
    return b.add(b.mul(normed, this.weight(width)), this.weight(width));
  }

  softmax(x: ValueId): ValueId {
    const { b } = this;
    const axis = b.rankOf(x) - 1;
    const raised = b.apply("exp", b.sub(x, b.reduce("max", x, [axis], true)));
    return b.div(raised, b.reduce("sum", raised, [axis], true));
  }

  /** GELU by erf, as exports spell it. */
  gelu(x: ValueId): ValueId {
    const { b } = this;
    const scaled = b.apply("erf", b.applyNumber("mul", x, Math.SQRT1_2));
    return b.applyNumber("mul", b.mul(x, b.applyNumber("add", scaled, 1)), 0.5);
  }

  encoderLayer(x: ValueId, { heads, inner }: EncoderShape): ValueId {
    const { b } = this;
    const [rows, width] = [this.extent(x, 0), this.extent(x, 1)];
    const head = width / heads;
    const apart = (v: ValueId) => b.transpose(b.reshape(v, [rows, heads, head]), [1, 0, 2]);
    const [q, k, v] = [1, 2, 3].map(() => apart(this.linear(x, width))) as [
      ValueId,
      ValueId,
      ValueId,
    ];
    const scores = b.matMul(
      b.applyNumber("mul", q, 1 / Math.sqrt(head)),
      b.transpose(k, [0, 2, 1]),
    );
    const mixed = b.matMul(this.softmax(scores), v);
    const joined = b.reshape(b.transpose(mixed, [1, 0, 2]), [rows, width]);
    const attended = this.layerNorm(b.add(x, this.linear(joined, width)));
    const forward = this.linear(this.gelu(this.linear(attended, inner)), width);
    return this.layerNorm(b.add(attended, forward));
  }
}

interface EncoderShape {
  readonly heads: number;
  readonly inner: number;
}

export function transformer(layers: number, width = 256, rows = 64): Graph {
  const n = new Network(`transformer of ${layers} layers`);
  let x = n.b.input("x", tensorType("f32", rows, width));
  for (let i = 0; i < layers; i++) x = n.encoderLayer(x, { heads: width / 64, inner: 4 * width });
  return n.b.finish([x]);
}

export function bert(): Graph {
  return transformer(1, 768, 128);
}

/** The cell that architecture search found: eight sums of two products, combined in a tree. */
export function nasRnn(): Graph {
  const n = new Network("nasrnn");
  const { b } = n;
  const [rows, width] = [1, 512];
  const inputs = ["x", "h"].map((name) => b.input(name, tensorType("f32", rows, width)));
  const [x, h] = inputs.map((v) => b.apply("tanh", v)) as [ValueId, ValueId];
  const both = () =>
    b.add(b.matMul(x, n.weight(width, width)), b.matMul(h, n.weight(width, width)));
  const sums = Array.from({ length: 8 }, (_, i) =>
    b.apply((["tanh", "sigmoid", "relu", "sigmoid"] as const)[i % 4]!, both()),
  );
  const pairs = [0, 2, 4, 6].map((i) =>
    b.apply(i % 4 === 0 ? "mul" : "add", sums[i]!, sums[i + 1]!),
  );
  const left = b.apply("tanh", b.mul(pairs[0]!, pairs[1]!));
  const right = b.apply("tanh", b.add(pairs[2]!, pairs[3]!));
  return b.finish([b.apply("tanh", b.mul(left, right))]);
}

/** 32 groups of four channels between convolutions of one pixel. */
export function resNext(): Graph {
  const n = new Network("resnext-50");
  const x = n.b.input("x", tensorType("f32", 1, 256, 28, 28));
  const y = n.unit(n.unit(x, 128, 1), 128, 3, 32);
  return n.b.finish([n.b.apply("relu", n.b.add(n.biased(n.convolution(y, 256, 1)), x))]);
}

/** Branches of one pixel, one and three, and twice three, joined by channel. */
export function inception(): Graph {
  const n = new Network("inception");
  const x = n.b.apply("relu", n.b.input("x", tensorType("f32", 1, 192, 28, 28)));
  const branches = [
    n.unit(x, 64, 1),
    n.unit(n.unit(x, 64, 1), 64, 3),
    n.unit(n.unit(n.unit(x, 64, 1), 96, 3), 96, 3),
  ];
  return n.b.finish([n.b.concat(branches, 1)]);
}

/** A fire module: what squeezes, then one pixel and three side by side. */
export function squeezeNet(): Graph {
  const n = new Network("squeezenet");
  const x = n.unit(n.b.input("x", tensorType("f32", 1, 128, 28, 28)), 16, 1);
  return n.b.finish([n.b.concat([n.unit(x, 64, 1), n.unit(x, 64, 3)], 1)]);
}
