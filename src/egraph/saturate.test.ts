/** Rules at work: conditions, payloads, several left sides, budgets, bans, contradictions, determinism. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Analysis, Contradiction } from "./analysis.ts";
import { defaultBackoff } from "./backoff.ts";
import { EGraph } from "./e-graph.ts";
import { type RuleText, readRules } from "./rule.ts";
import { type Budget, type Phase, type SaturateOptions, saturate } from "./saturate.ts";
import { addPattern } from "./term.ts";

function phase<D>(texts: readonly RuleText<D>[], more: Partial<Phase<D>> = {}): Phase<D> {
  const rules = readRules(texts);
  if (!rules.ok) throw new Error(JSON.stringify(rules.diagnostics));
  return { name: "all", rules: rules.value, ...more };
}

const both: readonly SaturateOptions<never>["matchers"][] = ["compiled", "interpreted"];

describe.each(both)("%s", (matchers) => {
  function provesEqual(rules: readonly RuleText[], a: string, b: string): boolean {
    const graph = new EGraph();
    const [x, y] = [addPattern(graph, a), addPattern(graph, b)];
    saturate(graph, [phase(rules)], matchers ? { matchers } : {});
    return graph.equal(x, y);
  }

  it("binds and compares payloads", () => {
    const rules = [
      { name: "join", left: "(pad[?p] (pad[?q] ?x))", right: "(pad[?q] (pad[?p] ?x))" },
      { name: "twice", left: "(flip[?p] (flip[?p] ?x))", right: "?x" },
    ];
    expect(provesEqual(rules, "(pad[a] (pad[b] x))", "(pad[b] (pad[a] x))")).toBe(true);
    expect(provesEqual(rules, "(flip[a] (flip[a] x))", "x")).toBe(true);
    expect(provesEqual(rules, "(flip[a] (flip[b] x))", "x")).toBe(false);
  });

  it("computes payloads, and lets a match be that has none", () => {
    const rules: RuleText[] = [
      {
        name: "sum",
        left: "(shift[?a] (shift[?b] ?x))",
        right: "(shift[?c] ?x)",
        compute: {
          c: (m) => {
            const sum = Number(m.key("a")) + Number(m.key("b"));
            return sum > 9 ? undefined : String(sum);
          },
        },
      },
    ];
    expect(provesEqual(rules, "(shift[2] (shift[3] x))", "(shift[5] x)")).toBe(true);
    expect(provesEqual(rules, "(shift[7] (shift[3] x))", "(shift[10] x)")).toBe(false);
  });

  it("matches any payload, open children and wide nodes", () => {
    const rules: RuleText[] = [
      { name: "any", left: "(drop[_] ?x)", right: "?x" },
      {
        name: "rotate",
        left: "(list ?first ...)",
        right: (m, build) => {
          const [first, ...rest] = m.children(m.root());
          return build.add("list", [...rest, first!]);
        },
      },
      { name: "five", left: "(list ?a b c d ?e)", right: "(five ?e ?a)" },
    ];
    expect(provesEqual(rules, "(drop[k] x)", "x")).toBe(true);
    expect(provesEqual(rules, "(list a b c d e)", "(five e a)")).toBe(true);
    expect(provesEqual(rules, "(list d e a b c)", "(five e a)")).toBe(true);
    expect(provesEqual(rules, "(list d e a b)", "(five e a)")).toBe(false);
  });

  it("joins several left sides through what they share", () => {
    const rules: RuleText[] = [
      {
        name: "merge",
        left: ["(mm ?x ?a)", "(mm ?x ?b)"],
        right: ["(out[0] (split (mm ?x (cat ?a ?b))))", "(out[1] (split (mm ?x (cat ?a ?b))))"],
      },
    ];
    const graph = new EGraph();
    const [p, q] = [addPattern(graph, "(mm x a)"), addPattern(graph, "(mm x b)")];
    const other = addPattern(graph, "(mm y c)");
    saturate(graph, [phase(rules, { iterations: 1 })], matchers ? { matchers } : {});
    const split = addPattern(graph, "(split (mm x (cat a b)))");
    expect(graph.equal(p, graph.add("out", [split], "0"))).toBe(true);
    expect(graph.equal(q, graph.add("out", [split], "1"))).toBe(true);
    expect(graph.equal(p, q)).toBe(false);
    expect(graph.lookup("cat", [addPattern(graph, "a"), addPattern(graph, "c")])).toBeUndefined();
    expect(graph.nodes(other)).toHaveLength(3);
  });

  it("joins left sides through a shared grandchild", () => {
    const rules: RuleText[] = [
      { name: "meet", left: ["(f (g ?x))", "(h (k ?x))"], right: ["(p ?x)", "(q ?x)"] },
    ];
    const graph = new EGraph();
    const [f, h] = [addPattern(graph, "(f (g a))"), addPattern(graph, "(h (k a))")];
    const alone = addPattern(graph, "(h (k b))");
    saturate(graph, [phase(rules)], matchers ? { matchers } : {});
    expect(graph.equal(f, addPattern(graph, "(p a)"))).toBe(true);
    expect(graph.equal(h, addPattern(graph, "(q a)"))).toBe(true);
    expect(graph.nodes(alone)).toHaveLength(1);
  });

  it("finds operators, payloads and arities that earlier rules make", () => {
    const rules: RuleText[] = [
      { name: "last", left: "(h[key] (k ?x))", right: "found" },
      { name: "second", left: "(g ?x)", right: "(h[key] (k ?x))" },
      { name: "first", left: "(f ?x)", right: "(g ?x)" },
    ];
    expect(provesEqual(rules, "(f a)", "found")).toBe(true);
    expect(provesEqual(rules, "(h (k a))", "found")).toBe(false);
    expect(provesEqual(rules, "(h[key] (k a a))", "found")).toBe(false);
  });

  it("names inner terms", () => {
    const rules: RuleText[] = [{ name: "cut", left: "(f ?m@(g ?x))", right: "(h ?m ?x)" }];
    expect(provesEqual(rules, "(f (g a))", "(h (g a) a)")).toBe(true);
  });
});

/** The set of leaves below a class: grows as classes are united. */
const smallestLeaf: Analysis<number> = {
  make: (node, graph) =>
    Math.min(
      graph.opName(node) === "const"
        ? Number(graph.vocabulary.payloadKey(graph.payload(node)))
        : 99,
      ...graph.children(node).map((child) => graph.data(child)),
    ),
  join: Math.min,
};

