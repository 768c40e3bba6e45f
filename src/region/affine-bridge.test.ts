import { describe, expect, it } from "vitest";
import { contains, type Dependence, fixParams, isLegal, makeMap } from "../affine/index.ts";
import { evaluate, substitute } from "../semantics/index-expr.ts";
import { invariant } from "../support/invariant.ts";
import { bridgeRegion, findRegionDependences, footprintOf } from "./affine-bridge.ts";
import type { Access, Region, Statement } from "./nest.ts";
import { parseRegion } from "./nest-reader.ts";

const symbols = { N: 3, M: 4 };
const values = new Map(Object.entries(symbols));

function regionOf(body: string): Region {
  const parsed = parseRegion(`region R group R anchor A inlined () epilogue () {
    symbol N in 1..9 symbol M in 1..9
    input x : f32[N, M] input idx : i64[N] input flat : f32[N*M]
    local y : f32[N, M] local z : f32[N, M] output u : f32[N*M]
    ${body} }`);
  invariant(parsed.ok, () => "the region does not parse");
  return parsed.value;
}

/** Every point of the box of loops at the test's symbols, and those one step outside it. */
function pointsAround(statement: Statement): ReadonlyMap<string, number>[] {
  let points = [new Map(values)];
  for (const { name, extent } of statement.loops) {
    points = points.flatMap((p) =>
      Array.from({ length: evaluate(extent, p) + 2 }, (_, i) => new Map([...p, [name, i - 1]])),
    );
  }
  return points;
}

function isInBox({ loops }: Statement, point: ReadonlyMap<string, number>): boolean {
  return loops.every(({ name, extent }) => {
    const at = point.get(name)!;
    return at >= 0 && at < evaluate(extent, point);
  });
}

function holds(conditions: Statement["guard"], point: ReadonlyMap<string, number>): boolean {
  return conditions.every(({ kind, expr }) => {
    const value = evaluate(expr, point);
    return kind === "zero" ? value === 0 : value >= 0;
  });
}

function paramsOf(region: Region): Record<string, number> {
  const opaque = [...bridgeRegion(region).parameters].map(([name, expr]) => [
    name,
    evaluate(substitute(expr, values), values),
  ]);
  return { ...symbols, ...Object.fromEntries(opaque) };
}

/** Domain and access maps hold exactly the points and elements that evaluation gives. */
function checkExact(region: Region): void {
  const bridged = bridgeRegion(region);
  const params = paramsOf(region);
  expect(bridged.approximated).toEqual([]);
  for (const statement of region.statements) {
    const { domain, reads, writes } = bridged.statements.get(statement.name)!;
    const accesses = [...statement.reads, ...statement.finishReads];
    for (const point of pointsAround(statement)) {
      const at = statement.loops.map((l) => point.get(l.name)!);
      const inside = isInBox(statement, point) && holds(statement.guard, point);
      expect(contains(domain, params, at)).toBe(inside ? "yes" : "no");
      if (!inside) continue;
      for (const [i, access] of accesses.entries()) checkAccess(reads[i]!, access, point, at);
      for (const [i, write] of statement.writes.entries()) {
        checkAccess(writes[i]!, { ...write, guard: [] }, point, at);
      }
    }
  }
  function checkAccess(
    map: (typeof bridged)["affine"][number]["accesses"][number]["map"],
    { index, guard }: Pick<Access, "index" | "guard">,
    point: ReadonlyMap<string, number>,
    at: readonly number[],
  ): void {
    const element = index.map((e) => evaluate(e, point));
    const read = holds(guard, point);
    expect(contains(map, params, [...at, ...element])).toBe(read ? "yes" : "no");
    const other = element.map((e, axis) => (axis === 0 ? e + 1 : e));
    if (index.length > 0) expect(contains(map, params, [...at, ...other])).toBe("no");
  }
}

function dependencesOf(region: Region): readonly Dependence[] {
  const found = findRegionDependences(region);
  invariant(found.kind === "known", () => "gave up");
  return found.value;
}

