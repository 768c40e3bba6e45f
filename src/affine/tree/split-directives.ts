/**
 * Reductions and scans split into chunks, where the operator may be reassociated. A split reduction adds
 * each chunk up in a cell of its own and then the cells:
 *
 *     S: C[i] += A[i, k]   =>   S: C'[i, floor(k/f)] += A[i, k];   S.sum: C[i] += C'[i, p]
 *
 * A split scan runs from zero in each chunk and then carries the end of the chunk before into it:
 *
 *     S: y[k] = y[k-1] + x[k]   =>   S: y'[k] = y'[k-1] (not at the start of a chunk) + x[k];
 *                                    S.carry: y[k] = y[f*floor(k/f) - 1] + y'[k]
 *
 * Both replace the loop and what is inside it, which must hold the statement alone, so that nothing else
 * sees the results in between.
 */
import { reject } from "../../support/diagnostic.ts";
import { atMost, type Constraint, within } from "../build.ts";
import {
  type Affine,
  add,
  affine,
  floorDivide,
  formatAffine,
  minus,
  remainder,
  replaceVariables,
  scale,
  variablesOf,
} from "../expression.ts";
import { isRange, type NestAccess, type NestStatement } from "../nest.ts";
import { type Chain, type ChainLoop, changeChain } from "./chain.ts";
import { timePaths } from "./flatten.ts";
import { checkFactor, type SplitRequest } from "./loop-directives.ts";
import type { Nest, Plan } from "./nest-program.ts";
import type { FilterNode, ScheduleTree } from "./tree.ts";

export type SplitDirective =
  | ({ readonly kind: "split-reduction" } & SplitRequest)
  | ({ readonly kind: "split-scan" } & SplitRequest);

/** The array of the chunks' own results. */
export function partialArray(statement: string): string {
  return `${statement}.part`;
}

export function splitName(d: SplitDirective): string {
  return `${d.statement}.${d.kind === "split-scan" ? "carry" : "sum"}`;
}

interface Place {
  readonly statement: NestStatement;
  /** The dimension that the loop counts. */
  readonly dim: string;
}

/** The access whose operator is reassociated: the update, or the read of a scan. */
export function combinedAccess(
  { statement }: Pick<Place, "statement">,
  d: SplitDirective,
): NestAccess {
  const wanted = d.kind === "split-reduction" ? "update" : "read";
  const all = statement.accesses.filter((a) => a.kind === wanted);
  const found = d.kind === "split-scan" ? all.filter((a) => a.reassociable !== undefined) : all;
  const writes = statement.accesses.filter((a) => a.kind !== "read");
  if (found.length === 1 && writes.length === 1) return found[0]!;
  return reject("SCH010", `${statement.name} is not a ${d.kind.slice(6)}`, {
    at: `${d.kind} ${d.statement}:${d.loop}`,
    help: "name a statement with one result that it combines with what came before",
  });
}

export function splitPlan(plan: Plan, d: SplitDirective): Plan {
  checkFactor(d.loop, d.factor);
  const statement = plan.nest.statements.find((s) => s.name === d.statement);
  if (!statement) return reject("SCH001", `there is no statement ${d.statement}`, { at: d.kind });
  let made: NestStatement[] = [];
  const tree = changeChain(plan.tree, d, (chain, at) => {
    const place = { statement, dim: dimensionOf(chain, at, d) };
    checkAlone(chain, at, d);
    checkOthers(plan, place, d);
    made = d.kind === "split-reduction" ? splitReduction(place, d) : splitScan(place, d);
    return chunked(chain, { at, place, d, made });
  });
  const statements = plan.nest.statements.flatMap((s) => (s === statement ? made : [s]));
  const [first, second] = made.map((s) => s.name) as [string, string];
  const widened = addBeside(tree, first, second);
  // The cells of a reduction's chunks start with the operator's identity.
  const given =
    d.kind === "split-reduction"
      ? new Set([...plan.nest.given, partialArray(first)])
      : plan.nest.given;
  const nest: Nest = { ...plan.nest, statements, tree: widened, given };
  return { nest, tree: widened };
}

/** Loops and filters outside the place where both statements part hold the second like the first. */
function addBeside(tree: ScheduleTree, first: string, second: string): ScheduleTree {
  const inside = (node: ScheduleTree): ScheduleTree => addBeside(node, first, second);
  switch (tree.kind) {
    case "leaf":
      return tree;
    case "filter": {
      const held = tree.statements.includes(first);
      if (!held) return tree;
      return { ...tree, statements: [...tree.statements, second], child: inside(tree.child) };
    }
    case "sequence":
    case "set":
      if (tree.children.some((c) => c.statements.includes(second))) return tree;
      return {
        ...tree,
        children: tree.children.map((c): FilterNode => inside(c) as FilterNode),
      };
    case "band": {
      const members = tree.members.map((m) => {
        const value = m.values.get(first);
        return value ? { ...m, values: new Map([...m.values, [second, value]]) } : m;
      });
      return { ...tree, members, child: inside(tree.child) };
    }
    default:
      return { ...tree, child: inside(tree.child) };
  }
}

