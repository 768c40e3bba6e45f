/**
 * Dependences by kind against looking at all pairs of instances and all pairs of their accesses: exact
 * places, places anywhere in a range (an index that is loaded), guarded accesses, reductions, scans.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { evaluateAffine } from "./expression.ts";
import {
  type AccessKind,
  type Affine,
  type AxisIndex,
  add,
  atMost,
  contains,
  type Dependence,
  type DependenceKind,
  findDependences,
  makeMap,
  type NestAccess,
  type NestStatement,
  scale,
  toStatement,
  within,
} from "./index.ts";
import { known } from "./random-sets.test-support.ts";

interface Drawn {
  readonly statement: NestStatement;
  readonly extents: readonly number[];
  readonly position: number;
}

const place = fc
  .tuple(
    fc.integer({ min: -1, max: 1 }),
    fc.integer({ min: -1, max: 1 }),
    fc.integer({ min: -1, max: 2 }),
  )
  .map(([a, b, k]): Affine => add(scale(a, "i"), scale(b, "j"), k));

const index = fc
  .tuple(place, fc.integer({ min: 0, max: 3 }))
  .map(([low, width]): AxisIndex => (width === 0 ? low : { low, end: add(low, width) }));

const access = fc
  .record({
    kind: fc.constantFrom<AccessKind>("read", "write", "update"),
    array: fc.constantFrom("A", "B"),
    at: index,
    reassociable: fc.boolean(),
    least: fc.integer({ min: 0, max: 2 }),
  })
  .map(({ kind, array, at, reassociable, least }): NestAccess => {
    const where = least === 0 ? {} : { where: [atMost(least, "i")] };
    const marked = kind === "write" ? {} : { reassociable };
    return { kind, array, index: [at], ...marked, ...where };
  });

function statement(name: string, position: number): fc.Arbitrary<Drawn> {
  return fc
    .record({
      extents: fc.tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 3 })),
      accesses: fc.array(access, { minLength: 1, maxLength: 3 }),
    })
    .map(({ extents, accesses }) => {
      const domain = [...within(0, "i", extents[0]), ...within(0, "j", extents[1])];
      return { statement: { name, dims: ["i", "j"], domain, accesses }, extents, position };
    });
}

const drawn = fc
  .tuple(statement("S", 0), statement("T", 1), fc.integer({ min: 1, max: 2 }))
  .map(([s, t, many]) => (many === 1 ? [s] : [s, t]));

interface Instance {
  readonly of: Drawn;
  readonly at: readonly [number, number];
}

function instancesOf(of: Drawn): Instance[] {
  const [rows, columns] = of.extents as [number, number];
  return Array.from({ length: rows * columns }, (_, n) => {
    return { of, at: [Math.floor(n / columns), n % columns] };
  });
}

/** Elements that the access may touch there, from the first to behind the last. */
function touched({ index: [at], where }: NestAccess, [i, j]: Instance["at"]): [number, number] {
  if (where && i < -where[0]!.expression.constant) return [0, 0];
  const value = (e: Affine): number => evaluateAffine(e, { i, j });
  if (!("low" in at!)) return [value(at!), value(at!) + 1];
  return [value(at.low as Affine), value(at.end as Affine)];
}

function kindOf(first: NestAccess, second: NestAccess, self: boolean): DependenceKind | undefined {
  const [a, b] = [first.kind, second.kind];
  if (a === "read") return b === "read" ? undefined : "anti";
  if (b === "write") return "output";
  if (a === "update" && b === "update" && self) return "reduction";
  return a === "write" && b === "read" && self && second.reassociable ? "scan" : "flow";
}

/** Every dependence of two instances in words. */
function expected(all: readonly Drawn[]): Set<string> {
  const found = new Set<string>();
  const instances = all.flatMap(instancesOf);
  for (const [n, s] of instances.entries()) {
    for (const t of instances.slice(n + 1)) {
      for (const first of s.of.statement.accesses) {
        for (const second of t.of.statement.accesses) {
          const kind = kindOf(first, second, s.of === t.of);
          const [a, b] = [touched(first, s.at), touched(second, t.at)];
          const meet = first.array === second.array && a[0] < b[1] && b[0] < a[1];
          const free = a[0] === a[1] || b[0] === b[1];
          if (kind && meet && !free) found.add(spelled(kind, s, t));
        }
      }
    }
  }
  return found;
}

function spelled(kind: DependenceKind, s: Instance, t: Instance): string {
  return `${kind} ${s.of.statement.name}[${s.at}] -> ${t.of.statement.name}[${t.at}]`;
}

function relates(d: Dependence, s: Instance, t: Instance): boolean {
  const named = d.source === s.of.statement.name && d.sink === t.of.statement.name;
  return named && contains(d.relation, {}, [...s.at, ...t.at]) === "yes";
}

describe("dependences agree with all pairs of accesses", () => {
  it("flow, anti, output, reduction and scan, at known places and in ranges", () => {
    const seen = new Map<string, number>();
    fc.assert(
      fc.property(drawn, (all) => {
        const statements = all.map(({ statement: s, position }) => {
          const from = { tuple: s.name, dims: s.dims };
          return toStatement(s, makeMap({ from, to: { values: [position, "i", "j"] } }));
        });
        const dependences = known(findDependences(statements));
        const instances = all.flatMap(instancesOf);
        const found = new Set<string>();
        for (const s of instances) {
          for (const t of instances) {
            for (const d of dependences) if (relates(d, s, t)) found.add(spelled(d.kind, s, t));
          }
        }
        const wanted = expected(all);
        expect([...found].sort()).toEqual([...wanted].sort());
        for (const kind of new Set([...wanted].map((w) => w.split(" ")[0]!))) {
          seen.set(kind, (seen.get(kind) ?? 0) + 1);
        }
      }),
      { numRuns: 150, seed: 43 },
    );
    for (const kind of ["flow", "anti", "output", "reduction", "scan"]) {
      expect(seen.get(kind), kind).toBeGreaterThan(5);
    }
  });
});
