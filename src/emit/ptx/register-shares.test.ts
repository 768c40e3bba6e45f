import { describe, expect, it } from "vitest";
import { gemmProgram } from "../../../campaign/ptx/gemm-program.ts";
import { parseProgram } from "../../program/program-parse.ts";
import { architectures } from "../../target/architectures/index.ts";
import { emitPtx } from "./emit-program.ts";

/** One warpgroup that copies, two that multiply: 384 threads that begin with 168 registers each. */
const text = gemmProgram(
  { m: 256, n: 256, k: 192 },
  {
    ...{ consumers: 2, columns: 128, stages: 2, cluster: 1, clusters: 1, group: 1 },
    registers: [24, 240],
  },
);

function emitted(changed: string) {
  const read = parseProgram(changed);
  if (!read.ok) throw new Error(read.diagnostics[0]!.message);
  return emitPtx(read.value, architectures.get("sm_90a")!);
}

describe("registers that warps hand over", () => {
  it("are as many as the block has", () => {
    expect(text).toContain("setmaxnreg.dec.24");
    expect(text).toContain("setmaxnreg.inc.240");
    expect(emitted(text).ok).toBe(true);
  });
  it.each([
    ["nobody gives any back", /.*setmaxnreg\.dec.*\n/, "", "82944 are asked for"],
    ["too few are given back", "dec.24", "dec.152", "80896 are asked for"],
    ["they change twice", /(.*setmaxnreg\.dec.*\n)/, "$1$1", "more than once"],
    ["no number is called so", "dec.24", "dec.41", "setmaxnreg.dec.41"],
  ])("are refused where %s (EMT001)", (_, from, to, said) => {
    expect(emitted(text.replace(from, to))).toMatchObject({
      ok: false,
      diagnostics: [{ code: "EMT001", message: expect.stringContaining(said) as string }],
    });
  });
});
