/** Proofs of what saturation finds, held to the judge; and the judge held to broken proofs. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkProof, replaySteps } from "./check-proof.ts";
import { EGraph, type EGraphOptions } from "./e-graph.ts";
import { explain } from "./explain.ts";
import { foldConstants, foldHolds, mathRules } from "./math.test-support.ts";
import { flattenProof, type Lemma, type Proof, printTerm } from "./proof.ts";
import { type Rule, type RuleText, readRules } from "./rule.ts";
import { saturate } from "./saturate.ts";
import { addPattern } from "./term.ts";

function read<D>(texts: readonly RuleText<D>[]): Rule<D>[] {
  const rules = readRules(texts);
  if (!rules.ok) throw new Error(JSON.stringify(rules.diagnostics));
  return rules.value;
}

interface Question<D> extends EGraphOptions<D> {
  readonly rules: readonly Rule<D>[];
  readonly nodes?: number;
}

/** Saturates until two terms are equal and explains it. */
function prove<D>(a: string, b: string, { rules, nodes = 5000, ...options }: Question<D>) {
  const graph = new EGraph<D>({ ...options, proofs: true });
  const [x, y] = [addPattern(graph, a), addPattern(graph, b)];
  saturate(graph, [{ name: "all", rules }], {
    budget: { nodes },
    until: (g) => g.equal(x, y),
  });
  return explain(graph, rules, x, y);
}

/** egg's test goals: left, right, nodes needed at most. */
const goals: [string, string, number?][] = [
  ["(+ x (+ x (+ x x)))", "(* 4 x)"],
  ["(* (pow 2 x) (pow 2 y))", "(pow 2 (+ x y))"],
  ["(+ 1 (- a (* (- 2 1) a)))", "1"],
  ["(* (+ x 3) (+ x 1))", "(+ (+ (* x x) (* 4 x)) 3)"],
  ["(d x x)", "1"],
  ["(d x y)", "0"],
  ["(d x (+ 1 (* 2 x)))", "2"],
  ["(d x (+ 1 (* y x)))", "y"],
  ["(d x (ln x))", "(/ 1 x)"],
  ["(d x (pow x 3))", "(* 3 (pow x 2))", 20_000],
  ["(i 1 x)", "x"],
  ["(i (cos x) x)", "(sin x)"],
  ["(i (pow x 1) x)", "(/ (pow x 2) 2)"],
  ["(i (* x (cos x)) x)", "(+ (* x (sin x)) (cos x))", 60_000],
  ["(i (ln x) x)", "(- (* x (ln x)) x)", 60_000],
];

describe("egg's goals", () => {
  const rules = read(mathRules);

  it.each(goals)(
    "%s = %s is proved, and the judge agrees",
    (a: string, b: string, nodes = 10_000) => {
      const proof = prove(a, b, { rules, nodes, analysis: foldConstants })!;
      expect(printTerm(proof.terms, proof.left)).toBe(spelled(a));
      expect(printTerm(proof.terms, proof.right)).toBe(spelled(b));
      expect(checkProof(proof, { rules, holds: foldHolds })).toMatchObject({ ok: true });
      const steps = flattenProof(proof, 3000);
      expect(steps === undefined || replaySteps(proof, steps)).toBe(true);
    },
  );

  it("fails where egg fails", () => {
    expect(prove("(+ x y)", "(/ x y)", { rules, analysis: foldConstants })).toBeUndefined();
  });
});

