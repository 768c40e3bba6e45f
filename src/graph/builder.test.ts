import { describe, expect, it } from "vitest";
import { constant, variable } from "../semantics/index-expr.ts";
import { attempt } from "../support/diagnostic.ts";
import { GraphBuilder } from "./builder.ts";
import type { ValueId } from "./graph.ts";
import { printType, tensorType } from "./tensor-type.ts";

/** The type of what `body` builds, or the codes of the diagnostics. */
function check(body: (b: GraphBuilder) => ValueId): string {
  const b = new GraphBuilder("test");
  const result = attempt(() => body(b));
  return result.ok ? printType(b.typeOf(result.value)) : result.diagnostics[0]!.code;
}

const f32 = (...shape: readonly (number | string)[]) =>
  tensorType("f32", ...shape.map((d) => (typeof d === "string" ? variable(d) : d)));

describe("GraphBuilder", () => {
  it("broadcasts constants, ones and symbols", () => {
    const b = new GraphBuilder("test");
    const M = b.symbol("M", 1, 64);
    const N = b.symbol("N", 1, 64);
    const x = b.input("x", tensorType("f32", M, 1, 4));
    const y = b.input("y", tensorType("f32", N, 4));
    const sum = b.add(x, y);
    expect(printType(b.typeOf(sum))).toBe("f32[M, N, 4]");
    expect(b.finish([sum]).constraints).toEqual([]);
  });

  it("records a constraint where symbols cannot be proved equal", () => {
    const b = new GraphBuilder("test");
    b.symbol("M", 1, 64);
    b.symbol("N", 1, 64);
    const sum = b.add(b.input("x", f32("M")), b.input("y", f32("N")));
    const graph = b.finish([sum]);
    expect(graph.constraints.map((c) => `${c.left.key} = ${c.right.key}`)).toEqual(["M = N"]);
  });

  it("refuses shapes that are different for every value of the symbols", () => {
    const differ = (b: GraphBuilder) => {
      b.symbol("N", 5, 9);
      return b.add(b.input("x", f32("N")), b.input("y", f32(4)));
    };
    expect(check(differ)).toBe("SHP001");
  });

  it("refuses wrong operand counts, types, attributes, ranks", () => {
    const x = (b: GraphBuilder) => b.input("x", f32(2, 3));
    expect(check((b) => b.node("add", [x(b)], {}))).toBe("GRF001");
    expect(check((b) => b.apply("bitNot", x(b)))).toBe("GRF002");
    expect(check((b) => b.node("softmax", [x(b)], { axis: 2 }))).toBe("GRF003");
    expect(check((b) => b.node("softmax", [x(b)], { axes: 1 } as never))).toBe("GRF003");
    expect(check((b) => b.node("convolution", [x(b), x(b)], window(1)))).toBe("SHP003");
    expect(check((b) => b.einsum("i k, k j -> i j", x(b), x(b)))).toBe("SHP002");
    expect(check((b) => b.reshape(x(b), [7]))).toBe("SHP005");
    expect(check((b) => b.sliceAxis(x(b), 1, 2, 2))).toBe("SHP004");
  });

  it("names values uniquely and deterministically", () => {
    const b = new GraphBuilder("test");
    const names = ["/conv/x:0", "/conv/x:0", "3d"].map((n) => b.nameOf(b.input(n, f32())));
    expect(names).toEqual(["_conv_x_0", "_conv_x_0_1", "_3d"]);
  });

  it("gives data-dependent extents a bounded symbol", () => {
    const b = new GraphBuilder("test");
    const count = b.node("nonZero", [b.input("x", f32(3, 4))], {});
    expect(printType(b.typeOf(count))).toBe("i64[2, nonZero]");
    expect(b.finish([count]).symbols).toEqual([{ name: "nonZero", min: 0, max: 12 }]);
  });

  it("refuses a symbol declared twice", () => {
    const twice = (b: GraphBuilder) => {
      b.symbol("N");
      b.symbol("N");
      return 0;
    };
    expect(check(twice)).toBe("GRF005");
  });
});

function window(rank: number) {
  const list = (n: number) => new Array<number>(rank).fill(n);
  return { strides: list(1), dilations: list(1), padLow: list(0), padHigh: list(0), groups: 1 };
}

