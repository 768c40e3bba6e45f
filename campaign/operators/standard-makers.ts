/** Random cases of operators of the default domain that the ONNX suite says little about, by name. */
import type { CaseMaker } from "./microsoft-makers.ts";

const big = (value: number): bigint => BigInt(value);

const deformableConvolution: CaseMaker = (rng) => {
  const [g, own] = [rng.integer(1, 2), rng.integer(1, 2)];
  const channels = 2 * rng.integer(1, 3);
  const results = g * rng.integer(1, 3);
  const [kh, kw] = [rng.integer(1, 3), rng.integer(1, 3)];
  const [sh, sw, dh, dw] = [1, 2, 3, 4].map(() => rng.integer(1, 2)) as [
    number,
    number,
    number,
    number,
  ];
  const pads = [1, 2, 3, 4].map(() => rng.integer(0, 2)) as [number, number, number, number];
  const [h, w] = [rng.integer(5, 9), rng.integer(5, 9)];
  const places = (extent: number, around: number, k: number, d: number, s: number): number =>
    Math.floor((extent + around - (k - 1) * d - 1) / s) + 1;
  const oh = places(h, pads[0] + pads[2], kh, dh, sh);
  const ow = places(w, pads[1] + pads[3], kw, dw, sw);
  const n = rng.integer(1, 2);
  return {
    node: {
      op: "DeformConv",
      attributes: {
        group: big(g),
        offset_group: big(own),
        strides: [big(sh), big(sw)],
        dilations: [big(dh), big(dw)],
        pads: pads.map(big),
        kernel_shape: [big(kh), big(kw)],
      },
    },
    operands: [
      [n, channels, h, w],
      [results, channels / g, kh, kw],
      { shape: [n, own * kh * kw * 2, oh, ow], range: [-3, 3] },
      rng.integer(0, 1) === 1 ? [results] : undefined,
      rng.integer(0, 1) === 1 ? [n, own * kh * kw, oh, ow] : undefined,
    ],
    opset: 22,
    tolerance: 1e-4,
  };
};

const maxRegionPool: CaseMaker = (rng) => {
  const [n, c, h, w] = [2, rng.integer(1, 3), rng.integer(4, 12), rng.integer(4, 12)];
  const scale = rng.pick([1, 0.5, 0.25]);
  const count = rng.integer(1, 5);
  const regions = Array.from({ length: count }, () => {
    const [x, y] = [rng.uniform() * w, rng.uniform() * h];
    const [width, height] = [rng.uniform() * w, rng.uniform() * h];
    return [rng.integer(0, n - 1), ...[x, y, x + width, y + height].map((v) => v / scale)];
  });
  return {
    node: {
      op: "MaxRoiPool",
      attributes: {
        pooled_shape: [big(rng.integer(1, 4)), big(rng.integer(1, 4))],
        spatial_scale: scale,
      },
    },
    operands: [[n, c, h, w], { shape: [count, 5], values: regions.flat().map(Math.fround) }],
  };
};

const shortTimeTransform: CaseMaker = (rng) => {
  const length = rng.integer(4, 12);
  const step = rng.integer(1, 5);
  // Exporters leave out the last axis of real signals, and onnxruntime takes them so.
  const last = rng.pick([[1], []]);
  return {
    node: { op: "STFT", attributes: { onesided: 1n } },
    operands: [
      { shape: [rng.integer(1, 2), length + rng.integer(0, 30), ...last], open: [1] },
      { shape: [], dtype: "i64", values: [step], weight: true },
      [length],
    ],
    outputs: [["y", "f32", 4]],
    tolerance: 1e-4,
  };
};

export const standardMakers: Readonly<Record<string, CaseMaker>> = {
  DeformConv: deformableConvolution,
  MaxRoiPool: maxRegionPool,
  "STFT of any length": shortTimeTransform,
};
