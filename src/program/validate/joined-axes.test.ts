import { describe, expect, it } from "vitest";
import {
  add,
  constant,
  evaluate,
  floorDiv,
  type IndexExpr,
  mod,
  mul,
  variable,
} from "../../semantics/index-expr.ts";
import { Rng } from "../../support/rng.ts";
import { Facts } from "./facts.ts";
import { axisSums } from "./joined-axes.ts";
import { originsOf, type Place, signatureOf } from "./separate.ts";

const extents = { block: 5, thread: 4, other: 3 } as const;
const names = Object.keys(extents) as readonly (keyof typeof extents)[];
const [block, thread, other] = names.map((name) => variable(name)) as [
  IndexExpr,
  IndexExpr,
  IndexExpr,
];

function placeOf(index: readonly IndexExpr[], span: number): Place {
  let facts = Facts.none();
  for (const name of names) facts = facts.withVariable(name, constant(extents[name]));
  const spans = index.map((_, axis) => (axis === index.length - 1 ? span : 1));
  const used = names.filter((name) => index.some((e) => e.key.includes(name)));
  const spread = used.map((name) => ({ name, identity: name, required: true }));
  return { index, spans, facts, spread };
}

function* instances({ spread }: Place): Generator<ReadonlyMap<string, number>> {
  const used = spread.map((v) => v.name as keyof typeof extents);
  const count = used.reduce((n, name) => n * extents[name], 1);
  for (let i = 0; i < count; i++) {
    let rest = i;
    const at = used.map((name): [string, number] => {
      const value = rest % extents[name];
      rest = Math.floor(rest / extents[name]);
      return [name, value];
    });
    yield new Map(at);
  }
}

/** Whether two instances touch one element. */
function overlaps(place: Place): boolean {
  const seen = new Set<string>();
  for (const at of instances(place)) {
    const from = place.index.map((e) => evaluate(e, at));
    for (let lane = 0; lane < place.spans.at(-1)!; lane++) {
      const key = [...from.slice(0, -1), from.at(-1)! + lane].join();
      if (seen.has(key)) return true;
      seen.add(key);
    }
  }
  return false;
}

function isSeparated(place: Place): boolean {
  return signatureOf(place, originsOf([place])) !== undefined;
}

/** A number as two or three digits, now and then of another number, in any order and with other terms beside. */
function randomPlace(rng: Rng): Place {
  const factors = () => [1, 2, 4, 8].map((n) => n * rng.pick([1, 1, 1, 3]));
  const number = (): IndexExpr =>
    add(
      mul(rng.pick(factors()), block),
      mul(rng.pick([1, 1, 2, -1]), thread),
      rng.pick([0, 0, 0, 1, 4]),
    );
  const whole = number();
  const same = (): IndexExpr => (rng.integer(0, 9) === 0 ? number() : whole);
  const [d, m] = [rng.integer(2, 9), rng.integer(2, 4)];
  const digits =
    rng.integer(0, 1) === 0
      ? [floorDiv(same(), d), mod(same(), d)]
      : [floorDiv(same(), d * m), mod(floorDiv(same(), d), m), mod(same(), d)];
  const scaled = digits.map((e) => mul(rng.pick([1, 1, 1, 2, -1, 3]), e));
  if (rng.integer(0, 2) === 0) scaled.push(other);
  const index = scaled.map((e) => add(e, rng.integer(0, 5) === 0 ? mul(7, other) : 0));
  const turned = rng.integer(0, 1) === 0 ? index : index.toReversed();
  const from = rng.integer(0, index.length - 1);
  return placeOf([...turned.slice(from), ...turned.slice(0, from)], rng.pick([1, 1, 1, 2]));
}

describe("axisSums", () => {
  it("are at each place the sums that their weights say, and as wide", () => {
    const rng = new Rng(3);
    let joined = 0;
    for (let trial = 0; trial < 200; trial++) {
      const place = randomPlace(rng);
      for (const { weights, index, span } of axisSums(place.index, place.spans)) {
        joined += weights.filter((w) => w > 0).length > 1 ? 1 : 0;
        expect(span).toBe(weights.reduce((n, w, axis) => n + w * (place.spans[axis]! - 1), 1));
        const wrong = [...instances(place)].filter((at) => {
          const sum = weights.reduce((n, w, axis) => n + w * evaluate(place.index[axis]!, at), 0);
          return evaluate(index, at) !== sum;
        });
        expect(wrong, place.index.map((e) => e.key).join()).toEqual([]);
      }
    }
    expect(joined).toBeGreaterThan(60);
  });
});

describe("numbers split along axes", () => {
  it("are separated only where no two instances share an element, and many that do not are", () => {
    const rng = new Rng(11);
    let apart = 0;
    let separated = 0;
    for (let trial = 0; trial < 300; trial++) {
      const place = randomPlace(rng);
      const shares = overlaps(place);
      const says = isSeparated(place);
      expect(says && shares, place.index.map((e) => e.key).join()).toBe(false);
      if (!shares) apart++;
      if (says) separated++;
    }
    expect(separated / apart).toBeGreaterThan(0.4);
  });

  it("in two digits and in three, however many columns a block has", () => {
    for (const step of [4, 8]) {
      const column = add(mul(step, block), thread);
      for (const d of [3, 5, 6, 32]) {
        const two = [floorDiv(column, d), other, mod(column, d)];
        expect(isSeparated(placeOf(two, 1)), `${step} ${d}`).toBe(true);
        const three = [mod(floorDiv(column, d), 2), mod(column, d), floorDiv(column, 2 * d)];
        expect(isSeparated(placeOf(three, 1)), `${step} ${d}`).toBe(true);
      }
    }
  });

  it("not where blocks overlap, digits are of other numbers, or a digit is missing", () => {
    const close = add(mul(3, block), thread);
    const column = add(mul(4, block), thread);
    const wrong: readonly (readonly IndexExpr[])[] = [
      [floorDiv(close, 5), mod(close, 5)],
      [floorDiv(column, 5), mod(column, 4)],
      [floorDiv(column, 5), mod(add(column, 1), 5)],
      [mod(floorDiv(column, 3), 2), mod(column, 3)],
      [floorDiv(column, 5), floorDiv(column, 5)],
    ];
    for (const index of wrong) {
      expect(isSeparated(placeOf(index, 1)), index.map((e) => e.key).join()).toBe(false);
    }
    // Windows of two elements with one between the starts.
    expect(isSeparated(placeOf([floorDiv(column, 5), mod(column, 5)], 2))).toBe(false);
  });

  it("not alike where numbers are split by different divisors", () => {
    const column = add(mul(8, block), thread);
    const [one, two] = [4, 6].map((d) =>
      signatureOf(placeOf([floorDiv(column, d), mod(column, d)], 1)),
    );
    expect(one).toBeDefined();
    expect(two).toBeDefined();
    expect(one).not.toBe(two);
  });
});
