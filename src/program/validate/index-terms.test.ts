import { expect, test } from "vitest";
import * as ix from "../../semantics/index-expr.ts";
import { Rng } from "../../support/rng.ts";
import { exactQuotient } from "./index-terms.ts";

const names = ["M", "N", "K"].map(ix.variable);

function drawn(rng: Rng): ix.IndexExpr {
  const factor = () => rng.pick([...names, ix.constant(rng.integer(1, 6))]);
  const terms = Array.from({ length: rng.integer(1, 3) }, () => ix.mul(factor(), factor()));
  return ix.add(...terms, rng.integer(0, 5));
}

test("quotients of polynomials are found where there are any, and no others", () => {
  const rng = new Rng(7);
  let found = 0;
  for (let i = 0; i < 400; i++) {
    const [q, d] = [drawn(rng), drawn(rng)];
    const whole = exactQuotient(ix.mul(q, d), d);
    if (whole) expect(whole.key).toBe(q.key);
    found += whole ? 1 : 0;
    const other = exactQuotient(ix.add(ix.mul(q, d), drawn(rng)), d);
    if (other) expect(ix.mul(other, d).key).not.toBe(ix.mul(q, d).key);
  }
  // Divisors with two terms of the greatest degree may lead astray.
  expect(found).toBeGreaterThan(300);
});

test("rows of a buffer that is split differently", () => {
  const [, n] = names;
  const row = ix.add(n!, 4);
  expect(exactQuotient(ix.mul(24, row), row)?.key).toBe("24");
  expect(exactQuotient(ix.add(ix.mul(24, row), 1), row)).toBeUndefined();
  expect(exactQuotient(ix.mul(6, n!), ix.constant(4))).toBeUndefined();
  expect(exactQuotient(ix.constant(12), ix.constant(0))).toBeUndefined();
});
