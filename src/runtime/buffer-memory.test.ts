import { expect, test } from "vitest";
import { copyInPieces, memoryOfViews } from "./buffer-memory.ts";

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

test("what is copied in pieces is all there, and is let go behind each", () => {
  const from = Uint8Array.from({ length: 2 ** 23 + 5 }, (_, i) => i * 7 + (i >> 8));
  const to = new Uint8Array(from.length + 3);
  let pieces = 0;
  copyInPieces(to, from, () => pieces++);
  expect(pieces).toBe(3);
  expect(Buffer.compare(to.subarray(0, from.length), from)).toBe(0);
  expect([...to.subarray(from.length)]).toEqual([0, 0, 0]);
  const none = new Uint8Array(2);
  copyInPieces(none, new Uint8Array(0));
  expect([...none]).toEqual([0, 0]);
});
