/** Vectors in memory: in how many pieces, by what divides their places. */
import { describe, expect, it } from "vitest";
import * as ix from "../../semantics/index-expr.ts";
import { alignmentOf } from "./memory-access.ts";

describe("what divides an address", () => {
  const t = ix.variable("t");
  const base = ix.variable("base");
  const cases = [
    [ix.mul(16, t), 16],
    [ix.add(ix.mul(32, t), 8), 8],
    [ix.add(base, ix.mul(4, t)), 4],
    // Panels of 64 elements of 16 bits: neighbours of a thread lie within one.
    [ix.mul(2, ix.mod(ix.mul(8, ix.mod(t, 16)), 64)), 16],
    [ix.mod(ix.mul(8, t), 12), 4],
    [ix.mod(ix.add(ix.mul(8, t), 2), 64), 2],
    [ix.mul(2, ix.min(ix.mul(4, t), 24)), 8],
    [ix.mul(2, ix.floorDiv(t, 3)), 2],
    [ix.mul(ix.mul(4, t), ix.mod(ix.mul(2, t), 8)), 8],
  ] as const;

  it.each(cases.map(([address, bytes]) => [address.key, bytes, address] as const))(
    "%s: %d bytes",
    (_, bytes, address) => expect(alignmentOf(address, "base")).toBe(bytes),
  );
});
