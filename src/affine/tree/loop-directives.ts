/**
 * Directives on loops: split, tile, reorder, skew, shift, diamond tiles, unroll-and-jam, marks. Each
 * is a change of the tree alone, checked here for form; whether the instances may run in the new
 * order is legality.ts. Statements that share a band change together.
 */
import { reject } from "../../support/diagnostic.ts";
import { type Affine, add, floorDivide, minus, scale } from "../expression.ts";
import { type ChainLoop, changeChain, type LoopName, rechain, runs } from "./chain.ts";
import type { BandMember, LoopMark, ScheduleTree } from "./tree.ts";

export interface SplitRequest extends LoopName {
  readonly factor: number;
  readonly outer: string;
  readonly inner: string;
}

/** loop = outer * factor + inner. */
export function splitLoop(tree: ScheduleTree, request: SplitRequest): ScheduleTree {
  return changeChain(tree, request, (chain, at) => ({
    ...chain,
    loops: splitAt(chain.loops, at, request),
  }));
}

function splitAt(
  loops: readonly ChainLoop[],
  at: number,
  { loop, factor, outer, inner }: Omit<SplitRequest, "statement">,
): readonly ChainLoop[] {
  checkFactor(loop, factor);
  const old = loops[at]!;
  checkSerial(old);
  const isTaken = (name: string): boolean => loops.some((l) => l !== old && l.member.loop === name);
  const taken = [outer, inner].find(isTaken) ?? (outer === inner && outer);
  if (taken) reject("SCH004", `the loop name ${taken} is taken`, { at: loop });
  const quotients = new Map<string, Affine>();
  const remainders = new Map<string, Affine>();
  for (const [statement, value] of old.member.values) {
    const quotient = floorDivide(value, factor);
    quotients.set(statement, quotient);
    remainders.set(statement, minus(value, scale(factor, quotient)));
  }
  return loops.toSpliced(at, 1, newLoop(outer, quotients), newLoop(inner, remainders));
}

function newLoop(loop: string, values: BandMember["values"]): ChainLoop {
  return { member: { loop, values, coincident: false }, marks: [] };
}

export function checkFactor(loop: string, factor: number, what = "factor"): void {
  if (Number.isSafeInteger(factor) && factor >= 1) return;
  reject("SCH003", `${what} ${factor} is not a positive integer`, {
    at: loop,
    help: `a ${what} is a whole number from 1 to 2^53 - 1`,
  });
}

function checkSerial({ member, marks }: ChainLoop): void {
  const mark = marks[0];
  if (mark) reject("SCH009", `loop ${member.loop} is ${mark.kind} already`, { at: member.loop });
}

export interface TileRequest {
  readonly statement: string;
  readonly loops: readonly string[];
  readonly factors: readonly number[];
  readonly outer: readonly string[];
  readonly inner: readonly string[];
}

/** Splits each loop and moves the inner ones behind the last outer one. */
export function tileLoops(tree: ScheduleTree, request: TileRequest): ScheduleTree {
  const { statement, loops: names, factors, outer, inner } = request;
  const sizes = new Set([names.length, factors.length, outer.length, inner.length]);
  if (sizes.size !== 1 || names.length === 0) {
    reject("SCH003", "tile needs as many factors, outer and inner names as loops", {
      at: statement,
    });
  }
  return changeChain(tree, { statement, loop: names[0]! }, (chain) => {
    let { loops } = chain;
    names.forEach((loop, i) => {
      const by = { loop, factor: factors[i]!, outer: outer[i]!, inner: inner[i]! };
      loops = splitAt(loops, placeOf(loops, { statement, loop }), by);
    });
    const isInner = (l: ChainLoop): boolean => inner.includes(l.member.loop);
    const last = loops.findLastIndex((l) => outer.includes(l.member.loop));
    const outside = loops.slice(0, last + 1).filter((l) => !isInner(l));
    const rest = loops.slice(last + 1).filter((l) => !isInner(l));
    const moved = inner.map((name) => loops.find((l) => l.member.loop === name)!);
    return { ...chain, loops: [...outside, ...moved, ...rest] };
  });
}

/** The place of a loop in a chain that must hold it. */
function placeOf(loops: readonly ChainLoop[], { statement, loop }: LoopName): number {
  const at = loops.findIndex((l) => l.member.loop === loop && runs(l, statement));
  if (at >= 0) return at;
  return reject("SCH002", `${statement}:${loop} is not directly nested with the others`, {
    at: `${statement}:${loop}`,
    help: `loops there are ${loops.map((l) => l.member.loop).join(" ")}`,
  });
}

/** The order of all directly nested loops around the first one named, outermost first. */
export function reorderLoops(
  tree: ScheduleTree,
  { statement, order }: { readonly statement: string; readonly order: readonly string[] },
): ScheduleTree {
  return changeChain(tree, { statement, loop: order[0] ?? "" }, (chain) => {
    const loops = order.map((loop) => chain.loops[placeOf(chain.loops, { statement, loop })]!);
    if (new Set(loops).size !== chain.loops.length || loops.length !== chain.loops.length) {
      reject("SCH005", `the order must name each of the ${chain.loops.length} loops once`, {
        at: statement,
        help: `its loops are ${chain.loops.map((l) => l.member.loop).join(" ")}`,
      });
    }
    return { ...chain, loops };
  });
}