describe("conditions", () => {
  it("are tested again when the data of a class that the match saw changes", () => {
    const graph = new EGraph({ analysis: smallestLeaf });
    const [f, x] = [addPattern(graph, "(f (g x))"), addPattern(graph, "x")];
    const rules: RuleText<number>[] = [
      { name: "known", left: "(f ?y)", right: "found", when: (m) => m.data("y") < 5 },
      { name: "learn", left: "(hint ?y)", right: "(hint 3)" },
    ];
    const first = saturate(graph, [phase(rules)]);
    expect([first.stop, graph.equal(f, graph.add("found"))]).toEqual(["saturated", false]);
    graph.union(x, addPattern(graph, "2"));
    graph.rebuild();
    saturate(graph, [phase(rules)]);
    expect(graph.equal(f, graph.add("found"))).toBe(true);
  });

  it("that a later step of the same saturation makes true are not missed", () => {
    const graph = new EGraph({ analysis: smallestLeaf });
    const f = addPattern(graph, "(f (g (x1 x)))");
    const rules: RuleText<number>[] = [
      { name: "known", left: "(f ?y)", right: "found", when: (m) => m.data("y") < 5 },
      { name: "one", left: "(x1 ?y)", right: "(x2 ?y)" },
      { name: "two", left: "(x2 ?y)", right: "(x3 ?y 4)" },
    ];
    saturate(graph, [phase(rules)]);
    expect(graph.equal(f, graph.add("found"))).toBe(true);
  });

  it("that look at the nodes of a class are searched in full", () => {
    const graph = new EGraph();
    const f = addPattern(graph, "(f (x1 x))");
    const has =
      (name: string): NonNullable<RuleText["when"]> =>
      (m) =>
        m.graph.nodes(m.id("y")).some((node) => m.graph.opName(node) === name);
    const rules: RuleText[] = [
      { name: "seen", left: "(f ?y)", right: "found", when: has("x3") },
      { name: "one", left: "(x1 ?y)", right: "(x2 ?y)" },
      { name: "two", left: "(x2 ?y)", right: "(x3 ?y)" },
    ];
    saturate(graph, [phase(rules)]);
    expect(graph.equal(f, graph.add("found"))).toBe(true);
  });
});

