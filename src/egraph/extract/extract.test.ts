/** Extraction against brute force, an integer-program solver and its own judge, on random problems. */
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { loadHighs } from "../../../test/highs.ts";
import { Rng } from "../../support/rng.ts";
import { EGraph } from "../e-graph.ts";
import { addPattern } from "../term.ts";
import { evaluateChoice } from "./evaluate.ts";
import { extractDag, extractDistinct, extractTree } from "./extract.ts";
import { chooseGreedily } from "./greedy-dag.ts";
import { type SolveMilp, solveByMilp } from "./milp.ts";
import { type NeedSets, RowSets, TreeSets } from "./need-sets.ts";
import { type ExtractionProblem, makeProblem, type ProblemNode, problemOf } from "./problem.ts";
import { reduceProblem } from "./reduce.ts";
import { trim } from "./ruin-recreate.ts";

let solveMilp: SolveMilp;

beforeAll(async () => {
  solveMilp = await loadHighs();
});

interface Sizes {
  readonly classes: readonly [least: number, most: number];
  readonly costs: readonly [least: number, most: number];
}

function problemsOf({ classes: [fewest, most], costs: [min, max] }: Sizes) {
  return fc.integer({ min: fewest, max: most }).chain((classCount) => {
    const node = fc.record({
      cost: fc.integer({ min, max }),
      children: fc.array(fc.integer({ min: 0, max: classCount - 1 }), { maxLength: 3 }),
    });
    return fc.record({
      classes: fc.array(fc.array(node, { minLength: 1, maxLength: 3 }), {
        minLength: classCount,
        maxLength: classCount,
      }),
      roots: fc.array(fc.integer({ min: 0, max: classCount - 1 }), { minLength: 1, maxLength: 2 }),
    });
  });
}

/** Any small problem: cycles, unproductive classes, several roots, free nodes and all. */
const problems = problemsOf({ classes: [1, 6], costs: [0, 5] });

/** Least costs over all choices, by the judge. */
function bruteForce(problem: ExtractionProblem): { dag: number; tree: number } | undefined {
  const choice = new Int32Array(problem.classCount).fill(-1);
  let least: { dag: number; tree: number } | undefined;
  const visit = (c: number): void => {
    if (c === problem.classCount) {
      const found = evaluateChoice(problem, choice);
      if (!found.ok) return;
      const { dagCost, treeCost } = found;
      least = {
        dag: Math.min(dagCost, least?.dag ?? dagCost),
        tree: Math.min(treeCost, least?.tree ?? treeCost),
      };
      return;
    }
    for (let n = problem.classStart[c]!; n < problem.classStart[c + 1]!; n++) {
      choice[c] = n;
      visit(c + 1);
    }
  };
  visit(0);
  return least;
}

it("finds and proves the least tree and DAG cost of every small problem", () => {
  fc.assert(
    fc.property(problems, ({ classes, roots }) => {
      const problem = makeProblem(classes, roots);
      const least = bruteForce(problem);
      const [tree, dag] = [extractTree(problem), extractDag(problem)];
      expect(tree?.treeCost).toBe(least?.tree);
      expect(dag?.dagCost).toBe(least?.dag);
      if (least) expect([tree!.gap, dag!.gap, dag!.lowerBound]).toEqual([0, 0, least.dag]);
    }),
    { numRuns: 400 },
  );
});

it("proves the least cost where others are nearly as cheap", () => {
  fc.assert(
    fc.property(problemsOf({ classes: [5, 8], costs: [90, 100] }), ({ classes, roots }) => {
      const problem = makeProblem(classes, roots);
      expect(extractDag(problem)?.dagCost).toBe(bruteForce(problem)?.dag);
    }),
    { numRuns: 600 },
  );
});

it("keeps the optimum, and its bound below it, with hardly any work allowed", () => {
  fc.assert(
    fc.property(problems, ({ classes, roots }) => {
      const problem = makeProblem(classes, roots);
      const least = bruteForce(problem);
      const quick = extractDag(problem, { work: 1 });
      expect(quick === undefined).toBe(least === undefined);
      if (!quick || !least) return;
      expect(quick.lowerBound).toBeLessThanOrEqual(least.dag);
      expect(quick.dagCost).toBeGreaterThanOrEqual(least.dag);
      expect(quick.gap).toBeCloseTo((quick.dagCost - quick.lowerBound) / (quick.dagCost || 1), 12);
    }),
    { numRuns: 200 },
  );
});

it("loses no optimum by reducing", () => {
  fc.assert(
    fc.property(problems, ({ classes, roots }) => {
      const problem = makeProblem(classes, roots);
      const least = bruteForce(problem);
      const reduction = reduceProblem(problem);
      expect(reduction.isSolvable).toBe(least !== undefined);
      if (!least) return;
      const inner = reduction.blocks.map((block) => bruteForce(block.problem)!.dag);
      expect(inner.reduce((a, b) => a + b, reduction.fixedCost)).toBe(least.dag);
    }),
    { numRuns: 400 },
  );
});

