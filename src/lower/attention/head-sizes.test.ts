/** Attention by warpgroups with heads that are no multiples of 64: whole lines and panels of what is left. */
import { describe, expect, it } from "vitest";
import { offBy } from "../../../campaign/ptx/attention-difference.ts";
import {
  type AttentionCase,
  attentionGraph,
  attentionOf,
  attentionProgram,
} from "../../../campaign/ptx/attention-programs.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import { printProgram } from "../../program/program-text.ts";
import { enumerateAttention } from "../../schedule/attention/attention-candidates.ts";
import { attendFault, attentionBytes } from "../../schedule/attention/attention-limits.ts";
import { constant } from "../../semantics/index-expr.ts";
import { refTensor } from "../../semantics/tensor.ts";
import { targets } from "../../target/index.ts";
import { planAttention, sharedBuffers } from "./plan.ts";

const small: AttentionCase = {
  ...{ heads: 2, groups: 1, rows: 70, columns: 40, depth: 80, causal: false, mask: false },
  dtype: "bf16",
  how: "by wgmma tile (64, 32) warps 4 stages 2",
};
const gathered = `${small.how} gathered`;

describe("heads of any multiple of 16 from 32 on", () => {
  it.each<readonly [string, AttentionCase]>([
    ["32, one panel", { ...small, depth: 32 }],
    ["48", { ...small, depth: 48, how: gathered }],
    ["80, two groups", { ...small, how: "by wgmma tile (128, 16) warps 8 stages 2 gathered" }],
    ["80, one step", { ...small, how: "by wgmma tile (128, 48) warps 8 stages 1" }],
    ["96 in f16", { ...small, depth: 96, dtype: "f16", how: gathered }],
    ["96 with a mask", { ...small, depth: 96, mask: true }],
    ["112, a triangle", { ...small, columns: 70, depth: 112, causal: true, how: gathered }],
    ["240", { ...small, rows: 20, columns: 16, depth: 240, how: gathered.replace("32", "16") }],
    ["a band", { ...small, rows: 100, columns: 100, depth: 32, causal: true, behind: 20 }],
  ])("%s", (_, c) => {
    for (const off of offBy(c, [{}])) expect(off).toBeLessThanOrEqual(1);
  });

  it("lengths that are data", () => {
    const sizes = { rows: 9, columns: 96 };
    const c = { ...small, ...sizes, causal: true, lengths: true, how: gathered };
    for (const off of offBy(c, [{}], (name, drawn) =>
      name === "lengths" ? refTensor("i64", [1], [61]) : drawn,
    ))
      expect(off).toBeLessThanOrEqual(1);
  });

  it("open extents", () => {
    const sizes = [
      { B: 1, S: 33 },
      { B: 2, S: 70 },
    ];
    const c = { ...small, groups: 2, columns: 70, open: true, how: gathered };
    for (const off of offBy(c, sizes)) expect(off).toBeLessThanOrEqual(1);
  });

  it("lie in whole lines and panels of what is left, values in panels of one width, nothing empty", () => {
    const buffers = (depth: number): readonly (readonly string[])[] => {
      const { kernels } = attentionProgram(
        attentionOf(attentionGraph({ ...small, depth }), small.how),
      );
      return kernels[0]!.buffers
        .filter((b) => b.scope === "shared" && !b.name.startsWith("queries"))
        .map((b) => [b.name, b.shape.map((e) => e.key).join(), String(b.swizzleBytes)]);
    };
    expect(buffers(96)).toEqual([
      ["keys", "2,1,32,64", "128"],
      ["keysRest", "2,1,32,32", "64"],
      ["values", "2,3,32,32", "64"],
    ]);
    expect(buffers(80)).toEqual([
      ["keys", "2,1,32,64", "128"],
      ["keysRest", "2,1,32,16", "32"],
      ["values", "2,5,32,16", "32"],
    ]);
    expect(buffers(128)).toEqual([
      ["keys", "2,2,32,64", "128"],
      ["values", "2,2,32,64", "128"],
    ]);
  });

  it("all have candidates, whose buffers are as large as is said", () => {
    for (let depth = 32; depth <= 256; depth += 16) {
      const c = {
        ...small,
        rows: 512,
        columns: 512,
        depth,
        how: "by mma tile (16, 16) warps 1 stages 2",
      };
      const { region, attention } = attentionOf(attentionGraph(c), c.how);
      const found = enumerateAttention(region, targets.get("h200")!).filter(
        (d) => d.by === "wgmma",
      );
      expect(found.length, `${depth}`).toBeGreaterThan(0);
      for (const d of found) {
        const plan = planAttention(attention!.form, d);
        const buffers = [plan.query, plan.key, plan.value].flatMap((s) => sharedBuffers(plan, s));
        const elements = buffers.map((b) => b.shape.reduce((n, e) => n * e.constant, 1));
        const bytes = 2 * elements.reduce((a, b) => a + b);
        // Beside them alignment and counters.
        expect(attentionBytes(d, attention!.form) - bytes).toBe(1280);
      }
    }
  });

  it("that stand beside each other in lines are found there, to the last element", () => {
    const g = new GraphBuilder("attention");
    const shape = [40, 3, 80].map((n) => constant(n));
    const inputs = ["q", "k", "v"].map((name) => g.input(name, { dtype: "bf16", shape }));
    const turned = inputs.map((x) => g.node("transpose", [x], { permutation: [1, 0, 2] }));
    const scores = g.einsum("h s d, h t d -> h s t", turned[0]!, turned[1]!);
    const weights = g.node("softmax", [g.applyNumber("mul", scores, 1 / 9)], { axis: 2 });
    const graph = g.finish([g.einsum("h s t, h t e -> h s e", weights, turned[2]!)]);
    const text = printProgram(attentionProgram(attentionOf(graph, small.how)));
    expect(text).toMatch(/keysRest\[.*k\.j1\[32, 80\*problem\d+ \+ 64\] box \[32, 16\]/);
    expect(text).toMatch(/values\[.*v\.j1\[.*, 80\*problem\d+ \+ 64\] box \[32, 16\]/);
  });

  it("are refused where they are no multiples of 16, and where an assembler cannot hold them", () => {
    const { form, directive } = attentionOf(attentionGraph(small), small.how).attention!;
    const fault = (head: number, groups = 1): string | undefined => {
      const of = { tile: [64 * groups, 32], warps: 4 * groups } as const;
      return attendFault({ ...directive, ...of }, { ...form, depth: head, width: head });
    };
    expect(fault(72)).toMatch(/multiples of 16/);
    // ptxas 13.0: C7511 where columns are no whole steps, C7602.
    expect([fault(16), fault(32)]).toEqual([expect.stringMatching(/wait/), undefined]);
    expect([fault(208, 3), fault(208, 2)]).toEqual([expect.stringMatching(/three/), undefined]);
  });
});