/** The statement's dimension that the loop counts, up to a shift. */
function dimensionOf({ loops }: Chain, at: number, d: SplitDirective): string {
  const value = loops[at]!.member.values.get(d.statement)!;
  const [term, ...others] = value.terms;
  if (term?.coefficient === 1 && typeof term.atom === "string" && others.length === 0) {
    return term.atom;
  }
  return reject("SCH010", `${d.loop} is ${formatAffine(value)}, not a loop of the statement`, {
    at: `${d.kind} ${d.statement}:${d.loop}`,
    help: "split reductions and scans before their loop is changed",
  });
}

function checkAlone({ loops, rest }: Chain, at: number, d: SplitDirective): void {
  const alone = loops.slice(at).every((l) => l.member.values.size === 1) && rest.kind === "leaf";
  const marked = loops.slice(at).find((l) => l.marks.length > 0);
  if (marked) reject("SCH009", `loop ${marked.member.loop} is marked already`, { at: d.kind });
  if (!alone) {
    reject("SCH010", `other statements share the loop ${d.loop} of ${d.statement}`, {
      at: `${d.kind} ${d.statement}:${d.loop}`,
      help: `fission ${d.loop} first`,
    });
  }
}

/** No other loop around the statement moves with the one that is split. */
function checkOthers({ nest, tree }: Plan, { statement, dim }: Place, d: SplitDirective): void {
  const parts = timePaths(tree, nest.statements).get(statement.name)!;
  const other = parts.find((p) => p.loop !== d.loop && variablesOf(p.value).includes(dim));
  if (!other) return;
  reject("SCH010", `the loop ${other.loop} of ${statement.name} moves with ${d.loop}`, {
    at: `${d.kind} ${d.statement}:${d.loop}`,
    help: "split reductions and scans before their loop is changed",
  });
}

function splitReduction({ statement, dim }: Place, d: SplitDirective): NestStatement[] {
  const total = combinedAccess({ statement }, d);
  const dims = statement.dims.map((x) => (x === dim ? d.outer : x));
  checkFree(statement, d);
  const along = total.index.some((e) => isRange(e) || usesDim(e, dim));
  if (along) {
    reject("SCH010", `iterations of ${d.loop} may have results of their own in ${statement.name}`, {
      at: `${d.kind} ${d.statement}:${d.loop}`,
      help: "name a loop over which it adds up",
    });
  }
  const array = partialArray(statement.name);
  const chunk = floorDivide(dim, d.factor);
  const own = statement.dims.map((x) => (x === dim ? chunk : affine(x)));
  const part: NestAccess = { ...total, array, index: own };
  const accesses = statement.accesses.map((a) => (a === total ? part : a));
  const inChunk = within(scale(d.factor, d.outer), dim, add(scale(d.factor, d.outer), d.factor));
  const sum: NestStatement = {
    name: splitName(d),
    dims,
    domain: eliminate([...statement.domain, ...inChunk], dim),
    accesses: [{ kind: "read", array, index: dims.map((x) => affine(x)) }, total],
  };
  return [{ ...statement, accesses }, sum];
}

function splitScan({ statement, dim }: Place, d: SplitDirective): NestStatement[] {
  const carried = combinedAccess({ statement }, d);
  const result = statement.accesses.find((a) => a.kind === "write")!;
  checkFree(statement, d);
  checkStep({ statement, dim }, [carried, result], d);
  const low = lowerBound(statement, dim, d);
  const inside = remainder(minus(dim, low), d.factor);
  const array = partialArray(statement.name);
  const own = statement.dims.map((x) => affine(x));
  const before = own.map((e, i) => (statement.dims[i] === dim ? add(e, -1) : e));
  const local = statement.accesses.map((a): NestAccess => {
    if (a === result) return { kind: "write", array, index: own };
    if (a !== carried) return a;
    const where = [...(a.where ?? []), atMost(1, inside)];
    return { kind: "read", array, index: before, where, reassociable: true };
  });
  const start = { [dim]: minus(dim, inside) };
  const carry: NestStatement = {
    ...statement,
    name: splitName(d),
    accesses: [
      {
        kind: "read",
        array: carried.array,
        index: carried.index.map((e) => (isRange(e) ? e : replaceVariables(e, start))),
        ...(carried.where && {
          where: carried.where.map((c) => ({
            ...c,
            expression: replaceVariables(c.expression, start),
          })),
        }),
        reassociable: true,
      },
      { kind: "read", array, index: own },
      result,
    ],
  };
  return [{ ...statement, accesses: local }, carry];
}

function checkFree({ name, accesses, within: bounds }: NestStatement, d: SplitDirective): void {
  const target = accesses.find((a) => a.kind !== "read")!;
  const reads = accesses.filter((a) => a.kind === "read" && a.array === target.array);
  const others = d.kind === "split-scan" ? reads.filter((a) => !a.reassociable) : reads;
  const guarded = accesses.some((a) => a.where && (d.kind !== "split-scan" || !a.reassociable));
  if (others.length === 0 && !bounds && !guarded) return;
  reject("SCH010", `${name} reads ${target.array} beside combining it, or only in part`, {
    at: `${d.kind} ${d.statement}:${d.loop}`,
    help: "such a statement cannot be split",
  });
}

