/**
 * The shape of a row of the operator table: the versions in which the operator changed and the
 * converter for all of them. A converter asks `node.version` where versions differ.
 */
import { reject } from "../../../support/diagnostic.ts";
import type { NodeView } from "./node-view.ts";
import type { Bound } from "./operand.ts";

export interface OperatorRow {
  /** Operator set versions at which the operator appeared or changed, ascending. */
  readonly since: readonly number[];
  /** The results in order; trailing results that nobody wants may be left out. */
  readonly convert: (node: NodeView) => Bound | readonly (Bound | undefined)[];
}

export type OperatorTable = Readonly<Record<string, OperatorRow>>;

/** The oldest and newest operator sets of the default domain that rows are written for. */
export const oldestOpset = 7;
export const newestOpset = 28;

/** The row with the version in force under an operator set. */
export function findOperator(
  row: OperatorRow,
  { opset, op, at }: { readonly opset: number; readonly op: string; readonly at: string },
): { readonly row: OperatorRow; readonly version: number } {
  const version = row.since.findLast((v) => v <= opset);
  if (version !== undefined) return { row, version };
  return reject(
    "ONX012",
    `${op} appeared in operator set ${row.since[0]}, the model has ${opset}`,
    {
      at,
      help: `declare operator set ${row.since[0]} or newer`,
    },
  );
}
