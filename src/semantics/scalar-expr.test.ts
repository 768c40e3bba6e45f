/** Counts over expressions, on ones whose answers are known by hand. */
import { expect, it } from "vitest";
import { apply, argument, literal, scalarsAtOnce } from "./scalar-expr.ts";

const [x, y, z, two] = [
  argument(0, "f32"),
  argument(1, "f32"),
  argument(2, "f32"),
  literal(2, "f32"),
];

it("counts the values that an expression holds at once", () => {
  expect(scalarsAtOnce(two)).toBe(0);
  expect(scalarsAtOnce(apply("add", two, two))).toBe(0);
  expect(scalarsAtOnce(x)).toBe(1);
  expect(scalarsAtOnce(apply("mul", x, two))).toBe(1);
  // The longer operand comes first, whichever it is.
  const sum = apply("add", x, y);
  expect(scalarsAtOnce(sum)).toBe(2);
  expect(scalarsAtOnce(apply("mul", z, sum))).toBe(2);
  expect(scalarsAtOnce(apply("mul", sum, apply("add", y, z)))).toBe(3);
  expect(scalarsAtOnce(apply("select", apply("less", x, y), sum, z))).toBe(3);
});

it("counts what functions hold inside", () => {
  expect(scalarsAtOnce(apply("div", x, two))).toBe(3);
  expect(scalarsAtOnce(apply("tanh", apply("div", x, two)))).toBe(6);
  expect(scalarsAtOnce(apply("add", apply("tanh", x), apply("tanh", y)))).toBe(7);
});
