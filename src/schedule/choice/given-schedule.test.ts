import { describe, expect, it } from "vitest";
import { compileModel } from "../../compile.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import { tensorType } from "../../graph/tensor-type.ts";
import { noWeights } from "../../interp/graph.ts";
import type { DType } from "../../semantics/dtype.ts";
import { targets } from "../../target/index.ts";
import { parseSchedule, printSchedule } from "../directive-text.ts";

/** A product of two square inputs, under a schedule that is given for one region. */
function compiledWith(
  target: string,
  directives: string,
  { dtype = "bf16", region = "S0" }: { dtype?: DType; region?: string } = {},
) {
  const g = new GraphBuilder("product");
  const [x, w] = ["x", "w"].map((name) => g.input(name, tensorType(dtype, 64, 64)));
  const graph = g.finish([g.cast(g.einsum("i k, j k -> i j", x!, w!, "f32"), dtype)]);
  const schedule = parseSchedule(`schedule "${region}" for "${target}" { ${directives} }`);
  if (!schedule.ok) throw new Error(schedule.diagnostics[0]!.message);
  const measured = new Map([[region, schedule.value]]);
  const model = { graph, weights: noWeights };
  const compiled = compileModel(model, { target: targets.get(target)!, measured });
  if (!compiled.ok) return compiled.diagnostics.map((d) => `${d.code}: ${d.message}`);
  return compiled.value.regions.map((r) => printSchedule(r.scheduled.schedule));
}

const tile = "multiply S0 by mma tile (64, 64, 32) warps (2, 2) stages";

describe("a schedule that is given", () => {
  it("is refused with a reason where the target has no code for it", () => {
    expect(compiledWith("h200", `${tile} 40 swizzle 64`)).toEqual([
      expect.stringMatching(/^SCH046: the schedule that was given for S0 has no code on h200/),
    ]);
  });

  it("is refused where it rounds as nobody allowed", () => {
    const tf32 = "multiply S0 by mma tile (64, 64, 32) warps (2, 2) stages 3 swizzle 128";
    expect(compiledWith("h200", tf32, { dtype: "f32" })).toEqual([
      expect.stringMatching(/^SCH046: .*tf32/),
    ]);
  });

  it("is taken on a CPU though no price would choose it", () => {
    const [plain] = compiledWith("wasm", "", { dtype: "f32" });
    expect(plain).toMatch(/^schedule "?S0"? for "?wasm"? \{\s*\}/);
  });

  it("needs a region", () => {
    expect(compiledWith("wasm", "", { region: "S77", dtype: "f32" })).toEqual([
      expect.stringMatching(/^SCH001: .*S77/),
    ]);
  });
});