/** What reductions leave of this leads greedy extraction astray, the whole does not. */
const misleading = [
  [
    { cost: 4, children: [] },
    { cost: 1, children: [2] },
  ],
  [{ cost: 2, children: [] }],
  [
    { cost: 1, children: [0] },
    { cost: 3, children: [1] },
  ],
];

it("is never worse than greedy extraction", () => {
  fc.assert(
    fc.property(problems, ({ classes, roots }) => {
      const problem = makeProblem(classes, roots);
      const greedy = evaluateChoice(problem, chooseGreedily(problem));
      if (!greedy.ok) return;
      const found = extractDag(problem, { work: 1 });
      expect(found!.dagCost).toBeLessThanOrEqual(greedy.dagCost);
    }),
    {
      examples: [[{ classes: misleading, roots: [2, 0] }]],
    },
  );
});

it("is never worse than greedy extraction of more classes than have rows of bits", () => {
  const leaves = Array.from({ length: 24_000 }, () => [{ cost: 1, children: [] }]);
  const others = leaves.map((_, i) => misleading.length + i);
  const problem = makeProblem([...misleading, ...leaves], [2, 0, ...others]);
  const greedy = evaluateChoice(problem, chooseGreedily(problem));
  const found = extractDag(problem, { work: 1 });
  expect(greedy).toMatchObject({ ok: true, dagCost: 24_000 + 5 });
  expect(found).toMatchObject({ dagCost: 24_000 + 5 });
});

it("finds terms whose trees are larger than any number", () => {
  const doubled = Array.from({ length: 2000 }, (_, c) => {
    const children = c === 0 ? [] : [c - 1, Math.max(0, c - 2)];
    return [{ cost: 1, children }];
  });
  const problem = makeProblem(doubled, [doubled.length - 1]);
  expect(extractDag(problem)).toMatchObject({ dagCost: 2000, gap: 0 });
  expect(extractTree(problem)).toMatchObject({ treeCost: Number.POSITIVE_INFINITY, gap: 0 });
});

it("joins the sets of classes as trees just as in rows of bits", () => {
  fc.assert(
    fc.property(fc.integer(), fc.integer({ min: 1, max: 3000 }), (seed, classCount) => {
      const rng = new Rng(seed);
      const classes = Array.from({ length: classCount }, () => [
        { cost: rng.integer(0, 9), children: [] },
      ]);
      const problem = makeProblem(classes, [0]);
      const choice = Int32Array.from(classes.keys());
      const all: readonly NeedSets[] = [RowSets, TreeSets].map((Sets) => new Sets(problem, choice));
      for (let c = 0; c < Math.min(classCount, 60); c++) {
        const of = rng.integer(0, classCount - 1);
        const joined = Array.from({ length: rng.integer(0, 3) }, () =>
          rng.integer(0, classCount - 1),
        );
        const asked = [
          ...joined,
          ...Array.from({ length: 20 }, () => rng.integer(0, classCount - 1)),
        ];
        const [rows, trees] = all.map((sets) => {
          sets.begin();
          const added = joined.map((child) => sets.join(child));
          const held = asked.map((member) => sets.has(member));
          sets.keep(of);
          return [added, held];
        });
        expect(trees).toEqual(rows);
      }
    }),
    { numRuns: 60 },
  );
});

/** Each class is made of one or two of the two before it. */
function longProblem(classCount: number, seed: number): ExtractionProblem {
  const rng = new Rng(seed);
  const node = (c: number): ProblemNode => {
    const children = Array.from({ length: rng.integer(1, 2) }, () => c - rng.integer(1, 2));
    return { cost: rng.integer(1, 9), children: children.filter((child) => child >= 0) };
  };
  const classes = Array.from({ length: classCount }, (_, c) =>
    Array.from({ length: rng.integer(1, 3) }, () => node(c)),
  );
  return makeProblem(classes, [classCount - 1]);
}

it("gives every class a choice when joining has taken its share of work", () => {
  const problem = longProblem(300, 2);
  const choice = chooseGreedily(problem, (of, chosen) => {
    const sets = new TreeSets(of, chosen);
    let kept = 0;
    const keep = (c: number): void => {
      kept++;
      sets.keep(c);
    };
    const { begin, join, has } = boundOf(sets);
    return {
      begin,
      join,
      has,
      keep,
      get isSpent() {
        return kept >= 20;
      },
    };
  });
  expect(evaluateChoice(problem, choice).ok).toBe(true);
});

function boundOf(sets: NeedSets): Pick<NeedSets, "begin" | "join" | "has"> {
  return {
    begin: () => sets.begin(),
    join: (child) => sets.join(child),
    has: (member) => sets.has(member),
  };
}

it("agrees with an integer-program solver, circles cut off", () => {
  fc.assert(
    fc.property(problems, ({ classes, roots }) => {
      const problem = makeProblem(classes, roots);
      const best = extractDag(problem);
      if (!best) return;
      const worst = { choice: best.choice, cost: Number.POSITIVE_INFINITY };
      const milp = solveByMilp(problem, solveMilp, worst);
      expect(milp.best.cost).toBeCloseTo(best.dagCost, 6);
      expect(milp.bound).toBeCloseTo(best.dagCost, 6);
    }),
    { numRuns: 60 },
  );
});

