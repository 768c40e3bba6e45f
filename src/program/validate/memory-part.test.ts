import { expect, it } from "vitest";
import { parseProgram } from "../program-parse.ts";
import { Facts } from "./facts.ts";
import { viewLaunch } from "./launch-view.ts";
import { memoryPart } from "./memory-part.ts";
import { tilesExactly } from "./tiling.ts";

/** Blocks that each store one element of y. */
function stored(index: string): boolean {
  const read = parseProgram(`program p for "sm_80" {
  buffer y : output memory f32 [3, 4] source "y"
  kernel main region "r" {
    grid blocks (b < 12)
    role all copies 1 threads 1 { store y[${index}] = f32(1) }
  }
  tasks { launch main after previous }
}
`);
  if (!read.ok) throw new Error(read.diagnostics[0]!.message);
  const [kernel] = read.value.kernels;
  const site = { program: read.value, kernel: kernel!, bindings: [], tables: new Map() };
  const view = viewLaunch({ ...site, facts: Facts.none() });
  return tilesExactly(memoryPart(view, kernel!.roles[0]!), read.value.buffers[0]!);
}

it("takes blocks apart at what their number is divided by, and at no end of a range", () => {
  expect(stored("floorDiv(b, 4), mod(b, 4)")).toBe(true);
  expect(stored("floorDiv(b, 6), mod(b, 4)")).toBe(false);
  expect(stored("0, min(-8*b + 92, 8)")).toBe(false);
});
