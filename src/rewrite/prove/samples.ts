/**
 * Left sides for proofs that no walk of a pattern finds by chance: written as graphs, with random sizes
 * and elements. A rule names its sample with `#` (rule-row.ts: `sampled`).
 */
import type { GraphBuilder } from "../../graph/builder.ts";
import type { ValueId } from "../../graph/graph.ts";
import type { DType } from "../../semantics/dtype.ts";
import { toIndex } from "../../semantics/index-expr.ts";
import type { Rng } from "../../support/rng.ts";
import { randomShape } from "./makers.ts";

export interface SampleScope {
  readonly b: GraphBuilder;
  readonly rng: Rng;
  readonly dtype: DType;
  /** Random elements; a weight is what the rule takes for constant. */
  input(name: string, shape: readonly number[], dtype?: DType): ValueId;
  weight(name: string, shape: readonly number[], dtype?: DType): ValueId;
  /** A weight with these elements. */
  given(name: string, shape: readonly number[], elements: readonly number[]): ValueId;
}

/** Gives what is computed; the last is the root of the left side. */
export type Sample = (scope: SampleScope) => readonly ValueId[];

/** An even last axis behind others, its half, and factors that broadcast to the half. */
function rotated({ b, rng, input }: SampleScope) {
  const outer = randomShape(rng, rng.integer(0, 2));
  const half = rng.integer(1, 3);
  const axis = outer.length;
  const x = input("x", [...outer, 2 * half]);
  const narrow = () => [...outer.map((d) => (rng.uniform() < 0.5 ? 1 : d)), half];
  const [c, s] = [input("c", narrow()), input("s", narrow())];
  return { b, outer, half, axis, x, c, s };
}

function slicePairs(b: GraphBuilder, x: ValueId, [outer, half]: readonly [number[], number]) {
  const part = (start: number) =>
    b.node("slice", [x], {
      starts: [...outer.map(() => 0), start].map(toIndex),
      steps: [...outer.map(() => 1), 2],
      sizes: [...outer, half].map(toIndex),
    });
  return [part(0), part(1)] as const;
}

const ropeOfTurned: Sample = (scope) => {
  const { b, half, axis, x, c, s } = rotated(scope);
  const [first, second] = [b.sliceAxis(x, axis, 0, half), b.sliceAxis(x, axis, half, half)];
  const turned = b.concat([b.apply("neg", second), first], axis);
  return [b.add(b.mul(x, b.concat([c, c], axis)), b.mul(turned, b.concat([s, s], axis)))];
};

function turn(
  b: GraphBuilder,
  [x, y]: readonly [ValueId, ValueId],
  [c, s]: readonly [ValueId, ValueId],
) {
  return [b.sub(b.mul(x, c), b.mul(y, s)), b.add(b.mul(x, s), b.mul(y, c))] as const;
}

const ropeOfHalves: Sample = (scope) => {
  const { b, half, axis, x, c, s } = rotated(scope);
  const parts = [b.sliceAxis(x, axis, 0, half), b.sliceAxis(x, axis, half, half)] as const;
  return [b.concat([...turn(b, parts, [c, s])], axis)];
};

/** Reflects where rope turns. */
const ropeWithoutSign: Sample = (scope) => {
  const { b, half, axis, x, c, s } = rotated(scope);
  const [first, second] = [b.sliceAxis(x, axis, 0, half), b.sliceAxis(x, axis, half, half)];
  const parts = [
    b.add(b.mul(first, c), b.mul(second, s)),
    b.add(b.mul(first, s), b.mul(second, c)),
  ];
  return [b.concat(parts, axis)];
};

const ropeOfPairs: Sample = (scope) => {
  const { b, outer, half, axis, x, c, s } = rotated(scope);
  const turned = turn(b, slicePairs(b, x, [outer, half]), [c, s]);
  const columns = turned.map((part) => b.reshape(part, [...outer, half, 1]));
  return [b.reshape(b.concat(columns, axis + 1), [...outer, 2 * half])];
};

const window = (pad: readonly number[]) => ({
  strides: [1, 1],
  dilations: [1, 1],
  padLow: [pad[0]!, pad[1]!],
  padHigh: [pad[2]!, pad[3]!],
  groups: 1,
});