const onlyConstants: Analysis<string | undefined> = {
  make: (node, graph) =>
    graph.opName(node) === "const" ? graph.vocabulary.payloadKey(graph.payload(node)) : undefined,
  join: (a, b) =>
    a !== undefined && b !== undefined && a !== b ? new Contradiction(`${a} = ${b}`) : (a ?? b),
};

describe("stops", () => {
  it("at a contradiction, with EGR003 and the rule that is false", () => {
    const graph = new EGraph({ analysis: onlyConstants });
    addPattern(graph, "(g (f 1) (f 2))");
    const report = saturate(graph, [
      phase<string | undefined>([
        { name: "fine", left: "(g ?a ?b)", right: "(g ?b ?a)" },
        { name: "forgets", left: "(f ?a)", right: "?a" },
        { name: "false", left: "(g ?a ?b)", right: "?a" },
      ]),
    ]);
    expect(report.stop).toBe("inconsistent");
    expect(report.diagnostics).toMatchObject([{ code: "EGR003", at: 'rule "false"' }]);
  });

  it("at a contradiction that a true rule shows, with what had changed something", () => {
    const graph = new EGraph({ analysis: onlyConstants });
    addPattern(graph, "(g (f 1) 1)");
    const report = saturate(graph, [
      phase<string | undefined>([
        { name: "false", left: "(f 1)", right: "2" },
        { name: "other", left: "(h ?a)", right: "?a" },
      ]),
      phase<string | undefined>([{ name: "true", left: "(g (f ?a) ?b)", right: "(g ?b (f ?a))" }]),
      phase<string | undefined>([{ name: "equal", left: "(g ?a ?b)", right: "?a" }]),
    ]);
    expect(report.diagnostics).toMatchObject([
      {
        code: "EGR003",
        at: 'rule "equal"',
        notes: ["rules that had changed something: false, true, equal"],
      },
    ]);
  });

  it("names the rule when congruence alone shows the contradiction", () => {
    const graph = new EGraph({ analysis: onlyConstants });
    const [x, y] = [addPattern(graph, "x"), addPattern(graph, "y")];
    graph.union(addPattern(graph, "(f x)"), addPattern(graph, "1"));
    graph.union(addPattern(graph, "(f y)"), addPattern(graph, "2"));
    graph.union(addPattern(graph, "(same x)"), addPattern(graph, "(same y)"));
    addPattern(graph, "(eq x y)");
    const rules = [{ name: "merge", left: "(eq ?a ?b)", right: "?a" }] as const;
    const also = [{ name: "merge-too", left: "(eq ?a ?b)", right: "?b" }] as const;
    const report = saturate(graph, [phase<string | undefined>([...rules, ...also])]);
    expect(graph.equal(x, y)).toBe(true);
    expect(report.diagnostics).toMatchObject([{ code: "EGR003", at: 'rule "merge-too"' }]);
  });

  const endless: RuleText[] = [{ name: "grow", left: "(f ?a)", right: "(f (s ?a))" }];

  it("at the limit of nodes, inside applying, with EGR004 and the busiest rule", () => {
    const graph = new EGraph();
    for (let i = 0; i < 50; i++) addPattern(graph, `(f x${i})`);
    const report = saturate(graph, [phase(endless)], { budget: { nodes: 210 } });
    expect(report.stop).toBe("nodes");
    expect(graph.nodeCount).toBeLessThanOrEqual(212);
    expect(report.diagnostics).toMatchObject([{ code: "EGR004", at: 'rule "grow"' }]);
  });

  it.each([{ nodes: 0 }, { work: 0 }, { nodes: Number.NaN }, { work: Number.NaN }])(
    "before any rule, where the budget allows nothing: %o",
    (budget) => {
      const graph = new EGraph();
      addPattern(graph, "(f x)");
      const alone = saturate(graph, [phase(endless, { iterations: 50 })], { budget });
      expect(graph.nodeCount).toBe(2);
      expect(alone.diagnostics).toMatchObject([{ code: "EGR004" }]);
      expect(alone.diagnostics[0]).not.toHaveProperty("at");
      saturate(graph, [phase(endless, { iterations: 50, budget })]);
      expect(graph.nodeCount).toBe(2);
    },
  );

  it("at the usual budget, where one is given as absent", () => {
    const graph = new EGraph();
    addPattern(graph, "(f x)");
    const budget = { nodes: 30, work: undefined } as unknown as Partial<Budget>;
    expect(saturate(graph, [phase(endless)], { budget }).stop).toBe("nodes");
  });

  it("at the budget of work, and at the same place each time", () => {
    const once = (matchers: "compiled" | "interpreted") => {
      const graph = new EGraph();
      addPattern(graph, "(f x)");
      const report = saturate(graph, [phase(endless)], { budget: { work: 300 }, matchers });
      return [report.stop, report.work, graph.nodeCount];
    };
    expect(once("compiled")[0]).toBe("work");
    expect(once("compiled")).toEqual(once("interpreted"));
  });

  it("at the goal, at an abort, and after a phase's iterations", () => {
    const graph = new EGraph();
    addPattern(graph, "(f x)");
    const limited = phase(endless, { iterations: 3 });
    expect(saturate(graph, [limited]).stop).toBe("iterations");
    expect(saturate(graph, [limited], { aborted: () => true }).stop).toBe("aborted");
    expect(saturate(graph, [limited], { until: (g) => g.nodeCount > 5 }).stop).toBe("goal");
  });

  it("ends a phase at its own budget and goes on to the next", () => {
    const graph = new EGraph();
    const f = addPattern(graph, "(f x)");
    const close = phase([{ name: "close", left: "(f x)", right: "done" }]);
    const report = saturate(graph, [phase(endless, { budget: { nodes: 40 } }), close]);
    expect(report.stop).toBe("saturated");
    expect(graph.equal(f, graph.add("done"))).toBe(true);
  });
});

