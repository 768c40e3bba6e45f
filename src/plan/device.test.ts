import { describe, expect, it } from "vitest";
import { targets } from "../target/index.ts";
import { deviceOfTarget, linkBetween, type PlanDevice } from "./device.ts";

function device(name: string, ordinal = 0): PlanDevice {
  const found = deviceOfTarget(targets.get(name)!);
  if (!found.ok) throw new Error(name);
  return { ...found.value, ordinal };
}

function rate(a: PlanDevice, b: PlanDevice): number {
  expect(linkBetween(a, b).value).toBe(linkBetween(b, a).value);
  return linkBetween(a, b).value;
}

describe("links", () => {
  it("of a board join its places, and no others", () => {
    expect(rate(device("h100", 0), device("h100", 7))).toBe(450);
    expect(rate(device("h100", 7), device("h100", 8))).toBe(63.02);
    expect(rate(device("gb200", 0), device("gb200", 71))).toBe(900);
  });
  it("of a bridge join two boards", () => {
    expect(rate(device("rtx-3090", 2), device("rtx-3090", 3))).toBe(56.25);
    expect(rate(device("rtx-3090", 1), device("rtx-3090", 2))).toBe(31.51);
  });
  it("of one name on two kinds of board do not join them", () => {
    expect(rate(device("a100-80gb"), device("rtx-3090"))).toBe(31.51);
    expect(rate(device("h100"), device("h200"))).toBe(63.02);
  });
  it("to a processor on the same package join it alone", () => {
    expect(rate(device("gb200"), device("neoverse-v2"))).toBe(450);
    expect(rate(device("dgx-spark"), device("neoverse-v2"))).toBe(15.75);
    expect(rate(device("dgx-spark", 0), device("dgx-spark", 1))).toBe(25);
    expect(linkBetween(device("apple-m2", 0), device("apple-m2", 1))).toMatchObject({
      value: 15.75,
      origin: "predicted",
    });
  });
  it("between two of eight accelerators have the rate of one pair", () => {
    expect(rate(device("mi300x", 0), device("mi300x", 1))).toBe(64);
  });
});
