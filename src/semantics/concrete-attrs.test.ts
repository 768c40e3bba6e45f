import { describe, expect, it } from "vitest";
import { evaluateAttrs } from "./concrete-attrs.ts";
import { add, constant, evaluate, type IndexExpr, variable } from "./index-expr.ts";

const at = (expr: IndexExpr) => evaluate(expr, new Map([["n", 5]]));

describe("evaluateAttrs", () => {
  it("evaluates single sizes and lists and keeps the rest", () => {
    const dft = { axis: 1, inverse: false, onesided: true, length: add(variable("n"), 1) };
    expect(evaluateAttrs("dft", dft, at)).toEqual({ ...dft, length: 6 });
    const slice = { starts: [constant(1)], steps: [2], sizes: [variable("n")] };
    expect(evaluateAttrs("slice", slice, at)).toEqual({ starts: [1], steps: [2], sizes: [5] });
  });

  it("returns attributes without index expressions as they are", () => {
    const attrs = { permutation: [1, 0] };
    expect(evaluateAttrs("transpose", attrs, at)).toBe(attrs);
  });
});
