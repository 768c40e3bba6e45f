/**
 * Regions whose statements all run over the same rows: softmax and the norms as statistics of a row (folds)
 * and passes over its elements (maps), scans along it, and what is computed once a row. Such a region can be one kernel in
 * which threads keep the rows that they have read. In: a region. Out: its statements in common names, what
 * each makes for later ones, or why it has no such form.
 */
import type { Access, Loop, Region, Statement, Write } from "../../region/nest.ts";
import { accessKey, renameVariables } from "../../region/statement.ts";
import { type Condition, printCondition } from "../../semantics/condition.ts";
import {
  constantValue,
  type IndexExpr,
  splitLinear,
  variablesOf,
} from "../../semantics/index-expr.ts";
import { rangeOf } from "../../semantics/index-range.ts";
import type { Monoid } from "../../semantics/monoids.ts";
import type { RowsDirective } from "../directive.ts";
import { isExchanged } from "../exchanged-types.ts";
import { symbolRanges } from "../scheduled-region.ts";
import { scanForm } from "./scan-form.ts";

/** Loop over the elements of a row, and the n-th loop over rows, in the form's statements. */
export const elementLoop = "@element";
export const rowLoop = (n: number): string => `@row${n}`;

/**
 * What a statement makes of a row: one value from all elements, one for each, one for each from those up to
 * it, or one from others.
 */
export type RowWork = "fold" | "map" | "scan" | "once";

export interface RowStatement {
  /** A scan as the fold of the elements up to each (scan-form.ts). */
  readonly statement: Statement;
  readonly work: RowWork;
  /** A scan begins at the last element of the row. */
  readonly reversed?: boolean;
  /** The loops of the region's statement: those over rows, then that over elements. */
  readonly loops: readonly string[];
}

export interface RowsForm {
  readonly statements: readonly RowStatement[];
  /** Extents of the loops over rows, outermost first. */
  readonly rows: readonly IndexExpr[];
  /** Elements of a row, and at most. */
  readonly length: IndexExpr;
  readonly mostElements: number;
  /** Elements that there are, where some rows end earlier: the guard of all statements over elements. */
  readonly ends: readonly Condition[];
  /** Tensors that one statement makes and a later one reads: a value a row, or one an element. */
  readonly made: ReadonlyMap<string, "row" | "element">;
}

/** Axes of a grid. */
const mostRowLoops = 3;
/** The form is asked for by candidates, prices and lowering of one region. */
const known = new WeakMap<Region, RowsForm | string>();

export function rowsForm(region: Region): RowsForm | string {
  const made = known.get(region) ?? makeForm(region);
  known.set(region, made);
  return made;
}

function makeForm(region: Region): RowsForm | string {
  const first = region.statements.find(
    (s) => s.reduction ?? s.loops.some((l) => l.kind === "scan"),
  );
  if (!first) return "no statement folds or scans a row";
  const rows = first.loops.filter((l) => l.kind === "space").map((l) => l.extent);
  const along = first.loops.find((l) => l.kind !== "space");
  if (!along) return `${first.name} folds over no loop`;
  if (rows.length > mostRowLoops) return `its rows are in ${rows.length} loops`;
  const statements = inCommonNames(region.statements, rows, along.extent);
  if (typeof statements === "string") return statements;
  const made = madeTensors(statements);
  if (typeof made === "string") return made;
  const ends = endsOf(statements);
  if (typeof ends === "string") return ends;
  const mostElements = rangeOf(along.extent, symbolRanges(region)).max;
  if (!Number.isFinite(mostElements)) return "a row has no greatest length";
  return { statements, rows, length: along.extent, mostElements, ends, made };
}

/** The guard of all statements over elements. */
function endsOf(statements: readonly RowStatement[]): readonly Condition[] | string {
  const guards = statements.filter((s) => s.work !== "once").map((s) => s.statement.guard);
  const texts = new Set(guards.map((guard) => guard.map(printCondition).join(" and ")));
  const [ends = []] = guards;
  return texts.size > 1 || ends.length > 1 ? "its statements cover different parts of a row" : ends;
}

/**
 * All statements with their loops named alike: of a map that has several loops as long as a row, the one whose
 * other loops read what earlier statements made where they made it.
 */
