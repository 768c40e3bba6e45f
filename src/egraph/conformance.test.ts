/** Counts that other engines publish or were measured to have: see math.test-support.ts. */
import { expect, it } from "vitest";
import { EGraph } from "./e-graph.ts";
import { foldConstants, mathRules, microRules, microTerms } from "./math.test-support.ts";
import { type RuleText, readRules } from "./rule.ts";
import { type SaturateOptions, type SaturationReport, saturate } from "./saturate.ts";
import { addPattern } from "./term.ts";

const budget = { nodes: 2_000_000, work: 1_000_000_000 };

function run<D>(
  graph: EGraph<D>,
  texts: readonly RuleText<D>[],
  iterations: number,
  options: SaturateOptions<D> = {},
): SaturationReport {
  const rules = readRules(texts);
  if (!rules.ok) throw new Error(JSON.stringify(rules.diagnostics));
  return saturate(graph, [{ name: "all", rules: rules.value, iterations }], { budget, ...options });
}

function microGraph(proofs = false): EGraph {
  const graph = new EGraph({ proofs });
  for (const text of microTerms) addPattern(graph, text);
  return graph;
}

function countByOp(graph: EGraph): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const root of graph.classes()) {
    for (const node of graph.nodes(root)) {
      const name = graph.opName(node);
      counts[name] = (counts[name] ?? 0) + 1;
    }
  }
  return counts;
}

it("has egglog's counts after 11 iterations of math-microbenchmark, and egg's classes", () => {
  const graph = microGraph();
  const report = run(graph, microRules, 11);
  expect(report.stop).toBe("iterations");
  expect(countByOp(graph)).toMatchObject({
    "+": 641743,
    "*": 345075,
    i: 32434,
    "-": 15123,
    d: 13504,
  });
  expect([graph.nodeCount, graph.classCount]).toEqual([1047896, 443832]);
});

it.each([
  ["compiled", false],
  ["interpreted", false],
  ["compiled", true],
] as const)("has egg's counts in each iteration (%s, full search %s)", (matchers, fullSearch) => {
  const report = run(microGraph(), microRules, 9, { matchers, fullSearch });
  expect(report.iterations.map(({ nodes, classes }) => `${nodes}/${classes}`)).toEqual(
    "69/50 118/71 208/116 389/197 784/361 1576/666 3160/1347 8113/3576 28303/12445".split(" "),
  );
});

it("has egg's counts of the math rules, with constant folding and conditions, in iterations 1 to 7", () => {
  const graph = new EGraph({ analysis: foldConstants });
  for (const text of microTerms) addPattern(graph, text);
  const report = run(graph, mathRules, 7);
  expect(report.iterations.map(({ nodes, classes }) => `${nodes}/${classes}`)).toEqual(
    "137/53 321/100 611/194 1420/438 3643/1176 10397/3939 52432/20449".split(" "),
  );
});

const sumRules: RuleText[] = [
  { name: "commute", left: "(+ ?a ?b)", right: "(+ ?b ?a)" },
  { name: "associate", left: "(+ ?a (+ ?b ?c))", right: "(+ (+ ?a ?b) ?c)" },
];

it.each([2, 3, 5, 8, 9])("has the closed form of sums of %i terms", (n) => {
  const graph = new EGraph();
  const terms = Array.from({ length: n }, (_, i) => `x${i}`);
  addPattern(
    graph,
    terms.reduceRight((rest, x) => `(+ ${x} ${rest})`),
  );
  const report = run(graph, sumRules, 100);
  expect(report.stop).toBe("saturated");
  expect(graph.classCount).toBe(2 ** n - 1);
  expect(graph.nodeCount).toBe(3 ** n - 2 ** (n + 1) + 1 + n);
});

it("has egg's 127 classes of seven summands after 7 iterations", () => {
  const graph = new EGraph();
  addPattern(graph, "(+ 1 (+ 2 (+ 3 (+ 4 (+ 5 (+ 6 7))))))");
  run(graph, sumRules, 7);
  expect(graph.classCount).toBe(127);
});
