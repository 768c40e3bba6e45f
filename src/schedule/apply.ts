/**
 * Applies directives to a region. Each directive is checked for form here (names exist, factors are
 * positive, a vector loop has a constant extent) with a SCH diagnostic that names the directive;
 * dependences are legality.ts. The result is a new value; nothing is changed in place.
 */
import type { ConflictMemory } from "../affine/index.ts";
import type { Region, Statement } from "../region/nest.ts";
import type { Condition } from "../semantics/condition.ts";
import { less } from "../semantics/condition.ts";
import {
  add,
  ceilDiv,
  constant,
  constantValue,
  type IndexExpr,
  mod,
  mul,
  substitute,
  variable,
} from "../semantics/index-expr.ts";
import { loopRange, provesLess, simplify } from "../semantics/index-range.ts";
import { layoutFault } from "../semantics/layout.ts";
import { attempt, type Result, reject } from "../support/diagnostic.ts";
import type { DiagnosticCode } from "../support/diagnostic-codes.ts";
import { unreachable } from "../support/invariant.ts";
import { attentionForm } from "./attention/attention-form.ts";
import { attendFault } from "./attention/attention-limits.ts";
import { type Directive, isTreeOnly, type Schedule } from "./directive.ts";
import { printDirective } from "./directive-text.ts";
import { productForm } from "./products/product-form.ts";
import { multiplyFault } from "./products/product-limits.ts";
import { rowsFault, rowsForm } from "./rows/rows-form.ts";
import {
  type FusedStatement,
  type PlacedTensor,
  type ScheduledAttention,
  type ScheduledLoop,
  type ScheduledMode,
  type ScheduledProduct,
  type ScheduledRegion,
  type ScheduledRows,
  type ScheduledStatement,
  type ScheduledTurn,
  symbolRanges,
} from "./scheduled-region.ts";
import { dotAxes } from "./states/dot-form.ts";
import { planTree } from "./tree/tree-schedule.ts";
import { turnFault, turnForm } from "./turns/turn-form.ts";

type Of<K extends Directive["kind"]> = Extract<Directive, { kind: K }>;

/**
 * The region under the schedule, or the first directive that makes no sense with its reason. Trees are
 * judged at once, with `memory` of what refused other schedules of the region.
 */
export function applySchedule(
  region: Region,
  schedule: Schedule,
  memory?: ConflictMemory,
): Result<ScheduledRegion> {
  return attempt(() => {
    let state = startRegion(region, schedule);
    if (needsTree(state)) return applyToTree(state, memory);
    for (const directive of schedule.directives) state = applyDirective(state, directive);
    checkFused(state);
    return state;
  });
}

/** The region with every loop serial and in its own order. */
export function startRegion(region: Region, schedule: Schedule): ScheduledRegion {
  return {
    region,
    schedule,
    statements: region.statements.map(startStatement),
    fused: [],
    placed: [],
    staged: [],
    layouts: new Map(),
    products: [],
  };
}

function startStatement(statement: Statement): ScheduledStatement {
  return {
    statement,
    loops: statement.loops.map((l) => serialLoop(l.name, l.extent, l.kind, l.name)),
    index: new Map(statement.loops.map((l) => [l.name, variable(l.name)])),
    ragged: [],
  };
}

function serialLoop(
  name: string,
  extent: IndexExpr,
  kind: ScheduledLoop["kind"],
  origin: string,
): ScheduledLoop {
  return { name, extent, kind, mode: "serial", origin };
}

/** Whether a directive says more than orders, splits and marks of each statement's own loops. */
function needsTree({ region, schedule }: ScheduledRegion): boolean {
  return schedule.directives.some((d) => {
    if (d.kind === "interchange" || d.kind === "jam") return false;
    return d.kind === "fission" ? region.statements.length > 2 : isTreeOnly(d);
  });
}

