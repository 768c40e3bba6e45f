/** Files that once crashed the importer or kept it busy: each is read or refused with a code, soon. */
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { importOnnx } from "../../src/frontend/onnx/import/import-model.ts";

const expected: Readonly<Record<string, readonly string[]>> = {
  "doubling-strings.onnx": ["ONX009"],
  "many-unclosed-repeats.onnx": ["ONX009"],
  "part-of-a-box.onnx": ["ONX009"],
  "repeats-of-nothing.onnx": [],
};
const files = readdirSync(import.meta.dirname).filter((name) => name.endsWith(".onnx"));

test("each file has its answer", () => {
  expect(files.sort()).toEqual(Object.keys(expected));
});

test.each(files)("%s", (name) => {
  const found = importOnnx(readFileSync(new URL(name, import.meta.url)));
  expect(found.ok ? [] : found.diagnostics.map((d) => d.code)).toEqual(expected[name]);
});
