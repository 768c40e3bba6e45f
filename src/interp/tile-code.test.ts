import { expect, test } from "vitest";
import { allIntrinsics } from "../program/intrinsic-table.ts";
import type { TileIntrinsic, TileOperand } from "../program/intrinsics.ts";
import { type DType, isBigDType } from "../semantics/dtype.ts";
import { castScalar, type ScalarValue } from "../semantics/scalar-meaning.ts";
import { Rng } from "../support/rng.ts";
import { compileStatements } from "./tile-code.ts";
import { compileTables, type Tile } from "./tile-tables.ts";

const rows = [...allIntrinsics()].filter((row) => row.kind === "tile" && row.body.length > 0);

/** Extents of a row's operands; of copies, whose tiles have any, ones that are alike. */
function extentsOf(row: TileIntrinsic): readonly (readonly number[])[] {
  const rank = Number(/\.(\d)d$/.exec(row.name)?.[1] ?? 1);
  return row.operands.map(({ fragment, extents }) =>
    fragment ? fragment.extents : extents === "any" ? [2, 3, 2, 1, 4].slice(0, rank) : extents,
  );
}

function draw({ dtype }: TileOperand, rng: Rng): ScalarValue {
  const of: DType = dtype === "any" ? "u8" : dtype;
  return castScalar(isBigDType(of) ? rng.integer(-99, 99) : 40 * rng.normal(), of, true);
}

function tilesOf(row: TileIntrinsic, rng: Rng): readonly Tile[] {
  return extentsOf(row).map((extents, o) => {
    const operand = row.operands[o]!;
    const count = operand.access === "write" ? 0 : extents.reduce((a, b) => a * b, 1);
    return { extents, values: Array.from({ length: count }, () => draw(operand, rng)) };
  });
}

/** Rows that differ in their widths alone have one form: the narrowest and one of a whole panel stand for them. */
function firstsAndLasts(): readonly TileIntrinsic[] {
  const byForm = new Map<string, TileIntrinsic[]>();
  for (const row of rows as readonly TileIntrinsic[]) {
    const [, width] = /m64n(\d+)/.exec(row.name) ?? [];
    if (Number(width ?? 0) > 64) continue;
    const form = row.name.replace(/m64n\d+/, "m64n");
    byForm.set(form, [...(byForm.get(form) ?? []), row]);
  }
  return [...byForm.values()].flatMap((all) => [...new Set([all[0]!, all.at(-1)!])]);
}

test("every body of a row has tables, and they compute what its statements do, to the bit", () => {
  const chosen = firstsAndLasts();
  expect(chosen.length).toBeGreaterThan(100);
  for (const row of chosen) {
    const tables = compileTables(row, extentsOf(row));
    if (!tables) throw new Error(`${row.name} has no tables`);
    const [given, wanted] = [tilesOf(row, new Rng(7)), tilesOf(row, new Rng(7))];
    // What is poison before it is written.
    for (const tiles of [given, wanted]) {
      const read = tiles.at(-1)!.values;
      if (typeof read[0] === "number" && !/u8|i8|i32|u32/.test(row.name)) read[0] = Number.NaN;
    }
    tables(given);
    compileStatements(row)(wanted);
    expect(given, row.name).toEqual(wanted);
  }
});
