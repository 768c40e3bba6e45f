import { expect, it } from "vitest";
import { compileText, mostKept } from "./compile-text.ts";

type Unary = (x: number) => number;

it("compiles a text once for all who ask", () => {
  const twice = compileText<Unary>(["x"], "return 2 * x;");
  expect(twice(21)).toBe(42);
  expect(compileText<Unary>(["x"], "return 2 * x;")).toBe(twice);
  expect(compileText<Unary>(["y", "x"], "return 2 * x;")).not.toBe(twice);
});

it("lets go of what was not asked for longest", () => {
  const ask = (i: number) => compileText<Unary>(["x"], `return x + ${i};`);
  const [first, second] = [ask(0), ask(1)];
  for (let i = 2; i < mostKept; i++) ask(i);
  expect(ask(0)).toBe(first);
  ask(mostKept);
  expect(ask(0)).toBe(first);
  expect(ask(1)).not.toBe(second);
});