/** Numbers as `printTerm` writes them. */
function spelled(text: string): string {
  return text.replace(/(?<=^|[ (])\d+/g, (digits) => `const[${digits}]`);
}

const leaf = fc.constantFrom("a", "b", "0", "1", "2");
const groundTerm = fc.letrec((tie) => ({
  term: fc.oneof(
    { maxDepth: 4, depthSize: "small" },
    leaf,
    fc.tuple(fc.constantFrom("f", "g", "h[p]"), tie("term")).map(([op, x]) => `(${op} ${x})`),
    fc.tuple(fc.constantFrom("+", "*"), tie("term"), tie("term")).map((t) => `(${t.join(" ")})`),
  ),
})).term as fc.Arbitrary<string>;

/** Plain and conditional, several sides, payloads bound and computed, named, open, built. */
const everyKind = read([
  { name: "commute", left: "(+ ?a ?b)", right: "(+ ?b ?a)" },
  { name: "distribute", left: "(* ?a (+ ?b ?c))", right: "(+ (* ?a ?b) (* ?a ?c))" },
  { name: "square", left: "(* ?a ?a)", right: "(f ?a)" },
  { name: "zero", left: "(* ?a 0)", right: "0", when: (m) => m.id("a") > 0 },
  { name: "both", left: ["(f ?x)", "(g ?x)"], right: ["(f (g ?x))", "(g (f ?x))"] },
  { name: "unwrap", left: "(f ?m@(f ?x))", right: "(+ ?x (g ?m))" },
  { name: "more", left: "(h[?p] (h[?q] ?x))", right: "(h[?r] ?x)", compute: { r: longer } },
  { name: "any", left: "(h[_] ?x)", right: "(h[?k] (f ?x))", compute: { k: () => "k" } },
  { name: "swap", left: "(* ?a ...)", right: buildSwap },
  { name: "wide", left: "(h[?p] (+ ?a ?b))", right: "(w[?p] ?a ?b (h[?p] ?a))" },
]);

function longer(m: { key(name: string): string }): string {
  return (m.key("p") + m.key("q")).slice(0, 3);
}

function buildSwap(
  m: { root(): number; children(n: number): readonly number[] },
  build: { add(op: string, children: readonly number[]): number },
): number {
  const [a, b] = m.children(m.root());
  return build.add("g", [build.add("*", [b!, a!])]);
}

function randomProofs(
  terms: readonly string[],
  facts: readonly (readonly [number, number])[],
  matchers: "compiled" | "interpreted" = "compiled",
) {
  const graph = new EGraph({ proofs: true });
  const ids = terms.map((text) => addPattern(graph, text));
  for (const [a, b] of facts) graph.union(ids[a % ids.length]!, ids[b % ids.length]!, "fact");
  const size = { nodes: 250, work: 50_000 };
  saturate(graph, [{ name: "all", rules: everyKind, iterations: 4 }], {
    budget: size,
    matchers,
  });
  const proofs: Proof[] = [];
  for (const root of graph.classes()) {
    for (const node of graph.nodes(root).slice(0, 4)) {
      const proof = explain(graph, everyKind, node, root);
      if (proof) proofs.push(proof);
    }
  }
  return proofs;
}

const sources = fc.tuple(
  fc.array(groundTerm, { minLength: 1, maxLength: 4 }),
  fc.array(fc.tuple(fc.nat(3), fc.nat(3)), { maxLength: 2 }),
);
const trustFacts = { rules: everyKind, holds: (lemma: { kind: string }) => lemma.kind === "given" };

it("proves every equality that saturation finds", () => {
  fc.assert(
    fc.property(sources, ([terms, facts]) => {
      for (const proof of randomProofs(terms, facts)) {
        const result = checkProof(proof, trustFacts);
        expect(result.ok ? "" : result.fault).toBe("");
        const steps = flattenProof(proof, 500);
        expect(steps === undefined || replaySteps(proof, steps)).toBe(true);
      }
    }),
    { numRuns: 30 },
  );
});

it("explains alike what compiled and what interpreted rules did", () => {
  fc.assert(
    fc.property(sources, ([terms, facts]) => {
      expect(randomProofs(terms, facts)).toEqual(randomProofs(terms, facts, "interpreted"));
    }),
    { numRuns: 15 },
  );
});

it("explains deep terms", () => {
  const graph = new EGraph({ proofs: true });
  const [x, y] = [addPattern(graph, "x"), addPattern(graph, "y")];
  let [a, b] = [x, y];
  for (let i = 0; i < 6000; i++) [a, b] = [graph.add("f", [a]), graph.add("f", [b])];
  graph.union(x, y, "fact");
  graph.rebuild();
  const proof = explain(graph, everyKind, a, b)!;
  expect(proof.lemmas).toHaveLength(6001);
  expect(checkProof(proof, trustFacts).ok).toBe(true);
});

describe("the judge refuses", () => {
  const proof = (() => {
    const rules = read([
      { name: "commute", left: "(+ ?a ?b)", right: "(+ ?b ?a)" },
      { name: "associate", left: "(+ ?a (+ ?b ?c))", right: "(+ (+ ?a ?b) ?c)" },
      { name: "unit", left: "(* ?a 1)", right: "?a" },
    ]);
    return { rules, ...prove("(f (+ a (+ (* b 1) c)))", "(f (+ (+ c b) a))", { rules })! };
  })();

  /** The proof with one lemma changed. */
  function broken(kind: Lemma["kind"], change: (lemma: never) => object): Proof {
    const at = proof.lemmas.findIndex(
      (lemma) => lemma.kind === kind && (lemma.kind !== "rule" || lemma.rule === "commute"),
    );
    const lemma = proof.lemmas[at]!;
    const lemmas = proof.lemmas.with(at, { ...lemma, ...change(lemma as never) } as Lemma);
    return { ...proof, lemmas };
  }

  const isRefused = (altered: Proof) => !checkProof(altered, proof).ok;

  it("nothing of the whole proof, and nothing that it need not", () => {
    expect(checkProof(proof, proof)).toEqual({ ok: true, assumed: [] });
  });

  it.each<[string, Proof]>([
    ["another rule", broken("rule", () => ({ rule: "unit" }))],
    ["an unknown rule", broken("rule", () => ({ rule: "trust me" }))],
    ["sides exchanged", broken("rule", (l: Lemma) => ({ left: l.right, right: l.left }))],
    ["another substitution", broken("rule", () => ({ classes: { a: 0, b: 0, c: 0 } }))],
    ["another side", broken("rule", () => ({ side: 1 }))],
    [
      "a chain without its first link",
      broken("chain", (l: { links: [] }) => ({ links: l.links.slice(1) })),
    ],
    [
      "a chain read backwards",
      broken("chain", (l: { links: [] }) => ({ links: l.links.toReversed() })),
    ],
    ["a congruence without reasons", broken("congruence", () => ({ children: [] }))],
    [
      "a congruence that assumes",
      broken("congruence", (l: { children: object[] }) => ({
        children: l.children.map(() => ({ lemma: -1, reversed: false })),
      })),
    ],
    [
      "a lemma that uses itself",
      broken("chain", () => ({
        links: [{ lemma: proof.lemmas.length - 1, reversed: false }],
      })),
    ],
    ["a fact", broken("rule", () => ({ kind: "given", name: "fact" }))],
    ["another goal", { ...proof, right: proof.left }],
    ["a goal without reason", { ...proof, by: { lemma: -1, reversed: false } }],
    ["circular terms", { ...proof, terms: [{ op: "f", payload: "", children: [0] }] }],
  ])("%s", (_, altered) => {
    expect(isRefused(altered)).toBe(true);
  });

  it("every proof with one term exchanged, but for leaves, which rules do not see", () => {
    for (const [i, term] of proof.terms.entries()) {
      if (term.children.length === 0) continue;
      const terms = proof.terms.with(i, { ...term, op: `${term.op}'` });
      expect(isRefused({ ...proof, terms })).toBe(true);
    }
  });

  it("replays with a step missing or out of place", () => {
    const steps = flattenProof(proof)!;
    expect(replaySteps(proof, steps)).toBe(true);
    for (const i of steps.keys()) expect(replaySteps(proof, steps.toSpliced(i, 1))).toBe(false);
    const moved = steps.map((s) => ({ ...s, position: [...s.position, 0] }));
    expect(replaySteps(proof, moved)).toBe(false);
  });

  it("conditions that are judged and do not hold, and lists those that are not judged", () => {
    const rules = read([{ name: "if", left: "(f ?x)", right: "?x", when: () => true }]);
    const found = prove("(f a)", "a", { rules })!;
    expect(checkProof(found, { rules })).toEqual({ ok: true, assumed: ["if"] });
    expect(checkProof(found, { rules, accepts: () => false }).ok).toBe(false);
  });
});
