import { describe, expect, it } from "vitest";
import {
  type AffineLike,
  add,
  equals,
  findDependences,
  floorDivide,
  formatWitness,
  type IntegerMap,
  isLegal,
  type Legality,
  makeBox,
  makeDependence,
  makeMap,
  makeRelation,
  remainder,
  type Statement,
  scale,
  type TimeMark,
  within,
} from "./index.ts";

function matmul(size: number, reassociable: boolean): Statement {
  const dims = ["i", "j", "k"];
  const from = { tuple: "S", dims };
  return {
    name: "S",
    domain: makeBox({ tuple: "S", dims, end: [size, size, size] }),
    accesses: [
      { kind: "read", map: makeMap({ from, to: { tuple: "A", values: ["i", "k"] } }) },
      { kind: "read", map: makeMap({ from, to: { tuple: "B", values: ["k", "j"] } }) },
      {
        kind: "update",
        map: makeMap({ from, to: { tuple: "C", values: ["i", "j"] } }),
        reassociable,
      },
    ],
    order: makeMap({ from, to: { values: dims } }),
  };
}

function check(statement: Statement, time: IntegerMap, marks: readonly TimeMark[] = []): Legality {
  const found = findDependences([statement]);
  if (found.kind === "unknown") throw new Error(found.reason);
  return isLegal({ times: new Map([[statement.name, time]]), marks }, found.value);
}

const tiledMatmul = makeMap({
  from: { tuple: "S", dims: ["i", "j", "k"] },
  to: {
    values: [
      floorDivide("i", 64),
      floorDivide("j", 64),
      floorDivide("k", 32),
      remainder("i", 64),
      remainder("j", 64),
      remainder("k", 32),
    ],
  },
});

/** A stencil whose only dependence has distance (1, -1). */
function stencil(): ReturnType<typeof makeDependence> {
  return makeDependence(
    makeRelation({
      from: { tuple: "S", dims: ["t", "x"] },
      to: { tuple: "S", dims: ["t2", "x2"] },
      where: [
        equals("t2", add("t", 1)),
        equals("x2", add("x", -1)),
        ...within(0, "t", 9),
        ...within(1, "x", 10),
      ],
    }),
  );
}

function stencilAt(values: readonly AffineLike[]): Legality {
  const time = makeMap({ from: { tuple: "S", dims: ["t", "x"] }, to: { values } });
  return isLegal({ times: new Map([["S", time]]) }, [stencil()]);
}

describe("isLegal", () => {
  it("accepts tiling of a 4096^3 matmul", () => {
    expect(check(matmul(4096, false), tiledMatmul)).toEqual({ kind: "legal" });
  });

  it("accepts parallel i and j, refuses parallel k unless the sum may be reassociated", () => {
    const marks = (dimension: number): TimeMark[] => [{ dimension, kind: "parallel" }];
    expect(check(matmul(4096, false), tiledMatmul, marks(0)).kind).toBe("legal");
    expect(check(matmul(4096, false), tiledMatmul, marks(4)).kind).toBe("legal");
    const refused = check(matmul(4096, false), tiledMatmul, marks(2));
    expect(refused).toMatchObject({
      kind: "illegal",
      witness: { violation: "parallel", dimension: 2, element: { array: "C" } },
    });
    expect(check(matmul(4096, true), tiledMatmul, marks(2)).kind).toBe("legal");
  });

  it("refuses a reversed loop with a witness", () => {
    const from = { tuple: "S", dims: ["i", "j", "k"] };
    const reversed = makeMap({ from, to: { values: ["i", "j", scale(-1, "k")] } });
    const result = check(matmul(16, false), reversed);
    if (result.kind !== "illegal") throw new Error(result.kind);
    const { source, sink, violation } = result.witness;
    expect(violation).toBe("reversed");
    expect(source.values.slice(0, 2)).toEqual(sink.values.slice(0, 2));
    expect(source.values[2]).toBeLessThan(sink.values[2]!);
    expect(formatWitness(result.witness)).toMatch(
      /^reduction dependence on C\[\d+, \d+\]: S\[.*\] at time .* must precede S.*; the sink would/,
    );
  });

  it("refuses a schedule that runs everything at once", () => {
    const from = { tuple: "S", dims: ["i", "j", "k"] };
    const flat = makeMap({ from, to: { values: ["i", "j"] } });
    expect(check(matmul(16, false), flat)).toMatchObject({
      witness: { violation: "simultaneous" },
    });
  });

  it("refuses skewless interchange and rectangular tiling of a (1,-1) stencil, accepts skewing", () => {
    expect(stencilAt(["t", "x"]).kind).toBe("legal");
    expect(stencilAt(["x", "t"])).toMatchObject({ kind: "illegal" });
    const tiled = [floorDivide("t", 4), floorDivide("x", 4), "t", "x"];
    expect(stencilAt(tiled)).toMatchObject({
      kind: "illegal",
      witness: { violation: "reversed", dimension: 1 },
    });
    const skewed = add("t", "x");
    expect(stencilAt([skewed, "t"]).kind).toBe("legal");
    expect(stencilAt([floorDivide("t", 4), floorDivide(skewed, 4), "t", skewed]).kind).toBe(
      "legal",
    );
  });
});
