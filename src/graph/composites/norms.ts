/**
 * Softmax and normalisations. The statistics of layer, RMS, instance and group norm are computed in
 * f32 when the operand is narrower (ONNX: stash_type 1), and the result returns to the operand's type
 * before scale and bias apply.
 */
import { dtypes } from "../../semantics/dtype.ts";
import { floorDiv } from "../../semantics/index-expr.ts";
import { reject } from "../../support/diagnostic.ts";
import { integer, integers, number } from "../attr-schema.ts";
import type { ValueId } from "../graph.ts";
import type { OpWriter } from "../op-writer.ts";
import type { CompositeRows } from "./composite.ts";
import { mean } from "./reductions.ts";

const epsilonSchema = { epsilon: number } as const;
const axisSchema = { axis: integer } as const;
const normSchema = { axis: integer, epsilon: number } as const;

function widen(b: OpWriter, x: ValueId): ValueId {
  const { kind, bits } = dtypes[b.dtypeOf(x)];
  return kind === "float" && bits < 32 ? b.cast(x, "f32") : x;
}

/** x to a power, for x above zero: the usual exponents of three quarters and a half are roots. */
function powerOfPositive(b: OpWriter, x: ValueId, exponent: number): ValueId {
  if (exponent === 0.5) return b.apply("sqrt", x);
  if (exponent === 0.75) {
    const root = b.apply("sqrt", x);
    return b.mul(root, b.apply("sqrt", root));
  }
  return b.applyNumber("pow", x, exponent);
}

function axesFrom(b: OpWriter, x: ValueId, axis: number): number[] {
  return Array.from({ length: b.rankOf(x) - axis }, (_, i) => axis + i);
}

function checkChannels(rank: number): void {
  if (rank >= 2) return;
  reject("SHP003", `an operand of rank ${rank} has no channels`, {
    help: "channels are axis 1: the rank is at least 2",
  });
}

/** A per-channel vector [c] as [c, 1, …], so that it broadcasts against [n, c, …]. */
function perChannel(b: OpWriter, vector: ValueId, rank: number): ValueId {
  checkChannels(rank);
  return b.reshape(vector, [...b.shapeOf(vector), ...new Array<number>(rank - 2).fill(1)]);
}

/** (x - mean) / sqrt(variance + epsilon) over the axes. */
function standardise(b: OpWriter, x: ValueId, axes: readonly number[], epsilon: number): ValueId {
  const wide = widen(b, x);
  const centred = b.sub(wide, mean(b, wide, axes, true));
  const variance = mean(b, b.mul(centred, centred), axes, true);
  const deviation = b.apply("sqrt", b.applyNumber("add", variance, epsilon));
  return b.cast(b.div(centred, deviation), b.dtypeOf(x));
}

function scaleChannels(b: OpWriter, x: ValueId, scale: ValueId, bias: ValueId): ValueId {
  const rank = b.rankOf(x);
  return b.add(b.mul(x, perChannel(b, scale, rank)), perChannel(b, bias, rank));
}

/** x - max, the shift that keeps exp from overflowing. */
function shifted(b: OpWriter, x: ValueId, axis: number): ValueId {
  return b.sub(x, b.reduce("max", x, [axis], true));
}

