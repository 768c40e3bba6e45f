/** Reductions and running sums. */
import type { OpAttrs } from "../../../../graph/graph.ts";
import type { ReduceKind } from "../../../../semantics/core-ops.ts";
import { type ExportRow, type ExportRows, flag } from "../export-row.ts";
import type { GraphSink } from "../graph-sink.ts";
import { castTo } from "./elementwise.ts";

export function reduced(
  sink: GraphSink,
  op: string,
  x: string,
  { axes, keepDims }: Pick<OpAttrs["reduce"], "axes" | "keepDims">,
): string {
  return sink.op(op, [x, sink.integers(axes)], { keepdims: flag(keepDims) });
}

const operators = {
  sum: "ReduceSum",
  prod: "ReduceProd",
  max: "ReduceMax",
  min: "ReduceMin",
  and: "ReduceMin",
  or: "ReduceMax",
} as const satisfies Record<ReduceKind, string>;

/** Logical ones by way of integers, which every version of the operators takes. */
const reduce: ExportRow<"reduce"> = ({ attrs, inputs, types }, sink) => {
  const [x] = inputs as [string];
  if (attrs.axes.length === 0) return [sink.op("Identity", [x])];
  const operator = operators[attrs.kind];
  const { dtype } = types[0]!;
  if (dtype !== "bool") return [reduced(sink, operator, x, attrs)];
  return [castTo(sink, reduced(sink, operator, castTo(sink, x, "i32"), attrs), "bool")];
};

const argReduce: ExportRow<"argReduce"> = ({ attrs, inputs }, sink) => [
  sink.op(attrs.kind === "max" ? "ArgMax" : "ArgMin", inputs, {
    axis: BigInt(attrs.axis),
    keepdims: flag(attrs.keepDims),
    select_last_index: flag(attrs.selectLast),
  }),
];

const cumulative: ExportRow<"cumulative"> = ({ attrs, inputs }, sink) => {
  const { kind, axis, exclusive, reverse } = attrs;
  if (kind !== "sum") sink.refuse(`a running ${kind}`, "only running sums are operators of ONNX");
  return [
    sink.op("CumSum", [inputs[0]!, sink.numbers("i64", [axis])], {
      exclusive: flag(exclusive),
      reverse: flag(reverse),
    }),
  ];
};

export const reductionRows = { reduce, argReduce, cumulative } satisfies ExportRows<
  "reduce" | "argReduce" | "cumulative"
>;
