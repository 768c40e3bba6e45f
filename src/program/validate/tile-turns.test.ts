import { describe, expect, it } from "vitest";
import { equal } from "../../semantics/condition.ts";
import {
  add,
  ceilDiv,
  constant,
  evaluate,
  floorDiv,
  type IndexLike,
  mod,
  mul,
  sub,
  toIndex,
  variable,
} from "../../semantics/index-expr.ts";
import { forLoop, ifThen, literalExpr, storeTo } from "../expr.ts";
import type { Statement } from "../statement.ts";
import { overTiles } from "./tile-turns.ts";

const [block, turn] = [variable("c"), variable("t")];
const one = { copies: 1 };

/** A body that stores to the places, `count` of them for each of the blocks. */
function walk(blocks: number, count: IndexLike, places: readonly IndexLike[]) {
  const store = storeTo("y", places.map(toIndex), literalExpr(0, "f32"));
  const axes = [{ name: "c", extent: constant(blocks) }];
  return { axes, body: [forLoop("t", count, [store])] };
}

function placesOf(body: readonly Statement[], tiles: number): readonly (readonly number[])[] {
  const [store] = body;
  if (store?.kind !== "store") throw new Error("no store");
  return Array.from({ length: tiles }, (_, tile) =>
    store.index.map((e) => evaluate(e, new Map([["c.tile", tile]]))),
  );
}

describe("blocks that go on from tile to tile", () => {
  it("are as many blocks as there are tiles, each at its place", () => {
    const digits = (n: ReturnType<typeof add>) => [
      floorDiv(n, 12),
      mod(floorDiv(n, 4), 3),
      mod(n, 4),
    ];
    for (const [blocks, tiles] of [
      [4, 24],
      [5, 24],
      [7, 24],
      [12, 24],
      [24, 24],
    ] as const) {
      const count = tiles % blocks === 0 ? tiles / blocks : ceilDiv(sub(tiles, block), blocks);
      const { axes, body } = walk(blocks, count, digits(add(mul(blocks, turn), block)));
      const over = overTiles(axes, body, one)!;
      expect(over.axes.map((a) => a.extent.constant)).toEqual([tiles]);
      const want = Array.from({ length: tiles }, (_, n) => [
        Math.floor(n / 12),
        Math.floor(n / 4) % 3,
        n % 4,
      ]);
      expect(placesOf(over.body, tiles)).toEqual(want);
    }
  });

  it("are left as they are where another number of trips is run, or something beside them", () => {
    const { axes, body } = walk(4, ceilDiv(sub(23, block), 5), [block]);
    expect(overTiles(axes, body, one)).toBeUndefined();
    expect(overTiles(axes, [...body, ...body], one)).toBeUndefined();
  });

  it("have one copy a tile where copies take turns, and no other", () => {
    const { axes, body } = walk(4, 6, [add(mul(4, turn), block)]);
    const [loop] = body as [Extract<Statement, { kind: "for" }>];
    const taken = (copy: IndexLike): readonly Statement[] => [
      { ...loop, body: [ifThen([equal(mod(turn, 2), copy)], loop.body)] },
    ];
    const two = { copies: 2, copyVariable: "g" };
    expect(overTiles(axes, taken(variable("g")), two)?.isOneCopy).toBe(true);
    expect(overTiles(axes, taken(variable("g")), { ...two, copies: 3 })?.isOneCopy).not.toBe(true);
    expect(overTiles(axes, taken(0), two)?.isOneCopy).not.toBe(true);
  });
});
