/** What only few rows gain by is left out where the program is not proved with it. */
import { expect, it, vi } from "vitest";
import { compileModel } from "./compile.ts";
import { GraphBuilder } from "./graph/builder.ts";
import { tensorType } from "./graph/tensor-type.ts";
import { noWeights } from "./interp/graph.ts";
import { printProgram } from "./program/program-text.ts";
import { validateProgram } from "./program/validate/validate.ts";
import { diagnostic, fail } from "./support/diagnostic.ts";
import { targets } from "./target/index.ts";

vi.mock(import("./program/validate/validate.ts"), async (original) => {
  const real = await original();
  return { ...real, validateProgram: vi.fn(real.validateProgram) };
});

function compiled(isOpen = true) {
  const b = new GraphBuilder("few");
  const rows = isOpen ? b.symbol("rows", 1, 64) : 64;
  const x = b.input("x", tensorType("f32", rows, 256));
  const w = b.weight("w", tensorType("f32", 256, 1024));
  const model = { graph: b.finish([b.matMul(x, w)]), weights: noWeights };
  return compileModel(model, { target: targets.get("wasm")! });
}

it("compiles without the forms of few rows where the first program is refused", () => {
  const usual = compiled();
  vi.mocked(validateProgram).mockReturnValueOnce(fail(diagnostic("PRG021", "planted")));
  const plain = compiled();
  if (!usual.ok || !plain.ok) throw new Error("refused");
  const [few, many] = [usual, plain].map((r) => printProgram(r.value.plan.program).split("\n"));
  expect(few!.length).toBeGreaterThan(many!.length);
  expect(plain.value.regions.every((r) => r.scheduled.plainRows)).toBe(true);
});

it("is refused where that is not proved either", () => {
  vi.mocked(validateProgram).mockReturnValueOnce(fail(diagnostic("PRG021", "planted")));
  vi.mocked(validateProgram).mockReturnValueOnce(fail(diagnostic("PRG021", "planted")));
  const refused = compiled();
  expect(refused.ok).toBe(false);
  if (refused.ok) return;
  expect(refused.diagnostics[0]!.code).toBe("SCH032");
  expect(refused.diagnostics[0]!.help).toContain("--shape");
});

it("the cure of one whose sizes are all known is another target", () => {
  vi.mocked(validateProgram).mockReturnValueOnce(fail(diagnostic("PRG021", "planted")));
  vi.mocked(validateProgram).mockReturnValueOnce(fail(diagnostic("PRG021", "planted")));
  const refused = compiled(false);
  expect(refused.ok).toBe(false);
  if (!refused.ok) expect(refused.diagnostics[0]!.help).toContain("--target");
});
