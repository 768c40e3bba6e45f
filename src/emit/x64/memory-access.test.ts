import { describe, expect, test } from "vitest";
import { parseProgram } from "../../program/program-parse.ts";
import { emitX64 } from "./emit-program.ts";

/** The code of a kernel that spreads two bytes, read under a guard. */
function guardedPairs(): string {
  const program = parseProgram(`program p for "x64-avx2" {
  buffer x : input memory u8 [64] source "x"
  buffer y : output memory i16 [32, 16] source "y"
  kernel k region "k" {
    grid threads (t < threads)
    role main copies 1 threads 1 {
      for i < 32 over t {
        store y[i, 0] = cast.i16(splat.16(load.u8x2 x[2*i] where {i - 1 >= 0} else 0))
      }
    }
  }
  tasks { launch k after previous }
}`);
  if (!program.ok) throw new Error(JSON.stringify(program.diagnostics));
  const emitted = emitX64(program.value, {
    features: { evex: false, vectorBits: 256 },
    system: "linux",
  });
  if (!emitted.ok) throw new Error(JSON.stringify(emitted.diagnostics));
  return emitted.value.code.text();
}

describe("loadChunk", () => {
  test("two bytes come into a register without a way through the stack", () => {
    const code = guardedPairs();
    expect(code).toMatch(/movzx \w+, word ptr/);
    expect(code).toContain("vmovd xmm");
    expect(code).not.toMatch(/mov word ptr \[rsp/);
  });
});
