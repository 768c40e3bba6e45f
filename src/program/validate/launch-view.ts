/**
 * A kernel as one launch sees it: bindings put in, unrolled loops expanded, facts about its index
 * variables, names resolved to program buffers (a table name stands for all its rows).
 */
import {
  add,
  atomOperands,
  constant,
  constantValue,
  type IndexExpr,
  mul,
  splitLinear,
  variable,
  variablesOf,
} from "../../semantics/index-expr.ts";
import { simplify } from "../../semantics/index-range.ts";
import { LayeredMap } from "../../support/layered-map.ts";
import { findTileIntrinsic } from "../intrinsic-table.ts";
import { type Buffer, type Kernel, type Program, type Role, threadCountName } from "../program.ts";
import type { Expr, Statement } from "../statement.ts";
import { unrollLoops } from "../unroll.ts";
import {
  childBodies,
  exprIndices,
  mapConditions,
  mapExpr,
  mapOwn,
  mapStatements,
  ownIndices,
  substituteStatements,
  visitExprs,
  visitStatements,
} from "../walk.ts";
import { Facts } from "./facts.ts";

export interface LaunchView {
  readonly kernel: Kernel;
  /** Parameters, thread count, repeat variables, grid axes. */
  readonly facts: Facts;
  readonly buffers: ReadonlyMap<string, Buffer>;
  /** Program buffers with storage that a name may stand for; kernel buffers are not in it. */
  readonly roots: ReadonlyMap<string, readonly string[]>;
  /** Roles whose threads, which stand one behind the other, are seen as copies of rows of them. */
  readonly inRows: ReadonlySet<string>;
}

const mostThreads = 65536;

/** What is known of parameters, by declaration and by requirement. */
export function parameterFacts(program: Program): Facts {
  let facts = Facts.none().withParameter(threadCountName, 1, mostThreads);
  for (const p of program.parameters) facts = facts.withParameter(p.name, p.min, p.max);
  return facts.withConditions(program.requires);
}

const rootsOfBuffers = new WeakMap<readonly Buffer[], ReadonlyMap<string, string>>();

/** The buffer whose storage `name` shares. */
export function rootOf(buffers: readonly Buffer[], name: string): string {
  let roots = rootsOfBuffers.get(buffers);
  if (!roots) {
    roots = findRoots(buffers);
    rootsOfBuffers.set(buffers, roots);
  }
  return roots.get(name) ?? name;
}

function findRoots(buffers: readonly Buffer[]): ReadonlyMap<string, string> {
  const parents = new Map(buffers.map((b) => [b.name, b.viewOf] as const));
  const roots = new Map<string, string>();
  for (const { name } of buffers) {
    let root = name;
    for (let at = parents.get(name); at !== undefined; at = parents.get(at)) root = at;
    roots.set(name, root);
  }
  return roots;
}

interface NamedBuffers {
  readonly buffers: ReadonlyMap<string, Buffer>;
  /** The root of each, as a list of one. */
  readonly roots: ReadonlyMap<string, readonly string[]>;
  /** By root, the buffers that share its storage, in order. */
  readonly sharing: ReadonlyMap<string, readonly Buffer[]>;
}

const namesOfBuffers = new WeakMap<readonly Buffer[], NamedBuffers>();

/** A program's buffers by name, the same for all its launches. */
export function namedBuffers(all: readonly Buffer[]): NamedBuffers {
  const known = namesOfBuffers.get(all) ?? nameBuffers(all);
  namesOfBuffers.set(all, known);
  return known;
}

function nameBuffers(all: readonly Buffer[]): NamedBuffers {
  const sharing = new Map<string, Buffer[]>();
  for (const buffer of all) {
    const root = rootOf(all, buffer.name);
    const known = sharing.get(root);
    if (known) known.push(buffer);
    else sharing.set(root, [buffer]);
  }
  return {
    buffers: new Map(all.map((b) => [b.name, b])),
    roots: new Map(all.map((b) => [b.name, [rootOf(all, b.name)]])),
    sharing,
  };
}

export interface LaunchSite {
  readonly program: Program;
  readonly kernel: Kernel;
  readonly bindings: readonly (readonly [string, IndexExpr])[];
  /** Table names in scope with their rows. */
  readonly tables: ReadonlyMap<string, readonly string[]>;
  readonly facts: Facts;
}

