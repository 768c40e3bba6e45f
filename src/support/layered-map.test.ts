import { describe, expect, it } from "vitest";
import { LayeredMap } from "./layered-map.ts";

describe("a layered map", () => {
  it("is what setting the upper entries in the lower map would give", () => {
    const base = new Map<string, number | undefined>([
      ["a", 1],
      ["b", 2],
      ["c", 3],
    ]);
    const over = new Map<string, number | undefined>([
      ["d", 4],
      ["b", 5],
      ["c", undefined],
    ]);
    const layered = new LayeredMap(base, over);
    const plain = new Map([...base, ...over]);
    expect([...layered]).toEqual([...plain]);
    expect([...layered.keys()]).toEqual([...plain.keys()]);
    expect([...layered.values()]).toEqual([...plain.values()]);
    expect(layered.size).toBe(4);
    for (const key of ["a", "b", "c", "d", "e"]) {
      expect([layered.get(key), layered.has(key)]).toEqual([plain.get(key), plain.has(key)]);
    }
    const seen: unknown[] = [];
    layered.forEach((value, key) => {
      seen.push([key, value]);
    });
    expect(seen).toEqual([...plain]);
  });
});
