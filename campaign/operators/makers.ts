/** All random cases of operators that are compared with onnxruntime, with their domains. */

import { machineLearningMakers } from "./machine-learning-makers.ts";
import { type CaseMaker, microsoftMakers } from "./microsoft-makers.ts";
import { standardMakers } from "./standard-makers.ts";

export interface OperatorMaker {
  readonly domain: string;
  readonly make: CaseMaker;
}

function inDomain(
  domain: string,
  makers: Readonly<Record<string, CaseMaker>>,
): readonly (readonly [string, OperatorMaker])[] {
  return Object.entries(makers).map(([name, make]) => [name, { domain, make }]);
}

export const operatorMakers: Readonly<Record<string, OperatorMaker>> = Object.fromEntries([
  ...inDomain("com.microsoft", microsoftMakers),
  ...inDomain("ai.onnx.ml", machineLearningMakers),
  ...inDomain("", standardMakers),
]);
