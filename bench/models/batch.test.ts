import { expect, test } from "vitest";
import { atBatch } from "./batch.ts";
import { findModel, modelTable } from "./table.ts";

test("rows that leave their batch open are widened, states along their own axis, scalars not", () => {
  const [vad] = atBatch([findModel("vad-web-legacy")!], 8);
  expect(vad!.shapes).toEqual({ batch: "8", sequence: "512" });
  expect(vad!.cases.map((c) => c.name)).toEqual(["8x16kHz"]);
  expect(vad!.cases[0]!.inputs.map((i) => i.dims)).toEqual([[8, 512], [2, 8, 64], [2, 8, 64], []]);
  const [bert] = atBatch([findModel("bert-base")!], 8);
  expect(bert!.cases.map((c) => c.name)).toEqual(["8x128", "8x16", "8x512"]);
});

test("rows whose files have one of a kind are left out", () => {
  const names = atBatch(modelTable, 8).map((row) => row.name);
  expect(names).not.toContain("face-age");
  expect(names).toContain("resnet-50");
});
