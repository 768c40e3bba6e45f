import { describe, expect, it } from "vitest";
import type { Statement } from "../region/nest.ts";
import { parseNests } from "../region/nest-reader.ts";
import type { DType } from "../semantics/dtype.ts";
import { evaluate } from "../semantics/index-expr.ts";
import { roundNumber } from "../semantics/scalar-meaning.ts";
import { Rng } from "../support/rng.ts";
import { type Approximate, compileApproximate, roundingOf } from "./approximate.ts";
import { samplePoints } from "./sample-points.ts";
import { StatementSampler } from "./sample-statement.ts";

function samplerOf(statement: string, values: readonly number[], shape = [values.length]) {
  const program = parseNests(`nests "t" (x) -> (y) {
    input x : f32[${shape}] output y : f32[${shape}]
    statement S "" ${statement} }`);
  if (!program.ok) throw new Error(program.diagnostics[0]!.message);
  const item = program.value.items[0]!;
  if (item.kind !== "statement") throw new Error("no statement");
  const data = Float64Array.from(values, Math.fround);
  const source = { dtype: "f32", shape, element: (at: number) => data[at]! } as const;
  const sampler = new StatementSampler(item.statement, new Map(), () => ({
    ...source,
    repeats: { data, phase: 0 },
  }));
  return { sampler, statement: item.statement };
}

describe("one element of a statement", () => {
  it("is computed with whole folds, and nothing outside the guard", () => {
    const { sampler } = samplerOf(
      `{i in 4, reduce j in 4} where 2 - i >= 0 {
        y[i] = reduce<sum, f32, reassociates>((x[i - j] if i - j >= 0 else 0))
      }`,
      [1, 2, 3, 4],
    );
    expect(sampler.valuesAt([2])).toMatchObject([{ tensor: "y", offset: 2, value: 6 }]);
    expect(sampler.valuesAt([3])).toEqual([]);
  });

  it("has the error of its sum in any order, not of the order that is taken", () => {
    const sum = "{i in 3, reduce j in 3} { y[i] = reduce<sum, f32, reassociates>(x[j]) }";
    const { sampler } = samplerOf(sum, [1, -1, 1e-6]);
    const [element] = sampler.valuesAt([0]);
    const other = Math.fround(Math.fround(1 + 1e-6) - 1);
    expect(Math.abs(other - Number(element!.value))).toBeGreaterThan(0);
    expect(Math.abs(other - Number(element!.value))).toBeLessThan(element!.error);
    expect(element!.error).toBeLessThan(1e-5);
  });

  it("has no error where nothing is rounded, and a whole step where a branch may go either way", () => {
    const values = [0.5, -3, 2.5, 7];
    const exact = samplerOf("{i in 4} { y[i] = (max(neg(x[i]), f32(0))) }", values);
    expect(exact.sampler.valuesAt([1])).toMatchObject([{ value: 3, error: 0 }]);
    const floor = samplerOf("{i in 4} { y[i] = (floor(mul(x[i], f32(2)))) }", values);
    expect(floor.sampler.valuesAt([0])[0]!.error).toBe(1);
    const clear = samplerOf("{i in 4} { y[i] = (floor(mul(x[i], f32(1.1)))) }", values);
    expect(clear.sampler.valuesAt([0])[0]!.error).toBe(0);
  });

  it("has an error that cancellation makes large against the value", () => {
    const { sampler } = samplerOf(
      "{i in 2} { y[i] = (sub(mul(x[i], f32(1.1)), f32(1.1))) }",
      [1.0000001, 2],
    );
    const [near, far] = [0, 1].map((i) => sampler.valuesAt([i])[0]!);
    expect(near!.error / Math.abs(Number(near!.value))).toBeGreaterThan(0.1);
    expect(far!.error / Math.abs(Number(far!.value))).toBeLessThan(1e-6);
  });
});

/** Elements with errors, some exact, some not finite. */
function drawElements(rng: Rng, count: number, dtype: DType): readonly Approximate[] {
  return Array.from({ length: count }, () => {
    if (dtype !== "f32") return { value: rng.integer(-128, 127), error: 0 };
    const value = rng.integer(0, 40) === 0 ? Infinity : Math.fround(rng.integer(-99, 99) / 7);
    return { value, error: rng.integer(0, 2) === 0 ? 0 : rng.integer(0, 9) * 1e-7 };
  });
}

/** What a statement with one fold of one loop writes at a point of one loop, expression by expression. */
function folded(
  { reads, reduction, body, finish, loops }: Statement,
  elements: ReadonlyMap<string, readonly Approximate[]>,
  i: number,
): Approximate {
  const at = (j: number): ReadonlyMap<string, number> =>
    new Map([
      [loops[0]!.name, i],
      [loops[1]!.name, j],
    ]);
  const { combine, identity, components } = reduction!.monoid;
  let total = identity.map((e) => compileApproximate(e)([], at(0)));
  for (let j = 0; j < evaluate(loops[1]!.extent, new Map()); j++) {
    const args = reads.map(({ tensor, index, guard, fill }): Approximate => {
      if (guard.some((c) => evaluate(c.expr, at(j)) < 0)) return { value: fill, error: 0 };
      return elements.get(tensor)![evaluate(index[0]!, at(j))]!;
    });
    const terms = [...total, ...body.map((e) => compileApproximate(e)(args, at(j)))];
    total = combine.map((e) => compileApproximate(e, true)(terms, at(j)));
  }
  const { value, error } = total[0]!;
  const { dtype } = components[0]!;
  const result = {
    value: roundNumber(dtype, Number(value)),
    error: error + roundingOf(dtype, value),
  };
  return finish ? compileApproximate(finish[0]!)([result], at(0)) : result;
}

