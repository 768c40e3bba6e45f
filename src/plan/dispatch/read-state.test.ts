import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { loadsOf, suggestMoves } from "./migrate.ts";
import { parseFleetState } from "./read-state.ts";

const file = {
  devices: [
    { name: "a", memoryBytes: 100 },
    { name: "b", memoryBytes: 50, speed: 2, queue: 0 },
  ],
  requests: [
    { name: "r", device: "a", workMs: 10, memoryBytes: 30 },
    { name: "s", device: "a", workMs: 20, memoryBytes: 40 },
    { name: "t", device: "a", workMs: 40, memoryBytes: 20, pinned: true },
  ],
};

const parse = (value: unknown) => parseFleetState(JSON.stringify(value));
const codeOf = (value: unknown) => {
  const state = parse(value);
  return state.ok ? "ok" : state.diagnostics[0]!.code;
};

describe("a fleet's state", () => {
  it("is read with its loads, and moves are suggested for it", () => {
    const state = parse(file);
    if (!state.ok) throw new Error(state.diagnostics[0]!.message);
    const { devices, assigned, names } = state.value;
    expect(loadsOf(devices, assigned)).toEqual([70e6, 0]);
    const moves = suggestMoves(devices, assigned, 0);
    // Of two that may move the longer one leaves; the other device has no queue behind it.
    expect(moves.map((m) => [names[m.job], m.from, m.to, m.fromNs, m.toNs])).toEqual([
      ["s", 0, 1, 50e6, 10e6],
    ]);
    expect(suggestMoves(devices, assigned, 71e6)).toEqual([]);
  });

  it("that is damaged is refused with the key (PLN007) or the number (PLN001)", () => {
    const [first, ...others] = file.requests;
    const withFirst = (change: object) => ({
      ...file,
      requests: [{ ...first, ...change }, ...others],
    });
    expect(parseFleetState("{")).toMatchObject({ diagnostics: [{ code: "PLN007" }] });
    expect(codeOf({ ...file, devices: [] })).toBe("PLN007");
    expect(codeOf({ ...file, more: 1 })).toBe("PLN007");
    expect(codeOf(withFirst({ device: "c" }))).toBe("PLN007");
    expect(codeOf(withFirst({ name: "s" }))).toBe("PLN007");
    expect(codeOf(withFirst({ memoryBytes: 90 }))).toBe("PLN007");
    expect(codeOf(withFirst({ workMs: -1 }))).toBe("PLN001");
    expect(codeOf(withFirst({ workMs: null }))).toBe("PLN001");
    expect(codeOf(withFirst({ memoryBytes: 1e19 }))).toBe("PLN001");
    expect(codeOf({ devices: file.devices, requests: [] })).toBe("ok");
    fc.assert(
      fc.property(fc.json(), (text) => {
        const state = parseFleetState(text);
        if (!state.ok) expect(state.diagnostics.length).toBeGreaterThan(0);
      }),
    );
  });
});
