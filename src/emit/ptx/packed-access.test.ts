/** Elements below a byte as whole words: what lanes hold where the guard of a load fails. */
import { describe, expect, it } from "vitest";
import { emittedText } from "./emitted-text.test-support.ts";

function textOf(dtype: string, fill: string): string {
  return emittedText(`program p for "h200" {
    buffer x : input memory ${dtype} [256] at caller + (0) source "x"
    buffer y : output memory f32 [256] at caller + (128) source "y"
    kernel k region "k" {
      grid blocks (b < 1)
      role main copies 1 threads 32 as t {
        store y[8*t] = cast.f32(load.${dtype}x8 x[8*t] where {30 - t >= 0} else ${fill})
      }
    }
    tasks { launch k after previous }
  }`);
}

describe("vectors of elements below a byte", () => {
  it("have the bits of the fill in each lane where nothing is read", () => {
    // 1 is 0b0010 of e2m1, and -1 is 0b1111 of i4.
    expect(textOf("f4e2m1", "1")).toContain(`, ${0x22222222};`);
    expect(textOf("i4", "-1")).toContain(`, ${0xffffffff};`);
    expect(textOf("u4", "5")).toContain(`, ${0x55555555};`);
  });
});
