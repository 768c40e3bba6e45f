/** What an op is written from: its attributes, operand names and types, and the types of its results. */
import type { OpAttrs, OpKind, TensorType } from "../../../graph/graph.ts";
import type { GraphSink } from "./graph-sink.ts";

export interface ExportCall<K extends OpKind> {
  readonly op: K;
  readonly attrs: OpAttrs[K];
  readonly inputs: readonly string[];
  readonly types: readonly TensorType[];
  readonly results: readonly TensorType[];
}

/** Writes an op; gives the names of its results. */
export type ExportRow<K extends OpKind> = (
  call: ExportCall<K>,
  sink: GraphSink,
) => readonly string[];

export type ExportRows<K extends OpKind> = { readonly [Op in K]: ExportRow<Op> };

/** For lists of integers in attributes. */
export function bigints(values: readonly number[]): readonly bigint[] {
  return values.map(BigInt);
}

export function flag(value: boolean): bigint {
  return value ? 1n : 0n;
}