function inCommonNames(
  sources: readonly Statement[],
  rows: readonly IndexExpr[],
  length: IndexExpr,
): readonly RowStatement[] | string {
  const ways: (readonly RowStatement[])[] = [];
  for (const source of sources) {
    const found = rowStatements(source, rows, length);
    if (typeof found === "string") return found;
    ways.push(found);
  }
  if (ways.every((w) => w.length === 1)) return ways.flat();
  const choose = (before: readonly RowStatement[]): readonly RowStatement[] | string => {
    if (before.length === ways.length) return before;
    let fault = "";
    for (const way of ways[before.length]!) {
      const some = [...before, way];
      const faults = [madeTensors(some), endsOf(some)].filter((found) => typeof found === "string");
      const all = faults[0] ?? choose(some);
      if (typeof all !== "string") return all;
      fault ||= all;
    }
    return fault;
  };
  return choose([]);
}

/** The statement with its loops named like everyone's, for each loop that may be the one over elements. */
function rowStatements(
  given: Statement,
  rows: readonly IndexExpr[],
  length: IndexExpr,
): readonly RowStatement[] | string {
  const scan = given.loops.some((l) => l.kind === "scan") ? scanForm(given) : undefined;
  if (typeof scan === "string") return scan;
  const source = scan?.fold ?? given;
  const { name, loops, guard, indirects, writes, reduction } = source;
  if (indirects.length > 0) return `${name} reads indices`;
  if (writes.some((w) => w.combine !== "overwrite")) return `${name} updates in place`;
  if (reduction?.numericClass === "approximates") return `${name} may not be reassociated`;
  if (reduction && !reduction.monoid.components.every(isExchanged))
    return `${name} folds what threads do not exchange`;
  const space = loops.filter((l) => l.kind === "space");
  const inner = loops.filter((l) => l.kind !== "space");
  const isOnce = !reduction && space.length === rows.length;
  // A fold with loops beside those over rows makes several values a row, like a product of rows and a matrix.
  const wanted = rows.length + (reduction || isOnce ? 0 : 1);
  if (space.length !== wanted || (reduction ? inner.length !== 1 : inner.length > 0))
    return `${name} has other loops`;
  const orders: (readonly Loop[])[] =
    reduction || isOnce
      ? [[...space, ...inner]]
      : space.toReversed().map((l) => [...space.filter((other) => other !== l), l]);
  const extents = [...rows, length].map((e) => e.key);
  const long = orders.filter((order) => order.every((l, i) => l.extent.key === extents[i]));
  if (long.length === 0) return `${name} has other extents`;
  const fitting = long.filter((order) => guard.every((c) => isEnd(c, order[rows.length])));
  if (fitting.length === 0) return `${name} covers a part`;
  const work = scan ? "scan" : reduction ? "fold" : isOnce ? "once" : "map";
  const reversed = scan?.reversed ? { reversed: true } : {};
  return fitting.map((order) => {
    const names = new Map(
      order.map((l, i) => [l.name, i < rows.length ? rowLoop(i) : elementLoop]),
    );
    const statement = renameVariables(source, (n) => names.get(n) ?? n);
    return { statement, work, ...reversed, loops: order.map((l) => l.name) };
  });
}

/** Whether a condition says from where on, or up to where, there are elements of a row. */
function isEnd({ kind, expr }: Condition, element: Loop | undefined): boolean {
  const step = element && splitLinear(expr, element.name)?.coefficient;
  return kind === "nonNegative" && (step === 1 || step === -1);
}

/** Everything that is read of what the region makes is what its own row, or element, made before. */
function madeTensors(
  statements: readonly RowStatement[],
): ReadonlyMap<string, "row" | "element"> | string {
  const writers = new Map<string, { readonly write: Write; readonly at: number }>();
  for (const [at, { statement }] of statements.entries()) {
    for (const write of statement.writes) {
      if (writers.has(write.tensor)) return `${write.tensor} is written twice`;
      writers.set(write.tensor, { write, at });
    }
  }
  const made = new Map<string, "row" | "element">();
  for (const [at, { statement }] of statements.entries()) {
    for (const read of [...statement.reads, ...statement.finishReads]) {
      const writer = writers.get(read.tensor);
      if (!writer) continue;
      if (writer.at >= at) return `${statement.name} reads ${read.tensor} before it is written`;
      if (!isSamePlace(read, writer.write))
        return `${statement.name} reads ${read.tensor} at another place than it is written`;
      const isElement = ["map", "scan"].includes(statements[writer.at]!.work);
      made.set(read.tensor, isElement ? "element" : "row");
    }
  }
  return made;
}

