import { describe, expect, it } from "vitest";
import { Rng } from "../support/rng.ts";
import { TextReader } from "../support/text-reader.ts";
import { constant, evaluate, type IndexExpr, positiveMod } from "./index-expr.ts";
import { readIndexExpr } from "./index-text.ts";
import {
  composeLayouts,
  type LayoutMap,
  layoutFault,
  packInto,
  packTensor,
  unpackFrom,
} from "./layout.ts";

const expr = (text: string): IndexExpr => readIndexExpr(new TextReader(text));

function layout(shape: readonly number[], logical: string[], stored: string[]): LayoutMap {
  return {
    shape: shape.map((n) => constant(n)),
    logical: logical.map(expr),
    stored: stored.map(expr),
  };
}

/** Whether every element of a box is found again, by trying. */
function holdsAll({ shape, logical, stored }: LayoutMap, extents: readonly number[]): boolean {
  const count = extents.reduce((a, b) => a * b, 1);
  const places = new Set<string>();
  for (let i = 0; i < count; i++) {
    let rest = i;
    const index = extents.map((n) => {
      const at = positiveMod(rest, n);
      rest = Math.floor(rest / n);
      return at;
    });
    const l = new Map(index.map((v, axis) => [`l${axis}`, v]));
    const at = stored.map((e) => evaluate(e, l));
    if (at.some((p, axis) => p < 0 || p >= evaluate(shape[axis]!, new Map()))) return false;
    places.add(at.join());
    const p = new Map(at.map((v, axis) => [`p${axis}`, v]));
    if (logical.some((e, axis) => evaluate(e, p) !== index[axis])) return false;
  }
  return places.size === count;
}

describe("layoutFault", () => {
  const extents = [10, 12];
  it.each([
    ["row-major", layout(extents, ["p0", "p1"], ["l0", "l1"])],
    ["transposed", layout([12, 10], ["p1", "p0"], ["l1", "l0"])],
    ["blocked", layout([3, 10, 5], ["p1", "5*p0 + p2"], ["floorDiv(l1, 5)", "l0", "mod(l1, 5)"])],
    [
      "blocked twice",
      layout(
        [1, 3, 10, 4],
        ["p2", "16*p0 + 4*p1 + p3"],
        ["floorDiv(l1, 16)", "floorDiv(mod(l1, 16), 4)", "l0", "mod(l1, 4)"],
      ),
    ],
    ["turned", layout(extents, ["9 - p0", "p1"], ["9 - l0", "l1"])],
  ])("takes %s", (_, map) => {
    expect(
      layoutFault(
        map,
        extents.map((n) => constant(n)),
      ),
    ).toBeUndefined();
    expect(holdsAll(map, extents)).toBe(true);
  });

  it.each([
    ["an axis is missing", layout([12], ["p0"], ["l1"]), "axes"],
    ["the places do not fit", layout([9, 12], ["p0", "p1"], ["l0", "l1"]), "leaves"],
    ["the inverse is another", layout(extents, ["p0", "p1 + 1"], ["l0", "l1"]), "l1"],
    [
      "two elements share a place",
      layout([10, 6], ["p0", "2*p1"], ["l0", "floorDiv(l1, 2)"]),
      "l1",
    ],
    [
      "two positions share a term",
      layout(extents, ["p0 * p1", "p1"], ["l0", "l1"]),
      "no sum of a term",
    ],
    [
      "an extent is open",
      { ...layout(extents, ["p0", "p1"], ["l0", "l1"]), shape: [expr("N"), constant(12)] },
      "constant",
    ],
  ])("refuses when %s", (_, map, why) => {
    expect(
      layoutFault(
        map,
        extents.map((n) => constant(n)),
      ),
    ).toContain(why);
  });

  it("takes no map that trying refuses", () => {
    let taken = 0;
    for (let seed = 0; seed < 400; seed++) {
      const rng = new Rng(seed);
      const width = rng.integer(1, 6);
      const wrong = rng.integer(-1, 1);
      const map = layout(
        [rng.integer(1, 6), 10, width + rng.integer(-1, 1)],
        ["p1", `${width}*p0 + p2 + ${wrong === 1 ? rng.integer(0, 1) : 0}`],
        [
          `floorDiv(l1, ${width})`,
          "l0",
          `mod(l1, ${width + (wrong === -1 ? rng.integer(-1, 1) || 0 : 0) || 1})`,
        ],
      );
      if (
        layoutFault(
          map,
          extents.map((n) => constant(n)),
        ) !== undefined
      )
        continue;
      taken++;
      expect(holdsAll(map, extents), `seed ${seed}`).toBe(true);
    }
    expect(taken).toBeGreaterThan(20);
  });
});

