/**
 * Walking and rewriting statements and expressions: children, visits in program order, bottom-up
 * maps, substitution of index variables. Scoping: loops and letIndex bind index variables, let binds
 * values; an inner binding hides an outer one.
 */
import type { Condition } from "../semantics/condition.ts";
import { type IndexExpr, type IndexLike, substitute } from "../semantics/index-expr.ts";
import type { Completion, Expr, IntrinsicOperand, Statement } from "./statement.ts";

/** The direct sub-expressions. */
export function exprOperands(expr: Expr): readonly Expr[] {
  switch (expr.kind) {
    case "apply":
    case "pack":
    case "call":
      return expr.operands;
    case "cast":
    case "splat":
    case "extract":
      return [expr.operand];
    default:
      return [];
  }
}

/** The constant that stands in all lanes of a vector but the first, if one does. */
export function literalOfRest({
  operands,
}: Extract<Expr, { kind: "pack" }>): Extract<Expr, { kind: "literal" }> | undefined {
  const [, one, ...others] = operands;
  if (one?.kind !== "literal") return undefined;
  const isSame = others.every((o) => o.kind === "literal" && Object.is(o.value, one.value));
  return isSame ? one : undefined;
}

/** Rebuilds an expression bottom-up. */
export function mapExpr(expr: Expr, change: (e: Expr) => Expr): Expr {
  switch (expr.kind) {
    case "apply":
    case "pack":
    case "call":
      return change({ ...expr, operands: expr.operands.map((o) => mapExpr(o, change)) });
    case "cast":
    case "splat":
    case "extract":
      return change({ ...expr, operand: mapExpr(expr.operand, change) });
    default:
      return change(expr);
  }
}

/** Calls `visit` on `expr` and all below it, operands first. */
export function visitExpr(expr: Expr, visit: (e: Expr) => void): void {
  for (const operand of exprOperands(expr)) visitExpr(operand, visit);
  visit(expr);
}

/** The statement lists inside a statement. */
export function childBodies(statement: Statement): readonly (readonly Statement[])[] {
  switch (statement.kind) {
    case "for":
      return [statement.body];
    case "if":
    case "when":
      return [statement.then, statement.else];
    default:
      return [];
  }
}

/** The expressions that a statement itself evaluates (not those of nested bodies). */
export function ownExprs(statement: Statement): readonly Expr[] {
  switch (statement.kind) {
    case "when":
      return [statement.condition];
    case "let":
    case "letIndex":
    case "store":
      return [statement.value];
    case "intrinsic":
      return statement.operands.flatMap((o) => (o.kind === "value" ? [o.value] : []));
    default:
      return [];
  }
}

/** The index expressions of a statement itself, those inside its expressions excluded. */
export function ownIndices(statement: Statement): readonly IndexExpr[] {
  switch (statement.kind) {
    case "for":
      return [statement.extent];
    case "if":
      return statement.conditions.map((c) => c.expr);
    case "letIndex":
      return [statement.extent];
    case "store":
      return statement.index;
    case "intrinsic":
      return [
        ...statement.operands.flatMap((o) => (o.kind === "tile" ? o.index : [])),
        ...completionIndices(statement.completion),
      ];
    case "wait":
      return [...statement.index, statement.value];
    case "signal":
      return [...statement.index, statement.amount];
    case "expect":
      return [...statement.index, statement.bytes];
    default:
      return [];
  }
}

/** The index expressions of one expression node. */
export function exprIndices(expr: Expr): readonly IndexExpr[] {
  if (expr.kind === "index") return [expr.expr];
  return expr.kind === "load" ? [...expr.index, ...expr.guard.map((c) => c.expr)] : [];
}

/** Calls `visit` on each statement in program order, a statement before its bodies. */
export function visitStatements(
  body: readonly Statement[],
  visit: (statement: Statement) => void,
): void {
  for (const statement of body) {
    visit(statement);
    for (const child of childBodies(statement)) visitStatements(child, visit);
  }
}

/** Calls `visit` on each expression node below the statements, in program order. */
export function visitExprs(body: readonly Statement[], visit: (e: Expr) => void): void {
  visitStatements(body, (statement) => {
    for (const expr of ownExprs(statement)) visitExpr(expr, visit);
  });
}

/** Rebuilds statements bottom-up; `change` may give any number of statements for one. */
export function mapStatements(
  body: readonly Statement[],
  change: (statement: Statement) => readonly Statement[],
): readonly Statement[] {
  return body.flatMap((statement) => change(mapBodies(statement, (b) => mapStatements(b, change))));
}

/** The statement with each nested body replaced. */
export function mapBodies(
  statement: Statement,
  change: (body: readonly Statement[]) => readonly Statement[],
): Statement {
  switch (statement.kind) {
    case "for":
      return { ...statement, body: change(statement.body) };
    case "if":
    case "when": {
      const then = change(statement.then);
      return { ...statement, then, else: change(statement.else) };
    }
    default:
      return statement;
  }
}

/** What to put in the place of a statement's own index expressions and expressions. */
export interface LeafChange {
  readonly index: (e: IndexExpr) => IndexExpr;
  readonly expr: (e: Expr) => Expr;
}

