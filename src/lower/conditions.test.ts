/** Conditions lose what does not decide them, and nothing else: brute force over all values. */
import { describe, expect, it } from "vitest";
import type { Condition } from "../semantics/condition.ts";
import { add, evaluate, floorDiv, type IndexExpr, mul, variable } from "../semantics/index-expr.ts";
import { reduceConditions } from "./conditions.ts";

const [block, thread] = [variable("block"), variable("thread")];
const ranges = new Map([
  ["block", { min: 0, max: 9 }],
  ["thread", { min: 0, max: 31 }],
]);

/** The conditions that are left, after a check that they hold where the one does. */
function left(expr: IndexExpr): readonly Condition[] {
  const reduced = reduceConditions([{ kind: "nonNegative", expr }], ranges);
  for (let b = 0; b < 10; b++) {
    for (let t = 0; t < 32; t++) {
      const at = new Map([
        ["block", b],
        ["thread", t],
      ]);
      const holds = reduced.every((c) => evaluate(c.expr, at) >= 0);
      expect(holds, `${expr.key} at ${b}, ${t}`).toBe(evaluate(expr, at) >= 0);
    }
  }
  return reduced;
}

describe("a condition in steps", () => {
  it("does not mention what stays between two of them", () => {
    const line = floorDiv(add(thread, 4), 12);
    for (const first of [96, 100, 124]) {
      const [only] = left(add(add(mul(-32, block), line), first));
      expect(only!.expr.key).toBe("-32*block + 96");
    }
  });

  it("keeps what crosses one", () => {
    for (const first of [97, 125, 127]) {
      const [only] = left(add(add(mul(-32, block), thread), first));
      expect(only!.expr.key).toContain("thread");
    }
    expect(left(add(mul(-3, block), thread))[0]!.expr.key).toContain("thread");
  });

  it("takes the lower multiple below zero too", () => {
    const [only] = left(add(add(mul(32, block), thread), -64));
    expect(only!.expr.key).toBe("32*block - 64");
    const [behind] = left(add(add(mul(32, block), mul(-1, thread)), -65));
    expect(behind!.expr.key).toBe("32*block - 96");
  });
});
