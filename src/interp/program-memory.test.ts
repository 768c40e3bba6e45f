import { expect, it } from "vitest";
import { type Agent, emptyKnowledge } from "./program-clock.ts";
import { FaultError } from "./program-fault.ts";
import { Storage, View } from "./program-memory.ts";

function viewOf(swizzleBytes: number): View {
  const storage = new Storage("tile", 8 * 64 * 2, 16, "shared");
  const parts = { byteOffset: 0, owner: 3, lanes: 1, shape: [8, 64] } as const;
  return new View({ name: "tile", storage, dtype: "bf16", swizzleBytes, ...parts });
}

const agent: Agent = { label: "t", slot: 0, clock: 1, knows: emptyKnowledge(), proxy: "ordinary" };

it.each([0, 32, 64, 128])(
  "with a swizzle of %d a bit belongs to the scalar it is of",
  (swizzle) => {
    const view = viewOf(swizzle);
    for (let offset = 0; offset < view.count; offset++) {
      const bit = 8 * view.addressOf(offset);
      expect([view.scalarAt(bit), view.scalarAt(bit + 15)]).toEqual([offset, offset]);
    }
  },
);

it.each([0, 128])(
  "with a swizzle of %d a run is seen scalar by scalar, and a fault names one",
  (swizzle) => {
    const view = viewOf(swizzle);
    view.note(agent, "write", 60, 201);
    view.note(agent, "read", 60, 201);
    const faultOf = (offset: number, span: number): string => {
      try {
        view.note(agent, "read", offset, span);
        return "none";
      } catch (error) {
        if (!(error instanceof FaultError)) throw error;
        return error.fault.message;
      }
    };
    expect(faultOf(58, 100)).toMatch(/reads tile at element 58$/);
    expect(faultOf(200, 100)).toMatch(/reads tile at element 261$/);
  },
);
