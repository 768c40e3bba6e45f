import { expect, it } from "vitest";
import { parseProgram } from "../program-parse.ts";
import { validateProgram } from "./validate.ts";

interface Knobs {
  /** What the trips of a block are read from, and by which thread they differ. */
  readonly trips?: string;
  readonly pending?: number;
  /** What a thread stores behind the loop. */
  readonly result?: string;
}

/** A ring of three stages, filled by asynchronous copies, for as many steps as data says for each block. */
function lengths({ trips = "load.i32 n[b]", pending = 1, result = "sum[0]" }: Knobs = {}): string {
  return `program ring for "sm_80" {
  buffer n : input memory i32 [1280] source "n"
  buffer x : input memory f32 [1280, 2400] source "x"
  buffer y : output memory f32 [1280] source "y"
  buffer z : output memory i32 [1280] source "z"
  kernel main region "r" {
    grid blocks (b < 40)
    buffer tile : scratch shared f32 [3, 32, 8]
    buffer sum : scratch register f32 [1]
    role all copies 1 threads 32 as t {
      store sum[0] = f32(0)
      let v0 = ${trips}
      index last < 300 proved = min(max(v0, i32(0)), i32(299))
      for s < 2 {
        issue cp.async(tile[s, t, 0] box [4], x[32*b + t, 8*s] box [4]) group c
        issue cp.async(tile[s, t, 4] box [4], x[32*b + t, 8*s + 4] box [4]) group c
        commit c
      }
      for k < last + 1 {
        await c pending ${pending}
        barrier instance
        if 297 - k >= 0 {
          issue cp.async(tile[mod(k + 2, 3), t, 0] box [4], x[32*b + t, 8*k + 16] box [4]) group c
          issue cp.async(tile[mod(k + 2, 3), t, 4] box [4], x[32*b + t, 8*k + 20] box [4]) group c
        }
        commit c
        for i < 8 {
          store sum[0] = add(load.f32 sum[0], load.f32 tile[mod(k, 3), 31 - t, i])
        }
      }
      await c pending 0
      store y[32*b + t] = load.f32 ${result}
      store z[32*b + t] = i32(0)
    }
  }
  tasks {
    launch main after previous
  }
}
`;
}

function codesOf(text: string): readonly string[] {
  const parsed = parseProgram(text);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.diagnostics));
  const result = validateProgram(parsed.value);
  return result.ok ? [] : result.diagnostics.map((d) => d.code);
}

it("proves steps whose number a block reads, whatever it is", () => {
  expect(codesOf(lengths())).toEqual([]);
});

it("sees a wait that is missing in them", () => {
  // A wait that lets two batches be on their way is for a stage that they still fill.
  expect(codesOf(lengths({ pending: 2 }))).toContain("PRG030");
});

it("sees a race behind the loop that only blocks of fewer steps have", () => {
  // Nothing is copied in the last trips of the most that there may be.
  const early = lengths({ result: "tile[0, 31 - t, 0]" }).replace("await c pending 0", "");
  expect(codesOf(early)).toContain("PRG031");
});

it("refuses a number that threads of a block read for themselves, or that the kernel writes", () => {
  expect(codesOf(lengths({ trips: "load.i32 n[32*b + t]" }))).toContain("PRG060");
  expect(codesOf(lengths({ trips: "load.i32 z[b]" }))).not.toEqual([]);
});
