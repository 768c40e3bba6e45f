/**
 * Contractions as matrix products (with what is added to them, and operands the other way round, where both are
 * matrices) wherever an operand needs at most a transpose and a reshape for it
 * (runtimes are fast at those), sums of axes that only one operand has taken first.
 */
import type { TensorType } from "../../../../graph/graph.ts";
import type { ContractAttrs } from "../../../../semantics/core-ops.ts";
import type { DType } from "../../../../semantics/dtype.ts";
import { type IndexExpr, mul, toIndex } from "../../../../semantics/index-expr.ts";
import { type ExportRow, flag } from "../export-row.ts";
import type { GraphSink } from "../graph-sink.ts";
import { castTo } from "./elementwise.ts";
import { reshapeTo, transposed } from "./movement.ts";

/** An operand with a label and an extent per axis. */
interface Labelled {
  readonly name: string;
  readonly labels: readonly string[];
  readonly shape: readonly IndexExpr[];
}

const one = toIndex(1);

export const contract: ExportRow<"contract"> = ({ attrs, inputs, types, results }, sink) => {
  const { lhs, rhs, output, accumulator } = attrs;
  const gemm = gemmOf(attrs, types);
  // A product of matrices as they stand, with nothing added, is the plainer operator.
  if (gemm && (inputs.length > 2 || gemm.transA || gemm.transB || gemm.isSwapped)) {
    return [writeGemm(sink, gemm, inputs)];
  }
  const operand = (i: number, labels: readonly string[]) =>
    summed(sink, typed(sink, inputs[i]!, types[i]!, accumulator), {
      labels,
      shape: types[i]!.shape,
      kept: new Set([...output, ...(i === 0 ? rhs : lhs)]),
    });
  const product = multiply(sink, operand(0, lhs), operand(1, rhs), output);
  const order = output.map((label) => product.labels.indexOf(label));
  const ordered = transposed(sink, product.name, order);
  return [ordered === inputs[0] ? reshapeTo(sink, ordered, results[0]!.shape) : ordered];
};

/** How a product of two matrices is a Gemm. */
export interface Gemm {
  readonly transA: boolean;
  readonly transB: boolean;
  /** The right operand's axis comes first in the result. */
  readonly isSwapped: boolean;
}

/** Types whose Gemm sums in no less than itself wherever models run. */
const gemmTypes: readonly DType[] = ["f32", "f64"];

/** @param types of both operands, and of others that do not count */
export function gemmOf(
  { lhs, rhs, output, accumulator }: ContractAttrs,
  types: readonly TensorType[],
): Gemm | undefined {
  const isTyped = types.slice(0, 2).every((t) => t.dtype === accumulator);
  if (!isTyped || !gemmTypes.includes(accumulator)) return undefined;
  if (lhs.length !== 2 || rhs.length !== 2 || output.length !== 2) return undefined;
  const isSwapped = !lhs.includes(output[0]!);
  const [a, b] = isSwapped ? [rhs, lhs] : [lhs, rhs];
  const [row, column] = output as [string, string];
  const inner = a.filter((l) => l !== row);
  const isProduct =
    inner.length === 1 &&
    a.includes(row) &&
    b.includes(column) &&
    b.includes(inner[0]!) &&
    inner[0] !== column &&
    row !== column;
  return isProduct ? { transA: a[1] === row, transB: b[0] === column, isSwapped } : undefined;
}

function writeGemm(
  sink: GraphSink,
  { transA, transB, isSwapped }: Gemm,
  [left, right, ...added]: readonly string[],
): string {
  const operands = isSwapped ? [right!, left!] : [left!, right!];
  return sink.op("Gemm", [...operands, ...added], {
    ...(transA && { transA: flag(true) }),
    ...(transB && { transB: flag(true) }),
  });
}

function typed(sink: GraphSink, name: string, { dtype }: TensorType, to: DType): string {
  return dtype === to ? name : castTo(sink, name, to);
}

/** Without the axes that neither the result nor the other operand has. */
function summed(
  sink: GraphSink,
  name: string,
  { labels, shape, kept }: Omit<Labelled, "name"> & { readonly kept: ReadonlySet<string> },
): Labelled {
  const gone = labels.flatMap((label, i) => (kept.has(label) ? [] : [i]));
  if (gone.length === 0) return { name, labels, shape };
  const stays = (_: unknown, i: number) => !gone.includes(i);
  return {
    name: sink.op("ReduceSum", [name, sink.integers(gone)], { keepdims: 0n }),
    labels: labels.filter(stays),
    shape: shape.filter(stays),
  };
}

function multiply(
  sink: GraphSink,
  left: Labelled,
  right: Labelled,
  output: readonly string[],
): Labelled {
  const batch = output.filter((l) => left.labels.includes(l) && right.labels.includes(l));
  const rows = output.filter((l) => left.labels.includes(l) && !right.labels.includes(l));
  const columns = output.filter((l) => !left.labels.includes(l) && right.labels.includes(l));
  const inner = left.labels.filter((l) => right.labels.includes(l) && !output.includes(l));
  const labels = [...batch, ...rows, ...columns];
  const extentOf = (label: string): IndexExpr => {
    const at = left.labels.indexOf(label);
    return at >= 0 ? left.shape[at]! : right.shape[right.labels.indexOf(label)]!;
  };
  const shape = labels.map(extentOf);
  // Rows may stay apart where the other operand has no batch; a column and an inner axis are single.
  const isPlain = inner.length === 1 && columns.length === 1;
  if (isPlain && (rows.length === 1 || (batch.length === 0 && rows.length > 1))) {
    const a = arranged(sink, left, [...batch, ...rows, ...inner]);
    const b = arranged(sink, right, [...batch, ...inner, ...columns]);
    return { name: sink.op("MatMul", [a, b]), labels, shape };
  }
  const joined = (group: readonly string[]): IndexExpr => mul(one, ...group.map(extentOf));
  const space = batch.map(extentOf);
  const a = reshapeTo(sink, arranged(sink, left, [...batch, ...rows, ...inner]), [
    ...space,
    joined(rows),
    joined(inner),
  ]);
  const b = reshapeTo(sink, arranged(sink, right, [...batch, ...inner, ...columns]), [
    ...space,
    joined(inner),
    joined(columns),
  ]);
  return { name: reshapeTo(sink, sink.op("MatMul", [a, b]), shape), labels, shape };
}

function arranged(sink: GraphSink, { name, labels }: Labelled, wanted: readonly string[]): string {
  return transposed(
    sink,
    name,
    wanted.map((label) => labels.indexOf(label)),
  );
}