describe("sets and maps", () => {
  it("guards, strides, floors and remainders are exact", () =>
    checkExact(
      regionOf(`statement A "" {i in N, j in M, reduce r in 2} where j - i >= 0 {
        y[i, j] = reduce<sum, f32, reassociates>(
          (x[i, floorDiv(j + r, 2)] if M - j - r - 1 >= 0 else 0))
      }
      statement B "" {i in N, j in floorDiv(M, 2)} { z[i, 2*j] = (y[mod(i + j, 3), j]) }`),
    ));

  it("products of symbols are parameters", () => {
    const region = regionOf(`statement A "" {k in N*M} { u[k] = (flat[N*M - k - 1]) }`);
    checkExact(region);
    expect([...bridgeRegion(region).parameters.values()].map((e) => e.key)).toEqual(["M*N"]);
  });

  it("a minimum bounds from both sides", () =>
    checkExact(regionOf(`statement A "" {i in min(N, M)} { y[i, i] = (x[i, i]) }`)));

  it("indices and products with loops may be anywhere in the tensor", () => {
    const region = regionOf(`statement A "" {i in N, j in M} {
      index v0 in M checked wraps = idx[i]
      u[M*i + j] = (x[i, v0])
    }`);
    const bridged = bridgeRegion(region);
    expect(bridged.approximated).toEqual(["v0", "M*i + j"]);
    const { reads, writes } = bridged.statements.get("A")!;
    const anywhere = footprintOf(bridged.statements.get("A")!, reads[0]!);
    for (let c = -1; c <= 4; c++) {
      const inside = c >= 0 && c < 4 ? "yes" : "no";
      expect(contains(anywhere, symbols, [1, c])).toBe(inside);
    }
    expect(contains(writes[0]!, paramsOf(region), [0, 0, 11])).toBe("yes");
  });
});

describe("dependences", () => {
  const chain = `statement A "" {i in N, j in M, reduce k in M} {
      y[i, j] = reduce<sum, f32, reassociates>(mul(x[i, k], x[i, k]))
    }
    statement B "" {i in N, j in M} { z[i, j] = (relu(y[i, j])) }`;

  it("a reduction may be reordered, its consumer comes after it", () => {
    const found = dependencesOf(regionOf(chain)).map((d) => [
      d.kind,
      d.source,
      d.sink,
      d.reassociable,
    ]);
    expect(found).toEqual([
      ["reduction", "A", "A", true],
      ["flow", "A", "B", false],
    ]);
  });

  it("fusing the consumer behind the last step is legal, before it is not", () => {
    const dependences = dependencesOf(regionOf(chain));
    const fused = (step: string | number) =>
      new Map([
        [
          "A",
          makeMap({
            from: { tuple: "A", dims: ["i", "j", "k"] },
            to: { values: ["i", "j", "k", 0] },
          }),
        ],
        [
          "B",
          makeMap({ from: { tuple: "B", dims: ["i", "j"] }, to: { values: ["i", "j", step, 1] } }),
        ],
      ]);
    expect(isLegal({ times: fused("M") }, dependences)).toMatchObject({ kind: "legal" });
    expect(isLegal({ times: fused(0) }, dependences)).toMatchObject({
      kind: "illegal",
      witness: { violation: "reversed" },
    });
  });

  it("a scan carries distance one, so its loop is not parallel", () => {
    const region = regionOf(`statement A "" {i in N, scan t in M} {
      y[i, t] = (add((y[i, t - 1] if t - 1 >= 0 else 0), x[i, t]))
    }`);
    const dependences = dependencesOf(region);
    expect(dependences.map((d) => d.kind)).toContain("flow");
    const from = { tuple: "A", dims: ["i", "t"] };
    const times = new Map([["A", makeMap({ from, to: { values: ["i", "t"] } })]]);
    const marked = (dimension: number) =>
      isLegal({ times, marks: [{ dimension, kind: "parallel" as const }] }, dependences).kind;
    expect([marked(0), marked(1)]).toEqual(["legal", "illegal"]);
    for (const { relation } of dependences) {
      const fixed = fixParams(relation, symbols);
      expect(contains(fixed, {}, [1, 2, 1, 3])).toBe("yes");
      expect(contains(fixed, {}, [1, 2, 2, 3])).toBe("no");
    }
  });

  it("updates through indices depend on each other, in any order", () => {
    const region = regionOf(`statement A "" {scan i in N, j in M} {
      index v0 in N checked wraps = idx[i]
      y[v0, j] by add = (x[i, j])
    }`);
    expect(dependencesOf(region)).toMatchObject([{ kind: "reduction", reassociable: true }]);
  });
});
