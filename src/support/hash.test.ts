import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, it } from "vitest";
import { Sha256, sha256, sha256Text } from "./hash.ts";

it("gives the published digests", () => {
  expect(sha256Text("")).toBe("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  expect(sha256Text("abc")).toBe(
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
  );
});

it("agrees with another implementation at every length around a block", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      expect(sha256(bytes)).toBe(createHash("sha256").update(bytes).digest("hex"));
    }),
  );
});

it("is the same of pieces, however they are cut", () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 150 }), { maxLength: 6 }), (pieces) => {
      const sum = new Sha256();
      for (const piece of pieces) sum.update(piece);
      expect(sum.digest()).toBe(sha256(Buffer.concat(pieces)));
    }),
  );
});