describe("shape inference", () => {
  it("of convolutions and pools keeps symbols", () => {
    const b = new GraphBuilder("test");
    const W = b.symbol("W", 8, 320);
    const x = b.input("x", tensorType("f32", 1, 3, 32, W));
    const w = b.input("w", f32(8, 3, 3, 3));
    const { groups, ...unit } = window(2);
    const attrs = { ...unit, strides: [2, 2], padLow: [1, 1], padHigh: [1, 1] };
    const y = b.node("convolution", [x, w], { ...attrs, groups });
    expect(printType(b.typeOf(y))).toBe("f32[1, 8, 16, floorDiv(W + 1, 2)]");
    const pool = { kind: "max", window: [3, 3], countPadding: false, exponent: 1 } as const;
    const p = b.node("pool", [y], { ...attrs, ...pool, ceil: true, strides: [2, 1] });
    expect(printType(b.typeOf(p))).toBe("f32[1, 8, 9, floorDiv(W + 1, 2)]");
  });

  it("of a reshape with one open extent, also of tensors without elements", () => {
    const reshaped = (from: readonly (number | string)[], to: readonly (number | "N")[]) =>
      check((b) => {
        const N = b.symbol("N", 1, 9);
        const x = b.input("x", f32(...from));
        return b.reshape(
          x,
          to.map((d) => (d === "N" ? N : d)),
        );
      });
    expect(reshaped([4, 6], [-1, 8])).toBe("f32[3, 8]");
    expect(reshaped(["N", 6, 2], ["N", -1])).toBe("f32[N, 12]");
    expect(reshaped([0, 6], [-1, 3])).toBe("f32[0, 3]");
    expect(reshaped([0, 6, 2], [0, -1])).toBe("f32[0, 12]");
    expect(reshaped([0, 3, 4, 5], [0, 1, -1, 3])).toBe("f32[0, 1, 20, 3]");
    expect(reshaped(["N", 0, 4], [0, "N", -1])).toBe("f32[0, N, 4]");
  });

  it("refuses sizes beyond 2^53 (SHP004)", () => {
    const big = 2 ** 52;
    expect(
      check((b) => {
        const x = b.input("x", f32(big));
        return b.concat([x, x, x], 0);
      }),
    ).toBe("SHP004");
  });

  it("of a diagonal keeps the known extent, and refuses one axis or two extents", () => {
    const diagonal = (axis: number, other: number) =>
      check((b) => {
        b.symbol("N", 1, 9);
        return b.node("diagonal", [b.input("x", f32("N", 3, 4, 4))], { axis, other });
      });
    expect(diagonal(2, 3)).toBe("f32[N, 3, 4]");
    expect(diagonal(0, 1)).toBe("f32[3, 4, 4]");
    expect(diagonal(1, 2)).toBe("SHP002");
    expect(diagonal(1, 1)).toBe("GRF003");
  });

  it("of matrix products broadcasts batches", () => {
    const product = (a: readonly number[], c: readonly number[]) =>
      check((b) => b.matMul(b.input("a", f32(...a)), b.input("c", f32(...c))));
    expect(product([2, 3], [3, 4])).toBe("f32[2, 4]");
    expect(product([5, 1, 2, 3], [6, 3, 4])).toBe("f32[5, 6, 2, 4]");
    expect(product([1, 2, 3], [3, 4])).toBe("f32[1, 2, 4]");
    expect(product([3], [3, 4])).toBe("f32[4]");
    expect(product([7, 2, 3], [3])).toBe("f32[7, 2]");
  });

  it("of control flow merges branches and sizes collected outputs", () => {
    const b = new GraphBuilder("test");
    const N = b.symbol("N", 1, 9);
    const x = b.input("x", tensorType("f32", N));
    const branch = (times: number) =>
      b.subgraph("branch", [{ name: "x", type: b.typeOf(x) }], (w, [v]) => [
        w.concat(new Array<number>(times).fill(v!), 0),
      ]);
    const condition = b.input("condition", tensorType("bool"));
    const y = b.node("if", [condition, x], { then: branch(1), else: branch(2) });
    expect(printType(b.typeOf(y))).toBe("f32[branch]");
    expect(b.finish([y]).symbols.at(-1)).toEqual({ name: "branch", min: 1, max: 18 });
    const body = b.subgraph(
      "body",
      [
        { name: "i", type: tensorType("i64") },
        { name: "go", type: tensorType("bool") },
        { name: "s", type: tensorType("f32", N) },
      ],
      (w, [, go, s]) => [go!, w.add(s!, s!), s!],
    );
    const trips = b.scalar(5n, "i64");
    const attrs = { body, carried: 1, maxTrips: constant(5) };
    const loop = b.nodes("loop", [trips, condition, x], attrs);
    expect(loop.map((id) => printType(b.typeOf(id)))).toEqual(["f32[N]", "f32[trips, N]"]);
  });
});
