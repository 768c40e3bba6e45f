/**
 * torchvision's ResNet-50 (v1.5: the stride is in the 3×3 convolution) and MobileNetV2 (width 1), at
 * operator set 13, in f32 or as int8 QDQ.
 */
import { Convolutions, type Feature } from "./convolutions.ts";
import type { ModelBuilder } from "./model-builder.ts";

const classes = 1000;

/** Blocks, inner channels and stride of the first block of each stage. */
const resnetStages = [
  [3, 64, 1],
  [4, 128, 2],
  [6, 256, 2],
  [3, 512, 2],
] as const;

export function buildResnet50(b: ModelBuilder, quantized: boolean): void {
  const net = new Convolutions(b, quantized);
  const picture = net.input("input", ["batch_size", 3, 224, 224]);
  let x = net.conv("conv1", picture, { from: 3, to: 64, kernel: 7, stride: 2 }, "relu");
  x = net.maxPool(x);
  let from = 64;
  for (const [stage, [count, inner, stride]] of resnetStages.entries()) {
    for (let i = 0; i < count; i++) {
      const shape = { from, inner, stride: i === 0 ? stride : 1 };
      x = b.within(`layer${stage + 1}.${i}`, () => bottleneck(net, x, shape));
      from = inner * 4;
    }
  }
  const scores = net.dense("fc", net.globalMean(x), [from, classes]);
  b.output("output", scores.value, "f32", ["batch_size", classes]);
}

interface BlockShape {
  readonly from: number;
  readonly inner: number;
  readonly stride: number;
}

function bottleneck(net: Convolutions, x: Feature, { from, inner, stride }: BlockShape): Feature {
  const to = inner * 4;
  const narrow = net.conv("conv1", x, { from, to: inner, kernel: 1 }, "relu");
  const middle = net.conv("conv2", narrow, { from: inner, to: inner, kernel: 3, stride }, "relu");
  const wide = net.conv("conv3", middle, { from: inner, to, kernel: 1 });
  const straight = from === to ? x : net.conv("downsample.0", x, { from, to, kernel: 1, stride });
  return net.add(wide, straight, "relu");
}

/** Expansion, output channels, blocks and stride of the first block (Sandler et al., 2018, table 2). */
const mobilenetStages = [
  [1, 16, 1, 1],
  [6, 24, 2, 2],
  [6, 32, 3, 2],
  [6, 64, 4, 2],
  [6, 96, 3, 1],
  [6, 160, 3, 2],
  [6, 320, 1, 1],
] as const;

export function buildMobilenetV2(b: ModelBuilder, quantized: boolean): void {
  const net = new Convolutions(b, quantized);
  const picture = net.input("input", ["batch_size", 3, 224, 224]);
  let from = 32;
  let index = 0;
  let x = net.conv("features.0.0", picture, { from: 3, to: from, kernel: 3, stride: 2 }, "relu6");
  for (const [expansion, to, count, first] of mobilenetStages) {
    for (let i = 0; i < count; i++) {
      const shape = { from, to, expansion, stride: i === 0 ? first : 1 };
      index += 1;
      x = b.within(`features.${index}.conv`, () => invertedResidual(net, x, shape));
      from = to;
    }
  }
  x = net.conv(`features.${index + 1}.0`, x, { from, to: 1280, kernel: 1 }, "relu6");
  const scores = net.dense("classifier.1", net.globalMean(x), [1280, classes]);
  b.output("output", scores.value, "f32", ["batch_size", classes]);
}

interface ResidualShape {
  readonly from: number;
  readonly to: number;
  readonly expansion: number;
  readonly stride: number;
}

function invertedResidual(net: Convolutions, x: Feature, shape: ResidualShape): Feature {
  const { from, to, expansion, stride } = shape;
  const inner = from * expansion;
  const wide = expansion === 1 ? x : net.conv("0.0", x, { from, to: inner, kernel: 1 }, "relu6");
  const depthwise = { from: inner, to: inner, kernel: 3, stride, groups: inner };
  const filtered = net.conv("1.0", wide, depthwise, "relu6");
  const narrow = net.conv("2", filtered, { from: inner, to, kernel: 1 });
  return stride === 1 && from === to ? net.add(narrow, x) : narrow;
}
