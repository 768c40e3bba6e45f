/**
 * The public rule sets that e-graph engines are compared by: egglog's math-microbenchmark (24 rules, no
 * analysis) and egg's math test (with constant folding and side conditions), as data.
 */
import type { Analysis } from "./analysis.ts";
import type { EGraph } from "./e-graph.ts";
import type { Match } from "./match.ts";
import type { NodeId } from "./node-store.ts";
import type { ProofTerm, StatedLemma } from "./proof.ts";
import type { RuleText } from "./rule.ts";

/** Rules that both sets share: name, left, right. */
const shared = [
  ["comm-add", "(+ ?a ?b)", "(+ ?b ?a)"],
  ["comm-mul", "(* ?a ?b)", "(* ?b ?a)"],
  ["assoc-add", "(+ ?a (+ ?b ?c))", "(+ (+ ?a ?b) ?c)"],
  ["assoc-mul", "(* ?a (* ?b ?c))", "(* (* ?a ?b) ?c)"],
  ["sub-canon", "(- ?a ?b)", "(+ ?a (* -1 ?b))"],
  ["zero-add", "(+ ?a 0)", "?a"],
  ["zero-mul", "(* ?a 0)", "0"],
  ["one-mul", "(* ?a 1)", "?a"],
  ["cancel-sub", "(- ?a ?a)", "0"],
  ["distribute", "(* ?a (+ ?b ?c))", "(+ (* ?a ?b) (* ?a ?c))"],
  ["factor", "(+ (* ?a ?b) (* ?a ?c))", "(* ?a (+ ?b ?c))"],
  ["pow-mul", "(* (pow ?a ?b) (pow ?a ?c))", "(pow ?a (+ ?b ?c))"],
  ["pow1", "(pow ?x 1)", "?x"],
  ["pow2", "(pow ?x 2)", "(* ?x ?x)"],
  ["d-add", "(d ?x (+ ?a ?b))", "(+ (d ?x ?a) (d ?x ?b))"],
  ["d-mul", "(d ?x (* ?a ?b))", "(+ (* ?a (d ?x ?b)) (* ?b (d ?x ?a)))"],
  ["d-sin", "(d ?x (sin ?x))", "(cos ?x)"],
  ["d-cos", "(d ?x (cos ?x))", "(* -1 (sin ?x))"],
  ["i-one", "(i 1 ?x)", "?x"],
  ["i-cos", "(i (cos ?x) ?x)", "(sin ?x)"],
  ["i-sin", "(i (sin ?x) ?x)", "(* -1 (cos ?x))"],
  ["i-sum", "(i (+ ?f ?g) ?x)", "(+ (i ?f ?x) (i ?g ?x))"],
  ["i-dif", "(i (- ?f ?g) ?x)", "(- (i ?f ?x) (i ?g ?x))"],
  ["i-parts", "(i (* ?a ?b) ?x)", "(- (* ?a (i ?b ?x)) (i (* (d ?x ?a) (i ?b ?x)) ?x))"],
] as const;

export const microRules: readonly RuleText[] = shared.map(([name, left, right]) => ({
  name,
  left,
  right,
}));

/** The seven terms that both start from. */
export const microTerms: readonly string[] = [
  "(i (ln x) x)",
  "(i (+ x (cos x)) x)",
  "(i (* (cos x) x) x)",
  "(d x (+ 1 (* 2 x)))",
  "(d x (- (pow x 3) (* 7 (pow x 2))))",
  "(+ (* y (+ x y)) (- (+ x 2) (+ x x)))",
  "(/ 1 (- (/ (+ 1 (sqrt five)) 2) (/ (- 1 (sqrt five)) 2)))",
];

/** A class's number, where it has one. */
export type Folded = number | undefined;

type FoldMatch = Match<Folded>;
type MathRule = RuleText<Folded>;

const isNotZero = (name: string) => (m: FoldMatch) => m.data(name) !== 0;
const isSymbol = (m: FoldMatch, name: string) =>
  m.graph.nodes(m.id(name)).some((n) => isLeafSymbol(m.graph, n));

function isLeafSymbol(graph: EGraph<Folded>, node: NodeId): boolean {
  return graph.opName(node) !== "const" && graph.children(node).length === 0;
}

function isConstantOrOther(m: FoldMatch, constant: string, x: string): boolean {
  if (m.id(constant) === m.id(x)) return false;
  return m.data(constant) !== undefined || isSymbol(m, constant);
}

