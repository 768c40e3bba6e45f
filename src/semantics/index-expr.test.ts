import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TextReader } from "../support/text-reader.ts";
import * as index from "./index-expr.ts";
import { rangeOf, simplify } from "./index-range.ts";
import { readIndexExpr } from "./index-text.ts";

type Tree =
  | { op: "const"; value: number }
  | { op: "var"; name: "x" | "y" }
  | { op: "add" | "sub" | "mul" | "min" | "max"; a: Tree; b: Tree }
  | { op: "floorDiv" | "mod"; a: Tree; by: number };

const trees = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.record({ op: fc.constant("const" as const), value: fc.integer({ min: -9, max: 9 }) }),
    fc.record({
      op: fc.constant("var" as const),
      name: fc.constantFrom("x" as const, "y" as const),
    }),
    fc.record({
      op: fc.constantFrom("add", "sub", "mul", "min", "max"),
      a: tie("tree"),
      b: tie("tree"),
    }) as fc.Arbitrary<Tree>,
    fc.record({
      op: fc.constantFrom("floorDiv", "mod"),
      a: tie("tree"),
      by: fc.integer({ min: 1, max: 6 }),
    }) as fc.Arbitrary<Tree>,
  ),
})).tree;

function toExpr(t: Tree): index.IndexExpr {
  if (t.op === "const") return index.constant(t.value);
  if (t.op === "var") return index.variable(t.name);
  if ("by" in t) return index[t.op](toExpr(t.a), t.by);
  return index[t.op](toExpr(t.a), toExpr(t.b));
}

function truth(t: Tree, x: number, y: number): number {
  switch (t.op) {
    case "const":
      return t.value;
    case "var":
      return t.name === "x" ? x : y;
    case "floorDiv":
      return Math.floor(truth(t.a, x, y) / t.by);
    case "mod":
      return index.positiveMod(truth(t.a, x, y), t.by);
    case "add":
      return truth(t.a, x, y) + truth(t.b, x, y);
    case "sub":
      return truth(t.a, x, y) - truth(t.b, x, y);
    case "mul":
      return truth(t.a, x, y) * truth(t.b, x, y);
    default:
      return Math[t.op](truth(t.a, x, y), truth(t.b, x, y));
  }
}

const points = fc.tuple(fc.integer({ min: -20, max: 20 }), fc.integer({ min: -20, max: 20 }));

describe("index expressions", () => {
  it("evaluate to what the tree they were built from means", () => {
    fc.assert(
      fc.property(trees, points, (tree, [x, y]) => {
        const value = index.evaluate(toExpr(tree), new Map(Object.entries({ x, y })));
        expect(value + 0).toBe(truth(tree, x, y) + 0);
      }),
    );
  });

  it("print and parse back to the same key", () => {
    fc.assert(
      fc.property(trees, (tree) => {
        const expr = toExpr(tree);
        expect(readIndexExpr(new TextReader(expr.key)).key).toBe(expr.key);
      }),
    );
  });

  it("have bounds that contain every value, and simplify without changing any", () => {
    const ranges = new Map([
      ["x", { min: 0, max: 7 }],
      ["y", { min: 2, max: 5 }],
    ]);
    fc.assert(
      fc.property(
        trees,
        fc.integer({ min: 0, max: 7 }),
        fc.integer({ min: 2, max: 5 }),
        (t, x, y) => {
          const expr = toExpr(t);
          const value = truth(t, x, y);
          const range = rangeOf(expr, ranges);
          expect(range.min <= value && value <= range.max).toBe(true);
          const simple = simplify(expr, ranges);
          expect(index.evaluate(simple, new Map(Object.entries({ x, y }))) + 0).toBe(value + 0);
        },
      ),
    );
  });

  it("substitute like evaluation", () => {
    fc.assert(
      fc.property(trees, trees, points, (outer, inner, [x, y]) => {
        const swapped = index.substitute(toExpr(outer), new Map([["x", toExpr(inner)]]));
        const value = truth(outer, truth(inner, x, y), y);
        fc.pre(Math.abs(value) < 1e12);
        expect(index.evaluate(swapped, new Map(Object.entries({ x, y }))) + 0).toBe(value + 0);
      }),
    );
  });

  it("have the key of their terms however they were made", () => {
    fc.assert(
      fc.property(trees, trees, (outer, inner) => {
        const expr = toExpr(outer);
        const canonical = (e: index.IndexExpr) => {
          expect(index.fromTerms(e.constant, [...e.terms].reverse())).toEqual(e);
          expect(readIndexExpr(new TextReader(e.key)).key).toBe(e.key);
        };
        canonical(index.substitute(expr, new Map([["x", toExpr(inner)]])));
        canonical(index.substitute(expr, new Map([["x", 3]])));
        canonical(simplify(expr, new Map([["x", { min: 1, max: 1 }]])));
        canonical(index.add(expr, 0));
        expect(index.substitute(expr, new Map()).key).toBe(expr.key);
        const linear = index.splitLinear(expr, "x");
        expect(index.linearCoefficient(expr, "x")).toBe(linear?.coefficient);
        if (linear) canonical(linear.rest);
        expect(index.mentionsVariable(expr, "x")).toBe(index.variablesOf(expr).has("x"));
      }),
    );
  });

  it("cancel, merge and divide exactly", () => {
    const n = index.variable("N");
    const w = index.variable("W");
    expect(index.sub(index.add(n, w), n).key).toBe("W");
    expect(index.floorDiv(index.mul(8, w), 4).key).toBe("2*W");
    expect(index.floorDiv(index.floorDiv(w, 2), 4).key).toBe("floorDiv(W, 8)");
    expect(index.floorDiv(index.mul(n, w, 6), index.mul(2, n)).key).toBe("3*W");
    expect(index.ceilDiv(index.constant(10), 4).key).toBe("3");
    expect(index.splitLinear(index.add(index.mul(3, w), n), "W")).toMatchObject({
      coefficient: 3,
      rest: { key: "N" },
    });
  });
});
