import { describe, expect, it } from "vitest";
import {
  add,
  constant,
  evaluate,
  type IndexExpr,
  mul,
  variable,
} from "../../semantics/index-expr.ts";
import { Rng } from "../../support/rng.ts";
import { Facts } from "./facts.ts";
import { lieApart, originsOf, type Place, signatureOf } from "./separate.ts";

const extents = { t: 4, g: 3, b: 2 } as const;
const N = 2;

function randomIndex(rng: Rng): IndexExpr {
  const terms = Object.keys(extents).map((name) =>
    mul(rng.pick([0, 0, 1, 2, 3, 8, 12]), variable(name)),
  );
  const parameter = mul(rng.pick([0, 0, 1]), variable("N"));
  return add(...terms, parameter, rng.integer(0, 9));
}

function placeOf(index: IndexExpr, span: number): Place {
  let facts = Facts.none().withParameter("N", N, N + 3);
  for (const [name, extent] of Object.entries(extents)) {
    facts = facts.withVariable(name, constant(extent));
  }
  return { index: [index], spans: [span], facts, spread: [] };
}

/** All elements that an access touches, for one value of the parameter. */
function elements({ index, spans }: Place, n: number): Set<number> {
  const found = new Set<number>();
  for (let t = 0; t < extents.t; t++) {
    for (let g = 0; g < extents.g; g++) {
      for (let b = 0; b < extents.b; b++) {
        const at = new Map(Object.entries({ t, g, b, N: n }));
        const first = evaluate(index[0]!, at);
        for (let lane = 0; lane < spans[0]!; lane++) found.add(first + lane);
      }
    }
  }
  return found;
}

describe("lieApart", () => {
  it("says so only of accesses that share no element, and of many that do not", () => {
    const rng = new Rng(5);
    let apart = 0;
    let proved = 0;
    for (let trial = 0; trial < 3000; trial++) {
      const [a, b] = [0, 1].map(() => placeOf(randomIndex(rng), rng.integer(1, 2))) as [
        Place,
        Place,
      ];
      const shares = [N, N + 1, N + 2, N + 3].some((n) => {
        const other = elements(b, n);
        return [...elements(a, n)].some((e) => other.has(e));
      });
      const says = lieApart(a, b);
      expect(says && shares, `${a.index[0]!.key} and ${b.index[0]!.key}`).toBe(false);
      if (!shares) apart++;
      if (says) proved++;
    }
    expect(proved / apart).toBeGreaterThan(0.6);
  });
});

describe("signatureOf", () => {
  it("tells instances apart by steps in either direction, wider than what lies between", () => {
    const spread = ["t", "g"].map((name) => ({ name, identity: name, required: true }));
    for (const step of [4, -4]) {
      const index = add(mul(step, variable("t")), variable("g"), 12);
      const signature = (span: number): string | undefined => {
        const place = { ...placeOf(index, span), spread };
        return signatureOf(place, originsOf([place]));
      };
      expect(signature(1)).toBeDefined();
      expect(signature(3)).toBeUndefined();
    }
  });

  it("says so only where no two instances share an element, whichever way terms go", () => {
    const rng = new Rng(9);
    const spread = ["t", "g", "b"].map((name) => ({ name, identity: name, required: true }));
    let separated = 0;
    for (let trial = 0; trial < 3000; trial++) {
      const steps = Object.keys(extents).map((name) =>
        mul(rng.pick([-12, -8, -6, -3, -2, -1, 1, 2, 4, 6, 12]), variable(name)),
      );
      const index = add(...steps, rng.integer(0, 9));
      const place = { ...placeOf(index, rng.integer(1, 3)), spread };
      if (signatureOf(place, originsOf([place])) === undefined) continue;
      separated++;
      const instances = extents.t * extents.g * extents.b;
      expect(elements(place, N).size, index.key).toBe(instances * place.spans[0]!);
    }
    expect(separated).toBeGreaterThan(50);
  });
});