/** The carried value is the result one iteration before. */
function checkStep(
  { statement, dim }: Place,
  [carried, result]: readonly [NestAccess, NestAccess],
  d: SplitDirective,
): void {
  const step = { [dim]: add(dim, -1) };
  const ok =
    carried.array === result.array &&
    carried.index.every((e, i) => {
      const other = result.index[i];
      if (isRange(e) || !other || isRange(other)) return false;
      return formatAffine(e) === formatAffine(replaceVariables(other, step));
    });
  if (ok) return;
  reject("SCH010", `${statement.name} does not carry its last result along ${d.loop}`, {
    at: `${d.kind} ${d.statement}:${d.loop}`,
    help: "name the loop of the scan",
  });
}

function usesDim(e: NestAccess["index"][number], dim: string): boolean {
  return isRange(e)
    ? variablesOf(e.low).includes(dim) || variablesOf(e.end).includes(dim)
    : variablesOf(e).includes(dim);
}

/** The one lower bound of a dimension. */
function lowerBound({ domain, name }: NestStatement, dim: string, d: SplitDirective): Affine {
  const lower = domain.filter((c) => coefficientOf(c.expression, dim) > 0);
  const [bound] = lower;
  if (lower.length === 1 && bound && coefficientOf(bound.expression, dim) === 1) {
    return minus(dim, bound.expression);
  }
  return reject("SCH010", `${name}:${d.loop} has no single first iteration`, {
    at: `${d.kind} ${d.statement}:${d.loop}`,
    help: "split scans along loops with one lower bound",
  });
}

function coefficientOf(e: Affine, name: string): number {
  return e.terms.find((t) => t.atom === name)?.coefficient ?? 0;
}

/** The constraints on the other variables: exact, as one of each two bounds has coefficient 1. */
function eliminate(all: readonly Constraint[], name: string): readonly Constraint[] {
  const split = all.flatMap((c) =>
    c.kind === "equality" ? [c.expression, scale(-1, c.expression)] : [c.expression],
  );
  const lower = split.filter((e) => coefficientOf(e, name) > 0);
  const upper = split.filter((e) => coefficientOf(e, name) < 0);
  const rest = split.filter((e) => coefficientOf(e, name) === 0);
  const unit = [lower, upper].some((side) =>
    side.every((e) => Math.abs(coefficientOf(e, name)) === 1),
  );
  if (!unit || rest.some((e) => variablesOf(e).includes(name))) {
    reject("SCH010", `the bounds of ${name} are not whole`, {
      at: name,
      help: "split reductions over loops whose bounds have no factors",
    });
  }
  const joined = lower.flatMap((l) =>
    upper.map((u) => add(scale(-coefficientOf(u, name), l), scale(coefficientOf(l, name), u))),
  );
  if (joined.some((e) => variablesOf(e).includes(name))) {
    reject("SCH010", `the bounds of ${name} are not whole`, { at: name });
  }
  return [...rest, ...joined].map((expression) => ({ kind: "inequality", expression }));
}

interface Chunks {
  readonly at: number;
  readonly place: Place;
  readonly d: SplitDirective;
  readonly made: readonly NestStatement[];
}

/** The loop in chunks, then what combines the chunks. */
function chunked({ loops }: Chain, { at, place, d, made }: Chunks): Chain {
  const [first, second] = made.map((s) => s.name) as [string, string];
  const inner = loops.slice(at + 1);
  const shift = d.kind === "split-scan" ? lowerBound(place.statement, place.dim, d) : affine(0);
  const chunkOf = floorDivide(minus(place.dim, shift), d.factor);
  const within = remainder(minus(place.dim, shift), d.factor);
  const loop = (name: string, statement: string, value: Affine): ChainLoop => ({
    member: { loop: name, values: new Map([[statement, value]]), coincident: false },
    marks: [],
  });
  const rename = (l: ChainLoop): ChainLoop =>
    loop(l.member.loop, second, l.member.values.get(first)!);
  const own: ScheduleTree = nested([
    loop(d.outer, first, chunkOf),
    loop(d.inner, first, within),
    ...inner,
  ]);
  const others =
    d.kind === "split-scan"
      ? [loop(d.outer, second, chunkOf), loop(d.inner, second, within), ...inner.map(rename)]
      : [loop(d.outer, second, affine(d.outer)), ...inner.map(rename)];
  return {
    loops: loops.slice(0, at),
    rest: {
      kind: "sequence",
      children: [
        { kind: "filter", statements: [first], child: own },
        { kind: "filter", statements: [second], child: nested(others) },
      ],
    },
  };
}

function nested(loops: readonly ChainLoop[]): ScheduleTree {
  return loops.reduceRight<ScheduleTree>(
    (child, { member }) => ({ kind: "band", members: [member], permutable: false, child }),
    { kind: "leaf" },
  );
}
