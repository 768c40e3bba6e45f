/** A buffer written in the bytes of one that the same launch reads for the last time. */
import { expect, test } from "vitest";
import { parseProgram } from "../program-parse.ts";
import { validateProgram } from "./validate.ts";

/** y = x + x through a, which kernel `use` turns into b at the same place. */
function codesOf(use: string, b = "f32 [M, 8]"): readonly string[] {
  const read = parseProgram(`program p for "wasm" {
    parameter M in 1 to 6
    buffer x : input memory f32 [M, 8] at caller + (0) source "x"
    buffer a : scratch memory f32 [M, 8] at scratch + (0)
    buffer b : scratch memory ${b} at scratch + (0)
    buffer y : output memory f32 [M, 8] at caller + (256) source "y"
    kernel make region "make" {
      grid threads (t < threads)
      role main copies 1 threads 1 {
        for i < M over t { for j < 8 { store a[i, j] = load.f32 x[i, j] } }
      }
    }
    kernel use region "use" {
      grid threads (t < threads)
      role main copies 1 threads 1 { ${use} }
    }
    kernel end region "end" {
      grid threads (t < threads)
      role main copies 1 threads 1 {
        for i < M over t { for j < 8 { store y[i, j] = load.f32 b[i, j] } }
      }
    }
    tasks { launch make after previous launch use after previous launch end after previous }
  }`);
  if (!read.ok) throw new Error(read.diagnostics.map((d) => `${d.at}: ${d.message}`).join("\n"));
  const result = validateProgram(read.value);
  return result.ok ? [] : [...new Set(result.diagnostics.map((d) => d.code))];
}

const trips = (body: string): string => `for i < M over t { for j < 8 { ${body} } }`;

test("each element read before it is overwritten is in place", () => {
  expect(codesOf(trips("store b[i, j] = mul(load.f32 a[i, j], f32(2))"))).toEqual([]);
  expect(codesOf(trips("let v = load.f32 a[i, j] store b[i, j] = mul(v, v)"))).toEqual([]);
  expect(
    codesOf(
      trips("if j - 4 >= 0 { store b[i, j] = load.f32 a[i, j] } else { store b[i, j] = f32(0) }"),
    ),
  ).toEqual([]);
});

test.each([
  ["a read behind the write", trips("store b[i, j] = f32(1) let v = load.f32 a[i, j]")],
  [
    "a read in a later statement of the same trip",
    trips(
      "store b[i, j] = f32(1) if j - 4 >= 0 { let v = load.f32 a[i, j] } else { let w = f32(0) }",
    ),
  ],
  ["a read of another trip", trips("store b[i, j] = load.f32 a[i, -j + 7]")],
  ["a read of the trip before", trips("store b[i, j] = load.f32 a[i, 0]")],
  [
    "a read by a later loop",
    `for i < M over t {
      for j < 8 { store b[i, j] = f32(0) }
      for j < 8 { let v = load.f32 a[i, j] } }`,
  ],
  [
    "reads of a row whose first half is overwritten",
    `for i < M over t { for j < 2 {
      store b[i, 4*j] = load.f32x4 a[i, 0]
    } }`,
  ],
])("%s is refused", (_what, use) => {
  expect(codesOf(use)).toContain("PRG050");
});

test("a buffer of another form is not written in place", () => {
  expect(codesOf(trips("store b[i, j] = load.f32 a[i, j]"), "f32 [M + 0, 9]")).toContain("PRG050");
});
