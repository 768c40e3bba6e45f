import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { evaluateAffine } from "./expression.ts";
import {
  type Affine,
  add,
  contains,
  type Dependence,
  findDependences,
  findValueFlow,
  floorDivide,
  isLegal,
  type Legality,
  makeBox,
  makeMap,
  remainder,
  type Statement,
  scale,
  type TimeMark,
} from "./index.ts";
import { known } from "./random-sets.test-support.ts";

/** A statement as plain data: what brute force and the library both start from. */
interface Nest {
  readonly name: string;
  readonly extents: readonly number[];
  readonly accesses: readonly { kind: "read" | "write" | "update"; index: readonly Affine[] }[];
  readonly order: readonly Affine[];
  readonly time: readonly Affine[];
}

const names = ["i", "j"];

const smallAffine = fc
  .tuple(
    fc.integer({ min: -1, max: 1 }),
    fc.integer({ min: -1, max: 1 }),
    fc.integer({ min: -1, max: 2 }),
  )
  .map(([a, b, c]) => add(scale(a, "i"), scale(b, "j"), c));

const access = fc.record({
  kind: fc.constantFrom("read" as const, "write" as const, "update" as const),
  index: fc.array(smallAffine, { minLength: 1, maxLength: 1 }),
});

const shapes: readonly (readonly Affine[])[] = [
  [add("i"), add("j")],
  [add("j"), add("i")],
  [add("i"), scale(-1, "j")],
  [add("i", "j"), add("j")],
  [add("i", "j"), scale(-1, "i")],
  [floorDivide("i", 2), floorDivide("j", 3), remainder("i", 2), remainder("j", 3)],
  [floorDivide("i", 2), floorDivide("j", 2), add("j"), add("i")],
  [floorDivide(add("i", "j"), 2), floorDivide("j", 2), add("i", "j"), add("j")],
  [floorDivide("j", 2), add("i"), remainder("j", 2)],
  [add("i")],
  [remainder("i", 2), add("i"), add("j")],
];

function nest(name: string, position: number): fc.Arbitrary<Nest> {
  return fc.record({
    name: fc.constant(name),
    extents: fc.tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 4 })),
    accesses: fc.array(access, { minLength: 1, maxLength: 3 }),
    order: fc.constant([add(position), add("i"), add("j")]),
    time: fc
      .tuple(
        fc.constantFrom(...shapes),
        fc.integer({ min: 0, max: 1 }),
        fc.integer({ min: 0, max: 2 }),
      )
      .map(([shape, fused, shift]) => {
        const [first, ...rest] = shape;
        const moved = [add(first!, shift * position), ...rest, add(position)];
        return fused === 1 ? moved : [add(position), ...shape];
      }),
  });
}

const nests = fc.oneof(
  nest("S", 0).map((s) => [s]),
  fc.tuple(nest("S", 0), nest("T", 1)).map(([s, t]) => [s, t]),
);

const marks = fc.array(
  fc.record({
    dimension: fc.integer({ min: 0, max: 2 }),
    kind: fc.constantFrom("parallel" as const, "vector" as const),
  }),
  { maxLength: 1 },
);

function statementOf(n: Nest): Statement {
  const from = { tuple: n.name, dims: names };
  return {
    name: n.name,
    domain: makeBox({ tuple: n.name, dims: names, end: n.extents }),
    accesses: n.accesses.map((a) => ({
      kind: a.kind,
      map: makeMap({ from, to: { tuple: "A", values: a.index } }),
    })),
    order: makeMap({ from, to: { values: n.order } }),
  };
}

interface Instance {
  readonly nest: Nest;
  readonly at: readonly number[];
  readonly order: readonly number[];
  readonly time: readonly number[];
  readonly touches: readonly {
    readonly reads: boolean;
    readonly writes: boolean;
    readonly element: number;
  }[];
}

function instancesOf(n: Nest): Instance[] {
  const out: Instance[] = [];
  for (let i = 0; i < n.extents[0]!; i++) {
    for (let j = 0; j < n.extents[1]!; j++) {
      const value = (e: Affine): number => evaluateAffine(e, { i, j });
      out.push({
        nest: n,
        at: [i, j],
        order: n.order.map(value),
        time: n.time.map(value),
        touches: n.accesses.map((a) => ({
          reads: a.kind !== "write",
          writes: a.kind !== "read",
          element: value(a.index[0]!),
        })),
      });
    }
  }
  return out;
}

/** The first position where padded vectors differ with the sign there; -1 when they are equal. */
function firstStep(a: readonly number[], b: readonly number[]): { at: number; sign: number } {
  for (let k = 0; k < Math.max(a.length, b.length); k++) {
    const step = (b[k] ?? 0) - (a[k] ?? 0);
    if (step !== 0) return { at: k, sign: Math.sign(step) };
  }
  return { at: -1, sign: 0 };
}

