/**
 * Small files that ask for much: what a decompression bomb is to an archive. Each maker gives a model of
 * a few hundred bytes to some hundred KiB whose meaning, taken at its word, fills memory or never ends:
 * chains that double, fills and paddings of huge extents, functions that call each other twice, loops
 * that nothing stops, patterns that backtrack.
 */

import {
  type AttributeValue,
  type FunctionSpec,
  type ModelSpec,
  type NodeSpec,
  tensorOf,
  writeModel,
} from "../../src/frontend/onnx/model-writer.ts";
import type { DType } from "../../src/semantics/dtype.ts";
import type { Tensor } from "../../src/semantics/tensor.ts";
import type { Rng } from "../../src/support/rng.ts";

const integers = (...values: readonly bigint[]): Tensor =>
  tensorOf("i64", [values.length], BigInt64Array.from(values));
const whole = (value: bigint): Tensor => tensorOf("i64", [], BigInt64Array.of(value));
const floats = (...values: readonly number[]): Tensor =>
  tensorOf("f32", [values.length], Float32Array.from(values));

const depths = [3, 12, 24, 40, 120] as const;
const hugeExtents = [2n ** 20n, 2n ** 31n, 2n ** 32n, 2n ** 40n, 2n ** 53n, 2n ** 62n] as const;

interface Part {
  readonly nodes: readonly NodeSpec[];
  readonly weights?: Readonly<Record<string, Tensor>>;
  readonly functions?: readonly FunctionSpec[];
  readonly inputs?: ModelSpec["inputs"];
}

const node = (
  op: string,
  inputs: readonly string[],
  output: string,
  attributes: Readonly<Record<string, AttributeValue>> = {},
): NodeSpec => ({ op, inputs, outputs: [output], attributes });

/** `op` applied again and again; the last value is `y`. */
function chain(depth: number, step: (from: string, to: string) => NodeSpec): readonly NodeSpec[] {
  return Array.from({ length: depth }, (_, i) =>
    step(i === 0 ? "x" : `v${i}`, i === depth - 1 ? "y" : `v${i + 1}`),
  );
}

const ownInput = (dtype: DType, shape: readonly (number | string)[]): ModelSpec["inputs"] => [
  { name: "x", dtype, shape },
];

