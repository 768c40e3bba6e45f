import { describe, expect, test } from "vitest";
import {
  type BenchRow,
  describeFailure,
  describeRow,
  describeSummary,
  formatNs,
  summarise,
} from "./report.ts";

const row = (name: string, ratio: number): BenchRow => ({
  case: name,
  ours: 1000,
  peer: 1000 * ratio,
  peerName: "p",
  ratio,
  low: ratio,
  high: ratio,
  n: 5,
});

describe("summarise", () => {
  test("a family with many cases counts once", () => {
    const rows = [row("a/1", 4), row("a/2", 4), row("a/3", 4), row("b/1", 1)];
    expect(summarise(rows)).toEqual({ geomean: 2, worst: 1, cases: 4 });
  });
  test("losses pull down and are named", () => {
    const summary = summarise([row("a/1", 2), row("b/1", 0.5)])!;
    expect(summary.geomean).toBeCloseTo(1, 12);
    expect(summary.worst).toBe(0.5);
  });
  test("nothing measured gives no summary", () => {
    expect(summarise([])).toBe(undefined);
  });
});

test("text forms", () => {
  expect(describeRow({ ...row("a/x", 0.5), ours: 2.5e6 })).toBe(
    "a/x  ours 2.50 ms  p 500 ns  ratio 0.500 [0.500, 0.500]  n 5",
  );
  const failed = { case: "a/x", peerName: "p", kind: "wrong", reason: "y differs" } as const;
  expect(describeFailure(failed)).toBe("a/x  p  WRONG: y differs");
  const machine = {
    processor: "c",
    cores: 1,
    memoryBytes: 0,
    system: "s",
    load: 0,
    threads: 1,
    clock: "wall",
  };
  const report = { machine, versions: {}, results: [], failed: [failed], skipped: [] };
  expect(describeSummary(report)).toBe("no case measured, 1 failed");
  expect(describeSummary({ ...report, skipped: [failed] })).toMatch(/1 failed {2}skipped 1$/);
  const summary = { geomean: 1.5, worst: 0.9, cases: 2 };
  expect(describeSummary({ ...report, summary })).toBe(
    "geomean 1.500  worst 0.900  cases 2  failed 1",
  );
  expect([12, 1234, 5.6e6, 2e9].map(formatNs)).toEqual(["12.0 ns", "1.23 µs", "5.60 ms", "2.00 s"]);
});
