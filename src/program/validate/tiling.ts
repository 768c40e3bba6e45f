/**
 * Whether the stores of a kernel tile a buffer: every element is written, by one store of one thread once.
 * Decided exactly for what tiled kernels do, and answered "not shown" for anything else. The element's
 * number in the buffer is a sum of multiples of the grid's axes, of loops and of constants that differ from
 * store to store; it counts each element once just when these are the digits of a number in mixed radix: the
 * smallest step is 1, and each further step is what all smaller digits together can count. A guard e < bound
 * cuts such a number: the digits in e are one digit with `bound` values, provided that they count that far.
 * Stores that differ in more than constants tile apart, and their numbers lie behind each other in every row.
 * Steps and counts may be products of the program's parameters, as of open extents: the digits are then the same
 * ones whatever the parameters are, and that a digit counts as far as its bound is asked of the facts.
 * A condition e == 0 on numbers that only count up is where they all stand at 0, as of the one thread that copies.
 */
import type { Condition } from "../../semantics/condition.ts";
import {
  add,
  atomOperands,
  constant,
  constantValue,
  floorDiv,
  fromTerms,
  type IndexAtom,
  type IndexExpr,
  type IndexTerm,
  mul,
  splitLinear,
  sub,
  substitute,
  variable,
  variablesOf,
} from "../../semantics/index-expr.ts";
import type { Buffer } from "../program.ts";
import type { Statement } from "../statement.ts";
import { childBodies } from "../walk.ts";
import type { Facts } from "./facts.ts";
import { type LaunchView, someStatement } from "./launch-view.ts";

type Store = Extract<Statement, { kind: "store" }>;

interface Place {
  readonly store: Store;
  readonly conditions: readonly Condition[];
  readonly loops: ReadonlyMap<string, number>;
}

/** Steps of a number by name, what no variable moves apart: both over parameters alone. */
interface Linear {
  readonly steps: Map<string, IndexExpr>;
  readonly rest: IndexExpr;
}

/** Over parameters alone. */
interface Digit {
  readonly step: IndexExpr;
  readonly count: IndexExpr;
}

const one = constant(1);

/** Whether the stores to the buffer, all inside it, write each of its elements exactly once. */
export function tilesExactly(view: LaunchView, buffer: Buffer): boolean {
  const { facts } = view;
  const axes = new Map(view.kernel.grid.axes.map(({ name, extent }) => [name, extent] as const));
  const isOfParameters = (e: IndexExpr): boolean =>
    [...variablesOf(e)].every((name) => facts.isParameter(name));
  if (![...buffer.shape, ...axes.values()].every(isOfParameters)) return false;
  const found = storesTo(view, buffer.name);
  if (!found || found.length === 0) return false;
  const places = found.map((place) => countingUp(place, buffer, axes));
  const total = mul(...buffer.shape);
  const groups = groupsOf(places).map((group) => {
    const pieces = group.map((p) => pieceOf(p, buffer, facts));
    const loops = [...group[0]!.loops].map(([name, n]) => [name, constant(n)] as const);
    const counts = new Map([...axes, ...loops]);
    return pieces.includes(undefined) ? undefined : tilingOf(pieces as Piece[], counts, facts);
  });
  if (groups.includes(undefined)) return false;
  return tileTogether(groups as readonly Tiling[], total);
}

/** The place with axes along which it moves backwards counted from their other end, which is the same blocks. */
function countingUp(place: Place, buffer: Buffer, axes: ReadonlyMap<string, IndexExpr>): Place {
  const address = addressOf(place.store.index, buffer);
  const reversed = [...axes].flatMap(([name, count]) => {
    const isBack = (splitLinear(address, name)?.coefficient ?? 0) < 0;
    return isBack ? [[name, sub(sub(count, 1), variable(name))] as const] : [];
  });
  if (reversed.length === 0) return place;
  const other = new Map(reversed);
  const { store, conditions } = place;
  return {
    ...place,
    store: { ...store, index: store.index.map((e) => substitute(e, other)) },
    conditions: conditions.map((c) => ({ ...c, expr: substitute(c.expr, other) })),
  };
}

