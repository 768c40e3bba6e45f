import fc from "fast-check";
import { expect, it } from "vitest";
import { RecentValues } from "./recent-values.ts";

const step = fc.record({
  key: fc.constantFrom("a", "b", "c", "d", "e"),
  weight: fc.integer({ min: 0, max: 9 }),
  keeps: fc.boolean(),
});

it("keeps what was used last within both limits; all else leaves once", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const limits = { values: 3, weight: 12 };
      const recent = new RecentValues<number>(limits);
      // A list, the most recently used last.
      let model: { key: string; id: number; weight: number }[] = [];
      const left: number[] = [];
      const expectedLeft: number[] = [];
      steps.forEach(({ key, weight, keeps }, id) => {
        const at = model.find((m) => m.key === key);
        if (!keeps) {
          expect(recent.use(key)).toBe(at?.id);
          if (at) model = [...model.filter((m) => m !== at), at];
          return;
        }
        left.push(...recent.keep(key, id, weight));
        if (at) expectedLeft.push(at.id);
        model = [...model.filter((m) => m !== at), { key, id, weight }];
        const total = () => model.reduce((sum, m) => sum + m.weight, 0);
        while (model.length > 1 && (model.length > limits.values || total() > limits.weight)) {
          expectedLeft.push(model.shift()!.id);
        }
        expect(recent.size).toBe(model.length);
      });
      expect(left).toEqual(expectedLeft);
      expect(recent.values()).toEqual(model.map((m) => m.id));
      expect(recent.clear()).toEqual(model.map((m) => m.id));
      expect(recent.size).toBe(0);
    }),
    { numRuns: 300 },
  );
});
