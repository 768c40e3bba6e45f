import { describe, expect, it } from "vitest";
import { roofBoundNs } from "./roofline.ts";
import { describeProtocol, repeatsOf, sampleInTurns } from "./sampling.ts";

describe("sampleInTurns", () => {
  it("warms up, takes turns, and repeats what is short", async () => {
    let now = 0;
    const log: string[] = [];
    const side = (name: string, ns: number) => (repeats: number) => {
      log.push(`${name}${repeats}`);
      now += ns * repeats;
    };
    const protocol = { rounds: 2, warmUp: 3, leastSampleNs: 100 };
    const sides = [side("a", 10), side("b", 400)];
    const samples = await sampleInTurns(sides, protocol, () => now, {
      refresh: () => log.push("-"),
    });
    expect(samples).toEqual([
      [10, 10],
      [400, 400],
    ]);
    expect(log.join(" ")).toBe("a1 b1 a2 b2 a3 b3 - a10 b1 - b1 a10");
    expect(describeProtocol(protocol)).toContain("2 rounds");
  });

  it("rests before each turn that counts, and times none of it", async () => {
    let now = 0;
    const log: string[] = [];
    const side = (name: string) => () => {
      log.push(name);
      now += 10;
    };
    const rest = async (): Promise<void> => {
      log.push("rest");
      now += 1000;
    };
    const protocol = { rounds: 2, warmUp: 1, leastSampleNs: 0 };
    const samples = await sampleInTurns([side("a"), side("b")], protocol, () => now, { rest });
    expect(samples).toEqual([
      [10, 10],
      [10, 10],
    ]);
    const once = "rest a rest b";
    const turns = "rest a a a rest b b b rest b b b rest a a a";
    expect(log.join(" ")).toBe(`a b ${once} ${turns}`);
  });

  it("takes fewer rounds where they are long, but five", async () => {
    let now = 0;
    const roundsOf = async (ns: number): Promise<number> => {
      const side = (repeats: number) => {
        now += ns * repeats;
      };
      const protocol = { rounds: 20, warmUp: 1, leastSampleNs: 0, longNs: 1000 };
      const [samples] = await sampleInTurns([side, side], protocol, () => now);
      return samples!.length;
    };
    expect([await roundsOf(10), await roundsOf(50), await roundsOf(400)]).toEqual([20, 10, 5]);
  });
});

describe("repeatsOf", () => {
  const protocol = { leastSampleNs: 5e6, rounds: 10 };

  it("fills a sample of each side, or repeats all equally often", () => {
    expect(repeatsOf([50e3, 2e6], protocol, false)).toEqual([100, 3]);
    expect(repeatsOf([50e3, 2e6], protocol, true)).toEqual([100, 100]);
    expect(repeatsOf([2e6, 50e3], protocol, true)).toEqual([100, 100]);
  });

  it("repeats no more than there is time for, and no less than the slower side needs", () => {
    const equal = (longNs: number) => repeatsOf([50e3, 2e6], { ...protocol, longNs }, true);
    expect(equal(1e9)).toEqual([48, 48]);
    expect(equal(1e6)).toEqual([3, 3]);
    expect(repeatsOf([1, 1e9], { ...protocol, longNs: 1e10 }, true)).toEqual([1, 1]);
    expect(repeatsOf([6e6, 9e6], { ...protocol, longNs: 1e10 }, true)).toEqual([3, 3]);
  });
});

describe("the roofline bound", () => {
  const peaks = {
    flopsPerNs: 1,
    levels: [
      { name: "near", capacityBytes: 1000, bytesPerNs: 100 },
      { name: "far", bytesPerNs: 10 },
    ],
  };
  it("is the slower of arithmetic and traffic, with 15 % to spare", () => {
    expect(roofBoundNs({ flops: 1150, bytes: 10 }, peaks)).toBeCloseTo(1000, 9);
    expect(roofBoundNs({ flops: 0, bytes: 1000 }, peaks)).toBeCloseTo(10 / 1.15, 9);
  });
  it("takes the bandwidth of the smallest level that holds the working set", () => {
    expect(roofBoundNs({ flops: 0, bytes: 1001 }, peaks)).toBeCloseTo(1001 / 11.5, 9);
  });
});
