import { expect, test } from "vitest";
import { codeClass } from "./code-class.ts";
import { parseProgram } from "./program-parse.ts";

function classOf(names: { readonly buffer: string; readonly tile: string; readonly by: string }) {
  const { buffer, tile, by } = names;
  const read = parseProgram(`program p for "wasm" {
    buffer ${buffer} : output memory f32 [4] source "${buffer}"
    kernel k_${buffer} region "${buffer}" { grid threads (th < threads)
      buffer ${tile} : scratch local f32 [4]
      role r copies 1 threads 1 {
        for i < 4 { store ${tile}[i] = f32(${by}) store ${buffer}[i] = load.f32 ${tile}[i] } } }
    tasks { launch k_${buffer} after previous } }`);
  if (!read.ok) throw new Error(JSON.stringify(read.diagnostics));
  return codeClass(read.value);
}

test("programs that differ by names alone are one class, the kernels' own buffers among them", () => {
  const first = classOf({ buffer: "layer.1_Add", tile: "t18.tile1", by: "2" });
  expect(classOf({ buffer: "layer.2_Add", tile: "t57.tile0", by: "2" })).toBe(first);
});

test("what a program computes keeps its class apart", () => {
  const first = classOf({ buffer: "y", tile: "t", by: "2" });
  expect(classOf({ buffer: "y", tile: "t", by: "3" })).not.toBe(first);
});