/** Exchanges two directly nested loops. */
export function interchangeLoops(
  tree: ScheduleTree,
  { statement, loop, other }: LoopName & { readonly other: string },
): ScheduleTree {
  return changeChain(tree, { statement, loop }, (chain, at) => {
    const to = placeOf(chain.loops, { statement, loop: other });
    const loops = chain.loops.with(at, chain.loops[to]!).with(to, chain.loops[at]!);
    return { ...chain, loops };
  });
}

/** loop + factor * by takes the place of loop, in every statement of its band. */
export function skewLoop(
  tree: ScheduleTree,
  request: LoopName & { readonly by: string; readonly factor: number },
): ScheduleTree {
  const { statement, by, factor } = request;
  if (!Number.isSafeInteger(factor)) {
    reject("SCH003", `factor ${factor} is not an integer`, {
      at: request.loop,
      help: "a skew is by a whole number within ±(2^53 - 1)",
    });
  }
  return changeChain(tree, request, (chain, at) => {
    const other = chain.loops[placeOf(chain.loops, { statement, loop: by })]!.member;
    const old = chain.loops[at]!;
    if (other === old.member) reject("SCH002", `${by} cannot be skewed by itself`, { at: by });
    const values = new Map(
      [...old.member.values].map(([s, v]) => [s, add(v, scale(factor, other.values.get(s)!))]),
    );
    const member = { ...old.member, values };
    return { ...chain, loops: chain.loops.with(at, { ...old, member }) };
  });
}

/** One statement runs `by` iterations of the loop later. */
export function shiftLoop(
  tree: ScheduleTree,
  request: LoopName & { readonly by: number },
): ScheduleTree {
  const { statement, by } = request;
  if (!Number.isSafeInteger(by)) {
    reject("SCH003", `a shift by ${by} is not an integer`, {
      at: request.loop,
      help: "a shift is by a whole number within ±(2^53 - 1)",
    });
  }
  return changeChain(tree, request, (chain, at) => {
    const old = chain.loops[at]!;
    const values = new Map(old.member.values);
    values.set(statement, add(values.get(statement)!, by));
    const member = { ...old.member, values };
    return { ...chain, loops: chain.loops.with(at, { ...old, member }) };
  });
}

export interface DiamondRequest extends LoopName {
  /** The space loop directly inside or outside `loop`, the time loop. */
  readonly by: string;
  readonly factor: number;
  /** How far values travel in space in one step of time. */
  readonly slope: number;
  readonly wave: string;
  readonly tile: string;
}

/**
 * Diamond tiles over a time and a space loop: tiles bounded by slope*t + x and slope*t - x; `wave` numbers
 * the rows of diamonds, `tile` those of a row, which may run in parallel (U. Bondhugula et al., "Diamond
 * tiling", 2017).
 */
export function diamondTile(tree: ScheduleTree, request: DiamondRequest): ScheduleTree {
  const { statement, by, factor, slope, wave, tile } = request;
  checkFactor(request.loop, factor);
  checkFactor(request.loop, slope, "slope");
  return changeChain(tree, request, (chain, at) => {
    const to = placeOf(chain.loops, { statement, loop: by });
    const [time, space] = [chain.loops[at]!, chain.loops[to]!];
    [time, space].forEach(checkSerial);
    const taken = [wave, tile].find((n) => chain.loops.some((l) => l.member.loop === n));
    if (taken ?? wave === tile) reject("SCH004", `the loop name ${taken ?? wave} is taken`);
    const sides = (s: string): readonly [Affine, Affine] => {
      const t = scale(slope, time.member.values.get(s)!);
      const x = space.member.values.get(s)!;
      return [floorDivide(add(t, x), factor), floorDivide(minus(t, x), factor)];
    };
    const names = [...time.member.values.keys()];
    const made = (loop: string, value: (s: string) => Affine): ChainLoop => ({
      member: { loop, values: new Map(names.map((s) => [s, value(s)])), coincident: false },
      marks: [],
    });
    const tiles = [made(wave, (s) => add(...sides(s))), made(tile, (s) => sides(s)[0])];
    return { ...chain, loops: chain.loops.toSpliced(Math.min(at, to), 0, ...tiles) };
  });
}

/** Marks one loop. */
export function markLoop(
  tree: ScheduleTree,
  request: LoopName & { readonly mark: LoopMark },
): ScheduleTree {
  return changeChain(tree, request, (chain, at) => {
    const old = chain.loops[at]!;
    checkSerial(old);
    const marked = { ...old, marks: [{ kind: request.mark }] };
    return { ...chain, loops: chain.loops.with(at, marked) };
  });
}

/** Unroll and jam: `factor` iterations of an outer loop run together inside everything below it. */
export function jamLoop(tree: ScheduleTree, request: SplitRequest): ScheduleTree {
  return changeChain(tree, request, (chain, at) => {
    const loops = splitAt(chain.loops, at, request);
    const inner: ChainLoop = { ...loops[at + 1]!, marks: [{ kind: "unroll" }] };
    const outside = loops.slice(0, at + 1);
    const below = rechain({ loops: loops.slice(at + 2), rest: chain.rest });
    return { loops: outside, rest: sink(below, inner) };
  });
}

/** Puts a loop inside everything: around each leaf. */
function sink(tree: ScheduleTree, loop: ChainLoop): ScheduleTree {
  if (tree.kind === "leaf") return rechain({ loops: [loop], rest: tree });
  if (!("children" in tree)) return { ...tree, child: sink(tree.child, loop) };
  const children = tree.children.map((c) => {
    const values = new Map([...loop.member.values].filter(([s]) => c.statements.includes(s)));
    return { ...c, child: sink(c.child, { ...loop, member: { ...loop.member, values } }) };
  });
  return { ...tree, children };
}