/** In egg's order, which decides ids but not counts. */
export const mathRules: readonly MathRule[] = [
  ...shared.slice(0, 5).map(([name, left, right]) => ({ name, left, right })),
  { name: "div-canon", left: "(/ ?a ?b)", right: "(* ?a (pow ?b -1))", when: isNotZero("b") },
  ...shared.slice(5, 8).map(([name, left, right]) => ({ name, left, right })),
  { name: "add-zero", left: "?a", right: "(+ ?a 0)" },
  { name: "mul-one", left: "?a", right: "(* ?a 1)" },
  { name: "cancel-sub", left: "(- ?a ?a)", right: "0" },
  { name: "cancel-div", left: "(/ ?a ?a)", right: "1", when: isNotZero("a") },
  ...shared.slice(9, 12).map(([name, left, right]) => ({ name, left, right })),
  { name: "pow0", left: "(pow ?x 0)", right: "1", when: isNotZero("x") },
  ...shared.slice(12, 14).map(([name, left, right]) => ({ name, left, right })),
  { name: "pow-recip", left: "(pow ?x -1)", right: "(/ 1 ?x)", when: isNotZero("x") },
  { name: "recip-mul-div", left: "(* ?x (/ 1 ?x))", right: "1", when: isNotZero("x") },
  { name: "d-variable", left: "(d ?x ?x)", right: "1", when: (m) => isSymbol(m, "x") },
  {
    name: "d-constant",
    left: "(d ?x ?c)",
    right: "0",
    when: (m) => isSymbol(m, "x") && isConstantOrOther(m, "c", "x"),
  },
  ...shared.slice(14, 18).map(([name, left, right]) => ({ name, left, right })),
  { name: "d-ln", left: "(d ?x (ln ?x))", right: "(/ 1 ?x)", when: isNotZero("x") },
  {
    name: "d-power",
    left: "(d ?x (pow ?f ?g))",
    right: "(* (pow ?f ?g) (+ (* (d ?x ?f) (/ ?g ?f)) (* (d ?x ?g) (ln ?f))))",
    when: (m) => isNotZero("f")(m) && isNotZero("g")(m),
  },
  { name: "i-one", left: "(i 1 ?x)", right: "?x" },
  {
    name: "i-power-const",
    left: "(i (pow ?x ?c) ?x)",
    right: "(/ (pow ?x (+ ?c 1)) (+ ?c 1))",
    when: (m) => m.data("c") !== undefined,
  },
  ...shared.slice(19, 24).map(([name, left, right]) => ({ name, left, right })),
];

const arithmetic: Readonly<Record<string, (a: number, b: number) => number | undefined>> = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => (b === 0 ? undefined : a / b),
};

/** Folds constants as egg's test does: the first value of a class stays, its other nodes are hidden. */
export const foldConstants: Analysis<Folded> = {
  make(node, graph) {
    const op = graph.opName(node);
    if (op === "const") return Number(graph.vocabulary.payloadKey(graph.payload(node)));
    const fold = arithmetic[op];
    if (!fold || graph.children(node).length !== 2) return undefined;
    const [a, b] = graph.children(node).map((child) => graph.data(child));
    return a === undefined || b === undefined ? undefined : fold(a, b);
  },
  join: (a, b) => a ?? b,
  modify(root, graph) {
    const value = graph.data(root);
    if (value === undefined) return;
    const result = graph.add("const", [], String(value));
    for (const node of graph.nodes(root)) foldNode(graph, node, result);
    for (const node of graph.nodes(root)) if (graph.children(node).length > 0) graph.hide(node);
  },
};

/** Unites an operator over numbers with its value. */
function foldNode(graph: EGraph<Folded>, node: NodeId, result: NodeId): void {
  const children = graph.children(node);
  const values = children.map((child) => graph.data(child));
  if (children.length !== 2 || !values.every((value) => value !== undefined)) return;
  if (!arithmetic[graph.opName(node)]) return;
  const constants = values.map((value) => graph.add("const", [], String(value)));
  // A child whose constant is not in its class yet has its turn later.
  if (!constants.every((constant, i) => graph.equal(constant, children[i]!))) return;
  graph.unionEvaluated(node, constants, result, "constant-fold");
}

/** Whether a computation of a proof is right, to the judge. */
export function foldHolds(lemma: StatedLemma, terms: readonly ProofTerm[]): boolean {
  const { op, children } = terms[lemma.left]!;
  const [a, b] = children.map((child) => Number(terms[child]!.payload));
  const isConstant = (i: number) => terms[i]!.op === "const" && terms[i]!.children.length === 0;
  if (lemma.kind !== "evaluated" || ![...children, lemma.right].every(isConstant)) return false;
  return arithmetic[op]?.(a!, b!) === Number(terms[lemma.right]!.payload);
}