describe("back-off", () => {
  const rules: RuleText[] = [
    { name: "commute", left: "(+ ?a ?b)", right: "(+ ?b ?a)" },
    { name: "associate", left: "(+ ?a (+ ?b ?c))", right: "(+ (+ ?a ?b) ?c)" },
  ];
  const sum = "(+ a (+ b (+ c (+ d (+ e (+ f g))))))";

  it("reaches the same saturation in the end", () => {
    const [plain, banned] = [new EGraph(), new EGraph()];
    addPattern(plain, sum);
    addPattern(banned, sum);
    saturate(plain, [phase(rules)]);
    const report = saturate(banned, [phase(rules, { backoff: { matches: 20, ban: 2 } })]);
    expect(report.stop).toBe("saturated");
    expect(report.rules.some((rule) => rule.bans > 0)).toBe(true);
    expect(banned.nodeCount).toBe(plain.nodeCount);
    expect(banned.classCount).toBe(plain.classCount);
  });

  it("ends a search at the limit", () => {
    const graph = new EGraph();
    for (let i = 0; i < 5000; i++) addPattern(graph, `(+ x${i} y)`);
    const report = saturate(graph, [phase(rules, { backoff: defaultBackoff, iterations: 1 })]);
    expect(report.rules[0]).toMatchObject({ bans: 1, changes: 0 });
    expect(report.rules[0]!.work).toBeLessThan(1100);
  });
});

