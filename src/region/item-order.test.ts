/** What may be moved behind what, against running the items one element at a time in both orders. */
import { describe, expect, it } from "vitest";
import { add, constant, variable } from "../semantics/index-expr.ts";
import { argument } from "../semantics/scalar-expr.ts";
import { Rng } from "../support/rng.ts";
import { ItemOrder } from "./item-order.ts";
import type { NestItem, NestProgram, Statement } from "./nest.ts";
import { findUses } from "./uses.ts";

/** to[offset + i] = from[at + i] for i below `extent`. */
interface Move {
  readonly from: string;
  readonly at: number;
  readonly to: string;
  readonly offset: number;
  readonly extent: number;
}

const size = 6;
const names = ["a", "b", "c"];

function statementOf({ from, at, to, offset, extent }: Move, n: number): Statement {
  const i = variable("i");
  return {
    name: `S${n}`,
    loops: [{ name: "i", extent: constant(extent), kind: "space" }],
    guard: [],
    indirects: [],
    reads: [{ tensor: from, index: [add(i, at)], guard: [], fill: 0 }],
    body: [argument(0, "f32")],
    finishReads: [],
    writes: [{ tensor: to, index: [add(i, offset)], combine: "overwrite" }],
    origin: `S${n}`,
  };
}

function programOf(moves: readonly Move[], extra: readonly NestItem[] = []): NestProgram {
  const statements = moves.map((m, n): NestItem => {
    return { kind: "statement", statement: statementOf(m, n) };
  });
  const tensors: NestProgram["tensors"] = new Map(
    names.map((name) => [
      name,
      { name, dtype: "f32", shape: [constant(size)], role: "intermediate" },
    ]),
  );
  const items = [...extra, ...statements];
  return { name: "p", symbols: [], tensors, items, inputs: [], outputs: [] };
}

function drawMove(rng: Rng): Move {
  const extent = rng.integer(1, 3);
  const [from, to] = [rng.pick(names), rng.pick(names)];
  const start = (): number => rng.integer(0, size - extent);
  return { from, at: start(), to, offset: start(), extent };
}

/** Whether the first move and another touch an element that one of them writes. */
function depend(a: Move, b: Move): boolean {
  const meet = (p: string, at: number, q: string, to: number): boolean =>
    p === q && at < to + b.extent && to < at + a.extent;
  return (
    meet(a.to, a.offset, b.from, b.at) ||
    meet(a.to, a.offset, b.to, b.offset) ||
    meet(a.from, a.at, b.to, b.offset)
  );
}

describe("ItemOrder", () => {
  it("lets a statement be moved behind what it shares no written element with", () => {
    const seen = { free: 0, bound: 0 };
    for (let seed = 0; seed < 300; seed++) {
      const rng = new Rng(seed);
      const moves = Array.from({ length: 4 }, () => drawMove(rng));
      const program = programOf(moves);
      const order = new ItemOrder(program, findUses(program));
      const found = order.overtaken(new Set([0, 3]), [], 3);
      const bound = [1, 2].some((at) => depend(moves[0]!, moves[at]!));
      expect(found !== undefined, `seed ${seed}`).toBe(bound);
      seen[bound ? "bound" : "free"]++;
    }
    expect(Math.min(seen.free, seen.bound)).toBeGreaterThan(40);
  });

  it("takes what is recomputed for a late reader, not for a late writer", () => {
    const copy = (from: string, to: string): Move => ({ from, at: 0, to, offset: 0, extent: size });
    const overtaken = (moves: readonly Move[], recomputed: readonly number[]) => {
      const program = programOf(moves);
      const end = moves.length - 1;
      return new ItemOrder(program, findUses(program)).overtaken(new Set([end]), recomputed, end);
    };
    expect(overtaken([copy("a", "b"), copy("b", "c"), copy("b", "c")], [0])).toBeUndefined();
    const found = { item: 1, tensor: "a", what: "writes" };
    expect(overtaken([copy("a", "b"), copy("c", "a"), copy("b", "c")], [0])).toEqual(found);
  });

  it("knows no places under another name", () => {
    const half = (offset: number, from: string): Move => {
      return { from, at: 0, to: "b", offset, extent: 3 };
    };
    const moves = [half(0, "a"), { ...half(0, "b"), at: 3, to: "c" }, half(0, "a")];
    const late = (program: NestProgram) => {
      const [first, end] = [program.items.length - 3, program.items.length - 1];
      return new ItemOrder(program, findUses(program)).overtaken(new Set([first, end]), [], end);
    };
    expect(late(programOf(moves))).toBeUndefined();
    const view: NestItem = { kind: "view", view: { tensor: "c", of: "b" } };
    expect(late(programOf(moves.with(1, { ...moves[1]!, from: "c", to: "a" }), [view]))).toEqual({
      item: 2,
      tensor: "b",
      what: "reads",
    });
  });
});