/** Stores that differ in constants alone: in the same loops, under as many conditions, of as many lanes. */
function groupsOf(places: readonly Place[]): readonly (readonly Place[])[] {
  const groups = new Map<string, Place[]>();
  for (const place of places) {
    const { store, conditions, loops } = place;
    const kinds = conditions.map((c) => c.kind).sort();
    const key = `${[...loops].join()} ${kinds.join()} ${store.value.lanes}`;
    const group = groups.get(key);
    if (group) group.push(place);
    else groups.set(key, [place]);
  }
  return [...groups.values()];
}

/** Stores that count different numbers each once: those of digits, behind each of some constants. */
interface Tiling {
  readonly digits: readonly Digit[];
  readonly constants: readonly number[];
}

/**
 * Whether each of 0 ... total - 1 is counted once. Several tilings may lie behind each other in every row: what they
 * count below the largest digits, which all of them have, is one digit then.
 */
function tileTogether(tilings: readonly Tiling[], total: IndexExpr): boolean {
  const [first, ...others] = tilings as readonly [Tiling, ...Tiling[]];
  if (others.length === 0) return countsTo(first.digits, first.constants)?.key === total.key;
  const shared = first.digits
    .filter((d) => d.count.key !== one.key && others.every((o) => o.digits.some(isSame(d))))
    .sort((a, b) => sizeOf(b) - sizeOf(a));
  for (let rows = 0; rows <= shared.length; rows++) {
    const large = shared.slice(0, rows);
    const length = lengthOf(tilings, large);
    if (length === undefined) continue;
    const whole = countsTo([{ step: one, count: constant(length) }, ...large], [0]);
    if (whole?.key === total.key) return true;
  }
  return false;
}

/** In which order digits are taken for large ones: those of open steps are. */
function sizeOf({ step }: Digit): number {
  return constantValue(step) ?? Infinity;
}

const isSame = (a: Digit) => (b: Digit) => a.step.key === b.step.key && a.count.key === b.count.key;

/** How many numbers from 0 on the tilings count without the large digits, each once; undefined: others. */
function lengthOf(tilings: readonly Tiling[], large: readonly Digit[]): number | undefined {
  const stretches = tilings.map(({ digits, constants }) => {
    const start = Math.min(...constants);
    const small = [...digits];
    for (const digit of large) small.splice(small.findIndex(isSame(digit)), 1);
    const own = constants.map((c) => c - start);
    return { start, length: constantValue(countsTo(small, own) ?? variable("none")) };
  });
  let end = 0;
  for (const { start, length } of stretches.sort((a, b) => a.start - b.start)) {
    if (start !== end || length === undefined) return undefined;
    end += length;
  }
  return end;
}

/** One store as numbers: the element, what bounds it, and the lanes from there on. */
interface Piece {
  readonly at: Linear;
  /** Numbers that are at most 0. */
  readonly guards: readonly Linear[];
  readonly lanes: number;
  /** Variables that are 0 where the store runs. */
  readonly held: ReadonlySet<string>;
}

