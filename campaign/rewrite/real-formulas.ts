/**
 * Rules over elementwise operators as formulas over real numbers for z3: whether left and right can
 * differ under the conditions. Functions without a theory are uninterpreted; rules with other ops, with
 * attributes that are not numbers, or with functions that the rule interprets, are not formulas.
 */
import { type Arith, type Bool, init } from "z3-solver";
import { type Pattern, parsePattern } from "../../src/egraph/index.ts";
import { clausesOf, type RuleRow } from "../../src/rewrite/rule-row.ts";

type Real = Arith<"rules">;

const binary: Readonly<Record<string, (a: Real, b: Real, z3: Solving) => Real>> = {
  add: (a, b) => a.add(b),
  sub: (a, b) => a.sub(b),
  mul: (a, b) => a.mul(b),
  div: (a, b) => a.div(b),
  max: (a, b, { If }) => If(a.gt(b), a, b) as Real,
  min: (a, b, { If }) => If(a.lt(b), a, b) as Real,
};

const unary: Readonly<Record<string, (a: Real, z3: Solving) => Real>> = {
  neg: (a) => a.neg(),
  abs: (a, { If }) => If(a.lt(0), a.neg(), a) as Real,
  relu: (a, { If, Real }) => If(a.gt(0), a, Real.val(0)) as Real,
  reciprocal: (a, { Real }) => Real.val(1).div(a),
};

/** What each condition says of the element; absent: nothing over one number. */
const meanings: Readonly<
  Record<string, (x: Real, n: string | undefined, z3: Solving) => Bool<"rules">>
> = {
  all: (x, n, { Real }) => x.eq(Real.val(n!)),
  positive: (x) => x.gt(0),
  invertible: (x) => x.neq(0),
  powersOfTwo: (x) => x.neq(0),
  nonNegative: (x) => x.ge(0),
};

/** Shapes and constness, about which one element says nothing. */
const silent = new Set([
  "constant",
  "computed",
  "float",
  "signed",
  "whole",
  "finite",
  "covers",
  "scalar",
  "spans",
]);

type Solving = Awaited<ReturnType<typeof openContext>>;

async function openContext() {
  const { Context } = await init();
  return Context("rules");
}

export async function loadRealSolver(): Promise<
  (row: RuleRow) => Promise<"valid" | "invalid" | undefined>
> {
  const z3 = await openContext();
  return async (row) => {
    if (typeof row.right !== "string") return undefined;
    const variables = new Map<string, Real>();
    const scope: Scope = { row, variables, defined: [] };
    const left = formulaOf(parsePattern(row.left), z3, scope);
    const right = formulaOf(parsePattern(row.right), z3, scope);
    if (!left || !right) return undefined;
    const solver = new z3.Solver();
    solver.set("timeout", 5000);
    for (const { name, call, args } of clausesOf(row.where)) {
      if (name !== undefined || silent.has(call)) continue;
      const meaning = meanings[call];
      if (!meaning) return undefined;
      solver.add(meaning(variables.get(args[0]!)!, args[1], z3));
    }
    for (const condition of scope.defined) solver.add(condition);
    solver.add(z3.Not(left.eq(right)));
    const answer = await solver.check();
    if (answer === "unknown") return undefined;
    return answer === "unsat" ? "valid" : "invalid";
  };
}

interface Scope {
  readonly row: RuleRow;
  readonly variables: Map<string, Real>;
  /** What must hold for every division to be defined. */
  readonly defined: Bool<"rules">[];
}

function formulaOf(pattern: Pattern, z3: Solving, scope: Scope): Real | undefined {
  if (pattern.kind === "variable") {
    const known = scope.variables.get(pattern.name) ?? z3.Real.const(pattern.name);
    scope.variables.set(pattern.name, known);
    return known;
  }
  const { op, payload } = pattern;
  if (op === "constant" && payload.kind === "variable") {
    const clause = clausesOf(scope.row.where).find((c) => c.name === payload.name);
    return clause?.call === "number" ? z3.Real.val(clause.args[0]!) : undefined;
  }
  const operands = pattern.children.map((child) => formulaOf(child, z3, scope));
  const [a, b] = operands;
  if (!a || operands.some((o) => o === undefined)) return undefined;
  // Division by zero has no meaning over the reals.
  if (op === "div" && b) scope.defined.push(b.neq(0));
  if (op === "reciprocal") scope.defined.push(a.neq(0));
  if (b && binary[op]) return binary[op](a, b, z3);
  return operands.length === 1 ? unary[op]?.(a, z3) : undefined;
}
