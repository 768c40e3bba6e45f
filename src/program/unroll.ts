/**
 * Expands loops of mode `unrolled`, so that register indices become constants: what emitters call
 * first, and what the validator looks at. Values and indices bound in the body of an unrolled loop
 * get a suffix `$i` per copy, since the copies stand in one body afterwards.
 */
import { constantValue, type IndexExpr, variable } from "../semantics/index-expr.ts";
import { invariant } from "../support/invariant.ts";
import type { Kernel } from "./program.ts";
import type { Expr, Statement } from "./statement.ts";
import { childBodies, mapBodies, mapExpr, mapOwn, substituteStatements } from "./walk.ts";

/** The kernel without unrolled loops; their extents must be constants. */
export function unrollLoops(kernel: Kernel): Kernel {
  return {
    ...kernel,
    roles: kernel.roles.map((role) => ({ ...role, body: unrollBody(role.body) })),
  };
}

/** As unrollLoops, on statements. */
export function unrollBody(body: readonly Statement[]): readonly Statement[] {
  if (!body.some(hasUnrolled)) return body;
  return body.flatMap((statement) => {
    if (statement.kind !== "for" || statement.mode.kind !== "unrolled") {
      return [mapBodies(statement, unrollBody)];
    }
    const count = constantValue(statement.extent);
    invariant(count !== undefined, () => `unrolled loop ${statement.variable} of varying extent`);
    return Array.from({ length: count }, (_, i) => copyBody(statement, i)).flat();
  });
}

function hasUnrolled(statement: Statement): boolean {
  if (statement.kind === "for" && statement.mode.kind === "unrolled") return true;
  return childBodies(statement).some((body) => body.some(hasUnrolled));
}

function copyBody(loop: Extract<Statement, { kind: "for" }>, trip: number): readonly Statement[] {
  const body = substituteStatements(loop.body, new Map([[loop.variable, trip]]));
  return unrollBody(renameBound(body, `$${trip}`));
}

/** Renames what the body binds at its own level, with all uses. */
function renameBound(body: readonly Statement[], suffix: string): readonly Statement[] {
  const values = new Map<string, string>();
  const indices = new Map<string, IndexExpr>();
  return body.map((statement) => {
    const renamed = renameUses(statement, values, indices);
    if (renamed.kind === "let") {
      values.set(renamed.name, renamed.name + suffix);
      return { ...renamed, name: renamed.name + suffix };
    }
    if (renamed.kind !== "letIndex") return renamed;
    indices.set(renamed.name, variable(renamed.name + suffix));
    return { ...renamed, name: renamed.name + suffix };
  });
}

function renameUses(
  statement: Statement,
  values: ReadonlyMap<string, string>,
  indices: ReadonlyMap<string, IndexExpr>,
): Statement {
  const [moved] = indices.size > 0 ? substituteStatements([statement], indices) : [statement];
  return values.size > 0 ? renameValues(moved!, values) : moved!;
}

function renameValues(statement: Statement, names: ReadonlyMap<string, string>): Statement {
  const own = mapOwn(statement, {
    index: (e) => e,
    expr: (e) => mapExpr(e, (node) => renameLocal(node, names)),
  });
  return mapBodies(own, (body) => {
    let visible = names;
    return body.map((inner) => {
      const renamed = renameValues(inner, visible);
      if (inner.kind === "let" && visible.has(inner.name)) {
        visible = new Map([...visible].filter(([name]) => name !== inner.name));
      }
      return renamed;
    });
  });
}

function renameLocal(node: Expr, names: ReadonlyMap<string, string>): Expr {
  const name = node.kind === "local" ? names.get(node.name) : undefined;
  return node.kind === "local" && name !== undefined ? { ...node, name } : node;
}