export function viewLaunch(site: LaunchSite): LaunchView {
  const { program, kernel, tables } = site;
  const bound = new Map(site.bindings);
  const roles = kernel.roles.map((role) => ({
    ...role,
    body: substituteStatements(role.body, bound),
  }));
  let { facts } = site;
  for (const axis of kernel.grid.axes) facts = facts.withVariable(axis.name, axis.extent);
  const named = namedBuffers(program.buffers);
  const own = new Map(kernel.buffers.map((b) => [b.name, b]));
  const buffers = new LayeredMap(named.buffers, own);
  const rowsOf = new Map<string, readonly string[]>();
  const roots = new LayeredMap(named.roots, rowsOf);
  for (const [name, rows] of tables) {
    own.set(name, { ...buffers.get(rows[0]!)!, name });
    rowsOf.set(
      name,
      rows.map((row) => rootOf(program.buffers, row)),
    );
  }
  const unrolled = unrollLoops({ ...kernel, roles });
  const apart = isCooperative(unrolled) ? unrolled.roles : unrolled.roles.map(inRows);
  const seen = apart.filter((role, i) => role !== unrolled.roles[i]).map((role) => role.name);
  return { kernel: { ...unrolled, roles: apart }, facts, buffers, roots, inRows: new Set(seen) };
}

/**
 * A role whose thread number is taken apart into rows of `width` threads, seen as that many copies: two
 * variables, in which accesses are linear. Only threads that do not meet may be seen so.
 */
function inRows(role: Role): Role {
  const { threadVariable: thread, threads, copies } = role;
  const width = thread === undefined || copies > 1 ? undefined : rowWidth(role.body, thread);
  if (thread === undefined || width === undefined || threads % width !== 0) return role;
  const [row, column] = [`${thread}.row`, `${thread}.column`];
  const whole = new Map([[thread, add(mul(width, variable(row)), variable(column))]]);
  const ranges = new Map([
    [row, { min: 0, max: threads / width - 1 }],
    [column, { min: 0, max: width - 1 }],
  ]);
  const index = (e: IndexExpr): IndexExpr =>
    [...variablesOf(e)].some((name) => ranges.has(name)) ? simplify(e, ranges) : e;
  const leaf = (e: Expr): Expr => {
    if (e.kind === "index") return { ...e, expr: index(e.expr) };
    if (e.kind !== "load") return e;
    return { ...e, index: e.index.map(index), guard: mapConditions(e.guard, index) };
  };
  const expr = (e: Expr): Expr => mapExpr(e, leaf);
  const body = mapStatements(substituteStatements(role.body, whole), (s) => [
    mapOwn(s, { index, expr }),
  ]);
  const parts = { copyVariable: row, threadVariable: column, body };
  return { ...role, copies: threads / width, threads: width, ...parts };
}

/** The one constant by which the body divides the variable, or where it stores. */
function rowWidth(body: readonly Statement[], name: string): number | undefined {
  const stores: Statement[] = [];
  visitStatements(body, (s) => {
    if (s.kind === "store")
      stores.push({ ...s, value: { kind: "literal", dtype: "f32", lanes: 1, value: 0 } });
  });
  return widthOf(body, name) ?? widthOf(stores, name);
}

function widthOf(body: readonly Statement[], name: string): number | undefined {
  const widths = new Set<number>();
  const visit = (e: IndexExpr): void => {
    for (const atom of e.terms.flatMap((t) => t.atoms)) {
      const [numerator, denominator] = atomOperands(atom);
      const divides = atom.kind === "floorDiv" || atom.kind === "mod";
      const divisor = divides && numerator?.key === name && constantValue(denominator!);
      if (divisor) widths.add(divisor);
      for (const operand of atomOperands(atom)) visit(operand);
    }
  };
  visitStatements(body, (s) => {
    ownIndices(s).forEach(visit);
  });
  visitExprs(body, (e) => {
    exprIndices(e).forEach(visit);
  });
  return widths.size === 1 ? [...widths][0] : undefined;
}