/** A random ground term over few symbols, and rules that shuffle, merge and collapse. */
const leaf = fc.constantFrom("a", "b", "c", "0", "1");
const groundTerm = fc.letrec((tie) => ({
  term: fc.oneof(
    { maxDepth: 4, depthSize: "small" },
    leaf,
    fc.tuple(fc.constantFrom("f", "g"), tie("term")).map(([op, x]) => `(${op} ${x})`),
    fc.tuple(fc.constantFrom("+", "*"), tie("term"), tie("term")).map((t) => `(${t.join(" ")})`),
  ),
})).term as fc.Arbitrary<string>;

const someRules: RuleText[] = [
  { name: "commute", left: "(+ ?a ?b)", right: "(+ ?b ?a)" },
  { name: "distribute", left: "(* ?a (+ ?b ?c))", right: "(+ (* ?a ?b) (* ?a ?c))" },
  { name: "factor", left: "(+ (* ?a ?b) (* ?a ?c))", right: "(* ?a (+ ?b ?c))" },
  { name: "square", left: "(* ?a ?a)", right: "(f ?a)" },
  { name: "zero", left: "(* ?a 0)", right: "0" },
  { name: "both", left: ["(f ?x)", "(g ?x)"], right: ["(f (g ?x))", "(g (f ?x))"] },
  { name: "unwrap", left: "(f (f ?x))", right: "?x" },
];

describe("the same rules on the same terms", () => {
  const small = { nodes: 400, work: 100_000 };

  function trace(terms: readonly string[], options: SaturateOptions<undefined>, proofs = false) {
    const graph = new EGraph({ proofs });
    const ids = terms.map((text) => addPattern(graph, text));
    const report = saturate(graph, [phase(someRules, { iterations: 4 })], {
      budget: small,
      ...options,
    });
    return { graph, ids, report };
  }

  it("give the same ids, counts and work compiled and interpreted, with proofs and without", () => {
    fc.assert(
      fc.property(fc.array(groundTerm, { minLength: 1, maxLength: 4 }), (terms) => {
        const summary = ({ graph, ids, report }: ReturnType<typeof trace>) => ({
          nodes: graph.classes().map((root) => graph.nodes(root)),
          roots: ids.map((id) => graph.find(id)),
          iterations: report.iterations,
          work: report.work,
        });
        const compiled = summary(trace(terms, { matchers: "compiled" }));
        expect(summary(trace(terms, { matchers: "interpreted" }))).toEqual(compiled);
        expect(summary(trace(terms, { matchers: "compiled" }, true))).toEqual(compiled);
      }),
      { numRuns: 30 },
    );
  });

  it("give the same classes searching only news and searching everything", () => {
    fc.assert(
      fc.property(fc.array(groundTerm, { minLength: 1, maxLength: 4 }), (terms) => {
        const big = { budget: { nodes: 20_000, work: 10_000_000 } };
        const news = trace(terms, big);
        const full = trace(terms, { ...big, fullSearch: true });
        expect(news.graph.nodeCount).toBe(full.graph.nodeCount);
        expect(news.graph.classCount).toBe(full.graph.classCount);
        for (const a of news.ids) {
          for (const b of news.ids) expect(news.graph.equal(a, b)).toBe(full.graph.equal(a, b));
        }
      }),
      { numRuns: 30 },
    );
  });
});
