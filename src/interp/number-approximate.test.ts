import { expect, it } from "vitest";
import { type DType, dtypes } from "../semantics/dtype.ts";
import {
  apply,
  argument,
  cast,
  type ScalarExpr,
  type ScalarOp,
  scalarOps,
} from "../semantics/scalar-expr.ts";
import { castScalar } from "../semantics/scalar-meaning.ts";
import { InternalError } from "../support/invariant.ts";
import { Rng } from "../support/rng.ts";
import { compileApproximate } from "./approximate.ts";
import { compileNumbers, NumberFrame } from "./number-approximate.ts";

const types: readonly DType[] = ["f32", "f64", "f16", "bf16", "i32", "u8", "bool"];
const special = [0, -0, 1, -1, 0.5, 1e-40, 3e38, Infinity, -Infinity, Number.NaN];

function draw(dtype: DType, rng: Rng): number {
  const isFloat = dtypes[dtype].kind === "float";
  const any = rng.integer(0, 4) === 0 && isFloat ? rng.pick(special) : 8 * rng.uniform() - 4;
  return castScalar(any, dtype, true) as number;
}

/** Both ways to compute an expression, on the same arguments. */
function compare(expr: ScalarExpr, given: readonly DType[], rng: Rng, fold: boolean): void {
  const numbers = compileNumbers(expr, fold)!;
  const objects = compileApproximate(expr, fold);
  const frame = new NumberFrame(given.length);
  for (let i = 0; i < 20; i++) {
    const args = given.map((dtype) => {
      const most = dtypes[dtype].kind === "float" ? Infinity : 5;
      const error = rng.integer(0, 2) === 0 ? 0 : rng.pick([1e-7, 0.25, 3, most]);
      return { value: draw(dtype, rng), error };
    });
    for (const [slot, { value, error }] of args.entries()) frame.set(slot, value, error);
    const value = numbers(frame);
    expect({ value, error: frame.error }).toEqual(objects(args, new Map()));
  }
}

function hasMeaning(expr: ScalarExpr): boolean {
  try {
    compileApproximate(expr);
    return true;
  } catch (error) {
    if (!(error instanceof InternalError)) throw error;
    return false;
  }
}

const rng = new Rng(7);
const operators = Object.keys(scalarOps) as ScalarOp[];

it("gives every operator's value and error as the objects do, in folds too", () => {
  let compared = 0;
  for (const op of operators) {
    for (const dtype of types) {
      const { arity, typing } = scalarOps[op];
      const given = Array.from({ length: arity }, () => dtype);
      if (typing === "select") given[0] = "bool";
      const expr = apply(op, ...given.map((d, i) => argument(i, d)));
      // Some operators have no meaning on some types, in either way.
      if (!hasMeaning(expr)) continue;
      for (const fold of [false, true]) compare(expr, given, rng, fold);
      compared++;
    }
  }
  expect(compared).toBeGreaterThan(150);
});

it("gives conversions and expressions of several operators alike", () => {
  for (const from of types) {
    for (const to of types) {
      for (const saturate of [false, true]) {
        compare(cast(argument(0, from), to, saturate), [from], rng, rng.integer(0, 1) === 1);
      }
    }
  }
  const [x, y] = [argument(0, "f32"), argument(1, "f32")];
  const deep = apply("div", apply("exp", apply("sub", x, y)), apply("add", apply("mul", x, x), y));
  for (const fold of [false, true]) compare(deep, ["f32", "f32"], rng, fold);
});

it("a product of values that are no larger than their errors may be as large as those", () => {
  const square = apply("mul", argument(0, "f32"), argument(0, "f32"));
  const none = { value: 0, error: 1e-6 };
  expect(compileApproximate(square)([none], new Map()).error).toBeGreaterThanOrEqual(1e-12);
});

it("what is below the normal numbers of f32 may be zero, not what f16 keeps", () => {
  const product = apply("mul", argument(0, "f32"), argument(1, "f32"));
  const exactly = (value: number) => ({ value, error: 0 });
  const found = compileApproximate(product)([exactly(-1e-30), exactly(1e-10)], new Map());
  expect(found.error).toBeGreaterThan(Math.abs(found.value as number));
  for (const [to, value] of [
    ["bf16", -2.7550648847397363e-40],
    ["f32", 1e-39],
  ] as const) {
    const stored = compileApproximate(cast(argument(0, "f32"), to, false));
    const { error } = stored([{ value, error: 2 ** -126 }], new Map());
    expect(error).toBeGreaterThan(Math.abs(value));
  }
  const half = compileApproximate(cast(argument(0, "f32"), "f16", false));
  expect(half([exactly(1e-6)], new Map()).error).toBeLessThan(1e-7);
});

it("leaves BigInts and indices to the objects", () => {
  expect(compileNumbers(cast(argument(0, "f32"), "i64", false))).toBeUndefined();
});
