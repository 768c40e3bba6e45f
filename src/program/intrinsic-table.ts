/** All intrinsics by name. */
import type { Intrinsic, TileIntrinsic, ValueIntrinsic } from "./intrinsics.ts";
import { tileRows } from "./tile-rows.ts";
import { valueRows } from "./value-rows.ts";

const byName: ReadonlyMap<string, Intrinsic> = new Map(
  [...valueRows, ...tileRows].map((row) => [row.name, row]),
);

export function findIntrinsic(name: string): Intrinsic | undefined {
  return byName.get(name);
}

export function findValueIntrinsic(name: string): ValueIntrinsic | undefined {
  const row = byName.get(name);
  return row?.kind === "value" ? row : undefined;
}

export function findTileIntrinsic(name: string): TileIntrinsic | undefined {
  const row = byName.get(name);
  return row?.kind === "tile" ? row : undefined;
}

/** Every row, in table order. */
export function allIntrinsics(): readonly Intrinsic[] {
  return [...byName.values()];
}
