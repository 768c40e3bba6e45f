import { describe, expect, it } from "vitest";
import { atMost, equal } from "../semantics/condition.ts";
import { add, constant, type IndexExpr, mul, variable } from "../semantics/index-expr.ts";
import { bindParameters } from "./bind-parameters.ts";

const w = variable("W");
const n = variable("N");
const parameters = [
  { name: "N", min: 1, max: 8 },
  { name: "W", min: 4, max: 64 },
];

/** The bound values, or the code of the first diagnostic. */
function check(
  shapes: readonly (readonly [readonly IndexExpr[], readonly number[]])[],
  requires = [atMost(n, w)],
): Record<string, number> | string {
  const given = shapes.map(([shape, extents], i) => ({
    port: { name: `x${i}`, shape },
    shape: extents,
  }));
  const bound = bindParameters({ parameters, requires }, given);
  return bound.ok ? Object.fromEntries(bound.value) : bound.diagnostics[0]!.code;
}

describe("bindParameters", () => {
  it("solves extents that are linear in one unknown, in any order", () => {
    expect(
      check([
        [
          [add(mul(2, w), n), n],
          [23, 3],
        ],
      ]),
    ).toEqual({ N: 3, W: 10 });
    expect(
      check([
        [
          [n, constant(3), mul(4, w)],
          [2, 3, 40],
        ],
      ]),
    ).toEqual({ N: 2, W: 10 });
  });

  it("refuses what does not determine, fit or agree", () => {
    expect(check([[[n], [2]]])).toBe("RUN014");
    expect(
      check([
        [
          [n, w],
          [9, 10],
        ],
      ]),
    ).toBe("RUN015");
    expect(check([[[n, w], [2]]])).toBe("RUN016");
    expect(
      check([
        [
          [n, w, w],
          [2, 10, 11],
        ],
      ]),
    ).toBe("RUN016");
    expect(
      check(
        [
          [
            [n, w],
            [2, 10],
          ],
        ],
        [equal(n, 3)],
      ),
    ).toBe("RUN017");
  });
});
