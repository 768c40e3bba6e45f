/**
 * Whole networks as graphs of primitives with weights of a type alone, for the time of rewriting: batch
 * norms are scales and shifts, attention and norms are spelled out.
 */
import type { Graph, ValueId } from "../../src/graph/graph.ts";
import { NetworkBuilder } from "./network-builder.ts";
import { nasRnn, transformer } from "./networks.ts";

export const wholeNetworks: Readonly<Record<string, () => Graph>> = {
  "BERT-base": () => transformer(12, 768, 128),
  "Llama-3-8B": llama,
  "ResNet-50": resNet50,
  NasRNN: () => nasRnn(5),
  "Inception-v2": inceptionV2,
  "DenseNet-121": denseNet121,
  "MoE block": mixture,
};

/** 32 decoder layers over 64 rows: 32 heads on 8 of keys and values, rotary positions, gated products. */
function llama(): Graph {
  const n = new NetworkBuilder("llama-3-8b");
  const [rows, width, head, inner] = [64, 4096, 128, 14_336];
  const { b } = n;
  let x = n.input("x", rows, width);
  const [cosine, sine] = [n.weight(rows, head), n.weight(rows, head)];
  const mask = n.weight(rows, rows);
  const rotated = (v: ValueId): ValueId => {
    const [low, high] = [0, 1].map((i) => b.sliceAxis(v, 2, (i * head) / 2, head / 2)) as [
      ValueId,
      ValueId,
    ];
    const turned = b.concat([b.apply("neg", high), low], 2);
    return b.add(b.mul(v, cosine), b.mul(turned, sine));
  };
  const attention = (y: ValueId): ValueId => {
    const q = b.reshape(rotated(n.apart(n.product(y, width), 32)), [8, 4, rows, head]);
    const k = b.reshape(rotated(n.apart(n.product(y, 1024), 8)), [8, 1, rows, head]);
    const v = b.reshape(n.apart(n.product(y, 1024), 8), [8, 1, rows, head]);
    const scores = b.applyNumber("div", b.matMul(q, b.transpose(k, [0, 1, 3, 2])), Math.sqrt(head));
    const mixed = b.matMul(n.softmax(b.add(scores, mask)), v);
    return n.product(n.together(b.reshape(mixed, [32, rows, head])), width);
  };
  for (let layer = 0; layer < 32; layer++) {
    x = b.add(x, attention(n.rootMeanSquareNorm(x)));
    x = b.add(x, n.gatedForward(n.rootMeanSquareNorm(x), inner));
  }
  return n.finish(n.product(n.rootMeanSquareNorm(x), 128_256));
}

function resNet50(): Graph {
  const n = new NetworkBuilder("resnet-50");
  let x = n.normedUnit(n.input("x", 1, 3, 224, 224), 64, { kernel: 7, stride: 2 });
  x = n.pool(x, "max", { kernel: 3, stride: 2 });
  for (const [stage, blocks] of [3, 4, 6, 3].entries()) {
    const width = 64 * 2 ** stage;
    for (let block = 0; block < blocks; block++) {
      const stride = block === 0 && stage > 0 ? 2 : 1;
      const inner = n.normedUnit(n.normedUnit(x, width, { kernel: 1 }), width, {
        kernel: 3,
        stride,
      });
      const wide = (v: ValueId, by: number) =>
        n.normed(n.convolution(v, 4 * width, { kernel: 1, stride: by }));
      x = n.relu(n.b.add(wide(inner, 1), block === 0 ? wide(x, stride) : x));
    }
  }
  return n.finish(classified(n, x, 1000));
}

function classified(n: NetworkBuilder, x: ValueId, classes: number): ValueId {
  const pixels = n.extent(x, 2) * n.extent(x, 3);
  const mean = n.b.applyNumber("div", n.b.reduce("sum", x, [2, 3], false), pixels);
  return n.linear(mean, classes);
}

/**
 * A module of Inception-v2: channels of the branch of one pixel (none: the module halves the picture), of
 * those of one and three, of one and twice three, and behind the pool (none: the pool's own).
 */
