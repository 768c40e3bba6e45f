import { expect, it } from "vitest";
import { parseProgram } from "../program-parse.ts";
import { validateProgram } from "./validate.ts";

/** x -> a -> b -> c -> y by kernels that are equal but for names; `third` is what the third of them reads. */
function copies(third: string, rows = 4): string[] {
  const kernel = (name: string, from: string, to: string, count = 4): string =>
    `kernel ${name} region "${name}" {
      grid threads (t < threads)
      role main copies 1 threads 1 { for i < ${count} over t { store ${to}[i] = load.f32 ${from}[i] } }
    }`;
  const found = parseProgram(`program p for "wasm" {
    buffer x : input memory f32 [4] source "x"
    buffer a : scratch memory f32 [4] at scratch + (0)
    buffer b : scratch memory f32 [4] at scratch + (64)
    buffer c : scratch memory f32 [4] at scratch + (128)
    buffer d : scratch memory f32 [4] at scratch + (192)
    buffer y : output memory f32 [4] source "y"
    ${kernel("S0", "x", "a")}
    ${kernel("S1", "a", "b")}
    ${kernel("S2", third, "c", rows)}
    ${kernel("S3", "c", "y")}
    tasks {
      launch S0 after previous
      launch S1 after previous
      launch S2 after previous
      launch S3 after previous
    }
  }`);
  if (!found.ok) throw new Error(JSON.stringify(found.diagnostics));
  const valid = validateProgram(found.value);
  return valid.ok ? [] : valid.diagnostics.map((d) => d.code);
}

it("a launch that was proved under other names is proved", () => {
  expect(copies("b")).toEqual([]);
});

it("what is not written by then is another question", () => {
  expect(copies("d")).toContain("PRG021");
});

it("a kernel that differs by more than names is another question", () => {
  expect(copies("b", 3)).toContain("PRG021");
  expect(copies("b", 5)).toContain("PRG010");
});
