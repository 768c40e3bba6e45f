/** Quantised values, random tensors and control flow. Captures of a body are read from outside by name. */
import type { OpAttrs } from "../../../../graph/graph.ts";
import type { RandomAttrs } from "../../../../semantics/core-ops.ts";
import { onnxTypeOf } from "../../data-types.ts";
import { bigints, type ExportRow, type ExportRows, flag } from "../export-row.ts";
import type { Attributes } from "../graph-sink.ts";
import { castTo } from "./elementwise.ts";
import { fixedShape } from "./movement.ts";

function blocks({ axis, blockSize }: Pick<OpAttrs["quantize"], "axis" | "blockSize">): Attributes {
  return {
    ...(axis !== undefined && { axis: BigInt(axis) }),
    ...(blockSize !== undefined && { block_size: BigInt(blockSize) }),
  };
}

/** Without a zero point an attribute has the type of the results. */
const quantize: ExportRow<"quantize"> = ({ attrs, inputs }, sink) => [
  sink.op("QuantizeLinear", inputs, {
    ...blocks(attrs),
    saturate: flag(attrs.saturate),
    ...(inputs[2] === undefined && { output_dtype: BigInt(onnxTypeOf[attrs.to]) }),
  }),
];

const dequantize: ExportRow<"dequantize"> = ({ attrs, inputs, types }, sink) => {
  const real = sink.op("DequantizeLinear", inputs, blocks(attrs));
  return [types[1]!.dtype === attrs.to ? real : castTo(sink, real, attrs.to)];
};

const random =
  (op: string, a: string, b: string): ExportRow<"randomUniform" | "randomNormal"> =>
  ({ attrs }, sink) => {
    const given: RandomAttrs = attrs;
    return [
      sink.op(op, [], {
        shape: bigints(fixedShape(sink, given.shape, "a random tensor")),
        dtype: BigInt(onnxTypeOf[given.dtype]),
        [a]: given.a,
        [b]: given.b,
        seed: given.seed,
      }),
    ];
  };

const branch: ExportRow<"if"> = ({ attrs, inputs, results }, sink) => {
  const [condition, ...captures] = inputs as [string, ...string[]];
  const then_branch = sink.subgraph({ graph: attrs.then, given: captures });
  const else_branch = sink.subgraph({ graph: attrs.else, given: captures });
  return sink.ops("If", [condition], { then_branch, else_branch }, results.length);
};

const loop: ExportRow<"loop"> = ({ attrs, inputs, results }, sink) => {
  const own = 2 + attrs.carried;
  const given = [...new Array<undefined>(own).fill(undefined), ...inputs.slice(own)];
  const body = sink.subgraph({ graph: attrs.body, given });
  return sink.ops("Loop", inputs.slice(0, own), { body }, results.length);
};

const scan: ExportRow<"scan"> = ({ attrs, inputs, results }, sink) => {
  const own = attrs.carried + attrs.sequences;
  const given = [...new Array<undefined>(own).fill(undefined), ...inputs.slice(own)];
  const directions = (reversed: readonly boolean[]) => reversed.map(flag);
  const attributes = {
    body: sink.subgraph({ graph: attrs.body, given }),
    num_scan_inputs: BigInt(attrs.sequences),
    scan_input_axes: bigints(attrs.inputAxes),
    scan_input_directions: directions(attrs.inputReversed),
    ...(attrs.outputAxes.length > 0 && {
      scan_output_axes: bigints(attrs.outputAxes),
      scan_output_directions: directions(attrs.outputReversed),
    }),
  };
  return sink.ops("Scan", inputs.slice(0, own), attributes, results.length);
};

export const controlRows = {
  quantize,
  dequantize,
  randomUniform: random("RandomUniform", "low", "high"),
  randomNormal: random("RandomNormal", "mean", "scale"),
  if: branch,
  loop,
  scan,
} satisfies ExportRows<
  "quantize" | "dequantize" | "randomUniform" | "randomNormal" | "if" | "loop" | "scan"
>;