/** Two convolutions of one operand, the first with a smaller window at some place within the second's. */
const twoWindows: Sample = ({ b, rng, input, weight }) => {
  const sizes = [rng.integer(3, 6), rng.integer(3, 6)];
  const x = input("x", [rng.integer(1, 2), rng.integer(1, 3), ...sizes]);
  const channels = b.shapeOf(x)[1]!;
  const large = [rng.integer(1, 3), rng.integer(1, 3)];
  const small = large.map((k) => rng.integer(1, k));
  const low = large.map((k, i) => rng.integer(0, k - small[i]!));
  const pads = [0, 0, 0, 0].map(() => rng.integer(0, 1));
  const grown = [
    ...[0, 1].map((i) => pads[i]! + low[i]!),
    ...[0, 1].map((i) => pads[i + 2]! + large[i]! - small[i]! - low[i]!),
  ];
  const filters = (name: string, kernel: readonly number[]) =>
    weight(name, [rng.integer(1, 3), Number(channels.key), ...kernel]);
  return [
    b.node("convolution", [x, filters("v", large)], window(grown)),
    b.node("convolution", [x, filters("w", small)], window(pads)),
  ];
};

/** A window of 3 x 3 with every padding. */
const threeByThree: Sample = ({ b, rng, input, weight }) => {
  const channels = rng.integer(1, 3);
  const x = input("x", [rng.integer(1, 2), channels, rng.integer(3, 8), rng.integer(3, 8)]);
  const w = weight("w", [rng.integer(1, 3), channels, 3, 3]);
  const pads = [0, 0, 0, 0].map(() => rng.integer(0, 2));
  return [b.node("convolution", [x, w], window(pads))];
};

/** An even batch and padding above or below. */
const evenBatch: Sample = ({ b, rng, input, weight }) => {
  const channels = rng.integer(1, 2);
  const height = rng.integer(3, 5);
  const kernel = rng.integer(1, 3);
  const x = input("x", [2 * rng.integer(1, 2), channels, height, rng.integer(3, 5)]);
  const w = weight("w", [rng.integer(1, 3), channels, kernel, rng.integer(1, 3)]);
  const pads = [0, 0, 0, 0].map((_, i) => rng.integer(0, i % 2 === 0 ? kernel - 1 : 1));
  return [b.node("convolution", [x, w], window(pads))];
};

const scalesByAxis: Sample = ({ b, rng, input }) => {
  const shape = randomShape(rng, rng.integer(1, 3));
  const axis = rng.integer(0, shape.length - 1);
  const along = [shape[axis]!];
  const operands = [input("x", shape, "u8"), input("s", along, "f32"), input("z", along, "u8")];
  const permutation = shape.map((_, i) => i);
  if (rng.uniform() < 0.7) permutation.reverse();
  return [b.transpose(b.node("dequantize", operands, { axis, to: "f32" }), permutation)];
};

const dequantizedProduct: Sample = ({ b, rng, input }) => {
  const [m, k, n] = [rng.integer(1, 4), rng.integer(1, 5), rng.integer(1, 4)];
  const stored = (name: string, shape: readonly number[]) => {
    const dtype = rng.pick(["u8", "i8"] as const);
    return [
      input(name, shape, dtype),
      input(`${name}Scale`, [], "f32"),
      input(`${name}Zero`, [], dtype),
    ];
  };
  const [x, w] = [stored("x", [m, k]), stored("w", [k, n])].map((operands) =>
    b.node("dequantize", operands, { to: "f32" }),
  ) as [ValueId, ValueId];
  return [b.matMul(x, w)];
};

const gelu: Sample = ({ b, rng, input }) => {
  const x = b.applyNumber("mul", input("x", randomShape(rng)), rng.pick([1, 2, 4]));
  return [b.node("gelu", [x], { approximate: "none" })];
};

/** Bounded from above, then from below; half of the bounds are in order. */
const clamped: Sample = ({ b, rng, input }) => {
  const bound = () => rng.integer(-8, 8) / 4;
  const x = input("x", randomShape(rng));
  return [b.applyNumber("max", b.applyNumber("min", x, bound()), bound())];
};

/** A weight that is the product of thin ones but for little. */
const thinProduct: Sample = ({ b, rng, input, given }) => {
  const [k, n] = [rng.integer(6, 9), rng.integer(6, 9)];
  const outer = randomShape(rng, rng.integer(0, 2));
  const [u, v] = [k, n].map((length) => Array.from({ length }, () => rng.integer(-8, 8) / 4));
  const elements = u!.flatMap((x) => v!.map((y) => x * y + 1e-5 * (rng.uniform() - 0.5)));
  return [b.matMul(input("x", [...outer, 1, k]), given("w", [k, n], elements))];
};

export const samples: Readonly<Record<string, Sample>> = {
  "rope-of-turned": ropeOfTurned,
  "rope-of-halves": ropeOfHalves,
  "rope-of-pairs": ropeOfPairs,
  "rope-without-sign": ropeWithoutSign,
  "two-windows": twoWindows,
  "three-by-three": threeByThree,
  "even-batch": evenBatch,
  "thin-product": thinProduct,
  gelu,
  clamped,
  "scales-by-axis": scalesByAxis,
  "dequantized-product": dequantizedProduct,
};
