import { describe, expect, it } from "vitest";
import { parseNests } from "../region/nest-reader.ts";
import { type RefTensor, refTensor } from "../semantics/tensor.ts";
import { runNests } from "./nest.ts";

const x = refTensor("f32", [4], [1, 2, 3, 4]);

/** Runs statements that write y from x. */
function run(...statements: readonly string[]): readonly RefTensor[] {
  const text = `nests "t" (x) -> (y) {
    input x : f32[4] intermediate t : f32[4] output y : f32[4]
    ${statements.map((s, i) => `statement S${i} "" ${s}`).join("\n")} }`;
  const program = parseNests(text);
  if (!program.ok) throw new Error(program.diagnostics[0]!.message);
  const result = runNests(program.value, { given: new Map([["x", x]]), symbols: new Map() });
  if (!result.ok) throw new Error(result.diagnostics[0]!.code);
  return result.value;
}

describe("the interpreter of nests notices", () => {
  it("nothing wrong with a right program", () => {
    const [y] = run("{i in 4} { y[i] = (neg(x[3 - i])) }");
    expect(Array.from(y!.data, Number)).toEqual([-4, -3, -2, -1]);
  });

  it.each([
    ["an element that is never written", ["{i in 3} { y[i] = (x[i]) }"]],
    ["an element written twice", ["{i in 4, j in 2} { y[i] = (x[i]) }"]],
    ["a second writer", ["{i in 4} { y[i] = (x[i]) }", "{i in 2} { y[i] = (x[i]) }"]],
    ["a read before the write", ["{i in 4} { y[i] = (t[i]) }", "{i in 4} { t[i] = (x[i]) }"]],
    ["a read outside", ["{i in 4} { y[i] = (x[i + 1]) }"]],
    ["a negative index", ["{i in 4} { y[i] = (x[i - 1]) }"]],
    ["a write outside", ["{i in 5} { y[i] = (f32(0)) }"]],
    [
      "a guard that is missing its other end",
      ["{i in 4} { y[i] = ((x[i + 1] if i >= 0 else 0)) }"],
    ],
    ["a scan that runs backwards", ["{scan i in 4} { y[i] = ((y[i + 1] if 2 - i >= 0 else 0)) }"]],
    ["an update of nothing", ["{i in 4} { y[i] by add = (x[i]) }"]],
  ])("%s", (_, statements) => {
    expect(() => run(...statements)).toThrow(/S\d|never written|unwritten/);
  });

  it("rounds once after a fold and to each type elsewhere", () => {
    const [y] = run(
      "{i in 4, reduce j in 4} { y[i] = reduce<sum, f32, reassociates>(mul(x[j], f32(0.1))) }",
    );
    const product = (v: number) => Math.fround(v * Math.fround(0.1));
    const sum = Math.fround(product(1) + product(2) + product(3) + product(4));
    expect(Array.from(y!.data, Number)).toEqual([sum, sum, sum, sum]);
  });
});
