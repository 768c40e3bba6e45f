import fc from "fast-check";
import { expect, it } from "vitest";
import type { Condition } from "../semantics/condition.ts";
import * as index from "../semantics/index-expr.ts";
import { compileConditions, compileIndex } from "./compiled-index.ts";

const names = ["a", "b", "c"];
const slots = new Map(names.map((name, slot) => [name, slot]));

const expressions = fc.letrec<{ e: index.IndexExpr }>((tie) => ({
  e: fc.oneof(
    { maxDepth: 3 },
    fc.integer({ min: -9, max: 9 }).map(index.constant),
    fc.constantFrom(...names).map(index.variable),
    fc.tuple(tie("e"), tie("e")).map(([a, b]) => index.add(a, b)),
    fc.tuple(tie("e"), tie("e")).map(([a, b]) => index.mul(a, b)),
    fc.tuple(tie("e"), tie("e")).map(([a, b]) => index.max(a, index.min(b, 3))),
    fc.tuple(tie("e"), fc.integer({ min: 1, max: 5 })).map(([a, d]) => index.floorDiv(a, d)),
    fc.tuple(tie("e"), fc.integer({ min: 1, max: 5 })).map(([a, d]) => index.mod(a, d)),
  ),
})).e;

it("computes what evaluation computes", () => {
  const values = fc.tuple(fc.nat(6), fc.nat(6), fc.nat(6));
  fc.assert(
    fc.property(expressions, values, (expr, found) => {
      const bindings = new Map(names.map((name, i) => [name, found[i]!]));
      const env = Float64Array.from(found);
      const value = index.evaluate(expr, bindings);
      expect(compileIndex(expr, slots)(env)).toBe(value);
      const holds = (kind: Condition["kind"]) => compileConditions([{ kind, expr }], slots)(env);
      expect([holds("zero"), holds("nonNegative")]).toEqual([value === 0, value >= 0]);
    }),
  );
});
