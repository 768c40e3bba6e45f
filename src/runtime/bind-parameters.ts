/**
 * Shape parameters from the shapes of the inputs: each extent is an equation over the parameters. An
 * extent that is linear in one unknown parameter gives its value; then every extent, every range and
 * every requirement of the program is checked.
 */
import type { Program } from "../program/program.ts";
import type { Condition } from "../semantics/condition.ts";
import { printCondition } from "../semantics/condition.ts";
import {
  constantValue,
  evaluate,
  type IndexExpr,
  splitLinear,
  substitute,
  variablesOf,
} from "../semantics/index-expr.ts";
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../support/diagnostic.ts";

export interface GivenShape {
  readonly port: { readonly name: string; readonly shape: readonly IndexExpr[] };
  readonly shape: readonly number[];
}

export function bindParameters(
  program: Pick<Program, "parameters" | "requires">,
  given: readonly GivenShape[],
): Result<ReadonlyMap<string, number>> {
  const ranks = given.filter(
    (g) => g.shape.length !== g.port.shape.length || !g.shape.every(isExtent),
  );
  if (ranks.length > 0) return fail(...ranks.map(wrongShape));
  const bound = solve(given);
  const faults: Diagnostic[] = [];
  for (const { name, min, max } of program.parameters) {
    const value = bound.get(name);
    if (value === undefined) {
      faults.push(
        diagnostic("RUN014", `the shapes of the inputs do not determine ${name}`, {
          help: `fix it when the model is optimized: --shape ${name}=VALUE`,
        }),
      );
    } else if (value < min || value > max) {
      faults.push(
        diagnostic("RUN015", `${name} = ${value} is outside ${min} to ${max}`, {
          help: `optimize the model for a wider range: --shape ${name}=LOW..HIGH`,
        }),
      );
    }
  }
  if (faults.length > 0) return fail(...faults);
  const wrong = given.filter((g) =>
    g.port.shape.some((e, axis) => evaluate(e, bound) !== g.shape[axis]),
  );
  if (wrong.length > 0) return fail(...wrong.map(wrongShape));
  const broken = program.requires.filter((c) => !holds(c, bound));
  return broken.length > 0 ? fail(...broken.map(brokenRequirement)) : ok(bound);
}

/** No tensor has a longer axis; within it the arithmetic of extents stays exact. */
const largestExtent = 2 ** 40;

function isExtent(value: number): boolean {
  return Number.isInteger(value) && Math.abs(value) <= largestExtent;
}

function solve(given: readonly GivenShape[]): Map<string, number> {
  const bound = new Map<string, number>();
  const equations = given
    .flatMap((g) => g.port.shape.map((expr, axis) => ({ expr, value: g.shape[axis]! })))
    .filter(({ expr }) => constantValue(expr) === undefined);
  for (let progress = true; progress; ) {
    progress = false;
    for (const { expr, value } of equations) {
      const known = substitute(expr, bound);
      const [unknown, ...more] = variablesOf(known);
      const linear = unknown !== undefined && more.length === 0 && splitLinear(known, unknown);
      if (!linear || linear.coefficient === 0 || linear.rest.terms.length > 0) continue;
      const solution = (value - linear.rest.constant) / linear.coefficient;
      if (!Number.isInteger(solution)) continue;
      bound.set(unknown, solution);
      progress = true;
    }
  }
  return bound;
}

function holds(c: Condition, bound: ReadonlyMap<string, number>): boolean {
  const value = evaluate(c.expr, bound);
  return c.kind === "zero" ? value === 0 : value >= 0;
}

function wrongShape({ port, shape }: GivenShape): Diagnostic {
  const wanted = port.shape.map((e) => e.key).join(", ");
  return diagnostic(
    "RUN016",
    `input "${port.name}" has the shape [${shape.join(", ")}], the model takes [${wanted}]`,
    { help: "reshape the input, or optimize the model for this shape with --shape" },
  );
}

function brokenRequirement(c: Condition): Diagnostic {
  return diagnostic("RUN017", `the shapes of the inputs break ${printCondition(c)}`, {
    help: "the model then joins tensors whose extents differ, or takes the place of the largest of no elements; choose other input extents",
  });
}