interface InceptionModule {
  readonly pixel: number;
  readonly single: readonly [number, number];
  readonly double: readonly [number, number];
  readonly pooled: number;
}

const inceptionModules: readonly InceptionModule[] = [
  { pixel: 64, single: [64, 64], double: [64, 96], pooled: 32 },
  { pixel: 64, single: [64, 96], double: [64, 96], pooled: 64 },
  { pixel: 0, single: [128, 160], double: [64, 96], pooled: 0 },
  { pixel: 224, single: [64, 96], double: [96, 128], pooled: 128 },
  { pixel: 192, single: [96, 128], double: [96, 128], pooled: 128 },
  { pixel: 160, single: [128, 160], double: [128, 160], pooled: 128 },
  { pixel: 96, single: [128, 192], double: [160, 192], pooled: 128 },
  { pixel: 0, single: [128, 192], double: [192, 256], pooled: 0 },
  { pixel: 352, single: [192, 320], double: [160, 224], pooled: 128 },
  { pixel: 352, single: [192, 320], double: [192, 224], pooled: 128 },
];

function inceptionV2(): Graph {
  const n = new NetworkBuilder("inception-v2");
  let x = n.normedUnit(n.input("x", 1, 3, 224, 224), 64, { kernel: 7, stride: 2 });
  x = n.pool(x, "max", { kernel: 3, stride: 2 });
  x = n.normedUnit(n.normedUnit(x, 64, { kernel: 1 }), 192, { kernel: 3 });
  x = n.pool(x, "max", { kernel: 3, stride: 2 });
  for (const shape of inceptionModules) x = inceptionModule(n, x, shape);
  return n.finish(classified(n, x, 1000));
}

function inceptionModule(n: NetworkBuilder, x: ValueId, shape: InceptionModule): ValueId {
  const { pixel, single, double, pooled } = shape;
  const stride = pixel === 0 ? 2 : 1;
  const unit = (v: ValueId, channels: number, kernel: number, by = 1) =>
    n.normedUnit(v, channels, { kernel, stride: by });
  const kept = n.pool(x, pooled === 0 ? "max" : "average", { kernel: 3, stride });
  const branches = [
    ...(pixel > 0 ? [unit(x, pixel, 1)] : []),
    unit(unit(x, single[0], 1), single[1], 3, stride),
    unit(unit(unit(x, double[0], 1), double[1], 3), double[1], 3, stride),
    pooled > 0 ? unit(kept, pooled, 1) : kept,
  ];
  return n.b.concat(branches, 1);
}

function denseNet121(): Graph {
  const n = new NetworkBuilder("densenet-121");
  const growth = 32;
  let x = n.normedUnit(n.input("x", 1, 3, 224, 224), 64, { kernel: 7, stride: 2 });
  x = n.pool(x, "max", { kernel: 3, stride: 2 });
  for (const [stage, layers] of [6, 12, 24, 16].entries()) {
    if (stage > 0) {
      const half = n.convolution(n.relu(n.normed(x)), n.extent(x, 1) / 2, { kernel: 1 });
      x = n.pool(half, "average", { kernel: 2, stride: 2 });
    }
    for (let layer = 0; layer < layers; layer++) {
      const squeezed = n.convolution(n.relu(n.normed(x)), 4 * growth, { kernel: 1 });
      const added = n.convolution(n.relu(n.normed(squeezed)), growth, { kernel: 3 });
      x = n.b.concat([x, added], 1);
    }
  }
  return n.finish(classified(n, n.relu(n.normed(x)), 1000));
}

/** Eight experts, all computed, weighed by a softmax over what the gate says. */
function mixture(): Graph {
  const n = new NetworkBuilder("mixture");
  const { b } = n;
  const [rows, width, inner, experts] = [64, 4096, 14_336, 8];
  const x = n.rootMeanSquareNorm(n.input("x", rows, width));
  const shares = n.softmax(n.product(x, experts));
  const weighed = Array.from({ length: experts }, (_, i) =>
    b.mul(n.gatedForward(x, inner), b.sliceAxis(shares, 1, i, 1)),
  );
  return n.finish(weighed.reduce((sum, v) => b.add(sum, v)));
}