/** Loops by trees; where tensors lie is checked for form here. */
function applyToTree(start: ScheduledRegion, memory: ConflictMemory | undefined): ScheduledRegion {
  let state = start;
  for (const d of start.schedule.directives) {
    if (d.kind === "layout") state = applyDirective(state, d);
    if (d.kind === "place" || d.kind === "stage") checkTensor(state, d, d.tensor);
    if (d.kind === "multiply") multiply(state, d);
  }
  return { ...state, tree: planTree(start.region, start.schedule, memory) };
}

function applyDirective(state: ScheduledRegion, d: Directive): ScheduledRegion {
  switch (d.kind) {
    case "interchange":
      return onStatement(state, d, (s) => interchange(s, d));
    case "jam":
      return onStatement(state, d, (s) => jam(state, s, d));
    case "fission":
      return fission(state, d);
    case "split":
      return onStatement(state, d, (s) => split(state, s, d, d));
    case "tile":
      return onStatement(state, d, (s) => tile(state, s, d));
    case "reorder":
      return onStatement(state, d, (s) => reorder(s, d));
    case "vectorize":
      return onStatement(state, d, (s) => vectorize(state, s, d));
    case "unroll":
      return onStatement(state, d, (s) => setMode(s, d, "unroll"));
    case "parallelize":
      return onStatement(state, d, (s) => setMode(s, d, "grid"));
    case "bind":
      return onStatement(state, d, (s) => setMode(s, d, d.level));
    case "fuse":
      return { ...state, fused: [...state.fused, fuse(state, d)] };
    case "place":
      return { ...state, placed: [...state.placed, place(state, d)] };
    case "stage":
      return { ...state, staged: [...state.staged, { ...place(state, d), copies: depthOf(d) }] };
    case "rows":
      return { ...state, rows: rows(state, d) };
    case "attend":
      return { ...state, attention: attend(state, d) };
    case "turn":
      return { ...state, turn: turn(state, d) };
    case "multiply":
      return { ...state, products: [...state.products, multiply(state, d)] };
    case "layout":
      checkLayout(state, d);
      return { ...state, layouts: new Map([...state.layouts, [d.tensor, d.layout]]) };
    default:
      return unreachable(d as never, "a directive for trees");
  }
}

function onStatement(
  state: ScheduledRegion,
  d: Directive & { readonly statement: string },
  change: (s: ScheduledStatement) => ScheduledStatement,
): ScheduledRegion {
  lookup(state, d, d.statement);
  const statements = state.statements.map((s) =>
    s.statement.name === d.statement ? change(s) : s,
  );
  return { ...state, statements };
}

function lookup(state: ScheduledRegion, d: Directive, name: string): ScheduledStatement {
  const found = state.statements.find((s) => s.statement.name === name);
  if (found) return found;
  const names = state.statements.map((s) => s.statement.name).join(", ");
  return reject("SCH001", `there is no statement ${name} in region ${state.region.name}`, {
    at: printDirective(d),
    help: `statements are ${names}`,
  });
}

function loopPosition(s: ScheduledStatement, d: Directive, name: string): number {
  const at = s.loops.findIndex((l) => l.name === name);
  if (at >= 0) return at;
  return reject("SCH002", `statement ${s.statement.name} has no loop ${name} at this point`, {
    at: printDirective(d),
    help: `its loops are ${s.loops.map((l) => l.name).join(" ")}`,
  });
}

/** One statement with one of its loops split; a split that cannot be made is rejected. */
export function splitStatement(
  region: ScheduledRegion,
  statement: ScheduledStatement,
  directive: Of<"split">,
): ScheduledStatement {
  return split(region, statement, directive, directive);
}

