/** Accesses that interleave on blocks: as wide as they can be in PTX, proved, and the same elements in the interpreter. */
import { describe, expect, it } from "vitest";
import { emitPtx } from "../emit/ptx/emit-program.ts";
import { runProgram } from "../interp/program.ts";
import { parseRegion } from "../region/nest-reader.ts";
import { applySchedule } from "../schedule/apply.ts";
import { parseSchedule } from "../schedule/directive-text.ts";
import { checkSchedule } from "../schedule/legality/legality.ts";
import { type DType, dtypes } from "../semantics/dtype.ts";
import { formatDiagnostic, type Result } from "../support/diagnostic.ts";
import { architectures } from "../target/architectures/index.ts";
import { targets } from "../target/index.ts";
import { lowerRegionProgram } from "./region-program.ts";

const gpu = targets.get("h200")!;
const [rows, places] = [3, 64];

interface Given {
  readonly dtype: DType;
  /** Elements that are turned around together. */
  readonly step: number;
  /** Of a vector; 1: a thread has one such group. */
  readonly lanes: number;
  /** Elements before the first group. */
  readonly offset?: number;
}

function take<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
}

/** Each group of neighbours by one place around. */
function programOf({ dtype, step, lanes, offset = 0 }: Given) {
  const at = (n: number): string => `[i, ${step} * j + ${n}]`;
  const all = Array.from({ length: step }, (_, n) => n);
  const region = take(
    parseRegion(`region r group r anchor S0 inlined () epilogue () {
      input x : ${dtype}[${rows}, ${places * step + offset}] output y : ${dtype}[${rows}, ${places * step}]
      statement S0 "" {i in ${rows}, j in ${places}} {
        ${all.map((n) => `y${at(n)}`).join(", ")} = (${all.map((n) => `x${at(((n + 1) % step) + offset)}`).join(", ")}) } }`),
  );
  const threads = lanes > 1 ? "j_q" : "j";
  const split = lanes > 1 ? `split S0:j by ${lanes} -> j_q j_l vectorize S0:j_l` : "";
  const schedule = take(
    parseSchedule(`schedule "r" for "h200" { ${split}
      split S0:${threads} by 8 -> j_b j_t bind S0:j_t to threads
      reorder S0:(i, j_b, j_t${lanes > 1 ? ", j_l" : ""}) bind S0:i to blocks bind S0:j_b to blocks }`),
  );
  const scheduled = take(applySchedule(region, schedule));
  take(checkSchedule(scheduled));
  // Lowering proves the program.
  return take(lowerRegionProgram(scheduled, gpu)).program;
}

function accessesOf(given: Given): readonly string[] {
  const { text } = take(emitPtx(programOf(given), architectures.get("sm_90a")!));
  return text.match(/\b(ld|st)\.global[.\w]*/g)!.map((name) => name.replace(/\.(global|nc)/g, ""));
}

function times(count: number, name: string): readonly string[] {
  return new Array<string>(count).fill(name);
}

describe("accesses that interleave on blocks", () => {
  it.each([
    { dtype: "f32", step: 2, lanes: 2, moved: [1, "v4.b32"] },
    { dtype: "f32", step: 2, lanes: 4, moved: [2, "v4.b32"] },
    { dtype: "bf16", step: 2, lanes: 4, moved: [1, "v4.b32"] },
    { dtype: "bf16", step: 4, lanes: 2, moved: [1, "v4.b32"] },
    { dtype: "f16", step: 3, lanes: 8, moved: [3, "v4.b32"] },
    { dtype: "f32", step: 3, lanes: 4, moved: [3, "v4.b32"] },
    { dtype: "f32", step: 4, lanes: 1, moved: [1, "v4.b32"] },
    { dtype: "f32", step: 2, lanes: 1, moved: [1, "v2.b32"] },
    { dtype: "i64", step: 2, lanes: 1, moved: [1, "v2.b64"] },
    { dtype: "u8", step: 4, lanes: 1, moved: [1, "b32"] },
    // Alone, three begin at no multiple of what an instruction moves.
    { dtype: "f32", step: 3, lanes: 1, moved: [3, "b32"] },
  ] as const)("$step of $dtype in $lanes lanes: $moved", ({ moved: [count, width], ...given }) => {
    expect(accessesOf(given)).toEqual([
      ...times(count, `ld.${width}`),
      ...times(count, `st.${width}`),
    ]);
  });

  it("are as narrow as where they begin makes them", () => {
    expect(accessesOf({ dtype: "f32", step: 2, lanes: 2, offset: 2 })).toEqual([
      ...times(2, "ld.v2.b32"),
      "st.v4.b32",
    ]);
    expect(accessesOf({ dtype: "f32", step: 4, lanes: 1, offset: 1 })).toEqual([
      ...times(4, "ld.b32"),
      "st.v4.b32",
    ]);
  });

  it.each([
    { dtype: "f32", step: 2, lanes: 2 },
    { dtype: "bf16", step: 2, lanes: 4 },
    { dtype: "bf16", step: 2, lanes: 4, offset: 1 },
    { dtype: "f16", step: 3, lanes: 8 },
    { dtype: "f32", step: 4, lanes: 1 },
    { dtype: "i64", step: 2, lanes: 1 },
    { dtype: "u8", step: 4, lanes: 1, offset: 3 },
    { dtype: "f32", step: 3, lanes: 1 },
  ] as const)("are the same elements: $step of $dtype in $lanes lanes", (given) => {
    const { step, offset = 0 } = given as Given;
    const size = dtypes[given.dtype].bits / 8;
    const row = places * step + offset;
    // No byte makes a NaN, of which the interpreter keeps one.
    const x = Uint8Array.from({ length: rows * row * size }, (_, i) => (i * 7 + (i >> 5)) % 113);
    const contents = new Map([["x", x]]);
    const run = runProgram(programOf(given), { parameters: {}, contents, threads: 1, seed: 1 });
    if (run.kind === "fault") throw new Error(JSON.stringify(run.fault));
    const want = Uint8Array.from({ length: rows * places * step * size }, (_, i) => {
      const [at, byte] = [Math.floor(i / size), i % size];
      const [line, place] = [Math.floor(at / (places * step)), at % (places * step)];
      const next = place - (place % step) + ((place + 1) % step);
      return x[(line * row + next + offset) * size + byte]!;
    });
    expect([...run.contents.get("y")!]).toEqual([...want]);
  });
});
