import { expect, it } from "vitest";
import { attentionGraph, attentionOf } from "../../../campaign/ptx/attention-programs.ts";
import { attendFault } from "./attention-limits.ts";

it("gives warps fewer words where the last rows of a triangle are no whole tile: ptxas spills 20 bytes", () => {
  const fault = (rows: number, causal: boolean): string | undefined => {
    const how = "by mma tile (64, 16) warps 2 stages 2";
    const shape = { heads: 2, groups: 1, rows, columns: rows, depth: 96 };
    const graph = attentionGraph({ ...shape, dtype: "bf16", causal, mask: false });
    const { form, directive } = attentionOf(graph, how).attention!;
    return attendFault({ ...directive, tile: [64, 32] }, form);
  };
  expect([fault(1024, true), fault(1000, false)]).toEqual([undefined, undefined]);
  expect(fault(1000, true)).toMatch(/192 words/);
});
