import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { parseProgram } from "../../src/program/program-parse.ts";
import { invariant } from "../../src/support/invariant.ts";
import { programTimes } from "./program-times.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "times-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function doubling(count: number) {
  const read = parseProgram(`program p for "wasm" {
  buffer x : input memory f32 [${count}]
  buffer y : output memory f32 [${count}]
  kernel k region "k" {
    grid threads (t < 1)
    role main copies 1 threads 1 {
      for i < ${count} {
        let v = load.f32 x[i]
        store y[i] = add(v, v)
      }
    }
  }
  tasks { launch k after previous }
}`);
  invariant(read.ok, () => JSON.stringify(read));
  return read.value;
}

const sampling = { rounds: 1, sampleNs: 1000 };

test("times that were recorded come back, for the same programs and target alone", async () => {
  const file = join(folder, "times.json");
  const recording = programTimes("wasm", { record: file });
  const measured = recording.of([doubling(64), doubling(4096)], sampling);
  await recording.close();
  const again = programTimes("wasm", { replay: file });
  expect(again.of([doubling(4096), doubling(64)], sampling)).toEqual(measured.toReversed());
  expect(again.origin).toContain(JSON.parse(readFileSync(file, "utf8")).madeAt);
  expect(() => again.of([doubling(128)], sampling)).toThrow("a candidate has no time in it");
  expect(() => programTimes("x64-avx2", { replay: file })).toThrow("of wasm, not of x64-avx2");
});

test("a recording that was ended goes on with what it lacks", () => {
  const file = join(folder, "times.json");
  const first = programTimes("wasm", { record: file }).of([doubling(64)], sampling);
  const again = programTimes("wasm", { record: file });
  expect(again.of([doubling(64)], sampling)).toEqual(first);
  again.of([doubling(128)], sampling);
  const all = programTimes("wasm", { replay: file });
  expect(all.of([doubling(64), doubling(128)], sampling)[0]).toEqual(first[0]);
  const elsewhere = JSON.parse(readFileSync(file, "utf8"));
  writeFileSync(file, JSON.stringify({ ...elsewhere, processor: "another" }));
  expect(() => programTimes("wasm", { record: file })).toThrow("it was made on another");
});

test("what is no recording is refused", () => {
  const file = join(folder, "other.json");
  expect(() => programTimes("wasm", { replay: file })).toThrow("there is no such file");
  writeFileSync(file, "{");
  expect(() => programTimes("wasm", { replay: file })).toThrow("this is no recording of times");
});
