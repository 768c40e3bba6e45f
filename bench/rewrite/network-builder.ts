/** Graphs of primitives with weights of a type alone: what the networks of this bench are written with. */
import { GraphBuilder } from "../../src/graph/builder.ts";
import type { Graph, ValueId } from "../../src/graph/graph.ts";
import { tensorType } from "../../src/graph/tensor-type.ts";

export interface Window {
  readonly kernel: number;
  readonly stride?: number;
  readonly groups?: number;
}

export interface EncoderShape {
  readonly heads: number;
  readonly inner: number;
}

export class NetworkBuilder {
  readonly b: GraphBuilder;
  #weights = 0;

  constructor(name: string) {
    this.b = new GraphBuilder(name);
  }

  /** Weights go by running numbers. */
  weight(...shape: readonly number[]): ValueId {
    return this.b.weight(`w${this.#weights++}`, tensorType("f32", ...shape));
  }

  input(name: string, ...shape: readonly number[]): ValueId {
    return this.b.input(name, tensorType("f32", ...shape));
  }

  finish(...outputs: readonly ValueId[]): Graph {
    return this.b.finish(outputs);
  }

  extent(x: ValueId, axis: number): number {
    return this.b.shapeOf(x)[axis]!.constant;
  }

  lastExtent(x: ValueId): number {
    return this.extent(x, this.b.rankOf(x) - 1);
  }

  product(x: ValueId, width: number): ValueId {
    return this.b.matMul(x, this.weight(this.lastExtent(x), width));
  }

  /** x · w + bias on the last axis. */
  linear(x: ValueId, width: number): ValueId {
    return this.b.add(this.product(x, width), this.weight(width));
  }

  /** Padded so that the picture keeps its size, or that a stride divides it. */
  convolution(x: ValueId, channels: number, { kernel, stride = 1, groups = 1 }: Window): ValueId {
    const same = Math.floor((kernel - 1) / 2);
    const inner = this.extent(x, 1) / groups;
    return this.b.node("convolution", [x, this.weight(channels, inner, kernel, kernel)], {
      strides: [stride, stride],
      dilations: [1, 1],
      padLow: [same, same],
      padHigh: [same, same],
      groups,
    });
  }

  pool(x: ValueId, kind: "max" | "average", { kernel, stride = 1 }: Window): ValueId {
    const low = kernel === 2 ? 0 : Math.floor((kernel - 1) / 2);
    return this.b.node("pool", [x], {
      kind,
      window: [kernel, kernel],
      strides: [stride, stride],
      dilations: [1, 1],
      padLow: [low, low],
      padHigh: [low, low],
      ceil: false,
      countPadding: false,
      exponent: 2,
    });
  }

  biased(x: ValueId): ValueId {
    return this.b.add(x, this.weight(1, this.extent(x, 1), 1, 1));
  }

  /** A batch norm as it is at inference: a scale and a shift of each channel. */
  normed(x: ValueId): ValueId {
    return this.biased(this.b.mul(x, this.weight(1, this.extent(x, 1), 1, 1)));
  }

  relu(x: ValueId): ValueId {
    return this.b.apply("relu", x);
  }

  unit(x: ValueId, channels: number, window: Window): ValueId {
    return this.relu(this.biased(this.convolution(x, channels, window)));
  }

  normedUnit(x: ValueId, channels: number, window: Window): ValueId {
    return this.relu(this.normed(this.convolution(x, channels, window)));
  }

  layerNorm(x: ValueId): ValueId {
    const { b } = this;
    const mean = (v: ValueId) => this.#meanOf(v);
    const centred = b.sub(x, mean(x));
    const variance = b.applyNumber("add", mean(b.mul(centred, centred)), 1e-12);
    const normed = b.div(centred, b.apply("sqrt", variance));
    return b.add(b.mul(normed, this.weight(this.lastExtent(x))), this.weight(this.lastExtent(x)));
  }

  rootMeanSquareNorm(x: ValueId): ValueId {
    const { b } = this;
    const square = b.applyNumber("add", this.#meanOf(b.mul(x, x)), 1e-5);
    return b.mul(b.div(x, b.apply("sqrt", square)), this.weight(this.lastExtent(x)));
  }

  #meanOf(x: ValueId): ValueId {
    const sum = this.b.reduce("sum", x, [this.b.rankOf(x) - 1], true);
    return this.b.applyNumber("div", sum, this.lastExtent(x));
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

  /** down(silu(gate(x)) · up(x)). */
  gatedForward(x: ValueId, inner: number): ValueId {
    const { b } = this;
    const gate = this.product(x, inner);
    const gated = b.mul(b.mul(gate, b.apply("sigmoid", gate)), this.product(x, inner));
    return this.product(gated, this.lastExtent(x));
  }

  /** [rows, heads · head] to [heads, rows, head]. */
  apart(x: ValueId, heads: number): ValueId {
    const split = [this.extent(x, 0), heads, this.extent(x, 1) / heads];
    return this.b.transpose(this.b.reshape(x, split), [1, 0, 2]);
  }

  together(x: ValueId): ValueId {
    const [heads, rows, head] = [0, 1, 2].map((axis) => this.extent(x, axis)) as [
      number,
      number,
      number,
    ];
    return this.b.reshape(this.b.transpose(x, [1, 0, 2]), [rows, heads * head]);
  }

  encoderLayer(x: ValueId, { heads, inner }: EncoderShape): ValueId {
    const { b } = this;
    const width = this.extent(x, 1);
    const parts = [1, 2, 3].map(() => this.apart(this.linear(x, width), heads));
    const [q, k, v] = parts as [ValueId, ValueId, ValueId];
    const scaled = b.applyNumber("mul", q, 1 / Math.sqrt(width / heads));
    const mixed = b.matMul(this.softmax(b.matMul(scaled, b.transpose(k, [0, 2, 1]))), v);
    const attended = this.layerNorm(b.add(x, this.linear(this.together(mixed), width)));
    const forward = this.linear(this.gelu(this.linear(attended, inner)), width);
    return this.layerNorm(b.add(attended, forward));
  }
}
