/** In-place choices against looking at all pairs of instances. */
import { describe, expect, it } from "vitest";
import type { Access, Region, Statement } from "../region/nest.ts";
import { applySchedule } from "../schedule/apply.ts";
import { type Condition, inRange, less } from "../semantics/condition.ts";
import { add, constant, evaluate, type IndexExpr, mul, variable } from "../semantics/index-expr.ts";
import { simpleMonoid } from "../semantics/monoids.ts";
import { argument } from "../semantics/scalar-expr.ts";
import { Rng } from "../support/rng.ts";
import { inPlaceOperands } from "./storage.ts";

const size = 3;
const [i, j, k, N] = [variable("i"), variable("j"), variable("k"), variable("N")];

interface Drawn {
  readonly statement: Statement;
  readonly region: Region;
}

function draw(rng: Rng): Drawn {
  const folds = rng.uniform() < 0.5;
  const turned = add(mul(-1, i), size - 1);
  const places: readonly (readonly IndexExpr[])[] = [
    [i, j],
    [j, i],
    [i, i],
    [turned, j],
    [add(i, 1), j],
  ];
  const read = (index: readonly IndexExpr[]): Access => {
    const guard: Condition[] = index.flatMap((e) => inRange(e, size));
    if (rng.uniform() < 0.2) guard.push(less(i, rng.integer(1, 3)));
    return { tensor: "t", index, guard, fill: 0 };
  };
  const own = rng.pick(places.slice(0, 4));
  const some = (of: readonly (readonly IndexExpr[])[]): Access =>
    read(rng.uniform() < 0.6 ? own : rng.pick(of));
  const inBody = Array.from({ length: folds ? rng.integer(0, 1) : rng.integer(1, 2) }, () =>
    some(folds ? [...places, [i, k]] : places),
  );
  const other: Access = { tensor: "x", index: [i, j], guard: [], fill: 0 };
  const reads = [other, ...inBody];
  const finishReads = folds ? [some(places)] : [];
  const trips = rng.integer(1, 2);
  const statement: Statement = {
    name: "S",
    loops: [
      { name: "i", extent: constant(size), kind: "space" },
      { name: "j", extent: rng.uniform() < 0.3 ? N! : constant(size), kind: "space" },
      ...(folds ? [{ name: "k", extent: constant(trips), kind: "reduce" } as const] : []),
    ],
    guard: rng.uniform() < 0.3 ? [less(i, 2)] : [],
    indirects: [],
    reads,
    body: [argument(0, "f32")],
    ...(folds && {
      reduction: { monoid: simpleMonoid("sum", "f32"), numericClass: "reassociates" },
    }),
    finishReads,
    writes: [{ tensor: "y", index: own, combine: "overwrite" }],
    origin: "S",
  };
  const tensor = (name: string, role: "input" | "intermediate") =>
    [name, { name, dtype: "f32", shape: [constant(size), constant(size)], role }] as const;
  const tensors: Region["tensors"] = new Map([
    tensor("x", "input"),
    tensor("t", "intermediate"),
    tensor("y", "intermediate"),
  ]);
  const group = { name: "S", anchor: "S", inlined: [], epilogue: [] };
  const symbols = [{ name: "N", range: { min: 1, max: size } }];
  return { statement, region: { name: "S", group, statements: [statement], symbols, tensors } };
}

type Point = ReadonlyMap<string, number>;

function pointsOf({ loops, guard }: Statement): readonly Point[] {
  let points: readonly Point[] = [new Map([["N", size]])];
  for (const l of loops) {
    points = points.flatMap((p) =>
      Array.from({ length: evaluate(l.extent, p) }, (_, v) => new Map([...p, [l.name, v]])),
    );
  }
  return points.filter((p) => holds(guard, p));
}

function holds(guard: readonly Condition[], p: Point): boolean {
  return guard.every((c) => {
    const value = evaluate(c.expr, p);
    return c.kind === "zero" ? value === 0 : value >= 0;
  });
}

/** Whether t is read only by the instance that writes its element; what finishes counts once a result. */
function mayOverwrite(s: Statement): boolean {
  const points = pointsOf(s);
  const at = (index: readonly IndexExpr[], p: Point): string =>
    index.map((e) => evaluate(e, p)).join();
  const instance = (p: Point, finishes: boolean): string =>
    s.loops.map((l) => (finishes && l.kind === "reduce" ? 0 : p.get(l.name))).join();
  return [...s.reads, ...s.finishReads].every((read, n) => {
    if (read.tensor !== "t") return true;
    const finishes = n >= s.reads.length;
    return points.every(
      (r) =>
        !holds(read.guard, r) ||
        points.every(
          (w) =>
            at(read.index, r) !== at(s.writes[0]!.index, w) ||
            instance(r, finishes) === instance(w, finishes),
        ),
    );
  });
}

describe("inPlaceOperands", () => {
  it("finds what no other instance reads", () => {
    const seen = { taken: 0, refused: 0 };
    for (let seed = 0; seed < 200; seed++) {
      const { statement, region } = draw(new Rng(seed));
      const schedule = { region: "S", target: "wasm", directives: [] };
      const applied = applySchedule(region, schedule);
      if (!applied.ok) throw new Error(applied.diagnostics[0]!.message);
      const may = mayOverwrite(statement);
      const touched = [...statement.reads, ...statement.finishReads].some((r) => r.tensor === "t");
      const found = inPlaceOperands(applied.value, "y").includes("t");
      expect(found, `seed ${seed}`).toBe(may && touched);
      seen[found ? "taken" : "refused"]++;
    }
    expect(seen.taken).toBeGreaterThan(30);
    expect(seen.refused).toBeGreaterThan(30);
  });
});
