/**
 * Parameters, of which a launch has one value each, as the extents that a run decides. To the threads of a block such
 * a number is one that every block of the launch has, any of its range: what they do together is proved for each of
 * them, as for a further axis of the grid. Where all that is asked of a parameter is one quotient (steps along an
 * extent) that is the axis, which has fewer values.
 */
import {
  add,
  atomOperands,
  constant,
  constantValue,
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
  const others = kernel.grid.axes.map((a) => ({ ...a, extent: index(a.extent) }));
  const grid = { ...kernel.grid, axes: [...found, ...others] };
  const facts = found.reduce((all, a) => all.withVariable(a.name, a.extent), view.facts);
  return { ...view, kernel: { ...kernel, grid, roles }, facts };
}

class ParameterAxes {
  readonly #facts: Facts;
  /** What stands for a parameter, or for the one quotient of it that is asked for. */
  readonly #axes = new Map<string, { readonly axis: GridAxis; readonly value: IndexExpr }>();

  constructor({ facts }: LaunchView, told: readonly IndexExpr[]) {
    this.#facts = facts;
    const asked = new Map<string, Map<string, IndexAtom>>();
    for (const e of told) this.#collect(e, asked);
    for (const [name, atoms] of asked) {
      const [only] = atoms.values();
      this.#bind(atoms.size === 1 ? expressionOf(only!) : variable(name));
    }
  }

  get found(): readonly GridAxis[] {
    return [...this.#axes.values()].map((a) => a.axis);
  }

  /** By parameter, what is asked of it: itself, or quotients of it alone. */
  #collect(e: IndexExpr, asked: Map<string, Map<string, IndexAtom>>): void {
    for (const atom of e.terms.flatMap((t) => t.atoms)) {
      const used = [...variablesOf(expressionOf(atom))];
      const [name] = used;
      const isOfOne = used.length === 1 && this.#facts.isParameter(name!);
      if (isOfOne && (atom.kind === "variable" || isQuotient(atom))) {
        const known = asked.get(name!) ?? new Map<string, IndexAtom>();
        asked.set(name!, known.set(atom.key, atom));
      } else {
        for (const o of atomOperands(atom)) this.#collect(o, asked);
      }
    }
  }

  /** Without an upper end it stays what it is, and the proof refuses it. */
  #bind(e: IndexExpr): void {
    const { min, max } = rangeOf(e, this.#facts.ranges);
    if (!Number.isSafeInteger(max - min)) return;
    const name = `launch ${e.key}`;
    const axis = { name, extent: constant(max - min + 1) };
    this.#axes.set(e.key, { axis, value: add(min, variable(name)) });
  }

  /** The expression over the axes. */
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

/** A quotient by a constant of a number without further divisions. */
function isQuotient(atom: IndexAtom): boolean {
  if (atom.kind !== "floorDiv" || constantValue(atom.denominator) === undefined) return false;
  return atom.numerator.terms.every((t) => t.atoms.every((a) => a.kind === "variable"));
}

function expressionOf(atom: IndexAtom): IndexExpr {
  return fromTerms(0, [{ coefficient: 1, atoms: [atom], key: atom.key }]);
}
