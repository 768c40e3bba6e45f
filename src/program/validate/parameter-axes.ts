/**
 * Numbers that a launch makes of its parameters, as the trips of a loop along an open extent. To the threads of a
 * block such a number is one that every block of the launch has, any of its range: what they do together is proved
 * for each of them, as for a further axis of the grid. Several such numbers are taken to be any of theirs at once,
 * which is more than a launch can have.
 */
import {
  add,
  atomOperands,
  constant,
  fromTerms,
  type IndexAtom,
  type IndexExpr,
  mul,
  rebuildAtom,
  variable,
  variablesOf,
} from "../../semantics/index-expr.ts";
import { rangeOf } from "../../semantics/index-range.ts";
import type { GridAxis } from "../program.ts";
import type { Expr } from "../statement.ts";
import { mapExpr, mapOwn, mapStatements } from "../walk.ts";
import type { Facts } from "./facts.ts";
import type { LaunchView } from "./launch-view.ts";

/**
 * The view with such numbers as axes, the slowest of the grid.
 * @param told what places, counts and control of the kernel depend on
 */
export function withParameterAxes(view: LaunchView, told: readonly IndexExpr[]): LaunchView {
  const axes = new ParameterAxes(view, told);
  const { found } = axes;
  if (found.length === 0) return view;
  const { kernel } = view;
  const index = (e: IndexExpr): IndexExpr => axes.replaced(e);
  const expr = (value: Expr): Expr =>
    mapExpr(value, (leaf) =>
      leaf.kind === "load" ? { ...leaf, index: leaf.index.map(index) } : leaf,
    );
  const roles = kernel.roles.map((role) => ({
    ...role,
    body: mapStatements(role.body, (s) => [mapOwn(s, { index, expr })]),
  }));
  const grid = { ...kernel.grid, axes: [...found, ...kernel.grid.axes] };
  const facts = found.reduce((all, a) => all.withVariable(a.name, a.extent), view.facts);
  return { ...view, kernel: { ...kernel, grid, roles }, facts };
}

class ParameterAxes {
  readonly #facts: Facts;
  readonly #axes = new Map<string, { readonly axis: GridAxis; readonly value: IndexExpr }>();

  constructor({ facts }: LaunchView, told: readonly IndexExpr[]) {
    this.#facts = facts;
    for (const e of told) this.#collect(e);
  }

  get found(): readonly GridAxis[] {
    return [...this.#axes.values()].map((a) => a.axis);
  }

  #collect(e: IndexExpr): void {
    for (const atom of e.terms.flatMap((t) => t.atoms)) {
      if (this.#isOfLaunch(atom)) this.#bind(atom);
      else
        atomOperands(atom).forEach((o) => {
          this.#collect(o);
        });
    }
  }

  #isOfLaunch(atom: IndexAtom): boolean {
    const used = [...variablesOf(expressionOf(atom))];
    return used.length > 0 && used.every((name) => this.#facts.isParameter(name));
  }

  /** Without an upper end it stays what it is, and the proof refuses it. */
  #bind(atom: IndexAtom): void {
    const { min, max } = rangeOf(expressionOf(atom), this.#facts.ranges);
    if (this.#axes.has(atom.key) || !Number.isSafeInteger(max - min)) return;
    const name = `launch ${atom.key}`;
    const axis = { name, extent: constant(max - min + 1) };
    this.#axes.set(atom.key, { axis, value: add(min, variable(name)) });
  }

  /** The expression with each part that is made of parameters alone as an axis. */
  replaced(e: IndexExpr): IndexExpr {
    const atomOf = (atom: IndexAtom): IndexExpr => {
      const known = this.#axes.get(atom.key);
      if (known) return known.value;
      const operands = atomOperands(atom);
      return rebuildAtom(
        atom,
        operands.map((o) => this.replaced(o)),
      );
    };
    const terms = e.terms.map((t) => mul(t.coefficient, ...t.atoms.map(atomOf)));
    return add(e.constant, ...terms);
  }
}

function expressionOf(atom: IndexAtom): IndexExpr {
  return fromTerms(0, [{ coefficient: 1, atoms: [atom], key: atom.key }]);
}
