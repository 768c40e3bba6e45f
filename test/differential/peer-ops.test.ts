/** Operators: oracle and WebAssembly against onnxruntime-node on random inputs and shapes. */
import { expect, test } from "vitest";
import { operatorMakers } from "../../campaign/operators/makers.ts";
import { disagreement, type OperatorCase } from "../../campaign/operators/operator-case.ts";
import { Rng } from "../../src/support/rng.ts";
import { microsoftCases } from "./microsoft-cases.ts";

const named = microsoftCases.map((c, i) => [c.node.op, i] as const);

test.each(named)("%s (%i)", async (_op, i) => {
  const { node, ...rest } = microsoftCases[i]!;
  const found = { ...rest, node: { domain: "com.microsoft", ...node } };
  expect(await disagreement(found, i)).toBeUndefined();
});

const longs = (values: readonly number[], shape: readonly number[]) =>
  ({ shape, dtype: "i64", values }) as const;

/** Found by people with models of their own. */
const reported: readonly (readonly [string, OperatorCase])[] = [
  [
    "Pad wraps what negative pads leave",
    {
      node: { op: "Pad", attributes: { mode: "wrap" } },
      operands: [[7, 5], { ...longs([3, 1, -1, -2], [4]), weight: true }],
      opset: 19,
    },
  ],
  [
    "ArrayFeatureExtractor takes indices of any shape as one list",
    {
      node: { op: "ArrayFeatureExtractor", domain: "ai.onnx.ml" },
      operands: [[1, 6], longs([0, 5, 2, 2, 1, 4], [2, 3])],
    },
  ],
];

test.each(reported)("%s", async (_name, found) => {
  expect(await disagreement(found, 1)).toBeUndefined();
});

/** One of each; `npm run campaign -- peer-ops` draws more. */
test.each(Object.entries(operatorMakers))("%s", async (_name, { domain, make }) => {
  const { node, ...rest } = make(new Rng(1));
  expect(await disagreement({ ...rest, node: { ...node, domain } }, 1)).toBeUndefined();
});
