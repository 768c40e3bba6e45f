import { expect, it } from "vitest";
import { Rng } from "../support/rng.ts";
import { add, evaluate, floorDiv, mod, mul, variable } from "./index-expr.ts";
import { withoutRemainders } from "./index-range.ts";

const [t, l] = [variable("t"), variable("l")];

it("quotients are those of what decides them, where the rest is below the step", () => {
  const ranges = new Map([
    ["t", { min: 0, max: 40 }],
    ["l", { min: 0, max: 7 }],
  ]);
  const block = floorDiv(add(mul(8, t), l), 128);
  expect(withoutRemainders(block, ranges).key).toBe(floorDiv(t, 16).key);
  expect(withoutRemainders(add(floorDiv(add(mul(8, t), l), 12), t), ranges).key).toContain("l");
  const wide = new Map(ranges).set("l", { min: 0, max: 8 });
  expect(withoutRemainders(block, wide).key).toBe(block.key);
});

it("values stay", () => {
  const rng = new Rng(3);
  for (let n = 0; n < 300; n++) {
    const most = rng.integer(0, 9);
    const ranges = new Map([
      ["t", { min: -20, max: 20 }],
      ["l", { min: 0, max: most }],
    ]);
    const draw = (): number => rng.integer(-16, 16);
    const inner = add(mul(draw(), t), mul(draw(), l), mul(draw(), mod(t, 3)), draw());
    const e = add(mul(draw(), floorDiv(inner, rng.integer(1, 64))), l);
    const made = withoutRemainders(e, ranges);
    for (let k = 0; k < 20; k++) {
      const at = new Map([
        ["t", rng.integer(-20, 20)],
        ["l", rng.integer(0, most)],
      ]);
      expect(evaluate(made, at)).toBe(evaluate(e, at));
    }
  }
});