function isSamePlace(read: Access, write: Write): boolean {
  return read.guard.length === 0 && read.index.every((e, i) => e.key === write.index[i]!.key);
}

/** Whether the access is another one for another element of the row. */
export function movesAlong({ index }: Pick<Access, "index">): boolean {
  return variablesOf(...index).has(elementLoop);
}

/** Whether neighbours in the row, or along another loop, are neighbours in memory. */
export function isNear({ index }: Pick<Access, "index">, loop = elementLoop): boolean {
  const steps = index.map((e) => splitLinear(e, loop)?.coefficient);
  return steps.at(-1) === 1 && steps.slice(0, -1).every((c) => c === 0);
}

/**
 * How a fold takes elements that stand behind those it has, where that is cheaper: a thread meets places in their
 * order, so that a tie says which of two stands first. Of a line of no known length it is not known that a
 * thread has a first element.
 */
export function inOrderOf(
  { statement: { body, reduction } }: Pick<RowStatement, "statement">,
  { length }: Pick<RowsForm, "length">,
  { keep }: Pick<RowsDirective, "keep">,
): Monoid["inOrder"] {
  const place = body.at(-1);
  if (keep === "memory" && constantValue(length) === undefined) return undefined;
  if (!reduction?.monoid.inOrder || place?.kind !== "index") return undefined;
  const step = splitLinear(place.expr, elementLoop)?.coefficient ?? 0;
  return step > 0 ? reduction.monoid.inOrder : undefined;
}

/**
 * Statements in whose turn the elements of each statement are computed: its own, or, where what maps make is
 * computed again instead of kept, its readers' and, where it is a result, its own.
 */
export function turnsOf(
  { statements, made }: RowsForm,
  keep: RowsDirective["keep"],
  isWanted: (tensor: string) => boolean,
): readonly (readonly number[])[] {
  const turns: (readonly number[])[] = statements.map((_, at) => [at]);
  if (keep === "registers") return turns;
  // Readers stand behind what they read.
  for (let at = statements.length - 1; at >= 0; at--) {
    const { work, statement } = statements[at]!;
    const own = statement.writes.map((w) => w.tensor);
    if (work !== "map" || !own.some((tensor) => made.has(tensor))) continue;
    const readers = statements.flatMap(({ statement: { reads } }, reader) =>
      reads.some((r) => own.includes(r.tensor)) ? turns[reader]! : [],
    );
    turns[at] = [...(own.some(isWanted) ? [at] : []), ...readers];
  }
  return turns;
}

/**
 * Elements from outside the region that are read in more than one statement's turn, or by a scan, whose turns
 * wait for each other; each once.
 */
export function sharedReads(
  form: RowsForm,
  turns: readonly (readonly number[])[],
): readonly Access[] {
  const readers = new Map<string, { readonly access: Access; count: number }>();
  for (const [at, { statement }] of form.statements.entries()) {
    for (const [key, access] of new Map(statement.reads.map((a) => [accessKey(a), a]))) {
      if (form.made.has(access.tensor) || !movesAlong(access)) continue;
      const known = readers.get(key) ?? { access, count: 0 };
      const waits = form.statements[at]!.work === "scan" ? 1 : 0;
      readers.set(key, { access, count: known.count + turns[at]!.length + waits });
    }
  }
  return [...readers.values()].filter((r) => r.count > 1).map((r) => r.access);
}

/** Lanes of a thread's vector that are elements behind each other of a row. */
export function elementLanes({ across, lanes, items }: RowsDirective): number {
  return across ? items : lanes;
}

/** Lanes that are rows beside each other, of one element each; where there are several, all are. */
export function rowLanes({ across, lanes }: RowsDirective): number {
  return across ? lanes : 1;
}

/** Lanes of a thread's vector. */
export function vectorLanes(d: RowsDirective): number {
  return elementLanes(d) * rowLanes(d);
}

/** How the threads of a row lie in warps. */
export interface RowDealing {
  /** Of a row, in one warp. */
  readonly inWarp: number;
  /** From one of them to the next. */
  readonly stride: number;
  /** Warps that have threads of a row. */
  readonly warps: number;
}

