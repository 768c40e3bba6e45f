/**
 * ViT-B/16 for 224×224 pictures (86 million weights) in the form of torch.onnx's newer exporter
 * (`dynamo=True`) at operator set 20: fixed shapes, LayerNormalization and Gelu as operators, sizes as
 * constants, scaled_dot_product_attention with its scale folded into both factors.
 */
import { tensorOf } from "../../../src/frontend/onnx/model-writer.ts";
import { fanIn, gelu, layerNorm, linear, transpose, view } from "./layers.ts";
import type { ModelBuilder, ValueName } from "./model-builder.ts";

const width = 768;
const layers = 12;
const heads = 12;
const headSize = width / heads;
const patch = 16;
const patches = (224 / patch) ** 2;
const tokens = patches + 1;
const norm = { width, epsilon: 1e-12 };

/** @param batch pictures: the exporter writes them as a number too */
export function buildVisionTransformer(b: ModelBuilder, batch: number): void {
  const picture = b.input("pixel_values", "f32", [batch, 3, 224, 224]);
  let x = b.within("vit.embeddings", () => embed(b, picture, batch));
  for (let i = 0; i < layers; i++) x = b.within(`vit.encoder.layer.${i}`, () => layer(b, x, batch));
  const last = layerNorm(b, "vit.layernorm", x, norm);
  const first = b.op("Gather", [last, b.integer(0)], { axis: 1n });
  const operands = [
    first,
    b.namedWeight("classifier.weight", [1000, width], fanIn(width)),
    b.namedWeight("classifier.bias", [1000], fanIn(width)),
  ];
  b.output("logits", b.op("Gemm", operands, { transB: 1n }), "f32", [batch, 1000]);
}

function embed(b: ModelBuilder, picture: ValueName, batch: number): ValueName {
  const draw = fanIn(3 * patch * patch);
  const side = BigInt(patch);
  const operands = [
    picture,
    b.weight("patch_embeddings.projection.weight", [width, 3, patch, patch], draw),
    b.weight("patch_embeddings.projection.bias", [width], draw),
  ];
  const attributes = { kernel_shape: [side, side], strides: [side, side], group: 1n };
  const columns = view(b, b.op("Conv", operands, attributes), [batch, width, patches]);
  const first = b.weight("cls_token", [1, 1, width], { deviation: 0.02 });
  const shape = tensorOf("i64", [3], BigInt64Array.of(BigInt(batch), 1n, BigInt(width)));
  const spread = b.op("Expand", [first, b.constant(shape)]);
  const all = b.op("Concat", [spread, transpose(b, columns, 0, 2, 1)], { axis: 1n });
  return b.op("Add", [
    all,
    b.weight("position_embeddings", [1, tokens, width], { deviation: 0.02 }),
  ]);
}

function layer(b: ModelBuilder, x: ValueName, batch: number): ValueName {
  const mixed = attention(b, layerNorm(b, "layernorm_before", x, norm), batch);
  const attended = b.op("Add", [mixed, x]);
  const wide = linear(b, "intermediate.dense", layerNorm(b, "layernorm_after", attended, norm), {
    from: width,
    to: 4 * width,
  });
  const inner = linear(b, "output.dense", gelu(b, wide), { from: 4 * width, to: width });
  return b.op("Add", [inner, attended]);
}

function attention(b: ModelBuilder, x: ValueName, batch: number): ValueName {
  return b.within("attention", () => {
    const square = { from: width, to: width };
    const [query, keys, values] = ["query", "key", "value"].map((name) => {
      const split = view(b, linear(b, `attention.${name}`, x, square), [
        batch,
        -1,
        heads,
        headSize,
      ]);
      return transpose(b, split, 0, 2, 1, 3);
    });
    const root = Math.sqrt(Math.sqrt(1 / headSize));
    const scaled = b.op("Mul", [query!, b.scalar(root)]);
    const turned = b.op("Mul", [transpose(b, keys!, 0, 1, 3, 2), b.scalar(root)]);
    const shares = b.op("Softmax", [b.op("MatMul", [scaled, turned])], { axis: -1n });
    const mixed = transpose(b, b.op("MatMul", [shares, values!]), 0, 2, 1, 3);
    return linear(b, "output.dense", view(b, mixed, [batch, tokens, width]), square);
  });
}