/** What the pieces count, each number once; undefined where that is not seen. */
function tilingOf(
  pieces: readonly Piece[],
  counts: ReadonlyMap<string, IndexExpr>,
  facts: Facts,
): Tiling | undefined {
  const [first] = pieces as readonly [Piece];
  const held = new Set(pieces.flatMap((p) => [...p.held]));
  if (pieces.some((p) => p.held.size < held.size)) return undefined;
  // Who runs a store without being named in its place runs it beside others.
  const isNamed = (name: string): boolean => held.has(name) || first.at.steps.has(name);
  if ([...counts].some(([name, count]) => count.key !== one.key && !isNamed(name)))
    return undefined;
  if (!pieces.every((p) => isLike(p, first))) return undefined;
  // How often a task is repeated, whose trips are launches of their own, is not counted here.
  const moving = [first.at, ...first.guards].flatMap(({ steps }) => [...steps.keys()]);
  if (!moving.every((name) => counts.has(name))) return undefined;
  const free = new Map(first.at.steps);
  const digits: Digit[] = first.lanes > 1 ? [{ step: one, count: constant(first.lanes) }] : [];
  const rest = pieces.map((p) => p.at.rest);
  const chosen = pieces.map(() => "");
  for (const [g, value] of first.guards.entries()) {
    const scale = scaleOf(value, free);
    if (scale === undefined) return undefined;
    const own: Digit[] = [];
    for (const [name, step] of value.steps) {
      free.delete(name);
      own.push({ step, count: counts.get(name)! });
    }
    // Lanes lie along the number that moves by one element.
    const lanes = scale.key === one.key ? first.lanes : 1;
    if (lanes > 1) own.push({ step: one, count: constant(lanes) });
    const guards = pieces.map((p) => p.guards[g]!.rest);
    const apart = guards.map((e) => constantValue(sub(e, guards[0]!)));
    if (apart.includes(undefined)) return undefined;
    const least = Math.min(...(apart as number[]));
    const starts = (apart as number[]).map((n) => n - least);
    const end = sub(lanes, add(guards[0]!, least));
    const reach = countsTo(own, starts);
    if (!reach || !facts.atLeast(end, 1) || !facts.atLeast(reach, end)) return undefined;
    if (![end.constant, ...end.terms.map((t) => t.coefficient)].every((n) => n % lanes === 0))
      return undefined;
    if (lanes > 1) digits.shift();
    digits.push({ step: scale, count: end });
    pieces.forEach((_, i) => {
      rest[i] = sub(rest[i]!, mul(scale, starts[i]!));
      chosen[i] = `${chosen[i]} ${starts[i]}`;
    });
  }
  for (const [name, step] of free) digits.push({ step, count: counts.get(name)! });
  const constants = rest.map((e) => constantValue(e));
  if (constants.includes(undefined)) return undefined;
  const known = constants as readonly number[];
  return isProductSet(pieces, chosen, known) ? { digits, constants: known } : undefined;
}

/** Every combination of the constants of guards and of the rest occurs, and once. */
function isProductSet(
  pieces: readonly Piece[],
  chosen: readonly string[],
  rest: readonly number[],
): boolean {
  const all = new Set(pieces.map((_, i) => `${chosen[i]}:${rest[i]}`));
  if (all.size !== pieces.length) return false;
  const guards = pieces[0]!.guards.map((_, g) => new Set(pieces.map((p) => p.guards[g]!.rest.key)));
  return guards.reduce((n, set) => n * set.size, new Set(rest).size) === all.size;
}

/**
 * How far digits and constants count together: n if they give each of 0 ... n - 1 exactly once, whatever the
 * parameters are; undefined if they give any other set.
 */
function countsTo(digits: readonly Digit[], constants: readonly number[]): IndexExpr | undefined {
  const open = digits.filter((d) => d.count.key !== one.key);
  let values = [...new Set(constants)].sort((a, b) => a - b);
  let all = one;
  if (values[0] !== 0) return undefined;
  for (;;) {
    const next = open.findIndex((d) => d.step.key === all.key);
    if (next >= 0) {
      all = mul(all, open[next]!.count);
      open.splice(next, 1);
      continue;
    }
    if (values.length === 1) return open.length === 0 ? all : undefined;
    // Constants stand between digits whose counts are known.
    const reach = constantValue(all);
    if (reach === undefined) return undefined;
    let run = 1;
    const present = new Set(values);
    while (present.has(run * reach)) run++;
    if (run === 1) return undefined;
    const above = values.filter((v) => v % (run * reach) === 0);
    const isWhole =
      above.length * run === values.length &&
      above.every((v) =>
        Array.from({ length: run }, (_, i) => v + i * reach).every((x) => present.has(x)),
      );
    if (!isWhole) return undefined;
    all = constant(reach * run);
    values = above;
  }
}

