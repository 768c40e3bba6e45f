import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import {
  dependentFaults,
  megakernelFaults,
  type PlantedFault,
  pipelinedFaults,
} from "../../../test/golden/program/faults.ts";
import { formatDiagnostic } from "../../support/diagnostic.ts";
import { parseProgram } from "../program-parse.ts";
import { validateProgram } from "./validate.ts";

function golden(name: string): string {
  const place = `../../../test/golden/program/${name}.txt`;
  return readFileSync(new URL(place, import.meta.url), "utf8");
}

/** Codes of the validator's diagnostics, each once; none for a valid program. */
function codesOf(text: string): readonly string[] {
  const read = parseProgram(text);
  if (!read.ok) throw new Error(read.diagnostics.map(formatDiagnostic).join("\n"));
  const result = validateProgram(read.value);
  return result.ok ? [] : [...new Set(result.diagnostics.map((d) => d.code))].sort();
}

type Fault = readonly [from: string, to: string, code: string];

/** The golden program with one place changed is rejected with this code, fault by fault. */
function checkFaults(name: string, faults: readonly Fault[]): void {
  const text = golden(name);
  const missed = faults.flatMap(([from, to, code]) => {
    if (!text.includes(from)) return [`${from} does not occur`];
    const codes = codesOf(text.replace(from, to));
    return codes.includes(code) ? [] : [`${from} -> ${to}: ${codes}, not ${code}`];
  });
  expect(missed).toEqual([]);
}

test("an output without elements needs no store, any other does", () => {
  const text = (extent: number) => `program p for "wasm" {
    buffer x : input memory f32 [0, 3]
    buffer y : output memory f32 [2, ${extent}]
    kernel k region "k" {
      grid threads (t < 1)
      role main copies 1 threads 1 { for i < 2 { for j < 0 { store y[i, j] = load.f32 x[j, i] } } }
    }
    tasks { launch k after previous }
  }`;
  expect(codesOf(text(0))).toEqual([]);
  expect(codesOf(text(1))).toEqual(["PRG020"]);
});

test("the CPU matrix kernel is valid", () => {
  expect(codesOf(golden("matmul-bias-relu-cpu"))).toEqual([]);
});

test("faults in the CPU matrix kernel are found", () => {
  checkFaults("matmul-bias-relu-cpu", [
    // Bounds: a tile too many, a tail too long, a guard off by one.
    ["if M - 6*ic - 3*i0 - 3 >= 0", "if M - 6*ic - 3*i0 - 2 >= 0", "PRG010"],
    ["for r < min(3, max(0, M - 6*ic - 3*i0))", "for r < min(3, max(0, M - 6*ic))", "PRG010"],
    ["for k1 < min(8, 13 - 8*k0)", "for k1 < 8", "PRG010"],
    // Coverage: a tile too few, half of the columns, a tail too short.
    ["for ic < floorDiv(M + 5, 6) over t", "for ic < floorDiv(M, 6) over t", "PRG020"],
    ["for j0 < 2", "for j0 < 1", "PRG020"],
    [
      "for r < min(3, max(0, M - 6*ic - 3*i0))",
      "for r < min(1, max(0, M - 6*ic - 3*i0))",
      "PRG020",
    ],
    // Order: windows that overlap, the reduction dealt out over the threads.
    ["for i0 < 2", "for i0 < 3", "PRG030"],
    // Initialisation: the first chunk reads y.
    ["if k0 == 0", "if k0 - 1 == 0", "PRG021"],
    // Kinds and placements.
    ["w : weight memory", "w : output memory", "PRG020"],
    ["y : output memory", "y : input memory", "PRG012"],
    ["at caller + (2080)", "at caller + (2076)", "PRG050"],
    ["at weights + (832)", "at weights + (830)", "PRG051"],
    ["at weights + (832)", "at weights + (828)", "PRG050"],
    [
      "buffer acc : scratch register f32x4 [3, 2]",
      "buffer acc : scratch register f32x4 [3, 1]",
      "PRG010",
    ],
    ["store acc[r, v] = f32x4(0)", "store acc[k0, v] = f32x4(0)", "PRG011"],
    ["launch main after previous", "launch other after previous", "PRG002"],
    ["x : input memory f32", "x : input memory f64", "PRG003"],
  ]);
});

function checkPlanted(name: string, faults: readonly PlantedFault[]): void {
  checkFaults(
    name,
    faults.map((f) => [f.from, f.to, f.code]),
  );
}

test("the pipelined matrix kernel is valid, and faults in it are found", () => {
  expect(codesOf(golden("matmul-pipelined"))).toEqual([]);
  checkPlanted("matmul-pipelined", pipelinedFaults);
});

/** The pipelined matrix kernel with any number of steps along k in the range. */
function pipelinedSteps(range: string): string {
  const text = golden("matmul-pipelined").replaceAll("[64, 320]", "[64, 64*KB]");
  return text
    .replaceAll("[16, 320]", "[16, 64*KB]")
    .replaceAll("for kb < 5", "for kb < KB")
    .replace('for "sm_90a" {', `for "sm_90a" {\n  parameter KB in ${range}`);
}