/** loop = outer * factor + inner. */
function split(
  state: ScheduledRegion,
  s: ScheduledStatement,
  d: Directive,
  by: Omit<Of<"split">, "kind" | "statement">,
): ScheduledStatement {
  const at = loopPosition(s, d, by.loop);
  const loop = s.loops[at]!;
  if (!Number.isSafeInteger(by.factor) || by.factor < 1) {
    reject("SCH003", `factor ${by.factor} is not a positive integer`, { at: printDirective(d) });
  }
  if (!Number.isSafeInteger(by.factor * stepOf(s, loop))) {
    reject("SCH003", `a step of ${by.factor} times that of ${by.loop} leaves ±(2^53 - 1)`, {
      at: printDirective(d),
      help: "use smaller factors",
    });
  }
  for (const name of [by.outer, by.inner]) {
    const taken = s.loops.some((l) => l.name === name && l !== loop) || s.index.has(name);
    if (taken && name !== by.loop) {
      reject("SCH004", `the loop name ${name} is taken`, { at: printDirective(d) });
    }
  }
  if (by.outer === by.inner) {
    reject("SCH004", `outer and inner are both ${by.outer}`, { at: printDirective(d) });
  }
  const { kind, origin } = loop;
  const outer = serialLoop(by.outer, tilesOf(state.region, loop.extent, by.factor), kind, origin);
  const inner = serialLoop(by.inner, constant(by.factor), kind, origin);
  const value = add(mul(by.factor, variable(by.outer)), variable(by.inner));
  const swap = new Map([[by.loop, value]]);
  // A loop stands in nothing but what it was made of.
  const index = new Map(s.index);
  index.set(origin, substitute(index.get(origin)!, swap));
  const ragged: Condition[] = s.ragged.map((c) => ({ ...c, expr: substitute(c.expr, swap) }));
  if (constantValue(mod(loop.extent, by.factor)) !== 0) ragged.push(less(value, loop.extent));
  const loops = [...s.loops];
  loops.splice(at, 1, outer, inner);
  return { statement: s.statement, loops, index, ragged };
}

/** What one iteration of a loop adds to the loop that it was made of. */
function stepOf(s: ScheduledStatement, loop: ScheduledLoop): number {
  const { key } = variable(loop.name);
  return s.index.get(loop.origin)!.terms.find((t) => t.key === key)!.coefficient;
}

/** ceil(extent / factor). */
function tilesOf(region: Region, extent: IndexExpr, factor: number): IndexExpr {
  const whole = constantValue(extent);
  if (whole !== undefined) return constant(Math.ceil(whole / factor));
  return simplify(ceilDiv(extent, factor), symbolRanges(region));
}

function tile(state: ScheduledRegion, s: ScheduledStatement, d: Of<"tile">): ScheduledStatement {
  const sizes = new Set([d.loops.length, d.factors.length, d.outer.length, d.inner.length]);
  if (sizes.size !== 1 || d.loops.length === 0) {
    reject("SCH003", "tile needs as many factors, outer and inner names as loops", {
      at: printDirective(d),
    });
  }
  let result = s;
  d.loops.forEach((loop, i) => {
    const by = { loop, factor: d.factors[i]!, outer: d.outer[i]!, inner: d.inner[i]! };
    result = split(state, result, d, by);
  });
  const inner = new Set(d.inner);
  const last = Math.max(...d.outer.map((name) => loopPosition(result, d, name)));
  const outside = result.loops.slice(0, last + 1).filter((l) => !inner.has(l.name));
  const rest = result.loops.slice(last + 1).filter((l) => !inner.has(l.name));
  const moved = d.inner.map((name) => result.loops[loopPosition(result, d, name)]!);
  return { ...result, loops: [...outside, ...moved, ...rest] };
}

function reorder(s: ScheduledStatement, d: Of<"reorder">): ScheduledStatement {
  const loops = d.order.map((name) => s.loops[loopPosition(s, d, name)]!);
  if (new Set(d.order).size !== s.loops.length || d.order.length !== s.loops.length) {
    reject("SCH005", `the order must name each of the ${s.loops.length} loops once`, {
      at: printDirective(d),
      help: `its loops are ${s.loops.map((l) => l.name).join(" ")}`,
    });
  }
  return { ...s, loops };
}

