import { describe, expect, it } from "vitest";
import { add, constant, type IndexExpr, variable } from "../semantics/index-expr.ts";
import { simpleMonoid } from "../semantics/monoids.ts";
import { argument } from "../semantics/scalar-expr.ts";
import { coalesceRegion } from "./coalesce.ts";
import type { Loop, Region, Statement } from "./nest.ts";

const v = variable;

/** y[write] = x[read] over i < 4 and j < 6, where x has `columns` columns. */
function loopsAfter(
  read: readonly IndexExpr[],
  write: readonly IndexExpr[],
  {
    columns = 6,
    reduce = false,
    width = constant(6),
    overRows = false,
  }: {
    readonly columns?: number;
    readonly reduce?: boolean;
    readonly width?: IndexExpr;
    readonly overRows?: boolean;
  } = {},
): readonly string[] {
  const statement: Statement = {
    name: "S0",
    loops: [
      { name: "i", extent: constant(4), kind: "space" },
      { name: "j", extent: width, kind: reduce ? "reduce" : "space" },
    ],
    guard: [],
    indirects: [],
    reads: [{ tensor: "x", index: read, guard: [], fill: 0 }],
    body: [argument(0, "f32")],
    ...(reduce && {
      reduction: { monoid: simpleMonoid("sum", "f32"), numericClass: "reassociates" as const },
    }),
    finishReads: [],
    writes: [{ tensor: "y", index: write, combine: "overwrite" }],
    origin: "S0",
  };
  const shape = [constant(8), width.terms.length > 0 ? width : constant(columns)];
  const region: Region = {
    name: "r",
    group: { name: "r", anchor: "S0", inlined: [], epilogue: [] },
    statements: [statement],
    symbols: [],
    tensors: new Map([
      ["x", { name: "x", dtype: "f32", shape, role: "input" }],
      ["y", { name: "y", dtype: "f32", shape: [constant(8), width], role: "output" }],
    ]),
  };
  const source: Region = overRows ? { ...region, overRows } : region;
  const { loops, reads } = coalesceRegion(source).region.statements[0]!;
  const places = overRows ? reads.map((r) => `x[${r.index.map((e) => e.key).join(", ")}]`) : [];
  return [...loops.map((l) => `${l.name} ${l.extent.key}`), ...places];
}

describe("coalesceRegion", () => {
  const both = ["i 4", "j 6"];

  it("keeps some rows of an open width apart, which others complete", () => {
    const index = [v("i"), v("j")];
    expect(loopsAfter(index, index)).toEqual(["i 24"]);
    expect(loopsAfter(index, index, { width: v("W") })).toEqual(["i 4", "j W"]);
  });

  it("leaves loops without trips: a joined one would have no digit of them", () => {
    const index = [v("i"), v("j")];
    expect(loopsAfter(index, index, { width: constant(0), columns: 0 })).toEqual(["i 4", "j 0"]);
  });

  it("joins loops over neighbouring axes", () => {
    expect(loopsAfter([v("i"), v("j")], [v("i"), v("j")])).toEqual(["i 24"]);
  });

  it("leaves loops over axes that are longer than the loop", () => {
    expect(loopsAfter([v("i"), v("j")], [v("i"), v("j")], { columns: 7 })).toEqual(both);
  });

  it("leaves loops that an access uses apart, in another order or one alone", () => {
    expect(loopsAfter([v("j"), v("i")], [v("i"), v("j")])).toEqual(both);
    expect(loopsAfter([v("i"), constant(0)], [v("i"), v("j")])).toEqual(both);
  });

  it("over rows, what the outer loop picks becomes a digit, and a part of an axis a part of the joined one", () => {
    const rows = { overRows: true };
    const index = [v("i"), v("j")];
    const picked = "x[floorDiv(i, 6), 0]";
    expect(loopsAfter([v("i"), constant(0)], index, rows)).toEqual(["i 24", picked]);
    const part = [add(v("i"), constant(4)), v("j")];
    expect(loopsAfter(part, index, rows)).toEqual(["i 24", "x[i + 24]"]);
    expect(loopsAfter(part, index)).toEqual(both);
    // Not what the inner loop picks, nor what is stored.
    expect(loopsAfter([v("j"), constant(0)], index, rows)).toEqual([...both, "x[j, 0]"]);
    expect(loopsAfter(index, [v("i"), constant(0)], rows)).toEqual([...both, "x[i, j]"]);
  });

  it("leaves a space loop beside a reduce loop", () => {
    expect(loopsAfter([v("i"), v("j")], [constant(0), constant(0)], { reduce: true })).toEqual(
      both,
    );
  });

  it("leaves what one statement writes and another reads under one name", () => {
    const space = ["i", "j", "k"].map((name): Loop => {
      return { name, extent: constant(4), kind: "space" };
    });
    const at = (tensor: string, ...index: string[]) => ({ tensor, index: index.map((n) => v(n)) });
    const plain = { guard: [], indirects: [], body: [argument(0, "f32")], finishReads: [] };
    const made: Statement = {
      ...{ ...plain, name: "S0", origin: "S0", loops: space },
      reads: [{ ...at("x", "k", "j", "i"), guard: [], fill: 0 }],
      writes: [{ ...at("t", "i", "j", "k"), combine: "overwrite" }],
    };
    const folded: Statement = {
      ...{ ...plain, name: "S1", origin: "S1" },
      loops: [
        ...space,
        { name: "p", extent: constant(4), kind: "reduce" },
        { name: "q", extent: constant(4), kind: "reduce" },
      ],
      reads: [{ ...at("t", "i", "p", "q"), guard: [], fill: 0 }],
      reduction: { monoid: simpleMonoid("sum", "f32"), numericClass: "reassociates" },
      writes: [{ ...at("y", "i", "j", "k"), combine: "overwrite" }],
    };
    const shape = [4, 4, 4].map((n) => constant(n));
    const roles = { x: "input", t: "local", y: "output" } as const;
    const region: Region = {
      name: "r",
      group: { name: "r", anchor: "S1", inlined: [], epilogue: [] },
      statements: [made, folded],
      symbols: [],
      tensors: new Map(
        Object.entries(roles).map(([name, role]) => [name, { name, dtype: "f32", shape, role }]),
      ),
    };
    const { statements } = coalesceRegion(region).region;
    expect(statements[1]!.reads[0]!.tensor).toBe(statements[0]!.writes[0]!.tensor);
  });
});
