import { describe, expect, it } from "vitest";
import { parseProgram } from "../../program/program-parse.ts";
import { formatDiagnostic } from "../../support/diagnostic.ts";
import { architectures } from "../../target/architectures/index.ts";
import { emitPtx } from "./emit-program.ts";

/** A loop that loads three vectors a trip; `share` deals it out. */
function textOf(trips: number, { lanes = 1, share = "" } = {}): string {
  const type = lanes === 1 ? "f32" : `f32x${lanes}`;
  const program = parseProgram(`program p for "h200" {
    buffer a : input memory f32 [${trips * lanes}] source "a"
    buffer b : input memory f32 [${trips * lanes}] source "b"
    buffer y : output memory f32 [${lanes}] source "y"
    kernel k region "r" {
      grid blocks (c < 7)
      role all copies 1 threads 1 {
        for i < ${trips}${share} {
          store y[0] = add(load.${type} y[0], mul(load.${type} a[${lanes} * i], load.${type} b[${lanes} * i]))
        }
      }
    }
    tasks { launch k after previous }
  }`);
  if (!program.ok) throw new Error(program.diagnostics.map(formatDiagnostic).join("\n"));
  const emitted = emitPtx(program.value, architectures.get("sm_90a")!);
  if (!emitted.ok) throw new Error(emitted.diagnostics.map(formatDiagnostic).join("\n"));
  return emitted.value.text;
}

/** Trips that stand in the text, those behind the loop among them, and where the loop ends. */
function unrolled(text: string) {
  const end = /setp\.lt\.s32 %p\d+, %r\d+, (\d+)/.exec(text)?.[1];
  return {
    trips: text.match(/ld\.global/g)!.length / 3,
    isRolled: text.includes("nounroll"),
    end: end === undefined ? undefined : Number(end),
  };
}

describe("loops of known trips", () => {
  it("are the assembler's where their loads are few, where those of a trip are many, or where they are long", () => {
    expect(unrolled(textOf(21))).toEqual({ trips: 1, isRolled: false, end: 21 });
    expect(unrolled(textOf(600))).toEqual({ trips: 1, isRolled: false, end: 600 });
    expect(unrolled(textOf(61, { lanes: 4 }))).toEqual({ trips: 1, isRolled: false, end: 61 });
  });

  it("stand as many times as hide latency, with what is left behind the loop, where it would copy out all", () => {
    // Nine trips load 27 registers; 61 are six times nine and seven more.
    expect(unrolled(textOf(61))).toEqual({ trips: 9 + 7, isRolled: true, end: 54 });
    expect(unrolled(textOf(63))).toEqual({ trips: 9, isRolled: true, end: 63 });
  });

  it("have trips of their own in each part that is dealt out", () => {
    expect(unrolled(textOf(61, { share: " over c" }))).toMatchObject({ trips: 1, isRolled: false });
  });

  it("read at the next place in each copy", () => {
    const lines = textOf(61).split("\n");
    const pointers = lines.filter((l) => /add\.s64 (%d\d+), \1, 4;/.test(l.trim()));
    // Two pointers are stepped behind each of the sixteen trips.
    expect(pointers).toHaveLength(2 * 16);
  });
});