function interchange(s: ScheduledStatement, d: Of<"interchange">): ScheduledStatement {
  const [first, second] = [loopPosition(s, d, d.loop), loopPosition(s, d, d.other)];
  const loops = s.loops.with(first, s.loops[second]!).with(second, s.loops[first]!);
  return { ...s, loops };
}

/** Unroll and jam: copies of an outer loop's iterations inside everything else. */
function jam(state: ScheduledRegion, s: ScheduledStatement, d: Of<"jam">): ScheduledStatement {
  const parts = split(state, s, d, d);
  const order = [...parts.loops.map((l) => l.name).filter((n) => n !== d.inner), d.inner];
  const loops = order.map((name) => parts.loops.find((l) => l.name === name)!);
  return setMode({ ...parts, loops }, { ...d, loop: d.inner }, "unroll");
}

/** The loop and all inside it run to their end for the first of two fused statements, then for the other. */
function fission(state: ScheduledRegion, d: Of<"fission">): ScheduledRegion {
  const position = loopPosition(lookup(state, d, d.statement), d, d.loop);
  const [fused] = state.fused;
  const [first] = state.region.statements;
  if (!fused || position >= fused.depth || first!.name !== d.statement) {
    reject("SCH010", `nothing runs behind ${d.statement} in loop ${d.loop}`, {
      at: printDirective(d),
      help: "name the first of two statements that share the loop",
    });
  }
  return { ...state, fused: position > 0 ? [{ ...fused, depth: position }] : [] };
}

/** Lanes; of results and of the depth together they are dot products. */
function vectorize(
  state: ScheduledRegion,
  s: ScheduledStatement,
  d: Of<"vectorize">,
): ScheduledStatement {
  const loop = s.loops[loopPosition(s, d, d.loop)]!;
  const other = s.loops.find((l) => l.mode === "vector");
  if (!other || other.kind === loop.kind) return setMode(s, d, "vector");
  const [lane, depth] = loop.kind === "reduce" ? [other, loop] : [loop, other];
  const terms = constantValue(depth.extent) ?? 0;
  const names = { lane: lane.origin, depth: depth.origin, terms };
  if (!dotAxes(state.region, s.statement, names)) {
    reject(
      "SCH038",
      `${s.statement.name} has no dot products along ${depth.name} in lanes of ${lane.name}`,
      {
        at: printDirective(d),
        help: `vectorize one of the two, or products by constants whose depth is split: of u8 by i8 by 4, of u8 or i16 by i8 or i16 by 2, of bf16 by bf16 by 2`,
      },
    );
  }
  const apart = s.loops.map((l) => (l === other ? { ...l, mode: "serial" as const } : l));
  const marked = setMode({ ...s, loops: apart }, d, "vector");
  return { ...s, loops: marked.loops.map((l) => (l.name === other.name ? other : l)) };
}

function setMode(
  s: ScheduledStatement,
  d: Of<"vectorize"> | Of<"unroll"> | Of<"parallelize"> | Of<"bind"> | Of<"jam">,
  mode: Exclude<ScheduledMode, "serial">,
): ScheduledStatement {
  const at = loopPosition(s, d, d.loop);
  const loop = s.loops[at]!;
  if (mode !== "grid" && mode !== "blocks" && constantValue(loop.extent) === undefined) {
    reject("SCH006", `loop ${d.loop} has the extent ${loop.extent.key}, not a constant`, {
      at: printDirective(d),
      help: `split ${d.loop} by a constant first and ${d.kind} the inner loop`,
    });
  }
  const single = mode === "vector" || mode === "threads" || mode === "groups";
  if (single && s.loops.some((l) => l.mode === mode)) {
    const what = mode === "vector" ? "a vector loop" : `a loop bound to ${mode}`;
    reject("SCH007", `statement ${s.statement.name} has ${what} already`, {
      at: printDirective(d),
    });
  }
  if (loop.mode !== "serial") {
    reject("SCH009", `loop ${d.loop} is ${loop.mode} already`, { at: printDirective(d) });
  }
  const { name, extent, kind, origin } = loop;
  return { ...s, loops: s.loops.with(at, { name, extent, kind, mode, origin }) };
}

