/** Operators: oracle and WebAssembly against onnxruntime-node on random inputs and shapes. */
import { expect, test } from "vitest";
import { operatorMakers } from "../../campaign/operators/makers.ts";
import { disagreement } from "../../campaign/operators/operator-case.ts";
import { Rng } from "../../src/support/rng.ts";
import { microsoftCases } from "./microsoft-cases.ts";

const named = microsoftCases.map((c, i) => [c.node.op, i] as const);

test.each(named)("%s (%i)", async (_op, i) => {
  const { node, ...rest } = microsoftCases[i]!;
  const found = { ...rest, node: { domain: "com.microsoft", ...node } };
  expect(await disagreement(found, i)).toBeUndefined();
});

/** One of each; `npm run campaign -- peer-ops` draws more. */
test.each(Object.entries(operatorMakers))("%s", async (_name, { domain, make }) => {
  const { node, ...rest } = make(new Rng(1));
  expect(await disagreement({ ...rest, node: { ...node, domain } }, 1)).toBeUndefined();
});