export function dealingOf({
  threads,
  rows,
  across,
}: Pick<RowsDirective, "threads" | "rows" | "across">): RowDealing {
  const stride = across ? Math.min(rows, warpThreads) : 1;
  const inWarp = Math.min(threads, warpThreads / stride);
  return { inWarp, stride, warps: threads / inWarp };
}

/** Vectors that a thread takes of a row, the last of which may be outside. */
export function chunksOf({ mostElements }: RowsForm, d: RowsDirective): number {
  return Math.ceil(mostElements / (d.threads * d.parts * elementLanes(d)));
}

/** Threads of a warp, of a block at most, and elements of a row that a thread keeps at most. */
const warpThreads = 32;
const mostThreads = 1024;
const mostLanes = 16;
export const mostKept = 64;
/** Of rows that a block or a cluster keeps as a whole: of narrow elements, two of which are a register. */
const mostKeptWhole = 128;
/**
 * Elements of a thread in registers and shared memory, each with instructions of its own: of more, the assembler
 * brings so many forward that it spills (ptxas 13.0).
 */
const mostSpelled = 128;
/** Registers that vectors on their way to shared memory fill: so many come together. */
export const stagingRegisters = 16;

/**
 * Whether rows lie behind each other along one axis of what they leave: with guards at the end of each it is not
 * proved that they do not meet.
 */
function isCut({ statements }: RowsForm): boolean {
  return statements.some(({ statement: { writes } }) =>
    writes.some((w) =>
      w.index.some((e) => {
        const along = variablesOf(e);
        return along.has(elementLoop) && along.size > 1;
      }),
    ),
  );
}

/** Whether all elements of each vector are in the row, or none. */
export function endsWhole({ length, ends }: RowsForm, d: RowsDirective): boolean {
  const lanes = elementLanes(d);
  if (lanes === 1) return true;
  const whole = ends.every(({ expr }) => {
    const { rest, coefficient } = splitLinear(expr, elementLoop)!;
    const first = rest.constant + (coefficient < 0 ? 1 : 0);
    return [first, ...rest.terms.map((t) => t.coefficient)].every((n) => n % lanes === 0);
  });
  return whole && (constantValue(length) ?? 1) % lanes === 0;
}

/** Partial results of the same rows that a thread takes from shared memory, where more need not be. */
const mostPartial = 16;

/**
 * Neighbours among the threads of a row that combine in their warp first; across rows only as many as leave few
 * partial results, since each is a vector.
 */
export function combinedInWarp(d: RowsDirective): number {
  const { inWarp } = dealingOf(d);
  return d.across ? Math.min(inWarp, Math.max(1, d.threads / mostPartial)) : inWarp;
}

/** Blocks of a cluster that every device takes, and values of a vector that they send each other. */
const mostParts = 8;
export const sentLanes = 4;

function isPower(n: number): boolean {
  return Number.isSafeInteger(n) && n >= 1 && 2 ** Math.floor(Math.log2(n)) === n;
}

/** Why no block can work so on rows, or undefined. */
export function rowsFault(d: RowsDirective, form: RowsForm): string | undefined {
  if (![d.threads, d.lanes, d.items].every(isPower))
    return "threads, lanes and items are powers of two";
  if (!Number.isSafeInteger(d.rows) || d.rows < 1) return "rows of a block are a positive integer";
  const threads = d.threads * d.rows;
  if (threads > mostThreads || threads % warpThreads !== 0)
    return `${threads} threads are not 1 to ${mostThreads / warpThreads} whole warps`;
  if (d.rows > 1 && form.rows.length === 0) return "there is one row";
  if (Math.max(d.lanes, d.items) > mostLanes) return `vectors have at most ${mostLanes} lanes`;
  const lengthwise = d.across ? acrossFault(d, form) : alongFault(d, form);
  const why = lengthwise ?? partsFault(d, form) ?? scansFault(d, form);
  if (why !== undefined) return why;
  if (d.keep === "operands" && ![...form.made.values()].includes("element"))
    return "no statement makes elements that it could compute again";
  if (d.keep !== "memory" && constantValue(form.length) === undefined)
    return `rows of ${form.length.key} elements have no registers of their own`;
  const sharing = sharedFault(d, form);
  if (sharing !== undefined) return sharing;
  const kept = (chunksOf(form, d) - d.shared) * vectorLanes(d);
  const most = d.across || d.parts > 1 ? mostKeptWhole : mostKept;
  if (d.keep !== "memory" && kept > most)
    return `a thread would keep ${kept} elements of its rows, more than ${most}`;
  return undefined;
}

