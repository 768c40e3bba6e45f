import { expect, it } from "vitest";
import { makeStorage, type Tensor } from "../../../semantics/tensor.ts";
import { diagnosticCodes } from "../../../support/diagnostic-codes.ts";
import { writeModel } from "../model-writer.ts";
import { importOnnx } from "./import-model.ts";
import { operatorTables } from "./operator-table.ts";

const ones = (dtype: Tensor["dtype"], shape: readonly number[]): Tensor => {
  const data = makeStorage(
    dtype,
    shape.reduce((n, d) => n * d, 1),
  );
  return { dtype, shape, data: data.fill((dtype === "i64" ? 1n : 1) as never) };
};

/** The one node of a model: `count` operands of one type, the last ones constant or not. */
function modelOf(domain: string, op: string, type: Tensor, [count, fixed]: [number, boolean]) {
  const names = Array.from({ length: count }, (_, i) => `i${i}`);
  const { dtype, shape } = type;
  const weights = fixed ? names.slice(1) : [];
  return writeModel({
    opset: 22,
    domains: domain === "" ? {} : { [domain]: 1 },
    inputs: names.filter((n) => !weights.includes(n)).map((name) => ({ name, dtype, shape })),
    outputs: ["y"],
    weights: Object.fromEntries(weights.map((name) => [name, type])),
    nodes: [{ op, domain, inputs: names, outputs: ["y"] }],
  });
}

it.each(Object.keys(operatorTables))(
  "operators of domain %j take operands of any rank, or refuse them with a code",
  (domain) => {
    for (const op of Object.keys(operatorTables[domain]!)) {
      for (const [rank, dtype] of [
        [0, "f32"],
        [1, "i64"],
        [2, "f32"],
        [3, "i64"],
        [4, "f32"],
        [4, "i64"],
      ] as const) {
        const type = ones(dtype, new Array<number>(rank).fill(2));
        for (const operands of [
          [1, false],
          [3, true],
          [5, false],
          [7, true],
        ] as [number, boolean][]) {
          const found = importOnnx(modelOf(domain, op, type, operands));
          if (found.ok) continue;
          const codes = found.diagnostics.map((d) => d.code);
          expect(codes.every((code) => Object.hasOwn(diagnosticCodes, code))).toBe(true);
        }
      }
    }
  },
);
