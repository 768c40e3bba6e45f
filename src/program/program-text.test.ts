import fc from "fast-check";
import { expect, test } from "vitest";
import { Rng } from "../support/rng.ts";
import { literalExpr } from "./expr.ts";
import { parseProgram } from "./program-parse.ts";
import { printProgram, printStatements } from "./program-text.ts";
import { randomProgram } from "./random-program.ts";

test("parse after print gives the program back, and prints the same", () => {
  fc.assert(
    fc.property(fc.integer(), (seed) => {
      const program = randomProgram(new Rng(seed));
      const text = printProgram(program);
      const read = parseProgram(text);
      expect(read.ok ? read.value : read.diagnostics).toEqual(program);
      expect(read.ok && printProgram(read.value)).toBe(text);
    }),
    { numRuns: 300 },
  );
});

function checkRejects(body: string, message: RegExp): void {
  const text = `program p for "t" { kernel k region "r" { grid blocks (b < 1)
    role r copies 1 threads 1 { ${body} } } tasks { } }`;
  const read = parseProgram(text);
  expect(read.ok ? [] : read.diagnostics.map((d) => `${d.code} ${d.message}`)).toEqual([
    expect.stringMatching(message),
  ]);
}

test("text that is no program is a diagnostic", () => {
  checkRejects("store y[i] = add(f32(1), f64(2))", /TXT001.*well-typed/);
  checkRejects("store y[i] = fma.f32x4(f32x4(1), f32x4(1), f32x8(1))", /TXT001.*well-typed/);
  checkRejects("store y[i] = v", /TXT001.*let v/);
  checkRejects("store y[i] = nonsense(f32(1))", /TXT001.*operator or intrinsic/);
  checkRejects("store y[i] = f32q(1)", /TXT001/);
  checkRejects("store y[i] = add()", /TXT001/);
  checkRejects("store y[i] = splat.0(f32(1))", /TXT001.*well-typed/);
  checkRejects("store y[i] = extract.4(f32x4(1))", /TXT001.*well-typed/);
  checkRejects("hasOwnProperty", /TXT001.*a statement/);
  checkRejects("for i < {", /TXT001/);
  checkRejects("if i >= 1 { }", /TXT001/);
});

test("statements print one to a line", () => {
  const value = literalExpr(1.5, "f32", 4);
  expect(printStatements([{ kind: "store", buffer: "y", index: [], value }])).toBe(
    "store y[] = f32x4(1.5)\n",
  );
});
