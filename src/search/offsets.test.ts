import fc from "fast-check";
import { expect, it } from "vitest";
import { type Block, planOffsets } from "./offsets.ts";

const block = fc
  .record({
    start: fc.integer({ min: 0, max: 6 }),
    length: fc.integer({ min: 1, max: 5 }),
    size: fc.integer({ min: 1, max: 6 }),
  })
  .map(({ start, length, size }): Block => ({ start, end: start + length, size }));

const meet = (a: Block, b: Block): boolean => a.start < b.end && b.start < a.end;

/** Least height of all: blocks in every order, each as low as the ones before it allow on top of them. */
function leastHeight(
  blocks: readonly Block[],
  placed: readonly (readonly [Block, number])[] = [],
): number {
  if (blocks.length === 0) return placed.reduce((most, [b, at]) => Math.max(most, at + b.size), 0);
  const heights = blocks.map((b, i) => {
    const at = placed.reduce((top, [c, o]) => (meet(b, c) ? Math.max(top, o + c.size) : top), 0);
    return leastHeight(
      blocks.filter((_, j) => j !== i),
      [...placed, [b, at]],
    );
  });
  return Math.min(...heights);
}

it("packs exactly when the least height allows it, without overlap", () => {
  const property = fc.property(fc.array(block, { minLength: 1, maxLength: 6 }), (blocks) => {
    const least = leastHeight(blocks);
    expect(planOffsets(blocks, { capacity: least - 1 }).status).toBe("impossible");
    const { status, offsets } = planOffsets(blocks, { capacity: least });
    expect(status).toBe("packed");
    blocks.forEach((a, i) => {
      expect(offsets![i]! + a.size).toBeLessThanOrEqual(least);
      blocks.slice(i + 1).forEach((b, k) => {
        const [x, y] = [offsets![i]!, offsets![i + 1 + k]!];
        if (meet(a, b)) expect(x + a.size <= y || y + b.size <= x).toBe(true);
      });
    });
  });
  fc.assert(property, { numRuns: 150 });
});

it("stops when the work does", () => {
  const blocks = Array.from({ length: 40 }, (_, i) => ({
    start: (i * 7) % 31,
    end: ((i * 7) % 31) + 3 + (i % 9),
    size: 5 + ((i * 11) % 17),
  }));
  expect(planOffsets(blocks, { capacity: 1e6, nodes: 10 }).status).toBe("stopped");
});
