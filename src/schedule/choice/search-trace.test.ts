import { expect, it } from "vitest";
import { SearchTrace } from "./search-trace.ts";

const snapshot = (work: number, bound: number, objective?: number) => {
  const found = objective === undefined ? {} : { objective };
  return { status: "feasible", gap: 0, nodes: 0, work, bound, ...found } as const;
};

it("keeps the last of what happened at one time, and nothing infinite", () => {
  const trace = new SearchTrace();
  trace.observe(snapshot(1, -Infinity));
  trace.observe(snapshot(1, 3));
  trace.observe(snapshot(5, 3, 9));
  expect(trace.points()).toEqual([
    { work: 1, objective: null, bound: 3 },
    { work: 5, objective: 9, bound: 3 },
  ]);
});

it("thins what is long, with both ends, in order", () => {
  const trace = new SearchTrace();
  for (let i = 0; i < 5000; i++) trace.observe(snapshot(i, i, 10_000 - i));
  const points = trace.points();
  expect(points.length).toBeLessThan(100);
  expect([points[0]!.work, points.at(-1)!.work]).toEqual([0, 4999]);
  const works = points.map((p) => p.work);
  expect(works).toEqual([...new Set(works)].sort((a, b) => a - b));
});
