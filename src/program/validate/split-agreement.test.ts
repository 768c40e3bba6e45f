/** Kernels small enough for both proofs: what running all threads refuses, the proof by parts refuses. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mutantsOf } from "../../../campaign/ptx/program-mutants.ts";
import { warpGemmProgram } from "../../../campaign/ptx/simt-programs.ts";
import { parseProgram } from "../program-parse.ts";
import { validateProgram } from "./validate.ts";

/** Codes of the two proofs; undefined where the text is no program. */
function verdicts(text: string): readonly [whole: string, parts: string] | undefined {
  const read = parseProgram(text);
  if (!read.ok) return undefined;
  const say = (stepsRunWhole: number): string => {
    const valid = validateProgram(read.value, { stepsRunWhole });
    return valid.ok ? "" : [...new Set(valid.diagnostics.map((d) => d.code))].sort().join(" ");
  };
  return [say(Number.POSITIVE_INFINITY), say(0)];
}

/** Verdicts of mutants that both proofs can tell; all others are tried by `campaign -- gpu-mutants`. */
function disagreements(text: string, wanted: readonly string[]): readonly string[] {
  const found: string[] = [];
  const seen = new Set<string>();
  for (const { what, text: mutant } of [{ what: "as it is", text }, ...mutantsOf(text)]) {
    const rule = what.replace(/^line \d+: /, "");
    if (!wanted.includes(rule) || seen.has(rule)) continue;
    seen.add(rule);
    const [whole, parts] = verdicts(mutant)!;
    const isRight = rule === "as it is";
    if ((whole === "") !== isRight || (parts === "") !== isRight) {
      found.push(`${what}: ${whole || "ok"}, ${parts || "ok"}`);
    }
  }
  expect(seen.size).toBe(wanted.length);
  return found;
}

describe("both proofs agree", () => {
  it("on a pipeline of warps and its mutants", { timeout: 300_000 }, () => {
    const wanted = [
      "as it is",
      "copy dropped",
      "matrix load from the stage after",
      "group waited for too loosely",
      "barrier dropped",
      "commit dropped",
    ];
    expect(disagreements(warpGemmProgram(64, 64, 128), wanted)).toEqual([]);
  });

  it("on producers and consumers that meet by phases, and mutants", { timeout: 300_000 }, () => {
    const name = "../../../test/golden/program/matmul-pipelined.txt";
    const text = readFileSync(join(import.meta.dirname, name), "utf8");
    const wanted = [
      "wait dropped",
      "wait for the other phase",
      "signal dropped",
      "announcement dropped",
      "too few bytes announced",
      "copy to the stage after",
      "multiplication with the stage after",
      "group waited for too loosely",
    ];
    expect(disagreements(text, wanted)).toEqual([]);
  });
});

interface Ring {
  readonly steps: number;
  readonly stages: number;
  readonly pending: number;
  readonly ahead: number;
  readonly turn: number;
  readonly meets: "before" | "after" | "never" | "oddly";
  readonly reads: string;
  readonly writes: string;
  readonly bound: number;
}

/** A ring of copies over 24 rows in two blocks of 16, every part of which may be wrong. */
function ringProgram(r: Ring): string {
  const { steps, stages, pending, ahead, turn, meets, reads, writes, bound } = r;
  const barrier = {
    before: ["barrier instance", ""],
    after: ["", "barrier instance"],
    never: ["", ""],
    oddly: ["if mod(k, 2) == 0 {\n barrier instance\n }", ""],
  }[meets];
  const copy = (slot: string, column: string): string =>
    `if 23 - 16*b - t >= 0 {
       issue cp.async(tile[${slot}, t, 0] box [4], x[16*b + t, ${column}] box [4]) group c
     } else {
       store tile[${slot}, t, 0] = f32x4(0)
     }`;
  return `program ring for "sm_80" {
  buffer x : input memory f32 [24, ${4 * steps}] source "x"
  buffer y : output memory f32 [24] source "y"
  kernel main region "r" {
    grid blocks (b < 2)
    buffer tile : scratch shared f32 [${stages}, 16, 4]
    buffer sum : scratch register f32 [1]
    role all copies 1 threads 16 as t {
      store sum[0] = f32(0)
      for s < ${stages - 1} {
        if ${steps - 1} - s >= 0 {
          ${copy("s", "4*s")}
        }
        commit c
      }
      for k < ${steps} {
        await c pending ${pending}
        ${barrier[0]}
        if ${bound} - ${ahead} - k >= 0 {
          ${copy(`mod(k + ${turn}, ${stages})`, `4*k + ${4 * ahead}`)}
        }
        commit c
        for i < 4 {
          store sum[0] = add(load.f32 sum[0], load.f32 tile[mod(k, ${stages}), ${reads}, i])
        }
        ${barrier[1]}
      }
      await c pending 0
      if 23 - 16*b - t >= 0 {
        store y[${writes}] = load.f32 sum[0]
      }
    }
  }
  tasks {
    launch main after previous
  }
}
`;
}

describe("rings at random", () => {
  it("parts accept no ring that running all threads refuses, and what is right", {
    timeout: 300_000,
  }, () => {
    const seen = { both: 0, neither: 0, timid: [] as string[] };
    const ring = fc.integer({ min: 2, max: 4 }).chain((stages) =>
      fc.integer({ min: stages, max: 13 }).chain((steps) =>
        fc.record({
          stages: fc.constant(stages),
          steps: fc.constant(steps),
          pending: usually(stages - 2, fc.integer({ min: 0, max: stages })),
          ahead: usually(stages - 1, fc.integer({ min: 1, max: stages })),
          turn: usually(stages - 1, fc.integer({ min: 0, max: stages })),
          meets: usually("before", fc.constantFrom("after", "never", "oddly")),
          reads: usually("15 - t", fc.constantFrom("t", "mod(t + 1, 16)", "t + 1")),
          writes: usually("16*b + t", fc.constantFrom("t", "16*b + t + 1", "15*b + t")),
          bound: usually(steps - 1, fc.constantFrom(steps, steps - 2)),
        }),
      ),
    );
    fc.assert(
      fc.property(ring, (r) => {
        const [whole, parts] = verdicts(ringProgram(r))!;
        if (whole !== "") expect(parts).not.toBe("");
        if (whole === "" && parts === "") seen.both++;
        else if (whole !== "") seen.neither++;
        else seen.timid.push(`${JSON.stringify(r)} ${parts}`);
      }),
      { numRuns: 60, seed: 3 },
    );
    expect(seen.timid).toEqual([]);
    expect(seen.both).toBeGreaterThan(10);
    expect(seen.neither).toBeGreaterThan(15);
  });
});

/** The right value five times out of six. */
function usually<T>(right: T, others: fc.Arbitrary<T>): fc.Arbitrary<T> {
  return fc.oneof({ weight: 5, arbitrary: fc.constant(right) }, { weight: 1, arbitrary: others });
}
