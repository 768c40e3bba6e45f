/** Outputs of which each trip of a repeat writes a part, and meetings of threads around small steps. */
import { describe, expect, it } from "vitest";
import { meetingsOf } from "../meetings.ts";
import type { Program } from "../program.ts";
import { parseProgram } from "../program-parse.ts";
import { validateProgram } from "./validate.ts";

/** y[row] = x of the step, in a repeat of N trips; `grid` is what deals the kernels out. */
function program(store: string, { grid = "1", rows = "N" } = {}): Program {
  const over = grid === "1" ? "" : " over t";
  const read = parseProgram(`program p for "wasm" {
    parameter N in 1 to 9
    buffer x : input memory f32 [N, 4] at caller + (0) source "x"
    buffer h : scratch memory f32 [4] at scratch + (0)
    buffer y : output memory f32 [${rows}, 4] at caller + (256) source "y"
    kernel start region "start" {
      grid threads (t < ${grid})
      role main copies 1 threads 1 { for i < 4${over} { store h[i] = f32(0) } }
    }
    kernel step region "step" {
      grid threads (t < ${grid})
      role main copies 1 threads 1 {
        for i < 4${over} { store ${store} = add(load.f32 h[i], load.f32 x[n, i]) }
      }
    }
    tasks {
      launch start after previous
      repeat n < N { launch step after previous bind n = n }
    }
  }`);
  if (!read.ok) throw new Error(read.diagnostics.map((d) => `${d.at}: ${d.message}`).join("\n"));
  return read.value;
}

const codesOf = (p: Program): readonly string[] => {
  const result = validateProgram(p);
  return result.ok ? [] : [...new Set(result.diagnostics.map((d) => d.code))];
};

describe("parts of trips", () => {
  it("cover an output together, forwards and backwards", () => {
    expect(codesOf(program("y[n, i]"))).toEqual([]);
    expect(codesOf(program("y[N - n - 1, i]"))).toEqual([]);
    expect(codesOf(program("y[n, i]", { grid: "threads" }))).toEqual([]);
  });

  it("leave nothing out", () => {
    expect(codesOf(program("y[0, i]"))).toEqual(["PRG020"]);
    expect(codesOf(program("y[n, i]", { rows: "N + 1" }))).toEqual(["PRG020"]);
    expect(codesOf(program("y[n + 1, i]", { rows: "N + 1" }))).toEqual(["PRG020"]);
  });
});

describe("threads meet", () => {
  it("nowhere where the first one does everything", () => {
    expect(meetingsOf(program("y[n, i]")).size).toBe(0);
  });

  it("before each launch that is dealt out", () => {
    const dealt = program("y[n, i]", { grid: "threads" });
    const [start, repeat] = dealt.tasks;
    const inside = repeat?.kind === "repeat" ? repeat.body : [];
    expect([...meetingsOf(dealt)]).toEqual([start, ...inside]);
  });

  it("before a repeat of the first thread's that follows what was dealt out", () => {
    const [one, dealt] = [program("y[n, i]"), program("y[n, i]", { grid: "threads" })];
    const kernels = [dealt.kernels[0]!, one.kernels[1]!];
    const [start, repeat] = one.tasks;
    expect([...meetingsOf({ ...one, kernels })]).toEqual([start, repeat]);
  });
});