/** The statement with its own leaves replaced; nested bodies stay. */
export function mapOwn(statement: Statement, change: LeafChange): Statement {
  const { index, expr } = change;
  switch (statement.kind) {
    case "for":
      return { ...statement, extent: index(statement.extent) };
    case "if":
      return { ...statement, conditions: mapConditions(statement.conditions, index) };
    case "when":
      return { ...statement, condition: expr(statement.condition) };
    case "let":
      return { ...statement, value: expr(statement.value) };
    case "letIndex":
      return { ...statement, value: expr(statement.value), extent: index(statement.extent) };
    case "store":
      return { ...statement, index: statement.index.map(index), value: expr(statement.value) };
    case "intrinsic":
      return {
        ...statement,
        operands: statement.operands.map((o) => mapOperand(o, change)),
        completion: mapCompletion(statement.completion, index),
      };
    case "wait":
      return { ...statement, index: statement.index.map(index), value: index(statement.value) };
    case "signal":
      return { ...statement, index: statement.index.map(index), amount: index(statement.amount) };
    case "expect":
      return { ...statement, index: statement.index.map(index), bytes: index(statement.bytes) };
    default:
      return statement;
  }
}

function mapOperand(operand: IntrinsicOperand, change: LeafChange): IntrinsicOperand {
  if (operand.kind === "value") return { ...operand, value: change.expr(operand.value) };
  return { ...operand, index: operand.index.map(change.index) };
}

function mapCompletion(completion: Completion, index: LeafChange["index"]): Completion {
  if (completion.kind !== "signals") return completion;
  const { peer } = completion;
  const mapped = { ...completion, index: completion.index.map(index) };
  return peer === undefined ? mapped : { ...mapped, peer: index(peer) };
}

/** Whose counter, and which cell of it. */
export function completionIndices(completion: Completion): readonly IndexExpr[] {
  if (completion.kind !== "signals") return [];
  const { index, peer } = completion;
  return peer === undefined ? index : [...index, peer];
}

export function mapConditions(
  conditions: readonly Condition[],
  change: (e: IndexExpr) => IndexExpr,
): readonly Condition[] {
  return conditions.map((c) => ({ ...c, expr: change(c.expr) }));
}

/** Replaces index variables inside an expression. */
export function substituteExpr(expr: Expr, bindings: ReadonlyMap<string, IndexLike>): Expr {
  const index = (e: IndexExpr): IndexExpr => substitute(e, bindings);
  return mapExpr(expr, (e) => {
    if (e.kind === "index") return { ...e, expr: index(e.expr) };
    if (e.kind !== "load") return e;
    return { ...e, index: e.index.map(index), guard: mapConditions(e.guard, index) };
  });
}

/** Replaces free index variables; names that an inner statement binds again are left alone there. */
export function substituteStatements(
  body: readonly Statement[],
  bindings: ReadonlyMap<string, IndexLike>,
): readonly Statement[] {
  if (bindings.size === 0) return body;
  const result: Statement[] = [];
  let visible = bindings;
  for (const statement of body) {
    const now = visible;
    const own = mapOwn(statement, {
      index: (e) => substitute(e, now),
      expr: (e) => substituteExpr(e, now),
    });
    const inner = statement.kind === "for" ? without(now, statement.variable) : now;
    result.push(mapBodies(own, (child) => substituteStatements(child, inner)));
    if (statement.kind === "letIndex") visible = without(visible, statement.name);
  }
  return result;
}

function without(
  bindings: ReadonlyMap<string, IndexLike>,
  name: string,
): ReadonlyMap<string, IndexLike> {
  if (!bindings.has(name)) return bindings;
  const rest = new Map(bindings);
  rest.delete(name);
  return rest;
}

/** New names of buffers and of counters; those that have none stay as they are. */
export interface StorageNames {
  readonly buffers: ReadonlyMap<string, string>;
  readonly counters: ReadonlyMap<string, string>;
}

/** Statements with buffers and counters under other names; one that stands in several places stays one. */
export function renameStorage(
  body: readonly Statement[],
  { buffers, counters }: StorageNames,
): readonly Statement[] {
  const bufferOf = (name: string): string => buffers.get(name) ?? name;
  const counterOf = (name: string): string => counters.get(name) ?? name;
  const expr = (e: Expr): Expr =>
    mapExpr(e, (x) => (x.kind === "load" ? { ...x, buffer: bufferOf(x.buffer) } : x));
  const operand = (o: IntrinsicOperand): IntrinsicOperand =>
    o.kind === "tile" ? { ...o, buffer: bufferOf(o.buffer) } : o;
  const completion = (c: Completion): Completion =>
    c.kind === "signals" ? { ...c, counter: counterOf(c.counter) } : c;
  const renamed = new Map<Statement, Statement>();
  const rename = (statement: Statement): Statement => {
    const own = mapOwn(statement, { index: (e) => e, expr });
    switch (own.kind) {
      case "store":
        return { ...own, buffer: bufferOf(own.buffer) };
      case "wait":
      case "signal":
      case "expect":
        return { ...own, counter: counterOf(own.counter) };
      case "intrinsic":
        return {
          ...own,
          operands: own.operands.map(operand),
          completion: completion(own.completion),
        };
      default:
        return mapBodies(own, renameAll);
    }
  };
  const renameAll = (list: readonly Statement[]): readonly Statement[] =>
    list.map((statement) => {
      const known = renamed.get(statement) ?? rename(statement);
      renamed.set(statement, known);
      return known;
    });
  return renameAll(body);
}
