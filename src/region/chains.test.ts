import { describe, expect, it } from "vitest";
import { ChainFinder } from "./chains.ts";
import { analyseProgram, formRegion } from "./form-region.ts";
import type { NestProgram } from "./nest.ts";
import { parseNests } from "./nest-reader.ts";

function programOf(text: string): NestProgram {
  const read = parseNests(text);
  if (!read.ok) throw new Error(read.diagnostics[0]!.message);
  return read.value;
}

function finderOf(program: NestProgram): ChainFinder {
  const analysed = analyseProgram(program);
  const names = [...analysed.uses.statementAt.keys()];
  const alone = (name: string) => ({ name, anchor: name, inlined: [], epilogue: [] });
  return new ChainFinder(
    names.map((name) => formRegion(analysed, alone(name))),
    program,
  );
}

describe("chains", () => {
  it("grow along what their members make, past what has nothing to do with them", () => {
    const program = programOf(`nests "t" (x) -> (y, z) {
      input x : f32[4, 8] intermediate a : f32[4, 8] intermediate b : f32[4, 8]
      intermediate m : f32[4, 1] output y : f32[4, 8] output z : f32[4, 8]
      statement A "" {i in 4, j in 8} { a[i, j] = (exp(x[i, j])) }
      statement B "" {i in 4, j in 8} { b[i, j] = (neg(x[i, j])) }
      statement M "" {i in 4, reduce j in 8} { m[i, 0] = reduce<max, f32, exact>(a[i, j]) }
      statement Z "" {i in 4, j in 8} { z[i, j] = (abs(b[i, j])) }
      statement Y "" {i in 4, j in 8} { y[i, j] = (div(a[i, j], m[i, 0])) } }`);
    expect(finderOf(program).longest()).toEqual([
      [0, 2, 4],
      [1, 3],
    ]);
  });

  it("of thousands of parts of one tensor are found at once", { timeout: 15_000 }, () => {
    const parts = Array.from({ length: 6000 }, (_, i) => i);
    const program = programOf(`nests "t" (x) -> (y) {
      input x : f32[24000] output y : f32[24000]
      ${parts.map((i) => `intermediate e${i} : f32[4]`).join("\n")}
      ${parts.map((i) => `statement E${i} "" {k in 4} { e${i}[k] = (exp(x[${4 * i} + k])) }`).join("\n")}
      ${parts.map((i) => `statement Y${i} "" {k in 4} { y[${4 * i} + k] = (e${i}[k]) }`).join("\n")} }`);
    const found = finderOf(program).longest();
    expect(found).toHaveLength(6000);
    expect(found[7]).toEqual([7, 6007]);
  });
});