test("a cooperative kernel with a symbolic number of trips is proved for each, or refused", () => {
  expect(codesOf(pipelinedSteps("2 to 4"))).toEqual([]);
  expect(codesOf(pipelinedSteps("1 to 4096"))).toEqual([]);
  expect(codesOf(pipelinedSteps("1 to 4000000"))).toContain("PRG060");
  // Stuck from the fourth step on: one stage only is released, and only once.
  const held = pipelinedSteps("3 to 4").replace("if kb - 1 >= 0 {", "if kb - 1 == 0 {");
  expect(codesOf(held)).toContain("PRG040");
  expect(codesOf(held.replace("3 to 4", "1 to 4096"))).toContain("PRG040");
  expect(codesOf(held.replace("3 to 4", "3 to 3"))).toEqual([]);
});

test("blocks that each have trips of their own, as many blocks as a run has, are proved for all", () => {
  const text = golden("matmul-pipelined")
    .replaceAll("[64, 320]", "[64, 512]")
    .replaceAll("[16, 320]", "[8*B, 512]")
    .replace("bias : weight memory f32 [16]", "bias : weight memory f32 [8*B]")
    .replace("y : output memory f32 [64, 16]", "y : output memory f32 [64, 8*B]")
    .replace("grid blocks (b < 2)", "grid blocks (b < B)")
    .replaceAll("for kb < 5", "for kb < b + 1")
    .replace('for "sm_90a" {', 'for "sm_90a" {\n  parameter B in 1 to 8');
  expect(codesOf(text)).toEqual([]);
  // Stuck in the blocks from the fourth on, which only some launches have.
  const held = text.replace("if kb - 1 >= 0 {", "if kb - 1 == 0 {");
  expect(codesOf(held)).toContain("PRG040");
  expect(codesOf(held.replace("B in 1 to 8", "B in 1 to 3"))).toEqual([]);
});

test("the megakernel is valid, and faults in it are found", () => {
  expect(codesOf(golden("megakernel"))).toEqual([]);
  checkPlanted("megakernel", megakernelFaults);
});

test("launches that overlap are valid, and faults in their waits are found", () => {
  expect(codesOf(golden("dependents"))).toEqual([]);
  checkPlanted("dependents", dependentFaults);
});

test("names that cannot be used are refused (PRG001)", () => {
  checkFaults("matmul-bias-relu-cpu", [
    ["buffer w : weight", "buffer x : weight", "PRG001"],
    ["for r < 3 unrolled", "for k0 < 3 unrolled", "PRG001"],
  ]);
  checkFaults("megakernel", [["3 table w =", "3 table w0 =", "PRG001"]]);
});

test("wrong numbers of indices and operands are refused (PRG004)", () => {
  checkFaults("matmul-bias-relu-cpu", [["w[j0, 8*k0 + k1, 0]", "w[j0, 8*k0 + k1]", "PRG004"]]);
  checkFaults("matmul-pipelined", [
    ["acc[0] box [4], ", "", "PRG004"],
    ["box [8, 16]) group mma", "box [8, 8]) group mma", "PRG004"],
    ["wait full[mod(kb, 2)] for", "wait full[mod(kb, 2), 0] for", "PRG004"],
  ]);
  checkFaults("megakernel", [
    ["if element flag[0]", "if element flag[0, 0]", "PRG004"],
    ["signal done[0] by 1", "signal done[0, 0] by 1", "PRG004"],
  ]);
});

test("inconsistent declarations are refused (PRG005)", () => {
  checkFaults("matmul-bias-relu-cpu", [["M in 1 to 40", "M in 40 to 1", "PRG005"]]);
  checkFaults("matmul-pipelined", [
    ["buffer staging : scratch shared", "buffer staging : scratch memory", "PRG005"],
    ["shared phase [2] arrivals 1\n", "shared phase [2] arrivals 0\n", "PRG005"],
    ["threads 128 as", "threads 0 as", "PRG005"],
    ["barrier copy", "barrier cluster", "PRG005"],
  ]);
  checkFaults("megakernel", [
    ["w2 : weight memory f32 [8, 8]", "w2 : weight memory f32 [8, 9]", "PRG005"],
  ]);
});

test("a barrier over a grid that is not resident is refused (PRG042)", () => {
  checkFaults("matmul-pipelined", [["barrier copy", "barrier grid", "PRG042"]]);
});

test("what cannot be run through is refused as too large to prove (PRG060)", () => {
  checkFaults("matmul-pipelined", [
    ["empty : shared phase [2] arrivals 128", "empty : shared monotone [2]", "PRG060"],
  ]);
  checkFaults("megakernel", [["repeat layer < 3", "repeat layer < 100000", "PRG060"]]);
  checkFaults("matmul-bias-relu-cpu", [
    ["for r < 3 unrolled", "for r < 1000000000 unrolled", "PRG060"],
  ]);
});
