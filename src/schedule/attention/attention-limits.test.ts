import { expect, it } from "vitest";
import { attentionGraph, attentionOf } from "../../../campaign/ptx/attention-programs.ts";
import { attendFault } from "./attention-limits.ts";

const shape = { heads: 2, groups: 1, dtype: "bf16", causal: false, mask: false } as const;

interface Given {
  readonly rows: number;
  readonly columns?: number;
  readonly depth: number;
  readonly causal?: boolean;
  readonly mask?: boolean;
}

function fault(given: Given, tile: readonly [number, number], warps: number): string | undefined {
  const graph = attentionGraph({ ...shape, columns: given.rows, ...given });
  const { form, directive } = attentionOf(graph, "by mma tile (64, 16) warps 4 stages 2")
    .attention!;
  return attendFault({ ...directive, tile, warps }, form);
}

it("gives warps fewer words where the last rows of a triangle are no whole tile", () => {
  const ragged = fault({ rows: 1000, depth: 128, causal: true }, [128, 128], 8);
  expect(ragged).toMatch(/192 words/);
  expect(fault({ rows: 1024, depth: 128, causal: true }, [128, 128], 8)).toBeUndefined();
  expect(fault({ rows: 1000, depth: 128 }, [128, 128], 8)).toBeUndefined();
});

it("gives warps fewer words where most of them are kept from step to step: ptxas spills up to 132 bytes", () => {
  for (const depth of [96, 144]) {
    expect(fault({ rows: 512, depth }, [64, 32], 2)).toMatch(/192 words/);
    expect(fault({ rows: 512, depth }, [64, 32], 4)).toBeUndefined();
  }
  expect(fault({ rows: 512, depth: 64 }, [64, 64], 2)).toBeUndefined();
});

it("counts operands of scores that warps load ahead: ptxas spills up to 116 bytes", () => {
  const masked = { rows: 77, depth: 128, mask: true };
  expect(fault(masked, [64, 128], 4)).toMatch(/192 words .* and 64 that are loaded ahead/);
  expect(fault({ ...masked, mask: false }, [64, 128], 4)).toBeUndefined();
  // Pairs of neighbours are a word, where columns are even.
  expect(fault({ rows: 512, depth: 128, mask: true }, [64, 64], 4)).toBeUndefined();
  expect(fault({ rows: 512, columns: 513, depth: 224, mask: true }, [64, 64], 4)).toMatch(
    /160 words .* and 40 /,
  );
  // The smallest tile has room.
  for (const depth of [128, 256])
    expect(fault({ rows: 512, columns: 513, depth, mask: true }, [64, 32], 4)).toBeUndefined();
});
