import { expect, it, vi } from "vitest";
import { compileText, mayCompile, mostKept } from "./compile-text.ts";
import { EGraph } from "./e-graph.ts";
import { readRules } from "./rule.ts";
import { saturate } from "./saturate.ts";
import { addPattern } from "./term.ts";

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

function sumsOfFive(): EGraph {
  const rules = readRules([
    { name: "commute", left: "(+ ?a ?b)", right: "(+ ?b ?a)" },
    { name: "associate", left: "(+ ?a (+ ?b ?c))", right: "(+ (+ ?a ?b) ?c)" },
  ]);
  if (!rules.ok) throw new Error(JSON.stringify(rules.diagnostics));
  const graph = new EGraph();
  addPattern(graph, "(+ a (+ b (+ c (+ d e))))");
  saturate(graph, [{ name: "all", rules: rules.value }]);
  return graph;
}

it("is done without where a page's policy forbids code from text", () => {
  expect(mayCompile()).toBe(true);
  const free = sumsOfFive();
  const refuse = vi.fn(function refuse() {
    throw new EvalError("code generation from strings disallowed for this context");
  });
  vi.stubGlobal("Function", refuse);
  try {
    expect(mayCompile()).toBe(false);
    refuse.mockClear();
    const held = sumsOfFive();
    // Asked once whether it may, and then no more.
    expect(refuse).toHaveBeenCalledTimes(1);
    expect([held.nodeCount, held.classCount]).toEqual([3 ** 5 - 2 ** 6 + 1 + 5, 2 ** 5 - 1]);
    expect(held.classes()).toEqual(free.classes());
  } finally {
    vi.unstubAllGlobals();
  }
});
