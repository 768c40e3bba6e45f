/**
 * Candidates of maps that turn what they read: tiles of 32 to 128 elements each way, in vectors as wide as each side
 * allows. Deterministic; prices and the choice are elsewhere.
 */
import type { Access, Loop, Region, Write } from "../../region/nest.ts";
import { dtypes } from "../../semantics/dtype.ts";
import { constantValue, variablesOf } from "../../semantics/index-expr.ts";
import type { TurnDirective } from "../directive.ts";
import { symbolRanges } from "../scheduled-region.ts";
import { mostTrips, type TurnForm, turnFault, turnForm } from "./turn-form.ts";

/** Those below the least usual one are for loops that are as short. */
const tileExtents = [4, 8, 16, 32, 64, 128] as const;
const leastUsual = 32;
const threadCounts = [128, 256] as const;
const vectorBytes = 16;

export function enumerateTurns(region: Region): readonly TurnDirective[] {
  const form = turnForm(region);
  if (typeof form === "string") return [];
  const found: TurnDirective[] = [];
  const { name } = form.statement;
  const ranges = symbolRanges(region);
  const [loaded, stored] = [loadedLanes(form), storedLanes(region, form)];
  const [across, down] = [form.read, form.written].map((l) => {
    const trips = mostTrips(l, ranges);
    // A tile that is more than twice as long as the loop is mostly empty.
    return tileExtents.filter((n) => n < 2 * trips && n >= Math.min(trips, leastUsual));
  });
  for (const read of across!) {
    for (const written of down!) {
      for (const threads of threadCounts) {
        for (const load of loaded) {
          for (const store of stored) {
            const numbers = { tile: [read, written], threads, lanes: [load, store] } as const;
            found.push({ kind: "turn", statement: name, ...numbers });
          }
        }
      }
    }
  }
  return found.filter((d) => turnFault(d, form) === undefined);
}

function loadedLanes({ read, turned }: TurnForm): readonly number[] {
  return lanesOf(
    read,
    turned.map((t) => t.bytes),
  );
}

function storedLanes({ tensors }: Region, { statement, written }: TurnForm): readonly number[] {
  const { reads, finishReads, writes } = statement;
  const moving = [...writes, ...reads, ...finishReads].filter((a: Access | Write) =>
    variablesOf(...a.index).has(written.name),
  );
  return lanesOf(
    written,
    moving.map((a) => dtypes[tensors.get(a.tensor)!.dtype].bits / 8),
  );
}

/** As many as a vector of each type has, where the loop is whole vectors of them, and half as many. */
function lanesOf({ extent }: Loop, bytes: readonly number[]): readonly number[] {
  const whole = constantValue(extent);
  const counts = bytes.flatMap((n) => [vectorBytes / n, vectorBytes / n / 2]);
  const isWhole = (n: number): boolean => n >= 1 && whole !== undefined && whole % n === 0;
  const possible = [...new Set(counts)].filter(isWhole).sort((a, b) => b - a);
  return possible.length > 0 ? possible.slice(0, 2) : [largestShare(counts, isWhole)];
}

/** Halves of what vectors have, down to one element. */
function largestShare(counts: readonly number[], isWhole: (n: number) => boolean): number {
  let lanes = Math.min(...counts);
  while (lanes > 1 && !isWhole(lanes)) lanes /= 2;
  return Math.max(1, lanes);
}