describe("a fold of elements with errors", () => {
  const mask = "select(lessEqual(add(index<i64>(i), i64(1)), index<i64>(j)), f32(-9), f32(0))";
  const causal = mask.replace("(j)", "(2)");
  const cases: readonly (readonly [string, DType, string])[] = [
    ["a sum of products", "f32", "reduce<sum, f32, reassociates>(mul(a[9*i + j], b[2*j + i]))"],
    [
      "a masked finish",
      "f32",
      `reduce<sum, f32, reassociates>(mul(a[j], b[i])) finish (add(_0, ${causal}))`,
    ],
    ["a masked body", "f32", `reduce<sum, f32, reassociates>(add(a[9*i + j], ${mask}))`],
    [
      "edges",
      "f32",
      "reduce<sum, f32, reassociates>(mul((a[i + j - 2] if i + j - 2 >= 0 else 1), b[j]))",
    ],
    [
      "a body of its own",
      "f32",
      "reduce<sum, f32, reassociates>(mul(relu(a[9*i + j]), exp(b[8 - j])))",
    ],
    ["a largest", "f32", "reduce<max, f32, exact>(sub(a[9*i + j], b[j]))"],
    ["integers", "i8", "reduce<sum, i32, exact>(mul(cast<i32>(a[9*i + j]), cast<i32>(b[j])))"],
    [
      "integers moved",
      "i8",
      "reduce<sum, i32, exact>(mul(sub(cast<i32>(a[9*i + j]), i32(3)), cast<i32>(b[j])))",
    ],
  ];
  it.each(cases)("is what its expressions say, to the last bit: %s", (_, dtype, text) => {
    const out = dtype === "f32" ? "f32" : "i32";
    const read = parseNests(`nests "t" (a, b) -> (y) {
      input a : ${dtype}[36] input b : ${dtype}[36] output y : ${out}[4]
      statement S "" {i in 4, reduce j in 9} { y[i] = ${text} } }`);
    if (!read.ok) throw new Error(read.diagnostics[0]!.message);
    const [item] = read.value.items;
    if (item?.kind !== "statement") throw new Error("no statement");
    const rng = new Rng(7);
    for (let round = 0; round < 40; round++) {
      const elements = new Map(["a", "b"].map((t) => [t, drawElements(rng, 36, dtype)] as const));
      const isExact = dtype !== "f32" || round % 4 === 0;
      const sampler = new StatementSampler(item.statement, new Map(), (tensor) => {
        const own = elements.get(tensor) ?? [];
        const data = Float64Array.from(own, (e) => Number(e.value));
        const element = (at: number) => own[at]!.value;
        const shape = [tensor === "y" ? 4 : 36];
        const base = { dtype: tensor === "y" ? (out as DType) : dtype, shape, element };
        if (isExact && tensor === "b") return { ...base, repeats: { data, phase: 0 } };
        return dtype === "f32"
          ? { ...base, approximate: (at) => own[at]! }
          : { ...base, repeats: { data, phase: 0 } };
      });
      if (isExact)
        elements.set(
          "b",
          elements.get("b")!.map(({ value }) => ({ value, error: 0 })),
        );
      for (let i = 0; i < 4; i++) {
        const [found] = sampler.valuesAt([i]);
        const wanted = folded(item.statement, elements, i);
        expect([found!.value, found!.error]).toEqual([wanted.value, wanted.error]);
      }
    }
  });
});

describe("sampled points", () => {
  it("have all corners, both sides of each tile boundary, and 256 random ones", () => {
    const copy = "{i in 100, j in 70} { y[i, j] = (x[i, j]) }";
    const { sampler, statement } = samplerOf(copy, new Array<number>(7000).fill(1), [100, 70]);
    const tiles = [{ statement: "S", loop: "i", factor: 32 }];
    const points = samplePoints(statement, sampler, tiles, new Rng(1));
    const seen = new Set(points.map((p) => p.join()));
    expect(seen.size).toBe(points.length);
    expect(points.length).toBeGreaterThanOrEqual(256);
    for (const corner of ["0,0", "0,69", "99,0", "99,69"]) expect(seen).toContain(corner);
    const rows = new Set(points.map(([i]) => i));
    for (const row of [31, 32, 95, 96, 98, 99]) expect(rows).toContain(row);
  });

  it("are all points of a small domain", () => {
    const copy = "{i in 10, j in 7} { y[i, j] = (x[i, j]) }";
    const { sampler, statement } = samplerOf(copy, new Array<number>(70).fill(1), [10, 7]);
    expect(samplePoints(statement, sampler, [], new Rng(1))).toHaveLength(70);
  });
});
