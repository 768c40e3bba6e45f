import { describe, expect, test } from "vitest";
import { footprint, leftBehind } from "./footprint.ts";

const before = { residentBytes: 1000, threads: 9, codeMappings: 3 };
const limits = { residentBytes: 100, codeMappings: 2 };

describe("what is left behind", () => {
  test.each([
    [{ residentBytes: 1100, threads: 9, codeMappings: 5 }, undefined],
    [{ residentBytes: 10, threads: 8, codeMappings: 0 }, undefined],
    [{ ...before, residentBytes: 1101 }, "memory grew by 101 bytes, 100 are allowed"],
    [{ ...before, threads: 10 }, "1 threads are left"],
    [{ ...before, codeMappings: 6 }, "3 executable mappings are left, 2 are allowed"],
  ])("%o", (after, found) => {
    expect(leftBehind(before, after, limits)).toBe(found);
  });

  test.skipIf(process.platform !== "linux")("is seen of this process", () => {
    const now = footprint()!;
    expect(now.residentBytes).toBeGreaterThan(2 ** 20);
    expect(now.threads).toBeGreaterThan(0);
  });
});