function conflict(s: Instance, t: Instance): boolean {
  return s.touches.some((a) =>
    t.touches.some((b) => (a.writes || b.writes) && a.element === b.element),
  );
}

function isBroken(s: Instance, t: Instance, marked: readonly TimeMark[]): boolean {
  const { at, sign } = firstStep(s.time, t.time);
  return sign <= 0 || marked.some((m) => m.dimension === at);
}

/** Whether some pair of conflicting instances, in original order, is out of order in the new one. */
function bruteForceLegal(all: readonly Nest[], marked: readonly TimeMark[]): boolean {
  const instances = all.flatMap(instancesOf);
  for (const s of instances) {
    for (const t of instances) {
      if (firstStep(s.order, t.order).sign <= 0 || !conflict(s, t)) continue;
      if (isBroken(s, t, marked)) return false;
    }
  }
  return true;
}

function decide(all: readonly Nest[], marked: readonly TimeMark[]): Legality {
  const times = new Map(
    all.map((n) => [
      n.name,
      makeMap({ from: { tuple: n.name, dims: names }, to: { values: n.time } }),
    ]),
  );
  const dependences = known(findDependences(all.map(statementOf)));
  return isLegal({ times, marks: marked }, dependences);
}

function checkWitness(all: readonly Nest[], result: Legality, marked: readonly TimeMark[]): void {
  if (result.kind !== "illegal") throw new Error(result.kind);
  const { source, sink, dependence, element, sourceTime } = result.witness;
  const instances = all.flatMap(instancesOf);
  const find = (i: typeof source): Instance =>
    instances.find((x) => x.nest.name === i.statement && x.at.join() === i.values.join())!;
  const [s, t] = [find(source), find(sink)];
  expect(firstStep(s.order, t.order).sign).toBe(1);
  expect(isBroken(s, t, marked)).toBe(true);
  expect(dependence.source).toBe(s.nest.name);
  const shared = (x: Instance): boolean => x.touches.some((a) => a.element === element!.values[0]);
  expect(shared(s) && shared(t)).toBe(true);
  expect(firstStep(sourceTime, s.time).sign).toBe(0);
}

describe("legality agrees with comparing all pairs of instances", () => {
  it("random nests, accesses, schedules and marks", () => {
    let refused = 0;
    let accepted = 0;
    fc.assert(
      fc.property(nests, marks, (all, marked) => {
        const result = decide(all, marked);
        const expected = bruteForceLegal(all, marked);
        expect(result.kind).toBe(expected ? "legal" : "illegal");
        if (expected) accepted++;
        else {
          refused++;
          checkWitness(all, result, marked);
        }
      }),
      { numRuns: 300, seed: 23 },
    );
    expect(Math.min(refused, accepted)).toBeGreaterThan(30);
  });
});

describe("dependences agree with comparing all pairs of instances", () => {
  it("the union of all relations", () => {
    fc.assert(
      fc.property(nests, (all) => {
        const found = known(findDependences(all.map(statementOf)));
        const instances = all.flatMap(instancesOf);
        for (const s of instances) {
          for (const t of instances) {
            const expected = firstStep(s.order, t.order).sign > 0 && conflict(s, t);
            expect(found.some((d) => relates(d, s, t))).toBe(expected);
          }
        }
      }),
      { numRuns: 25, seed: 29 },
    );
  });
});

describe("value-based flow agrees with running the nests", () => {
  it("the last writer of each read", () => {
    fc.assert(
      fc.property(nests, (all) => {
        const found = known(findValueFlow(all.map(statementOf)));
        const instances = all.flatMap(instancesOf);
        instances.sort((a, b) => -firstStep(a.order, b.order).sign);
        const writer = new Map<number, Instance>();
        const expected = new Set<string>();
        const key = (s: Instance, t: Instance): string =>
          `${s.nest.name}[${s.at}] -> ${t.nest.name}[${t.at}]`;
        for (const t of instances) {
          for (const a of t.touches) {
            const s = a.reads ? writer.get(a.element) : undefined;
            if (s) expected.add(key(s, t));
          }
          for (const a of t.touches) if (a.writes) writer.set(a.element, t);
        }
        for (const s of instances) {
          for (const t of instances) {
            if (!conflict(s, t)) continue;
            expect(found.some((d) => relates(d, s, t))).toBe(expected.has(key(s, t)));
          }
        }
      }),
      { numRuns: 40, seed: 37 },
    );
  });
});

function relates(d: Dependence, s: Instance, t: Instance): boolean {
  if (d.source !== s.nest.name || d.sink !== t.nest.name) return false;
  return contains(d.relation, {}, [...s.at, ...t.at]) === "yes";
}