export const norms = {
  // exp(x - max) / sum(exp(x - max))
  softmax: {
    arity: [1, 1],
    schema: axisSchema,
    definition: (b, [x], { axis }) => {
      const powers = b.apply("exp", shifted(b, x!, axis));
      return [b.div(powers, b.reduce("sum", powers, [axis], true))];
    },
  },
  // x - max - log(sum(exp(x - max)))
  logSoftmax: {
    arity: [1, 1],
    schema: axisSchema,
    definition: (b, [x], { axis }) => {
      const low = shifted(b, x!, axis);
      const total = b.reduce("sum", b.apply("exp", low), [axis], true);
      return [b.sub(low, b.apply("log", total))];
    },
  },
  layerNorm: {
    arity: [2, 3],
    schema: normSchema,
    definition: (b, [x, scale, bias], { axis, epsilon }) => {
      const scaled = b.mul(standardise(b, x!, axesFrom(b, x!, axis), epsilon), scale!);
      return [bias === undefined ? scaled : b.add(scaled, bias)];
    },
  },
  // x / sqrt(mean(x^2) + epsilon) * scale
  rmsNorm: {
    arity: [2, 2],
    schema: normSchema,
    definition: (b, [x, scale], { axis, epsilon }) => {
      const wide = widen(b, x!);
      const square = mean(b, b.mul(wide, wide), axesFrom(b, x!, axis), true);
      const size = b.apply("sqrt", b.applyNumber("add", square, epsilon));
      return [b.mul(b.cast(b.div(wide, size), b.dtypeOf(x!)), scale!)];
    },
  },
  // (x - mean) / sqrt(variance + epsilon) * scale + bias, all per channel
  batchNorm: {
    arity: [5, 5],
    schema: epsilonSchema,
    definition: (b, [x, scale, bias, average, variance], { epsilon }) => {
      const rank = b.rankOf(x!);
      const deviation = b.apply("sqrt", b.applyNumber("add", variance!, epsilon));
      const centred = b.sub(x!, perChannel(b, average!, rank));
      const normal = b.div(centred, perChannel(b, deviation, rank));
      return [scaleChannels(b, normal, scale!, bias!)];
    },
  },
  instanceNorm: {
    arity: [3, 3],
    schema: epsilonSchema,
    definition: (b, [x, scale, bias], { epsilon }) => {
      const normal = standardise(b, x!, axesFrom(b, x!, 2), epsilon);
      return [scaleChannels(b, normal, scale!, bias!)];
    },
  },
  groupNorm: {
    arity: [3, 3],
    schema: { epsilon: number, groups: integer },
    definition: (b, [x, scale, bias], { epsilon, groups }) => {
      const shape = b.shapeOf(x!);
      checkChannels(shape.length);
      if (groups < 1) {
        reject("GRF003", `${groups} groups`, { help: "channels are in one group or more" });
      }
      const [batch, channels, ...spatial] = shape;
      const inGroup = floorDiv(channels!, groups);
      const split = b.reshape(x!, [batch!, groups, inGroup, ...spatial]);
      const normal = standardise(b, split, axesFrom(b, split, 2), epsilon);
      // Scaled as it lies in groups, so that statistics and all that follows run over the same rows.
      const [wide, offset] = [scale!, bias!].map((vector) =>
        b.reshape(vector, [groups, inGroup, ...spatial.map(() => 1)]),
      );
      return [b.reshape(b.add(b.mul(normal, wide!), offset!), shape)];
    },
  },
  // x / (bias + alpha / size * sum of squares over `size` channels around)^beta
  lrn: {
    arity: [1, 1],
    schema: { size: integer, alpha: number, beta: number, bias: number },
    definition: (b, [x], { size, alpha, beta, bias }) => {
      const shape = b.shapeOf(x!);
      checkChannels(shape.length);
      // Channels become the rows of a picture, so that a pool sums over them and all stays in its order.
      const low = Math.floor((size - 1) / 2);
      const rows = b.reshape(b.mul(x!, x!), [shape[0]!, 1, shape[1]!, -1]);
      const sums = b.node("pool", [rows], {
        kind: "sum",
        window: [size, 1],
        strides: [1, 1],
        dilations: [1, 1],
        padLow: [low, 0],
        padHigh: [size - 1 - low, 0],
        ceil: false,
        countPadding: false,
        exponent: 1,
      });
      const squares = b.reshape(sums, shape);
      const base = b.applyNumber("add", b.applyNumber("mul", squares, alpha / size), bias);
      const isPositive = bias > 0 && alpha >= 0;
      const scale = isPositive ? powerOfPositive(b, base, beta) : b.applyNumber("pow", base, beta);
      return [b.div(x!, scale)];
    },
  },
  lpNormalization: {
    arity: [1, 1],
    schema: { axis: integer, p: number },
    definition: (b, [x], { axis, p }) => {
      const terms = p === 1 ? b.apply("abs", x!) : b.mul(x!, x!);
      const total = b.reduce("sum", terms, [axis], true);
      const norm = p === 1 ? total : b.apply("sqrt", total);
      const zero = b.scalarLike(0, x!);
      const divisor = b.select(b.apply("equal", norm, zero), b.scalarLike(1, x!), norm);
      return [b.div(x!, divisor)];
    },
  },
  // (x - mean) / (sqrt(mean(x^2) - mean(x)^2) + 1e-9), as the ONNX function
  meanVarianceNormalization: {
    arity: [1, 1],
    schema: { axes: integers },
    definition: (b, [x], { axes }) => {
      const average = mean(b, x!, axes, true);
      const square = mean(b, b.mul(x!, x!), axes, true);
      const deviation = b.apply("sqrt", b.sub(square, b.mul(average, average)));
      return [b.div(b.sub(x!, average), b.applyNumber("add", deviation, 1e-9))];
    },
  },
} satisfies CompositeRows<
  | "softmax"
  | "logSoftmax"
  | "layerNorm"
  | "rmsNorm"
  | "batchNorm"
  | "instanceNorm"
  | "groupNorm"
  | "lrn"
  | "lpNormalization"
  | "meanVarianceNormalization"
>;
