/** All intrinsics by name. */
import type { Intrinsic, TileIntrinsic, ValueIntrinsic } from "./intrinsics.ts";
import { tileRows } from "./tile-rows.ts";
import { valueRows } from "./value-rows.ts";

const values: ReadonlyMap<string, ValueIntrinsic> = new Map(valueRows.map((r) => [r.name, r]));
let tiles: ReadonlyMap<string, TileIntrinsic> | undefined;

export function findValueIntrinsic(name: string): ValueIntrinsic | undefined {
  return values.get(name);
}

export function findTileIntrinsic(name: string): TileIntrinsic | undefined {
  tiles ??= new Map(tileRows().map((r) => [r.name, r]));
  return tiles.get(name);
}

/** Every row, in table order. */
export function allIntrinsics(): readonly Intrinsic[] {
  return [...valueRows, ...tileRows()];
}