/**
 * All bodies in a row, the grid's axes as loops around each: for questions of coverage of a buffer. The
 * axes are independent, so they stand in the order that a proof wants: long strides outside.
 */
export function coverageBody(kernel: Kernel, buffer: string): readonly Statement[] {
  return kernel.roles.flatMap((role) => {
    let body = role.body;
    const loops: (readonly [string, IndexExpr])[] = kernel.grid.axes.map((a) => [a.name, a.extent]);
    const inner = onlyLoop(role, kernel, buffer);
    if (inner) {
      body = inner.body;
      loops.push([inner.variable, inner.extent]);
    }
    const spread = [
      [role.copyVariable, role.copies],
      [role.threadVariable, role.threads],
    ] as const;
    for (const [name, count] of spread) {
      if (name !== undefined) loops.push([name, constant(count)]);
    }
    const first = firstStore(role.body, buffer);
    const stride = (name: string): number => (first ? strideOf(first, name) : 0);
    // Sorting is stable: equal strides keep the order of the grid.
    loops.sort(([a], [b]) => stride(b) - stride(a));
    for (const [name, extent] of loops.reverse()) {
      body = [{ kind: "for", variable: name, extent, mode: { kind: "serial" }, body }];
    }
    return body;
  });
}

type Loop = Extract<Statement, { kind: "for" }>;

/** The only loop around the stores, where it is the same for all threads: which is outside is of no matter. */
function onlyLoop(role: Role, kernel: Kernel, buffer: string): Loop | undefined {
  const stores = (s: Statement): boolean => s.kind === "store" && s.buffer === buffer;
  const leading = role.body.filter((s) => someStatement([s], stores));
  const [only] = leading;
  if (leading.length !== 1 || only?.kind !== "for" || only.mode.kind !== "serial") return undefined;
  const own = [...kernel.grid.axes.map((a) => a.name), role.copyVariable, role.threadVariable];
  const used = variablesOf(only.extent);
  return own.some((name) => name !== undefined && used.has(name)) ? undefined : only;
}

type Store = Extract<Statement, { kind: "store" }>;

function firstStore(body: readonly Statement[], buffer: string): Store | undefined {
  for (const s of body) {
    if (s.kind === "store" && s.buffer === buffer) return s;
    for (const child of childBodies(s)) {
      const found = firstStore(child, buffer);
      if (found) return found;
    }
  }
  return undefined;
}

/** The step of the axis that a variable moves. */
function strideOf({ index }: Store, name: string): number {
  return Math.max(0, ...index.map((e) => Math.abs(splitLinear(e, name)?.coefficient ?? 0)));
}

/** Whether statements anywhere below match. */
export function someStatement(
  body: readonly Statement[],
  test: (s: Statement) => boolean,
): boolean {
  return body.some((s) => test(s) || childBodies(s).some((b) => someStatement(b, test)));
}

const syncKinds = new Set([
  "intrinsic",
  "commitGroup",
  "waitGroup",
  "wait",
  "signal",
  "expect",
  "barrier",
  "fence",
]);

/**
 * Whether threads of the kernel cooperate: several roles, shared scope, or any statement that
 * synchronises. Such kernels are proved by protocol.ts, the others by sequential.ts.
 */
export function isCooperative(kernel: Kernel): boolean {
  return (
    kernel.roles.length > 1 ||
    kernel.counters.length > 0 ||
    kernel.buffers.some((b) => b.scope === "shared") ||
    kernel.roles.some((role) =>
      someStatement(role.body, (s) => syncKinds.has(s.kind) && !movesRegisters(s)),
    )
  );
}

/** An exchange of registers within a warp: it orders nothing, and touches no memory. */
export function movesRegisters(s: Statement): boolean {
  if (s.kind !== "intrinsic") return false;
  const row = findTileIntrinsic(s.intrinsic);
  return (
    row?.collective === "warp" &&
    row.completion === "sync" &&
    row.operands.length > 0 &&
    row.operands.every((o) => o.scopes.every((scope) => scope === "register"))
  );
}

/** Whether all indices are constants. */
export function constantIndex(index: readonly IndexExpr[]): readonly number[] | undefined {
  const values = index.map((e) => constantValue(e));
  return values.every((v) => v !== undefined) ? (values as number[]) : undefined;
}