/** The same steps and guards, other constants. */
function isLike(a: Piece, b: Piece): boolean {
  return (
    a.lanes === b.lanes &&
    sameSteps(a.at, b.at) &&
    a.guards.length === b.guards.length &&
    a.guards.every((g, i) => sameSteps(g, b.guards[i]!))
  );
}

function sameSteps(a: Linear, b: Linear): boolean {
  return (
    a.steps.size === b.steps.size &&
    [...a.steps].every(([name, n]) => b.steps.get(name)?.key === n.key)
  );
}

/** The factor by which a number is part of the element's; undefined if it is not as a whole. */
function scaleOf(value: Linear, free: ReadonlyMap<string, IndexExpr>): IndexExpr | undefined {
  let scale: IndexExpr | undefined;
  for (const [name, step] of value.steps) {
    const own = free.get(name);
    const factor = own && quotientOf(own, step);
    if (factor === undefined || (scale && scale.key !== factor.key)) return undefined;
    scale = factor;
  }
  return scale;
}

/** Steps over parameters by a constant step that divides all of their coefficients. */
function quotientOf(own: IndexExpr, step: IndexExpr): IndexExpr | undefined {
  const by = constantValue(step);
  if (by === undefined || by === 0) return own.key === step.key ? one : undefined;
  const parts = [own.constant, ...own.terms.map((t) => t.coefficient)];
  return parts.every((n) => n % by === 0) ? floorDiv(own, by) : undefined;
}

/** The stores with what stands around them; undefined for other forms of control. */
function storesTo(view: LaunchView, name: string): readonly Place[] | undefined {
  const [role] = view.kernel.roles;
  const found: Place[] = [];
  const visit = (body: readonly Statement[], around: Omit<Place, "store">): boolean =>
    body.every((s) => {
      if (s.kind === "store" && s.buffer === name) found.push({ ...around, store: s });
      const inside = childBodies(s).some((b) => storesIn(b, name));
      if (!inside) return true;
      if (s.kind === "if" && !storesIn(s.else, name)) {
        return visit(s.then, { ...around, conditions: [...around.conditions, ...s.conditions] });
      }
      const count = s.kind === "for" ? constantValue(s.extent) : undefined;
      if (s.kind !== "for" || count === undefined || around.loops.has(s.variable)) return false;
      return visit(s.body, { ...around, loops: new Map(around.loops).set(s.variable, count) });
    });
  const start = { conditions: [], loops: new Map<string, number>() };
  if (view.kernel.roles.length !== 1 || !visit(role!.body, start)) return undefined;
  return found.map(renameLoops);
}

/** Loops by their depth: copies of one text have names of their own. */
function renameLoops({ store, conditions, loops }: Place): Place {
  const names = [...loops.keys()].map((name, depth) => [name, variable(`loop ${depth}`)] as const);
  const to = new Map(names);
  const own = (e: IndexExpr): IndexExpr => substitute(e, to);
  return {
    store: { ...store, index: store.index.map(own) },
    conditions: conditions.map((c) => ({ ...c, expr: own(c.expr) })),
    loops: new Map([...loops.values()].map((count, depth) => [`loop ${depth}`, count])),
  };
}

function storesIn(body: readonly Statement[], name: string): boolean {
  return someStatement(body, (s) => s.kind === "store" && s.buffer === name);
}

