import { describe, expect, test } from "vitest";
import { parseProgram } from "../../program/program-parse.ts";
import { emitX64 } from "./emit-program.ts";

/** The code of a kernel's loop body between 40 elements and their results. */
function codeOf(body: string): { readonly text: string; readonly frameBytes: number } {
  const program = parseProgram(`program p for "x64-avx2" {
  buffer x : input memory f32 [40, 40] source "x"
  buffer y : output memory f32 [40, 40] source "y"
  kernel k region "k" {
    grid threads (t < threads)
    role main copies 1 threads 1 {
      for i < 32 over t {
        ${body}
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
  const { functions, text } = emitted.value.code;
  return { text: text(), frameBytes: functions.find((f) => f.name === "k")!.frameBytes };
}

describe("vectors of single lanes", () => {
  const column = Array.from({ length: 8 }, (_, l) => `load.f32 x[${l}, i]`).join(", ");

  test("are put together in registers", () => {
    const { text, frameBytes } = codeOf(`store y[i, 0] = pack(${column})`);
    expect(text.match(/vinsertps/g)).toHaveLength(6);
    expect(text.match(/vinsertf128/g)).toHaveLength(1);
    expect(frameBytes).toBe(0);
  });

  test("one element among lanes of a constant is put into a register of that", () => {
    const rest = Array(7).fill("f32(-inf)").join(", ");
    const { text } = codeOf(`store y[i, 0] = pack(load.f32 x[i, 0], ${rest})`);
    expect(text.match(/vinsertps/g)).toHaveLength(1);
    expect(text.match(/vinsertf128/g)).toHaveLength(1);
    const mixed = codeOf(`store y[i, 0] = pack(load.f32 x[i, 0], f32(1), ${rest.slice(11)})`);
    expect(mixed.text.match(/vinsertps/g)).toHaveLength(6);
  });

  test("are taken apart in registers", () => {
    const { frameBytes, text } = codeOf(`let v = load.f32x8 x[i, 0]
        store y[i, 0] = extract.6(v)
        store y[i, 1] = extract.0(v)`);
    expect(text).toContain("vextractf128");
    expect(frameBytes).toBe(0);
  });

  test("a constant of vectors and of single elements has one register", () => {
    const { text } = codeOf(`store y[i, 0] = mul(load.f32x8 x[i, 0], f32x8(0.3))
        store y[i, 9] = mul(load.f32 x[i, 9], f32(0.3))`);
    expect(text.match(/vbroadcastss/g)).toHaveLength(1);
  });
});
