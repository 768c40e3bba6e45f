/** Ops that make, reshape, cut, join and re-index tensors. */
import type { OpAttrs } from "../../../../graph/graph.ts";
import { add, constantValue, mul, toIndex } from "../../../../semantics/index-expr.ts";
import { bigints, type ExportRow, type ExportRows, flag } from "../export-row.ts";
import type { GraphSink } from "../graph-sink.ts";
import { castTo } from "./elementwise.ts";

type MovementOp =
  | "iota"
  | "dimSize"
  | "reshape"
  | "transpose"
  | "diagonal"
  | "broadcast"
  | "slice"
  | "reverse"
  | "concat"
  | "pad"
  | "gather"
  | "gatherElements"
  | "gatherNd"
  | "scatterElements"
  | "scatterNd"
  | "topK"
  | "nonZero"
  | "unique";

export function reshapeTo(sink: GraphSink, x: string, shape: OpAttrs["reshape"]["shape"]): string {
  return sink.op("Reshape", [x, sink.shape(shape)], { allowzero: 1n });
}

export function transposed(sink: GraphSink, x: string, permutation: readonly number[]): string {
  return permutation.every((axis, i) => axis === i)
    ? x
    : sink.op("Transpose", [x], { perm: bigints(permutation) });
}

/** Counts along one axis, spread over the others. */
const iota: ExportRow<"iota"> = ({ attrs: { shape, axis, dtype } }, sink) => {
  const number = (value: number) => sink.numbers("i64", [value]);
  const counted = sink.op("Range", [number(0), sink.scalar(shape[axis]!), number(1)]);
  const typed = dtype === "i64" ? counted : castTo(sink, counted, dtype);
  const column = shape.map((d, i) => (i === axis ? d : toIndex(1)));
  return [sink.op("Expand", [reshapeTo(sink, typed, column), sink.shape(shape)])];
};

/**
 * The equal positions of a square of n rows lie n + 1 apart once its rows stand behind one another: with
 * one more row they are the first column of n rows of n + 1.
 */
const diagonal: ExportRow<"diagonal"> = ({ attrs, inputs, types, results }, sink) => {
  const { axis, other } = attrs;
  const { shape } = types[0]!;
  const rest = shape.map((_, i) => i).filter((i) => i !== axis && i !== other);
  const extent = shape[axis]!;
  const last = transposed(sink, inputs[0]!, [...rest, axis, other]);
  const first = (x: string, at: number) =>
    sink.op("Slice", [x, sink.integers([0]), sink.integers([1]), sink.integers([at])]);
  const rows = rest.length;
  const longer = sink.op("Concat", [last, first(last, rows)], { axis: BigInt(rows) });
  const wide = reshapeTo(sink, longer, [...rest.map((i) => shape[i]!), extent, add(extent, 1)]);
  const order = [...rest, axis];
  const wanted = shape.map((_, i) => i).filter((i) => i !== other);
  const column = reshapeTo(
    sink,
    first(wide, rows + 1),
    order.map((i) => shape[i]!),
  );
  return [
    reshapeTo(
      sink,
      transposed(
        sink,
        column,
        wanted.map((i) => order.indexOf(i)),
      ),
      results[0]!.shape,
    ),
  ];
};

const slice: ExportRow<"slice"> = ({ attrs: { starts, steps, sizes }, inputs, types }, sink) => {
  const { shape } = types[0]!;
  const axes = shape.flatMap((d, i) =>
    starts[i]!.key === "0" && steps[i] === 1 && sizes[i]!.key === d.key ? [] : [i],
  );
  if (axes.length === 0) return [sink.op("Identity", inputs)];
  const ends = axes.map((i) => add(starts[i]!, mul(sizes[i]!, steps[i]!)));
  return [
    sink.op("Slice", [
      inputs[0]!,
      sink.shape(axes.map((i) => starts[i]!)),
      sink.shape(ends),
      sink.integers(axes),
      sink.integers(axes.map((i) => steps[i]!)),
    ]),
  ];
};

/** Before the first element: below minus any extent. */
const beforeFirst = -(2 ** 40);

const reverse: ExportRow<"reverse"> = ({ attrs: { axes }, inputs }, sink) => {
  const all = (value: number) => sink.integers(axes.map(() => value));
  const operands = [inputs[0]!, all(-1), all(beforeFirst), sink.integers(axes), all(-1)];
  return [sink.op(axes.length === 0 ? "Identity" : "Slice", axes.length === 0 ? inputs : operands)];
};

const pad: ExportRow<"pad"> = ({ attrs: { low, high, mode }, inputs }, sink) => [
  sink.op("Pad", [inputs[0]!, sink.shape([...low, ...high]), inputs[1] ?? ""], { mode }),
];

const dimSize: ExportRow<"dimSize"> = ({ attrs: { axis }, inputs }, sink) => {
  const extent = sink.op("Shape", [inputs[0]!], {
    start: BigInt(axis),
    end: BigInt(axis + 1),
  });
  return [sink.op("Reshape", [extent, sink.integers([])])];
};

const scatterElements: ExportRow<"scatterElements"> = ({ attrs, inputs }, sink) => [
  sink.op("ScatterElements", inputs, {
    axis: BigInt(attrs.axis),
    reduction: attrs.reduction,
  }),
];

const along =
  <K extends "concat" | "gather" | "gatherElements">(op: string): ExportRow<K> =>
  ({ attrs, inputs }, sink) => [sink.op(op, inputs, { axis: BigInt(attrs.axis) })];

const topK: ExportRow<"topK"> = ({ attrs: { axis, k, largest, sorted }, inputs }, sink) =>
  sink.ops(
    "TopK",
    [inputs[0]!, sink.extent(k)],
    { axis: BigInt(axis), largest: flag(largest), sorted: flag(sorted) },
    2,
  );

const unique: ExportRow<"unique"> = ({ attrs: { axis, sorted }, inputs }, sink) =>
  sink.ops(
    "Unique",
    inputs,
    { sorted: flag(sorted), ...(axis !== undefined && { axis: BigInt(axis) }) },
    4,
  );

export const movementRows = {
  iota,
  dimSize,
  reshape: ({ attrs: { shape }, inputs }, sink) => [reshapeTo(sink, inputs[0]!, shape)],
  transpose: ({ attrs: { permutation }, inputs }, sink) => [
    sink.op("Transpose", inputs, { perm: bigints(permutation) }),
  ],
  diagonal,
  broadcast: ({ attrs: { shape }, inputs }, sink) => [
    sink.op("Expand", [inputs[0]!, sink.shape(shape)]),
  ],
  slice,
  reverse,
  concat: along("Concat"),
  pad,
  gather: along("Gather"),
  gatherElements: along("GatherElements"),
  gatherNd: ({ attrs: { batchDims }, inputs }, sink) => [
    sink.op("GatherND", inputs, { batch_dims: BigInt(batchDims) }),
  ],
  scatterElements,
  scatterNd: ({ attrs: { reduction }, inputs }, sink) => [
    sink.op("ScatterND", inputs, { reduction }),
  ],
  topK,
  nonZero: ({ inputs }, sink) => [sink.op("NonZero", inputs)],
  unique,
} satisfies ExportRows<MovementOp>;

/** For shapes that must be numbers in ONNX. */
export function fixedShape(
  sink: GraphSink,
  shape: OpAttrs["reshape"]["shape"],
  what: string,
): readonly number[] {
  return shape.map(
    (d) => constantValue(d) ?? sink.refuse(`${what} of extent ${d.key}`, "fix it with --shape"),
  );
}
