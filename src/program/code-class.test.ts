import { expect, test } from "vitest";
import { codeClass } from "./code-class.ts";
import { parseProgram } from "./program-parse.ts";

interface Names {
  readonly buffer: string;
  readonly tile: string;
  readonly by: string;
  readonly size?: string;
  readonly most?: number;
}

function classOf({ buffer, tile, by, size = "n", most = 8 }: Names): string {
  const read = parseProgram(`program p for "wasm" {
    parameter ${size} in 1 to ${most}
    buffer ${buffer} : output memory f32 [${size}] source "${buffer}"
    kernel k_${buffer} region "${buffer}" { grid threads (th < threads)
      buffer ${tile} : scratch local f32 [8]
      role r copies 1 threads 1 {
        for i < ${size} { store ${tile}[i] = f32(${by}) store ${buffer}[i] = load.f32 ${tile}[i] } } }
    tasks { launch k_${buffer} after previous } }`);
  if (!read.ok) throw new Error(JSON.stringify(read.diagnostics));
  return codeClass(read.value);
}

test("programs that differ by names alone are one class, the kernels' own buffers among them", () => {
  const first = classOf({ buffer: "layer.1_Add", tile: "t18.tile1", by: "2" });
  expect(classOf({ buffer: "layer.2_Add", tile: "t57.tile0", by: "2" })).toBe(first);
});

test("so are those of sizes with other names and the same range, as data decide them", () => {
  const first = classOf({ buffer: "y", tile: "t", by: "2", size: "found_1" });
  expect(classOf({ buffer: "y", tile: "t", by: "2", size: "found_2" })).toBe(first);
  expect(classOf({ buffer: "y", tile: "t", by: "2", size: "found_2", most: 9 })).not.toBe(first);
});

test("what a program computes keeps its class apart", () => {
  const first = classOf({ buffer: "y", tile: "t", by: "2" });
  expect(classOf({ buffer: "y", tile: "t", by: "3" })).not.toBe(first);
});