it("hands blocks that it leaves open to the injected solver", () => {
  const sets = [
    [0, 1],
    [1, 2],
    [2, 3],
    [3, 4],
    [4, 0],
    [0, 2, 5],
    [1, 3, 5],
  ];
  const covered = Array.from({ length: 6 }, (_, e) =>
    sets.flatMap((set, s) => (set.includes(e) ? [{ cost: 0, children: [6 + s] }] : [])),
  );
  const bought = sets.map((set) => [{ cost: set.length + 0.5, children: [] }]);
  const problem = makeProblem([...covered, ...bought], [0, 1, 2, 3, 4, 5]);
  const without = extractDag(problem, { work: 1 })!;
  const proved = extractDag(problem, { work: 1, solveMilp })!;
  expect(without.gap).toBeGreaterThan(0);
  expect(proved.gap).toBe(0);
  expect(proved.dagCost).toBe(extractDag(problem)!.dagCost);
});

describe("k results", () => {
  it("differ, ascend, are solutions, and begin with the best", () => {
    fc.assert(
      fc.property(problems, ({ classes, roots }) => {
        const problem = makeProblem(classes, roots);
        const found = extractDistinct(problem, 5);
        const costs = found.map((f) => f.dagCost);
        expect(new Set(found.map((f) => f.choice.join())).size).toBe(found.length);
        expect([...costs].sort((a, b) => a - b)).toEqual(costs);
        expect(costs[0]).toBe(extractDag(problem)?.dagCost);
        for (const { choice, dagCost } of found) {
          expect(evaluateChoice(problem, choice)).toMatchObject({ ok: true, dagCost });
        }
      }),
    );
  });

  it("are as many as asked for, where there are", () => {
    const twoWays = [
      { cost: 1, children: [] },
      { cost: 2, children: [] },
    ];
    const problem = makeProblem([[{ cost: 0, children: [1, 2] }], twoWays, twoWays], [0]);
    expect(extractDistinct(problem, 9).map((f) => f.dagCost)).toEqual([2, 3, 3, 4]);
    expect(extractDistinct(problem, 3)).toHaveLength(3);
  });
});

describe("the judge", () => {
  const problem = makeProblem(
    [
      [{ cost: 1, children: [1, 2] }],
      [
        { cost: 2, children: [2] },
        { cost: 9, children: [] },
      ],
      [
        { cost: 4, children: [] },
        { cost: 0, children: [1] },
      ],
    ],
    [0, 0],
  );

  it("counts shared parts once in a DAG and each time in a tree", () => {
    const found = evaluateChoice(problem, Int32Array.of(0, 1, 3));
    expect(found).toEqual({ ok: true, dagCost: 7, treeCost: 11, classes: 3 });
  });

  it.each([
    ["a circle", [0, 1, 4], "class 1 needs itself"],
    ["a missing choice", [0, 1, -1], "class 2 is needed and has no choice"],
    ["a node of another class", [0, 3, 3], "node 3 is not of class 1"],
  ])("refuses %s", (_, choice, fault) => {
    expect(evaluateChoice(problem, Int32Array.from(choice))).toEqual({ ok: false, fault });
  });
});

describe("a problem of an e-graph", () => {
  it("has the classes below the roots, and leads back to e-nodes", () => {
    const graph = new EGraph();
    const [big, small] = [addPattern(graph, "(+ (* 2 x) y)"), addPattern(graph, "(fma 2 x y)")];
    addPattern(graph, "(unrelated z)");
    graph.union(big, small);
    graph.rebuild();
    const prices: Record<string, number> = { "+": 3, "*": 4, fma: 5 };
    const made = problemOf(graph, [big], (node) => prices[graph.opName(node)] ?? 0);
    if (!made.ok) throw new Error("no problem");
    const { problem, nodeIds, classOf } = made.value;
    expect(problem.classCount).toBe(5);
    const best = extractDag(problem)!;
    expect(best.dagCost).toBe(5);
    const chosen = nodeIds[best.choice[classOf.get(graph.find(big))!]!]!;
    expect(graph.opName(chosen)).toBe("fma");
    expect(trim(problem, best.choice).selected).toHaveLength(4);
  });

  it("leaves nodes of infinite cost out and refuses negative ones (EGR005)", () => {
    const graph = new EGraph();
    const root = addPattern(graph, "(f x)");
    const without = problemOf(graph, [root], (n) => (graph.opName(n) === "x" ? Infinity : 1));
    expect(without.ok && extractDag(without.value.problem)).toBeUndefined();
    expect(without.ok && extractTree(without.value.problem)).toBeUndefined();
    const negative = problemOf(graph, [root], () => -1);
    expect(negative).toMatchObject({ ok: false, diagnostics: [{ code: "EGR005" }] });
  });
});
