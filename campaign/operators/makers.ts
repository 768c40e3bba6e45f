/** All random cases of operators that are compared with onnxruntime, with their domains. */
import { type CaseMaker, microsoftMakers } from "./microsoft-makers.ts";

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

export const operatorMakers: Readonly<Record<string, OperatorMaker>> = Object.fromEntries(
  inDomain("com.microsoft", microsoftMakers),
);
