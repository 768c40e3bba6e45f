import { expect, test } from "vitest";
import { memoryOfViews } from "./buffer-memory.ts";

test("what is read of a buffer is the reader's: results are made on it", () => {
  const bytes = Uint8Array.from([1, 2, 3, 4, 5]);
  const memory = memoryOfViews(() => bytes);
  const first = memory.read("y", 4);
  expect(first.byteOffset).toBe(0);
  expect(first.buffer.byteLength).toBe(4);
  memory.fill("y", 9);
  expect([...first]).toEqual([1, 2, 3, 4]);
  first[0] = 7;
  expect([...memory.read("y", 5)]).toEqual([9, 9, 9, 9, 9]);
});