/** What of a thread's vectors shared memory does not keep. */
function sharedFault(d: RowsDirective, form: RowsForm): string | undefined {
  if (d.shared === 0) return undefined;
  if (!Number.isSafeInteger(d.shared) || d.shared < 0)
    return "vectors in shared memory are a whole number";
  if (d.keep === "memory") return "what is read again is kept nowhere";
  if (d.keep === "registers" && [...form.made.values()].includes("element"))
    return "what statements make of elements is kept in registers alone";
  const chunks = chunksOf(form, d);
  if (d.shared > chunks) return `a thread has ${chunks} vectors, not ${d.shared}`;
  const all = chunks * vectorLanes(d);
  return all > mostSpelled
    ? `a thread would keep ${all} elements, more than ${mostSpelled}`
    : undefined;
}

function alongFault(d: RowsDirective, form: RowsForm): string | undefined {
  if (d.items > 1) return "elements behind each other along memory are the lanes of a vector";
  if (d.lanes === 1 || (constantValue(form.length) !== undefined && endsWhole(form, d)))
    return undefined;
  return `rows of ${form.length.key} elements are not whole vectors of ${d.lanes}`;
}

function acrossFault(d: RowsDirective, form: RowsForm): string | undefined {
  const { lanes, items, rows } = d;
  const beside = form.rows.at(-1);
  if (!beside) return "there is one row, and none beside it";
  if (!isPower(rows)) return "vectors beside each other are a power of two";
  if (lanes > 1 && items > 1) return "a vector has several rows or several elements, not both";
  const count = constantValue(beside);
  if (lanes > 1 && (count === undefined || count % lanes !== 0))
    return `${beside.key} rows are not whole vectors of ${lanes}`;
  const last = rowLoop(form.rows.length - 1);
  if (lanes > 1 && form.ends.some(({ expr }) => variablesOf(expr).has(last)))
    return "rows beside each other end at different elements";
  if (items === 1) return undefined;
  const isWhole = endsWhole(form, d) || form.statements.every((s) => s.work !== "fold");
  if (constantValue(form.length) !== undefined && isWhole) return undefined;
  return `rows of ${form.length.key} elements are not whole vectors of ${items}`;
}

/** What blocks of a cluster do not tell each other. */
function partsFault(d: RowsDirective, form: RowsForm): string | undefined {
  if (d.parts === 1) return undefined;
  if (!isPower(d.parts) || d.parts > mostParts)
    return `parts are a power of two up to ${mostParts}`;
  if (form.rows.length === mostRowLoops) return "the grid has no axis left for parts";
  const open = form.rows.find((extent) => constantValue(extent) === undefined);
  if (open) return `clusters for ${open.key} rows are not proved`;
  if (d.across ? (d.rows * d.lanes) % sentLanes !== 0 : d.rows > 1)
    return `blocks send each other values of one row, or of ${sentLanes} beside each other`;
  const folded = form.statements.flatMap((s) => s.statement.reduction?.monoid.components ?? []);
  return folded.some(({ dtype }) => dtype !== "f32")
    ? "blocks send each other nothing but f32"
    : undefined;
}

function scansFault(d: RowsDirective, form: RowsForm): string | undefined {
  const scanned = form.statements.filter((s) => s.work === "scan");
  if (scanned.length === 0) return undefined;
  if (d.parts > 1) return "what is scanned along rows is one block's";
  if (rowLanes(d) > 1) return "what is scanned has the lanes of one row";
  const length = constantValue(form.length) ?? 1;
  const turn = d.threads * elementLanes(d);
  if (isCut(form) && length % turn !== 0)
    return `parts of ${form.length.key} elements are not whole turns of ${turn}`;
  const isRead = scanned.some((s) => s.statement.writes.some((w) => form.made.has(w.tensor)));
  if (isRead && d.keep !== "registers") return "what is scanned is read again, and kept nowhere";
  return undefined;
}
