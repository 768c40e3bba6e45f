/**
 * Every operator that is imported, by domain. A row stands in the file of its family under rows/;
 * supporting another operator is adding a row there.
 */
import type { OperatorTable } from "./operator-row.ts";
import { attentionRows } from "./rows/attention.ts";
import { controlRows } from "./rows/control.ts";
import { elementwiseRows } from "./rows/elementwise.ts";
import { fillingRows } from "./rows/filling.ts";
import { irregularRows } from "./rows/irregular.ts";
import { linearRows } from "./rows/linear.ts";
import { linearAlgebraRows } from "./rows/linear-algebra.ts";
import { linearAttentionRows } from "./rows/linear-attention.ts";
import { lossRows } from "./rows/loss.ts";
import { machineLearningRows } from "./rows/machine-learning.ts";
import { microsoftRows } from "./rows/microsoft.ts";
import { movementRows } from "./rows/movement.ts";
import { normalizationRows } from "./rows/normalization.ts";
import { poolingRows } from "./rows/pooling.ts";
import { previewRows } from "./rows/preview.ts";
import { quantizationRows } from "./rows/quantization.ts";
import { recurrentRows } from "./rows/recurrent.ts";
import { reductionRows } from "./rows/reduction.ts";
import { samplingRows } from "./rows/sampling.ts";
import { sequenceRows } from "./rows/sequences.ts";
import { signalRows } from "./rows/signal.ts";
import { slicingRows } from "./rows/slicing.ts";
import { stringRows } from "./rows/strings.ts";
import { textFeatureRows } from "./rows/text-features.ts";
import { trainingRows } from "./rows/training.ts";

const standard: OperatorTable = {
  ...elementwiseRows,
  ...reductionRows,
  ...linearRows,
  ...poolingRows,
  ...irregularRows,
  ...movementRows,
  ...slicingRows,
  ...fillingRows,
  ...normalizationRows,
  ...recurrentRows,
  ...samplingRows,
  ...quantizationRows,
  ...signalRows,
  ...linearAttentionRows,
  ...controlRows,
  ...attentionRows,
  ...lossRows,
  ...linearAlgebraRows,
  ...sequenceRows,
  ...stringRows,
  ...textFeatureRows,
};

/** Tables by domain; "" is the default domain ai.onnx. */
export const operatorTables: Readonly<Record<string, OperatorTable>> = {
  "": standard,
  "ai.onnx.ml": machineLearningRows,
  "com.microsoft": microsoftRows,
  "ai.onnx.preview": previewRows,
  "ai.onnx.preview.training": trainingRows,
};
