import { describe, expect, test } from "vitest";
import { modelTable } from "../models/table.ts";
import type { BenchRow } from "../report.ts";
import { summariseModels, transformerFamilies } from "./model-summary.ts";

const row = (name: string, ratio: number): BenchRow => ({
  case: name,
  ...{ ours: 1, peer: ratio, peerName: "p", ratio, low: ratio - 0.1, high: ratio + 0.2, n: 5 },
});

describe("the summary of models", () => {
  test("has the means of what was run, and the upper end of the worst", () => {
    const summary = summariseModels([
      row("ocr-detect/a/1", 3),
      row("sentence-encoder/minilm-l6/1", 1),
      row("sentence-encoder/minilm-l6-dynamic/1", 4),
      row("text-decoder/gpt-2/1", 2),
      row("resnet-int8/resnet-50-int8/1", 0.9),
      row("mobilenet-int8/mobilenet-v2-int8/1", 1.6),
    ]);
    expect(summary).toMatchObject({ worst: 0.9, cases: 6, transformers: 2, int8Dynamic: 4 });
    expect(summary.worstHigh).toBeCloseTo(1.1, 12);
    expect(summary.int8Qdq).toBeCloseTo(1.2, 12);
  });

  test("says nothing of what was not run", () => {
    expect(Object.keys(summariseModels([row("ocr-detect/a/1", 3)]))).toEqual([
      "geomean",
      "worst",
      "cases",
      "worstHigh",
    ]);
  });

  test("knows families and models that the table has", () => {
    const families = new Set(modelTable.map((m) => m.family));
    for (const family of transformerFamilies) expect(families).toContain(family);
    const names = modelTable.map((m) => m.name);
    expect(names.filter((n) => n.endsWith("-dynamic"))).not.toEqual([]);
    expect(names.filter((n) => n.endsWith("-int8"))).not.toEqual([]);
  });
});
