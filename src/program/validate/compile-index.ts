/** Index expressions as closures over an environment, for expressions that are evaluated very often. */
import {
  atomOperands,
  type IndexAtom,
  type IndexExpr,
  positiveMod,
} from "../../semantics/index-expr.ts";

export type IndexReader = (env: ReadonlyMap<string, number>) => number;

/** `missing` is called, and must throw, where a variable has no value. */
export function compileIndex(e: IndexExpr, missing: (name: string) => never): IndexReader {
  const { constant } = e;
  if (e.terms.length === 0) return () => constant;
  const terms = e.terms.map(({ coefficient, atoms }): IndexReader => {
    const factors = atoms.map((a) => compileAtom(a, missing));
    const [first] = factors;
    if (factors.length === 1) return (env) => coefficient * first!(env);
    return (env) => factors.reduce((product, f) => product * f(env), coefficient);
  });
  const [one, two] = terms;
  if (terms.length === 1) return (env) => constant + one!(env);
  if (terms.length === 2) return (env) => constant + one!(env) + two!(env);
  return (env) => {
    let sum = constant;
    for (const term of terms) sum += term(env);
    return sum;
  };
}

function compileAtom(atom: IndexAtom, missing: (name: string) => never): IndexReader {
  if (atom.kind === "variable") {
    const { name } = atom;
    return (env) => env.get(name) ?? missing(name);
  }
  const parts = atomOperands(atom).map((o) => compileIndex(o, missing));
  const [a, b] = parts;
  switch (atom.kind) {
    case "floorDiv":
      return (env) => Math.floor(a!(env) / b!(env));
    case "mod":
      return (env) => positiveMod(a!(env), b!(env));
    case "min":
      return (env) => Math.min(...parts.map((p) => p(env)));
    case "max":
      return (env) => Math.max(...parts.map((p) => p(env)));
  }
}