function fuse(state: ScheduledRegion, d: Of<"fuse">): FusedStatement {
  lookup(state, d, d.statement);
  const into = lookup(state, d, d.into);
  if (d.statement === d.into || state.fused.some((f) => f.statement === d.statement)) {
    reject("SCH010", `${d.statement} cannot be fused into ${d.into} (again)`, {
      at: printDirective(d),
    });
  }
  return { statement: d.statement, into: d.into, depth: loopPosition(into, d, d.at) + 1 };
}

function place(state: ScheduledRegion, d: Of<"place"> | Of<"stage">): PlacedTensor {
  checkTensor(state, d, d.tensor);
  const elsewhere =
    state.placed.some((p) => p.tensor === d.tensor) ||
    state.staged.some(
      (p) => p.tensor === d.tensor && (d.kind === "place" || p.statement === d.statement),
    );
  if (elsewhere) {
    reject("SCH037", `${d.tensor} has a place of its own already`, {
      at: printDirective(d),
      help: "place or stage a tensor once",
    });
  }
  const statement = lookup(state, d, d.statement);
  const depth = loopPosition(statement, d, d.at) + 1;
  return { tensor: d.tensor, scope: d.scope, statement: d.statement, depth };
}

/** A product needs its loops and operands as they stand: the directive says all about them. */
function multiply(state: ScheduledRegion, d: Of<"multiply">): ScheduledProduct {
  const s = lookup(state, d, d.statement);
  const form = productForm(state.region, s.statement, d.swapped);
  const others = state.schedule.directives.length > 1;
  const why = typeof form === "string" ? form : others ? "it stands beside other directives" : "";
  if (typeof form === "string" || why !== "") {
    return reject("SCH034", `${d.statement} is no product for blocks: ${why}`, {
      at: printDirective(d),
      help: "bind loops to blocks, groups and threads instead",
    });
  }
  const fault = multiplyFault(d, form);
  if (fault === undefined) return { form, directive: d };
  return reject("SCH035", `no block computes this tile: ${fault.why}`, {
    at: printDirective(d),
    help: fault.cure,
  });
}

/** What a directive for a whole region needs to know of it, and how it refuses. */
interface WholeRegion<D, F> {
  readonly form: F | string;
  /** Why the numbers cannot be. */
  readonly fault: (directive: D, form: F) => string | undefined;
  readonly none: { readonly code: DiagnosticCode; readonly what: string; readonly help: string };
  readonly unfit: { readonly code: DiagnosticCode; readonly what: string; readonly help: string };
}

/** The directive says all about the loops of every statement: it stands alone, on the last one. */
function wholeRegion<D extends Directive & { readonly statement: string }, F extends object>(
  state: ScheduledRegion,
  d: D,
  { form, fault, none, unfit }: WholeRegion<D, F>,
): { readonly form: F; readonly directive: D } {
  lookup(state, d, d.statement);
  const at = printDirective(d);
  const refuse = ({ code, what, help }: typeof none, why: string): never =>
    reject(code, `${what}: ${why}`, { at, help });
  if (typeof form === "string") return refuse(none, form);
  if (state.schedule.directives.length > 1)
    return refuse(none, "it stands beside other directives");
  if (state.region.statements.at(-1)!.name !== d.statement)
    return refuse(none, "it is not the last statement");
  const why = fault(d, form);
  return why === undefined ? { form, directive: d } : refuse(unfit, why);
}

function rows(state: ScheduledRegion, d: Of<"rows">): ScheduledRows {
  return wholeRegion(state, d, {
    form: rowsForm(state.region),
    fault: rowsFault,
    none: {
      code: "SCH042",
      what: `the statements up to ${d.statement} are no rows for blocks`,
      help: "bind loops to blocks, groups and threads instead",
    },
    unfit: {
      code: "SCH043",
      what: "no block works so on rows",
      help: "change threads, lanes or rows, or keep rows in memory",
    },
  });
}

