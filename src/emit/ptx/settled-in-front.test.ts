/** Where quotients stand in the text of a kernel: in front, in which they are held, or where they are asked for. */
import { describe, expect, it } from "vitest";
import { parseProgram } from "../../program/program-parse.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { architectures } from "../../target/architectures/index.ts";
import { emitPtx } from "./emit-program.ts";

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

/** The text of a kernel of 64 threads that is such a body. */
function textOf(body: string): string {
  const program = `program p for "h200" {
    buffer x : input memory f32 [4096] source "x"
    buffer y : output memory f32 [4096] source "y"
    kernel k region "r" {
      grid blocks (b < 4)
      buffer t : scratch shared f32 [64]
      role main copies 1 threads 64 as thread {
        store t[thread] = load.f32 x[thread]
        ${body}
      }
    }
    tasks { launch k after previous }
  }`;
  return take(emitPtx(take(parseProgram(program)), architectures.get("sm_90a")!)).text;
}

/** Quotients in front of the barrier, and behind it. */
function quotients(text: string): readonly number[] {
  const parts = text.split("bar.sync");
  expect(parts).toHaveLength(2);
  return parts.map((part) => part.match(/\bdiv\.u32/g)?.length ?? 0);
}

const scaled = (i: number): string => `let a${i} = load.f32 x[floorDiv(thread + ${64 * i}, 7)]`;
const summed = "store y[64*b + thread] = add(a0, add(a1, a2))";
const reads = [0, 1, 2].map(scaled).join("\n");

describe("quotients", () => {
  it("are computed behind the barrier that stands between them and who asks for them", () => {
    expect(quotients(textOf(`barrier instance ${reads} ${summed}`))).toEqual([0, 3]);
    expect(quotients(textOf(`${reads} barrier instance ${summed}`))).toEqual([3, 0]);
  });

  it("are computed once where two ask, and again in each branch", () => {
    const same = reads.replaceAll(/thread \+ \d+/g, "thread");
    expect(quotients(textOf(`barrier instance ${same} ${summed}`))).toEqual([0, 1]);
    const store = (i: number): string => `if thread - ${i} >= 0 {
      store y[64*b + thread] = load.f32 x[floorDiv(thread, 7) + ${i}]
    }`;
    expect(quotients(textOf(`barrier instance ${store(1)} ${store(2)}`))).toEqual([0, 2]);
  });

  it("are in front of everything where a loop asks, and where they are shifts and masks", () => {
    const loop = `for i < 5 { store t[thread] = load.f32 x[floorDiv(thread, 7) + 32*i] }`;
    expect(quotients(textOf(`barrier instance ${loop} ${reads} ${summed}`))).toEqual([1, 2]);
    const [front, behind] = textOf(
      `barrier instance ${reads.replaceAll("7)", "8)")} ${summed}`,
    ).split("bar.sync");
    expect(front).toMatch(/shr\.s32 %r\d+, %r\d+, 3;/);
    expect(behind).not.toContain("shr.");
  });
});
