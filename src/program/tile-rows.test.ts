import { expect, test } from "vitest";
import { evaluate } from "../semantics/index-expr.ts";
import { allIntrinsics } from "./intrinsic-table.ts";

test("every fragment deals each element to a place of its own and fills all places", () => {
  const seen = new Set<string>();
  for (const row of allIntrinsics()) {
    if (row.kind === "value") continue;
    const group = { thread: 1, warp: 32, copy: 128, role: 128 }[row.collective];
    for (const { fragment, extents } of row.operands) {
      if (!fragment) continue;
      // Rows of other types and orders deal their elements out alike.
      const key = JSON.stringify([fragment, extents, group]);
      if (seen.has(key)) continue;
      seen.add(key);
      const [rows, columns] = fragment.extents as [number, number];
      expect(extents).toEqual([(rows * columns) / group]);
      const places = new Set<number>();
      for (let e0 = 0; e0 < rows; e0++) {
        for (let e1 = 0; e1 < columns; e1++) {
          const at = new Map([
            ["e0", e0],
            ["e1", e1],
          ] as const);
          const thread = evaluate(fragment.thread, at);
          const register = evaluate(fragment.register, at);
          if (thread < 0 || thread >= group || register < 0) throw new Error(row.name);
          places.add(register * group + thread);
        }
      }
      expect(places.size).toBe(rows * columns);
      expect(Math.max(...places)).toBe(rows * columns - 1);
    }
  }
});

test("names are unique", () => {
  const names = allIntrinsics().map((row) => row.name);
  expect(new Set(names).size).toBe(names.length);
});