const makers: Readonly<Record<string, (rng: Rng) => Part>> = {
  doublingConstants: (rng) => ({
    weights: { x: floats(1, 2) },
    nodes: chain(rng.pick(depths), (from, to) => node("Concat", [from, from], to, { axis: 0n })),
  }),
  doublingInput: (rng) => ({
    inputs: ownInput("f32", rng.pick([["N"], [2]])),
    nodes: chain(rng.pick(depths), (from, to) => node("Concat", [from, from], to, { axis: 0n })),
  }),
  tiles: (rng) => ({
    weights: { x: rng.pick([floats(1, 2), integers(1n, 2n)]), r: integers(rng.pick(hugeExtents)) },
    nodes: chain(rng.pick([1, 2, 5]), (from, to) => node("Tile", [from, "r"], to)),
  }),
  fill: (rng) => ({
    weights: { x: integers(rng.pick(hugeExtents), rng.pick([1n, 2n, 2n ** 31n])) },
    nodes: [node("ConstantOfShape", ["x"], "f"), node(rng.pick(["Neg", "Shape"]), ["f"], "y")],
  }),
  expanded: (rng) => ({
    weights: { x: floats(1), s: integers(rng.pick(hugeExtents), rng.pick(hugeExtents)) },
    nodes: [node("Expand", ["x", "s"], "e"), node("Add", ["e", "x"], "y")],
  }),
  range: (rng) => ({
    weights: { x: whole(0n), end: whole(rng.pick(hugeExtents)), step: whole(1n) },
    nodes: [node("Range", ["x", "end", "step"], "r"), node("Mul", ["r", "r"], "y")],
  }),
  padded: (rng) => ({
    weights: { x: floats(1, 2), p: integers(rng.pick(hugeExtents), rng.pick(hugeExtents)) },
    nodes: [node("Pad", ["x", "p"], "q"), node("Exp", ["q"], "y")],
  }),
  resized: (rng) => ({
    weights: {
      x: tensorOf("f32", [1, 1, 2, 2], Float32Array.of(1, 2, 3, 4)),
      s: floats(1, 1, rng.pick([1e3, 1e9, 1e30]), rng.pick([0.5, 1e9, Number.NaN])),
    },
    nodes: [node("Resize", ["x", "", "s"], "y", { mode: "nearest" })],
  }),
  oneHot: (rng) => ({
    weights: { x: integers(0n, 1n), d: whole(rng.pick(hugeExtents)), v: floats(0, 1) },
    nodes: [node("OneHot", ["x", "d", "v"], "y")],
  }),
  cubed: (rng) => ({
    weights: {
      x: floats(...Array.from({ length: 200 }, (_, i) => i)),
      a: integers(0n),
      b: integers(1n),
    },
    nodes: [
      node("Unsqueeze", ["x", "a"], "row"),
      node("Unsqueeze", ["x", "b"], "column"),
      node("Mul", ["row", "column"], "v1"),
      ...Array.from({ length: rng.pick([1, 2, 4]) }, (_, i) => [
        node("Unsqueeze", [`v${i + 1}`, "a"], `w${i}`),
        node("Mul", [`w${i}`, i % 2 === 0 ? "column" : `w${i}`], `v${i + 2}`),
      ]).flat(),
      node("Identity", ["v2"], "y"),
    ],
  }),
  callingTwice: (rng) => {
    const depth = rng.pick(depths);
    const call = (
      name: string,
      inputs: readonly string[],
      outputs: readonly string[],
    ): NodeSpec => ({
      op: name,
      domain: "own",
      inputs,
      outputs,
    });
    const functions = Array.from({ length: depth }, (_, i): FunctionSpec => {
      const inner = i === depth - 1 ? undefined : `F${i + 1}`;
      const nodes = inner
        ? [call(inner, ["p"], ["t"]), call(inner, ["t"], ["q"])]
        : [node("Neg", ["p"], "q")];
      return { domain: "own", name: `F${i}`, inputs: ["p"], outputs: ["q"], nodes };
    });
    return { inputs: ownInput("f32", [4]), functions, nodes: [call("F0", ["x"], ["y"])] };
  },
  endlessLoop: (rng) => ({
    weights: {
      x: floats(1, 2),
      trips: whole(rng.pick(hugeExtents)),
      go: tensorOf("bool", [], Uint8Array.of(1)),
    },
    nodes: [
      {
        op: "Loop",
        inputs: [rng.pick(["trips", ""]), "go", "x"],
        outputs: ["z", ...rng.pick([[], ["y"]])],
        attributes: {
          body: {
            inputs: [
              { name: "i", dtype: "i64", shape: [] },
              { name: "c", dtype: "bool", shape: [] },
              { name: "v", dtype: "f32", shape: ["n"] },
            ],
            outputs: ["c2", "v2", ...rng.pick([[], ["v2"]])],
            nodes: [
              node("Identity", ["c"], "c2"),
              rng.pick([node("Neg", ["v"], "v2"), node("Concat", ["v", "v"], "v2", { axis: 0n })]),
            ],
          },
        },
      },
      node("Identity", ["z"], "y2"),
    ],
  }),
  growingStrings: (rng) => ({
    nodes: [
      node("Constant", [], "x", { value_strings: ["abcdefgh"] }),
      ...chain(rng.pick(depths), (from, to) => node("StringConcat", [from, from], to)),
    ],
  }),
  backtracking: (rng) => ({
    nodes: [
      node("Constant", [], "x", { value_strings: [`${"a".repeat(rng.pick([20, 400]))}!`] }),
      node("RegexFullMatch", ["x"], "y", {
        pattern: rng.pick([
          "(a+)+",
          "(a|aa)+",
          "(.*)*b",
          "((a{1,99}){1,99}){1,99}",
          "a{0,1000000}",
        ]),
      }),
    ],
  }),
  wideAttributes: (rng) => ({
    inputs: ownInput("f32", [1, 1, 8, 8]),
    weights: { w: tensorOf("f32", [1, 1, 3, 3], new Float32Array(9)) },
    nodes: [
      node(rng.pick(["Conv", "ConvTranspose"]), ["x", "w"], "y", {
        [rng.pick(["pads", "strides", "dilations", "output_padding", "output_shape"])]: rng.pick([
          [2n ** 31n, 1n, 1n, 1n],
          [2n ** 40n, 2n ** 40n],
          [1_000_000n, 1_000_000n],
          [0n, 0n],
        ]),
      }),
    ],
  }),
  manySplits: (rng) => ({
    inputs: ownInput("f32", [rng.pick([64, 100_000, 2 ** 40])]),
    weights: { one: whole(1n) },
    nodes: [
      node("SplitToSequence", ["x", "one"], "s"),
      node("ConcatFromSequence", ["s"], "y", { axis: 0n }),
    ],
  }),
  parts: (rng) => ({
    inputs: ownInput("f32", [rng.pick([4, 2 ** 30])]),
    nodes: [node("Split", ["x"], "y", { num_outputs: rng.pick([2n ** 30n, 100_000n, 0n, -1n]) })],
  }),
  drawn: (rng) => {
    const shape = [rng.pick(hugeExtents), rng.pick([1n, 7n])];
    const op = rng.pick(["RandomNormal", "RandomUniform", "Multinomial", "Bernoulli"]);
    if (op === "Bernoulli" || op === "Multinomial")
      return {
        inputs: ownInput("f32", op === "Bernoulli" ? [Number(shape[0])] : [2, 4]),
        nodes: [node(op, ["x"], "y", op === "Bernoulli" ? {} : { sample_size: shape[0]! })],
      };
    return { nodes: [node(op, [], "y", { shape })] };
  },
  constantWork: (rng) => ({
    inputs: ownInput("f32", [2]),
    weights: {
      one: floats(1),
      s: integers(rng.pick([3n * 10n ** 8n, 10n ** 10n]), ...rng.pick([[], [8000n]])),
      zero: whole(0n),
    },
    nodes: [
      node("Expand", ["one", "s"], "e"),
      rng.pick([
        node("CumSum", ["e", "zero"], "w"),
        node("MatMul", ["e", "e"], "w"),
        node("NonZero", ["e"], "w"),
        node("Identity", ["e"], "w"),
      ]),
      node("Cast", ["w"], "f", { to: 1n }),
      node("ReduceSum", ["f"], "r"),
      node("Add", ["x", "r"], "y"),
    ],
  }),
  manyAxes: (rng) => ({
    inputs: ownInput("f32", new Array<number>(rng.pick([40, 200, 256, 257, 3000])).fill(1)),
    nodes: [node(rng.pick(["Relu", "Transpose", "ReduceSum", "Softmax"]), ["x"], "y")],
  }),
  manyOperands: (rng) => {
    const count = rng.pick([40, 1000, 5000]);
    const op = rng.pick(["Concat", "Max", "Sum"]);
    const inputs = new Array<string>(count).fill("x");
    const attributes = op === "Concat" ? { axis: 0n } : {};
    return {
      inputs: ownInput("f32", [2, 4]),
      nodes: [node(op, inputs, "y", attributes)],
    };
  },
  farIndex: (rng) => ({
    inputs: ownInput("f32", [2, 4]),
    weights: { i: integers(rng.pick(hugeExtents), -1n) },
    nodes: [node("Gather", ["x", "i"], "y", { axis: 0n })],
  }),
  longChain: (rng) => ({
    inputs: ownInput("f32", [4]),
    nodes: chain(rng.pick([2_000, 10_000]), (from, to) => node("Neg", [from], to)),
  }),
};

export function swollenModel(rng: Rng): Uint8Array {
  const part = makers[rng.pick(Object.keys(makers))]!(rng);
  const last = part.nodes.at(-1)!.outputs[0]!;
  return writeModel({
    opset: 20,
    domains: { own: 1 },
    inputs: part.inputs ?? [],
    outputs: [last],
    ...(part.weights && { weights: part.weights }),
    ...(part.functions && { functions: part.functions }),
    nodes: part.nodes,
  });
}
