/** Maps made from expressions: their rows say what their pieces say, and orders and images by rows are exact. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readFunctions } from "./function-rows.ts";
import {
  type Affine,
  add,
  compose,
  evaluateAffine,
  floorDivide,
  type IntegerMap,
  type IntegerSet,
  intersect,
  intersectDomain,
  inverse,
  isEmpty,
  isEqual,
  makeBox,
  makeMap,
  makeSet,
  orderedBefore,
  scale,
} from "./index.ts";
import { equalValues, inOrder, neverBefore } from "./order.ts";
import { floorDiv } from "./row.ts";

const dims = ["i", "j"];

const expression: fc.Arbitrary<Affine> = fc
  .tuple(...Array.from({ length: 4 }, () => fc.integer({ min: -3, max: 3 })))
  .chain(([a, b, c, d]) => {
    const linear = add(scale(a!, "i"), scale(b!, "j"), scale(c!, "N"), d!);
    const floored = fc
      .integer({ min: 2, max: 4 })
      .map((m) => add(scale(c!, floorDivide(linear, m)), scale(d!, "i")));
    return fc.oneof(fc.constant(linear), fc.constant(add(scale(a!, "i"), b!)), floored);
  });

const values = fc.array(expression, { minLength: 1, maxLength: 3 });

function mapTo(tuple: string, to: readonly Affine[], params: readonly string[] = []): IntegerMap {
  return makeMap({ params, from: { tuple: "S", dims }, to: { tuple, values: to } });
}

function domain(params: readonly string[]): IntegerSet {
  return makeBox({ params, tuple: "S", dims, end: [3, 4] });
}

/** The same value without what is remembered of its making. */
function forgotten(map: IntegerMap): IntegerMap {
  return { kind: "map", params: map.params, pieces: map.pieces };
}

describe("maps from expressions", () => {
  it("have the rows of their pieces", () => {
    fc.assert(
      fc.property(values, (to) => {
        const map = mapTo("A", to);
        const [known] = readFunctions(map)!;
        const at = [-5, -1, 0, 2, 7];
        for (const [i, j] of at.flatMap((v) => at.map((w) => [v, w] as const))) {
          const numbers: Record<string, number> = { i, j, N: 3 };
          const point = [...map.params, ...dims].map((n) => numbers[n]!);
          const value = (row: readonly number[]): number =>
            point.reduce((sum, v, c) => sum + v * row[c]!, row.at(-1)!);
          for (const d of known!.rows.locals) point.push(floorDiv(value(d!.numerator), d!.divisor));
          const rows = known!.rows.outputs.map(value);
          expect(rows).toEqual(to.map((e) => evaluateAffine(e, numbers)));
        }
      }),
      { numRuns: 60 },
    );
  });

  it("are ordered and meet as their pieces do", () => {
    const params = fc.constantFrom([], ["N"], ["M", "N"]);
    // Two floors of parameters in each of two orders can take more work than a question may cost.
    let undecided = 0;
    const agree = (one: IntegerMap, other: IntegerMap): void => {
      const answer = isEqual(one, other);
      expect(answer).not.toBe("no");
      if (answer === "unknown") undecided++;
    };
    fc.assert(
      fc.property(values, values, params, params, (first, second, p, q) => {
        const [early, late] = [mapTo("", first, p), mapTo("", second, q)];
        const [a, b] = [mapTo("A", first, p), mapTo("A", second, q)];
        const own = domain(q);
        const meeting = equalValues(
          { domain: own, params: a.params, known: readFunctions(a)![0]! },
          { domain: own, params: b.params, known: readFunctions(b)![0]! },
        );
        const slow = compose(
          intersectDomain(forgotten(a), own),
          inverse(intersectDomain(forgotten(b), own)),
        );
        agree(meeting, slow);
        const ordered = inOrder(meeting, early, late);
        const plain = intersect(slow, orderedBefore(forgotten(early), forgotten(late)));
        agree(ordered, plain);
        if (neverBefore(early, late)) expect(isEmpty(ordered)).toBe("yes");
      }),
      { numRuns: 60 },
    );
    expect(undecided).toBeLessThan(4);
  });

  it("of another statement, or to elements of another rank, meet nowhere", () => {
    const a = mapTo("A", [add("i", 0)]);
    const flat = { domain: domain([]), params: a.params, known: readFunctions(a)![0]! };
    const b = mapTo("A", [add("i", 0), add("j", 0)]);
    expect(equalValues(flat, { ...flat, known: readFunctions(b)![0]! }).pieces).toEqual([]);
    const stranger = makeSet({ tuple: "T", dims });
    expect(equalValues({ ...flat, domain: stranger }, flat).pieces).toEqual([]);
  });
});
