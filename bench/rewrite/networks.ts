/**
 * Parts of the networks on which TASO and Tensat report what they find, as graphs of primitives: a layer of
 * BERT, the cell of NasRNN, a block of ResNeXt-50, of Inception, of SqueezeNet; and a transformer of any
 * number of layers. Extents are those of the networks; weights have types alone.
 */
import type { Graph, ValueId } from "../../src/graph/graph.ts";
import { NetworkBuilder } from "./network-builder.ts";

export function transformer(layers: number, width = 256, rows = 64): Graph {
  const n = new NetworkBuilder(`transformer of ${layers} layers`);
  let x = n.input("x", rows, width);
  for (let i = 0; i < layers; i++) x = n.encoderLayer(x, { heads: width / 64, inner: 4 * width });
  return n.finish(x);
}

export function bert(): Graph {
  return transformer(1, 768, 128);
}

/** The cell that architecture search found, for some steps: eight sums of two products, combined in a tree. */
export function nasRnn(steps = 1): Graph {
  const n = new NetworkBuilder(`nasrnn of ${steps} steps`);
  const { b } = n;
  const [rows, width] = [1, 512];
  const inputs = Array.from({ length: steps }, (_, i) => n.input(`x${i}`, rows, width));
  let h = b.apply("tanh", n.input("h", rows, width));
  const weights = Array.from({ length: 16 }, () => n.weight(width, width));
  for (const input of inputs) {
    const x = b.apply("tanh", input);
    const both = (i: number) =>
      b.add(b.matMul(x, weights[2 * i]!), b.matMul(h, weights[2 * i + 1]!));
    const sums = Array.from({ length: 8 }, (_, i) =>
      b.apply((["tanh", "sigmoid", "relu", "sigmoid"] as const)[i % 4]!, both(i)),
    );
    const pairs = [0, 2, 4, 6].map((i) =>
      b.apply(i % 4 === 0 ? "mul" : "add", sums[i]!, sums[i + 1]!),
    );
    const left = b.apply("tanh", b.mul(pairs[0]!, pairs[1]!));
    const right = b.apply("tanh", b.add(pairs[2]!, pairs[3]!));
    h = b.apply("tanh", b.mul(left, right));
  }
  return n.finish(h);
}

/** 32 groups of four channels between convolutions of one pixel. */
export function resNext(): Graph {
  const n = new NetworkBuilder("resnext-50");
  const x = n.input("x", 1, 256, 28, 28);
  const y = n.normedUnit(n.normedUnit(x, 128, { kernel: 1 }), 128, { kernel: 3, groups: 32 });
  return n.finish(n.relu(n.b.add(n.normed(n.convolution(y, 256, { kernel: 1 })), x)));
}

/** Branches of one pixel, one and three, and twice three, joined by channel. */
export function inception(): Graph {
  const n = new NetworkBuilder("inception");
  const x = n.relu(n.input("x", 1, 192, 28, 28));
  const pixel = (v: ValueId) => n.unit(v, 64, { kernel: 1 });
  const three = (v: ValueId, channels: number) => n.unit(v, channels, { kernel: 3 });
  const branches = [pixel(x), three(pixel(x), 64), three(three(pixel(x), 96), 96)];
  return n.finish(n.b.concat(branches, 1));
}

/** A fire module: what squeezes, then one pixel and three side by side. */
export function squeezeNet(): Graph {
  const n = new NetworkBuilder("squeezenet");
  const x = n.unit(n.input("x", 1, 128, 28, 28), 16, { kernel: 1 });
  return n.finish(n.b.concat([n.unit(x, 64, { kernel: 1 }), n.unit(x, 64, { kernel: 3 })], 1));
}