describe("packTensor", () => {
  it("puts each element at its place and zeros elsewhere", () => {
    const map = layout([3, 2, 5], ["p1", "5*p0 + p2"], ["floorDiv(l1, 5)", "l0", "mod(l1, 5)"]);
    const data = Float32Array.from({ length: 24 }, (_, i) => i + 1);
    const packed = packTensor({ dtype: "f32", shape: [2, 12], data }, map);
    expect(packed.shape).toEqual([3, 2, 5]);
    let zeros = 0;
    packed.data.forEach((value, i) => {
      const [p0, p1, p2] = [Math.floor(i / 10), Math.floor(i / 5) % 2, i % 5];
      const column = 5 * p0 + p2;
      expect(value).toBe(column < 12 ? data[12 * p1 + column] : 0);
      if (value === 0) zeros++;
    });
    expect(zeros).toBe(6);
  });

  it("finds rows that run against, across and along the stored ones, inside and at the edges", () => {
    // Rows along, with an edge block; rows across; rows that jump; one that is turned.
    const maps = [
      layout([3, 7, 5], ["p1", "5*p0 + p2"], ["floorDiv(l1, 5)", "l0", "mod(l1, 5)"]),
      layout([2, 12, 4], ["4*p0 + p2", "p1"], ["floorDiv(l0, 4)", "l1", "mod(l0, 4)"]),
      layout([7, 2, 6], ["p0", "p1 + 2*p2"], ["l0", "mod(l1, 2)", "floorDiv(l1, 2)"]),
      layout([12, 7], ["6 - p1", "p0"], ["l1", "6 - l0"]),
    ];
    const types = [Float32Array, Int8Array, BigInt64Array] as const;
    for (const map of maps) {
      const [rows, columns] = [7, 12];
      const stored = map.shape.map((e) => e.constant);
      const expected = new Array<number>(stored.reduce((a, b) => a * b, 1)).fill(0);
      for (let at = 0; at < expected.length; at++) {
        let rest = at;
        const position = new Map<string, number>();
        for (let axis = stored.length - 1; axis >= 0; axis--) {
          position.set(`p${axis}`, rest % stored[axis]!);
          rest = Math.floor(rest / stored[axis]!);
        }
        const [row, column] = map.logical.map((e) => evaluate(e, position)) as [number, number];
        const isInside = row >= 0 && row < rows && column >= 0 && column < columns;
        if (isInside) expected[at] = row * columns + column + 1;
      }
      for (const type of types) {
        const data = new type(rows * columns);
        for (let i = 0; i < data.length; i++) {
          data[i] = type === BigInt64Array ? BigInt(i + 1) : i + 1;
        }
        const dtype = type === Float32Array ? "f32" : type === Int8Array ? "i8" : "i64";
        const tensor = { dtype, shape: [rows, columns], data } as const;
        expect([...packTensor(tensor, map).data].map(Number)).toEqual(expected);
        // What was there before is written over, zeros between the elements too.
        const bytes = new Uint8Array(expected.length * data.BYTES_PER_ELEMENT + 8).fill(0xff);
        packInto(bytes, tensor, map);
        const found = new type(bytes.buffer, 0, expected.length);
        expect([...found].map(Number)).toEqual(expected);
        expect([...bytes.slice(-8)]).toEqual(new Array(8).fill(0xff));
        // Elements that the layout leaves out have no place to come back from.
        const again = unpackFrom(bytes, tensor, map).data;
        for (let i = 0; i < data.length; i++) {
          expect(Number(again[i])).toBe(expected.includes(i + 1) ? i + 1 : 0);
        }
      }
    }
  });
});

describe("composeLayouts", () => {
  it("stores what storing twice does", () => {
    const blocks = layout([3, 2, 4], ["4*p0 + p2", "p1"], ["floorDiv(l0, 4)", "l1", "mod(l0, 4)"]);
    const panels = layout(
      [2, 3, 2, 3],
      ["p1", "p2", "3*p0 + p3"],
      ["floorDiv(l2, 3)", "l0", "l1", "mod(l2, 3)"],
    );
    const data = Float32Array.from({ length: 24 }, (_, i) => i + 1);
    const tensor = { dtype: "f32" as const, shape: [12, 2], data };
    const both = composeLayouts(blocks, panels);
    expect(layoutFault(both, [constant(12), constant(2)])).toBeUndefined();
    const packed = packTensor(tensor, both);
    const twice = packTensor(packTensor(tensor, blocks), panels);
    expect(packed.shape).toEqual(twice.shape);
    for (const [at, value] of twice.data.entries()) {
      if (value !== 0) expect(packed.data[at]).toBe(value);
    }
  });
});
