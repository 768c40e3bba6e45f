/** How each op is written in ONNX; an op without a row does not compile. */
import type { OpKind } from "../../../graph/graph.ts";
import type { ExportRows } from "./export-row.ts";
import { compositeRows } from "./rows/composites.ts";
import { contract } from "./rows/contraction.ts";
import { controlRows } from "./rows/control.ts";
import { elementwiseRows } from "./rows/elementwise.ts";
import { movementRows } from "./rows/movement.ts";
import { reductionRows } from "./rows/reductions.ts";
import { windowRows } from "./rows/windows.ts";

export const exportTable: ExportRows<OpKind> = {
  ...elementwiseRows,
  ...movementRows,
  ...reductionRows,
  contract,
  ...windowRows,
  ...controlRows,
  ...compositeRows,
};