function pieceOf({ store, conditions }: Place, buffer: Buffer, facts: Facts): Piece | undefined {
  const held = heldBy(conditions, facts);
  const at = linearOf(joinDivisions(addressOf(store.index, buffer)), facts);
  if (!at) return undefined;
  for (const name of held) at.steps.delete(name);
  const guards: Linear[] = [];
  for (const { kind, expr } of conditions) {
    if (kind === "zero" || countsUp(expr, facts)) continue;
    const value = linearOf(sub(constant(0), expr), facts);
    if (!value || [...value.steps.values()].some((n) => !facts.atLeast(n, 1))) return undefined;
    if ([...held].some((name) => value.steps.has(name))) return undefined;
    guards.push(value);
  }
  const zeros = conditions.filter((c) => c.kind === "zero");
  const holdsAll = ({ expr }: Condition): boolean =>
    countsUp(expr, facts) && linearOf(expr, facts)!.rest.key === "0";
  if (!zeros.every(holdsAll)) return undefined;
  return { at, guards, lanes: store.value.lanes, held };
}

/** Variables of sums that only count up and are said to be 0. */
function heldBy(conditions: readonly Condition[], facts: Facts): ReadonlySet<string> {
  const zeros = conditions.filter(({ kind }) => kind === "zero");
  return new Set(zeros.flatMap(({ expr }) => [...(linearOf(expr, facts)?.steps.keys() ?? [])]));
}

/** Whether a sum of counts is never negative: loops, threads and axes count from 0. */
function countsUp(e: IndexExpr, facts: Facts): boolean {
  const linear = linearOf(e, facts);
  if (!linear || !facts.atLeast(linear.rest, 0)) return false;
  return [...linear.steps.values()].every((n) => facts.atLeast(n, 1));
}

function addressOf(index: readonly IndexExpr[], buffer: Buffer): IndexExpr {
  return index.reduce<IndexExpr>(
    (sum, e, axis) => add(mul(sum, buffer.shape[axis]!), e),
    constant(0),
  );
}

/**
 * n * floorDiv(e, n) + mod(e, n) is e, also where a common factor was taken out of the quotient, and with it
 * the rest of the constant that is less than the factor.
 */
function joinDivisions(e: IndexExpr): IndexExpr {
  for (const low of e.terms) {
    const [atom] = low.atoms;
    if (low.atoms.length !== 1 || atom!.kind !== "mod") continue;
    const [inner, by] = atomOperands(atom!);
    const n = constantValue(by!);
    const high = e.terms.find((t) => n !== undefined && isQuotient(t, inner!, n, low.coefficient));
    if (!high) continue;
    const kept = e.terms.filter((t) => t !== low && t !== high);
    return joinDivisions(add({ ...e, terms: kept }, mul(low.coefficient, inner!)));
  }
  return e;
}

function isQuotient(term: IndexTerm, inner: IndexExpr, by: number, step: number): boolean {
  const [atom] = term.atoms;
  if (term.atoms.length !== 1 || atom!.kind !== "floorDiv" || term.coefficient !== by * step) {
    return false;
  }
  const [numerator, denominator] = atomOperands(atom!);
  const factor = by / (constantValue(denominator!) ?? Number.NaN);
  if (!Number.isInteger(factor)) return false;
  const rest = constantValue(sub(inner, mul(factor, numerator!)));
  return rest !== undefined && rest >= 0 && rest < factor;
}

function linearOf(e: IndexExpr, facts: Facts): Linear | undefined {
  const steps = new Map<string, IndexExpr>();
  let rest = constant(e.constant);
  const isGiven = (atom: IndexAtom): boolean =>
    [...variablesOf(fromTerms(0, [termOf(atom)]))].every((name) => facts.isParameter(name));
  for (const term of e.terms) {
    const [moving, ...others] = term.atoms.filter((a) => !isGiven(a));
    const factor = mul(
      term.coefficient,
      ...term.atoms.filter(isGiven).map((a) => fromTerms(0, [termOf(a)])),
    );
    if (!moving) {
      rest = add(rest, factor);
      continue;
    }
    if (others.length > 0 || moving.kind !== "variable") return undefined;
    steps.set(moving.name, add(steps.get(moving.name) ?? 0, factor));
  }
  return { steps, rest };
}

function termOf(atom: IndexAtom): IndexTerm {
  return { coefficient: 1, atoms: [atom], key: atom.key };
}