function attend(state: ScheduledRegion, d: Of<"attend">): ScheduledAttention {
  return wholeRegion(state, d, {
    form: attentionForm(state.region),
    fault: attendFault,
    none: {
      code: "SCH044",
      what: `the statements up to ${d.statement} are no attention`,
      help: "bind loops to blocks, groups and threads instead, or multiply by itself",
    },
    unfit: {
      code: "SCH045",
      what: "no block works so on attention",
      help: "change rows, columns, warps or stages",
    },
  });
}

function turn(state: ScheduledRegion, d: Of<"turn">): ScheduledTurn {
  return wholeRegion(state, d, {
    form: turnForm(state.region),
    fault: turnFault,
    none: {
      code: "SCH048",
      what: `${d.statement} turns nothing for blocks`,
      help: "bind loops to blocks, groups and threads instead",
    },
    unfit: {
      code: "SCH049",
      what: "no block turns such tiles",
      help: "change tile, threads or lanes",
    },
  });
}

function depthOf(d: Of<"stage">): number {
  if (Number.isSafeInteger(d.depth) && d.depth >= 1) return d.depth;
  return reject("SCH003", `depth ${d.depth} is not a positive integer`, { at: printDirective(d) });
}

function checkTensor(state: ScheduledRegion, d: Directive, tensor: string): void {
  if (state.region.tensors.has(tensor)) return;
  reject("SCH011", `region ${state.region.name} does not touch a tensor ${tensor}`, {
    at: printDirective(d),
    help: `its tensors are ${[...state.region.tensors.keys()].join(", ")}`,
  });
}

/** Only weights are packed ahead of time, and only by a map that loses nothing. */
function checkLayout(state: ScheduledRegion, d: Of<"layout">): void {
  checkTensor(state, d, d.tensor);
  const { role, shape } = state.region.tensors.get(d.tensor)!;
  const fault = role === "weight" ? layoutFault(d.layout, shape) : `it is ${role}, not a weight`;
  if (fault === undefined) return;
  reject("SCH019", `no layout of ${d.tensor}: ${fault}`, {
    at: printDirective(d),
    help: "give the stored position of each element and its inverse, or remove the directive",
  });
}

/** Fused statements must share their outer loops with the host, trip for trip. */
function checkFused(state: ScheduledRegion): void {
  for (const { statement, into, depth } of state.fused) {
    const guest = state.statements.find((s) => s.statement.name === statement)!;
    const host = state.statements.find((s) => s.statement.name === into)!;
    for (let i = 0; i < depth; i++) {
      const a = guest.loops[i];
      const b = host.loops[i]!;
      if (a && a.extent.key === b.extent.key && a.mode === b.mode && a.kind !== "reduce") continue;
      reject(
        "SCH012",
        `loop ${i + 1} of ${statement} (${a ? describe(a) : "none"}) does not match that of ${into} (${describe(b)})`,
        { at: `fuse ${statement} into ${into}`, help: "split and reorder both statements alike" },
      );
    }
  }
}

function describe(loop: ScheduledLoop): string {
  return `${loop.name} in ${loop.extent.key}, ${loop.mode}, ${loop.kind}`;
}

/** Whether the extent of a loop is proved to be a multiple of `factor`. */
export function dividesExactly(extent: IndexExpr, factor: number): boolean {
  return constantValue(mod(extent, factor)) === 0;
}

/** Ragged conditions that the loops' ranges do not already imply. */
export function openConditions(region: Region, s: ScheduledStatement): readonly Condition[] {
  const ranges = new Map(symbolRanges(region));
  for (const loop of s.loops) ranges.set(loop.name, loopRange(loop.extent, ranges));
  return s.ragged.filter((c) => !provesLess(constant(-1), c.expr, ranges));
}
