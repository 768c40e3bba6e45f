import { describe, expect, it } from "vitest";
import { atMost, type Condition, equal, less } from "../semantics/condition.ts";
import {
  add,
  constant,
  evaluate,
  type IndexExpr,
  mod,
  mul,
  variable,
} from "../semantics/index-expr.ts";
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
  it.each([2 ** 53, 2 ** 53 - 1, 0.5, Number.NaN])("refuses the extent %d", (extent) => {
    expect(
      check([
        [
          [n, mul(4, w)],
          [2, extent],
        ],
      ]),
    ).toBe("RUN016");
    expect(
      check([
        [
          [add(w, n), n],
          [extent, 2],
        ],
      ]),
    ).toBe("RUN016");
  });

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

describe("bindParameters on every kind of shape", () => {
  const b = variable("B");
  /** Extents that fix N and W in every order, and one that mentions both. */
  const shapes = [
    [n, add(mul(3, w), -2)],
    [add(w, n), w],
    [mul(2, n), w, add(mul(n, w), 1)],
  ];

  it("binds what the extents say, and refuses the first value beyond either end", () => {
    for (const shape of shapes) {
      for (let N = -1; N <= 10; N++) {
        for (const W of [0, 3, 4, 5, 63, 64, 65]) {
          const extents = shape.map((e) => evaluate(e, new Map(Object.entries({ N, W }))));
          const inside = N >= 1 && N <= 8 && W >= 4 && W <= 64;
          expect(check([[shape, extents]], [])).toEqual(inside ? { N, W } : "RUN015");
        }
      }
    }
  });

  it("checks every requirement on both sides of its boundary", () => {
    const bound = (N: number, W: number, requires: Condition[]) =>
      check(
        [
          [
            [n, w],
            [N, W],
          ],
        ],
        requires,
      );
    for (let N = 1; N <= 8; N++) {
      for (let W = 4; W <= 12; W++) {
        const given = { N, W };
        expect(bound(N, W, [atMost(w, n)])).toEqual(W <= N ? given : "RUN017");
        expect(bound(N, W, [atMost(n, 8), less(n, w)])).toEqual(N < W ? given : "RUN017");
        expect(bound(N, W, [equal(mul(2, n), w)])).toEqual(2 * N === W ? given : "RUN017");
        expect(bound(N, W, [equal(mod(w, n), 0)])).toEqual(W % N === 0 ? given : "RUN017");
      }
    }
  });

  it("refuses every single wrong extent", () => {
    const right = new Map(Object.entries({ N: 3, W: 10 }));
    for (const shape of shapes) {
      const extents = shape.map((e) => evaluate(e, right));
      extents.forEach((extent, axis) => {
        // The other input fixes both parameters.
        const wrong = extents.with(axis, extent + 1);
        expect(
          check(
            [
              [
                [n, w],
                [3, 10],
              ],
              [shape, wrong],
            ],
            [],
          ),
        ).toBe("RUN016");
      });
    }
    expect(
      check(
        [
          [
            [n, w, b],
            [3, 10, 5],
          ],
        ],
        [],
      ),
    ).toEqual({ N: 3, W: 10, B: 5 });
  });
});
