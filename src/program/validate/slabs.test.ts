/** Reads of what only a part has been written of: as far as the parts before reach, through any view, and no further. */
import { describe, expect, it } from "vitest";
import { parseProgram } from "../program-parse.ts";
import { validateProgram } from "./validate.ts";

interface Growing {
  /** Rows that the first launch writes, of 2. */
  readonly first?: number;
  /** Where the second launch begins. */
  readonly from?: number;
  /** Rows of each run that are read before the third launch. */
  readonly read?: string;
  readonly parameters?: string;
  readonly runs?: string;
  readonly width?: string;
  /** The third launch comes before what reads. */
  readonly early?: boolean;
}

/** Two runs of 2, 3 and 1 rows, written by a launch each; between the last two, a read of the first five. */
function codes({
  first = 2,
  from = 2,
  read = "5",
  parameters = "",
  runs = "2",
  width = "8",
  early = false,
}: Growing): readonly string[] {
  const last = "    launch third after previous\n";
  const program = parseProgram(`program grow for "x64-avx2" {
${parameters}  buffer y : output memory f32 [${runs}, 5, ${width}] source "y"
  buffer s : output memory f32 [${runs}, 6, ${width}] source "s"
  buffer z : scratch memory f32 [${runs}, 6, ${width}] at scratch + (0)
  buffer z.flat : scratch memory f32 [${runs}, 6*${width}] view z
  kernel first region "first" {
    grid threads (thread < threads)
    role main copies 1 threads 1 {
      for n < ${runs} over thread { for i < ${first} { for j < ${width} { store z[n, i, j] = f32(1) } } }
    }
  }
  kernel second region "second" {
    grid threads (thread < threads)
    role main copies 1 threads 1 {
      for n < ${runs} over thread { for i < 3*${width} { store z.flat[n, i + ${from}*${width}] = f32(2) } }
    }
  }
  kernel third region "third" {
    grid threads (thread < threads)
    role main copies 1 threads 1 {
      for n < ${runs} over thread { for j < ${width} { store z[n, 5, j] = f32(3) } }
    }
  }
  kernel reads region "reads" {
    grid threads (thread < threads)
    role main copies 1 threads 1 {
      for n < ${runs} over thread { for i < 5 { for j < ${width} { store y[n, i, j] = f32(0) } } }
      for n < ${runs} over thread { for i < ${read} { for j < ${width} { store y[n, min(i, 4), j] = load.f32 z[n, i, j] } } }
    }
  }
  kernel whole region "whole" {
    grid threads (thread < threads)
    role main copies 1 threads 1 {
      for n < ${runs} over thread { for i < 6 { for j < ${width} { store s[n, i, j] = load.f32 z[n, i, j] } } }
    }
  }
  tasks {
    launch first after previous
    launch second after previous
${early ? last : ""}    launch reads after previous
${early ? "" : last}    launch whole after previous
  }
}
`);
  if (!program.ok) throw new Error(program.diagnostics.map((d) => d.message).join("\n"));
  const valid = validateProgram(program.value);
  return valid.ok ? [] : valid.diagnostics.map((d) => d.code);
}

describe("a buffer that is written part by part", () => {
  it("is read as far as it is written, whatever the sizes of runs", () => {
    expect(codes({})).toEqual([]);
    expect(codes({ read: "2" })).toEqual([]);
    expect(codes({ read: "6", early: true })).toEqual([]);
    const parameters = "  parameter N in 1 to 64\n";
    expect(codes({ runs: "N", parameters })).toEqual([]);
    expect(codes({ width: "N", parameters })).toEqual([]);
  });

  it("and no further", () => {
    expect(codes({ read: "6" })).toContain("PRG021");
  });

  it("is not when a part before leaves some of it out, or begins late", () => {
    expect(codes({ first: 1 })).toContain("PRG021");
    expect(codes({ from: 3 })).toContain("PRG021");
  });
});
