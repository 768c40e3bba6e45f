import fc from "fast-check";
import { expect, it } from "vitest";
import { copyKnowledge, emptyKnowledge, join, joinAll, type Knowledge } from "./program-clock.ts";

const slots = 6;

/** What is known of every slot, in all three ways. */
function tell({ seen, fencedShared, fencedMemory }: Knowledge): readonly number[] {
  return [seen, fencedShared, fencedMemory].flatMap((clock) =>
    Array.from({ length: slots }, (_, slot) => clock.of(slot)),
  );
}

const step = fc.record({
  who: fc.nat({ max: 3 }),
  slot: fc.nat({ max: slots - 1 }),
  clock: fc.integer({ min: 1, max: 9 }),
  what: fc.constantFrom("raise", "fence", "join", "meet"),
});

it("who meet know what each would by learning from all, now and after more of it", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const [all, plain] = [0, 1].map(() => Array.from({ length: 4 }, emptyKnowledge));
      for (const { who, slot, clock, what } of steps) {
        for (const knows of [all![who]!, plain![who]!]) {
          if (what === "raise") knows.seen.raise(slot, clock);
          if (what === "fence") knows.fencedShared.join(knows.seen);
        }
        if (what === "join") {
          join(all![who]!, all![slot % 4]!);
          join(plain![who]!, plain![slot % 4]!);
        }
        if (what !== "meet") continue;
        joinAll(all!.slice(0, 1 + who));
        const joined = emptyKnowledge();
        for (const knows of plain!.slice(0, 1 + who)) join(joined, copyKnowledge(knows));
        for (const knows of plain!.slice(0, 1 + who)) join(knows, joined);
      }
      expect(all!.map(tell)).toEqual(plain!.map(tell));
    }),
  );
});
