/**
 * One state of a statement's superposition as knobs: which loop runs in lanes and in how many vectors,
 * which loops are copied out beside it, how the reduction is stepped, how the outer loops are ordered and
 * cut for a cache, what is packed, which loop is dealt out to threads. In: knobs. Out: the directives
 * that say the same in the schedule language, and the loops as figures, for prices without applying.
 */
import type { Region, Statement } from "../../region/nest.ts";
import type { Directive } from "../directive.ts";
import { blockedLayout } from "./blocked-layout.ts";
import { dotLayout } from "./dot-form.ts";
import type { LoopFigures, NestFigures, PackedAxis } from "./nest-figures.ts";

export interface UnrolledRows {
  readonly loop: number;
  readonly count: number;
}

/** The part of a choice that decides the code of a tile; loops are numbers of the statement's loops. */
export interface MicroTile {
  /** A space loop in lanes. */
  readonly lane?: { readonly loop: number; readonly vectors: number };
  /** The innermost reduce loop in lanes. */
  readonly reduceLane?: number;
  /** A reduce loop whose neighbours are summed by dot products, beside a space loop in lanes. */
  readonly dot?: { readonly loop: number; readonly terms: number };
  readonly rows: readonly UnrolledRows[];
  /** Reduce loops that are copied out whole. */
  readonly copied: readonly number[];
  /** The innermost reduce loop that is left, in steps of so many copies; 1: as it is. */
  readonly step: number;
  /** Order of the reduce loops. */
  readonly reduce: readonly number[];
  readonly packed: readonly PackedAxis[];
}

/** Whether two tiles, of regions with loops of the same kinds, run the same loops in the same way. */
export function isSameTile(a: MicroTile, b: MicroTile): boolean {
  return (
    a.lane?.loop === b.lane?.loop &&
    a.lane?.vectors === b.lane?.vectors &&
    a.reduceLane === b.reduceLane &&
    a.dot?.loop === b.dot?.loop &&
    a.step === b.step &&
    a.copied.join() === b.copied.join() &&
    a.packed.length === b.packed.length &&
    a.rows.length === b.rows.length &&
    a.rows.every(({ loop, count }, i) => loop === b.rows[i]!.loop && count === b.rows[i]!.count)
  );
}

/** What surrounds a tile. */
export interface OuterChoice {
  /** Order of the space loops (their outer parts). */
  readonly outer: readonly number[];
  /** The outer part of a loop in blocks of so many trips, block by block outermost. */
  readonly block?: { readonly loop: number; readonly size: number };
  /** Loop that is dealt out to threads; it stands outermost. */
  readonly parallel?: number;
}

export interface TileChoice extends MicroTile, OuterChoice {}

/** The schedule in the schedule language. */
export class ChoiceSpeller {
  readonly #region: Region;
  readonly #statement: Statement;
  readonly #figures: NestFigures;
  readonly #lanes: number;

  constructor(region: Region, statement: Statement, figures: NestFigures, lanes: number) {
    this.#region = region;
    this.#statement = statement;
    this.#figures = figures;
    this.#lanes = lanes;
  }

  directives(choice: TileChoice): readonly Directive[] {
    const statement = this.#statement.name;
    const made: Directive[] = [];
    for (const { loop, count } of choice.rows) {
      const name = this.#name(loop);
      const [outer, inner] = [`${name}_o`, `${name}_r`];
      made.push({ kind: "split", statement, loop: name, factor: count, outer, inner });
      made.push({ kind: "unroll", statement, loop: inner });
    }
    if (choice.lane) made.push(...this.#laneDirectives(choice.lane));
    if (choice.reduceLane !== undefined) {
      const name = this.#name(choice.reduceLane);
      made.push(...this.#reduceLaneDirectives(name, choice.step));
    }
    if (choice.dot !== undefined) {
      const { terms: factor } = choice.dot;
      const loop = this.#name(choice.dot.loop);
      const [outer, inner] = [`${loop}_d`, `${loop}_q`];
      made.push({ kind: "split", statement, loop, factor, outer, inner });
      made.push({ kind: "vectorize", statement, loop: inner });
    }
    for (const loop of choice.copied)
      made.push({ kind: "unroll", statement, loop: this.#reduceName(choice, loop) });
    const stepped = steppedLoop(choice);
    if (stepped !== undefined) {
      const name = this.#reduceName(choice, stepped);
      const [outer, inner] = [`${name}_o`, `${name}_u`];
      made.push({ kind: "split", statement, loop: name, factor: choice.step, outer, inner });
      made.push({ kind: "unroll", statement, loop: inner });
    }
    if (choice.block) {
      const { loop, size } = choice.block;
      const name = this.#outerName(choice, loop);
      const outer = `${this.#name(loop)}_b`;
      made.push({ kind: "split", statement, loop: name, factor: size, outer, inner: `${outer}i` });
    }
    for (const p of choice.packed) {
      const { shape } = this.#region.tensors.get(p.tensor)!;
      const layout =
        p.depth === undefined
          ? blockedLayout(shape, p.axis, p.width)
          : dotLayout(shape, { lane: p.axis, depth: p.depth.axis, terms: p.depth.terms }, p.width);
      made.push({ kind: "layout", tensor: p.tensor, layout });
    }
    const order = this.#order(choice);
    const same = order.join() === this.#statement.loops.map((l) => l.name).join();
    if (!same) made.push({ kind: "reorder", statement, order });
    if (choice.parallel !== undefined) {
      made.push({ kind: "parallelize", statement, loop: order[0]! });
    }
    return made;
  }

  #laneDirectives({ loop, vectors }: NonNullable<MicroTile["lane"]>): readonly Directive[] {
    const statement = this.#statement.name;
    const name = this.#name(loop);
    const [outer, inner, many, one] = [`${name}_o`, `${name}_i`, `${name}_u`, `${name}_l`];
    const factor = this.#lanes * vectors;
    const cut = { kind: "split", statement, loop: name, factor, outer, inner } as const;
    if (vectors === 1) return [cut, { kind: "vectorize", statement, loop: inner }];
    return [
      cut,
      { kind: "split", statement, loop: inner, factor: this.#lanes, outer: many, inner: one },
      { kind: "unroll", statement, loop: many },
      { kind: "vectorize", statement, loop: one },
    ];
  }

  #reduceLaneDirectives(name: string, step: number): readonly Directive[] {
    const statement = this.#statement.name;
    const [outer, mid, many, inner] = [`${name}_o`, `${name}_i`, `${name}_u`, `${name}_l`];
    const lanes = this.#lanes;
    const vectorize = { kind: "vectorize", statement, loop: inner } as const;
    if (step === 1) {
      const cut = { kind: "split", statement, loop: name, factor: lanes, outer, inner } as const;
      return [cut, vectorize];
    }
    return [
      { kind: "split", statement, loop: name, factor: lanes * step, outer, inner: mid },
      { kind: "split", statement, loop: mid, factor: lanes, outer: many, inner },
      { kind: "unroll", statement, loop: many },
      vectorize,
    ];
  }

  /** What is left of a reduce loop once the terms of dot products are cut off. */
  #reduceName({ dot }: MicroTile, loop: number): string {
    return loop === dot?.loop ? `${this.#name(loop)}_d` : this.#name(loop);
  }

  #name(loop: number): string {
    return this.#figures.loops[loop]!.name;
  }

  /** What is left outside of a loop once lanes and rows are cut off. */
  #outerName(choice: TileChoice, loop: number): string {
    const cut = choice.lane?.loop === loop || choice.rows.some((r) => r.loop === loop);
    return cut ? `${this.#name(loop)}_o` : this.#name(loop);
  }

  #order(choice: TileChoice): readonly string[] {
    const blocked = choice.block?.loop;
    const outer = choice.outer.map((l) =>
      l === blocked ? `${this.#name(l)}_bi` : this.#outerName(choice, l),
    );
    if (blocked !== undefined) outer.unshift(`${this.#name(blocked)}_b`);
    const shared = choice.parallel;
    if (shared !== undefined && shared !== blocked) {
      const at = choice.outer.indexOf(shared) + (blocked === undefined ? 0 : 1);
      outer.unshift(...outer.splice(at, 1));
    }
    const stepped = steppedLoop(choice);
    const reduce = choice.reduce.flatMap((l) => {
      const name = this.#reduceName(choice, l);
      if (l === choice.reduceLane) {
        return choice.step === 1
          ? [`${name}_o`, `${name}_l`]
          : [`${name}_o`, `${name}_u`, `${name}_l`];
      }
      return l === stepped ? [`${name}_o`, `${name}_u`] : [name];
    });
    if (choice.dot !== undefined) reduce.push(`${this.#name(choice.dot.loop)}_q`);
    return [...outer, ...reduce, ...this.#tileOrder(choice)];
  }

  #tileOrder(micro: MicroTile): readonly string[] {
    const { lane } = micro;
    const copies = tileCopies(micro).map(({ loop, part }) => `${this.#name(loop)}_${part}`);
    if (!lane) return copies;
    return [...copies, `${this.#name(lane.loop)}_${lane.vectors === 1 ? "i" : "l"}`];
  }
}

/** A loop of a tile that is copied out: rows, or vectors. */
interface TileCopies {
  readonly loop: number;
  readonly part: "r" | "u";
  readonly count: number;
}

/**
 * Loops of a tile that are copied out, outermost first. What has the most copies is outermost: of the
 * operand that moves with it one is alive at a time, beside all of the other, which are fewer.
 */
function tileCopies({ rows, lane }: MicroTile): readonly TileCopies[] {
  const copies: TileCopies[] = [];
  for (const { loop, count } of rows) insertByCount(copies, { loop, part: "r", count });
  if (lane && lane.vectors > 1) {
    insertByCount(copies, { loop: lane.loop, part: "u", count: lane.vectors });
  }
  return copies;
}

/** Behind those that are copied out as often. */
function insertByCount(copies: TileCopies[], one: TileCopies): void {
  let at = copies.length;
  for (; at > 0 && copies[at - 1]!.count < one.count; at--) copies[at] = copies[at - 1]!;
  copies[at] = one;
}

/** The reduce loop that `step` cuts. */
export function steppedLoop({ reduce, copied, reduceLane, step }: MicroTile): number | undefined {
  if (step === 1 || reduceLane !== undefined) return undefined;
  return reduce.findLast((l) => !copied.includes(l));
}

/** Iterations of a space loop that one tile covers. */
export function tileExtent(micro: MicroTile, loop: number, lanes: number): number {
  const row = micro.rows.find((r) => r.loop === loop)?.count ?? 1;
  return micro.lane?.loop === loop ? row * micro.lane.vectors * lanes : row;
}

/** Loops outside the tile and the reduction, outermost first. */
export function outerLoops(
  figures: NestFigures,
  micro: MicroTile,
  { outer, block, parallel }: OuterChoice,
  lanes: number,
): readonly LoopFigures[] {
  const made: LoopFigures[] = [];
  // Dealt out, then cut into blocks: outermost, whatever the order of the others.
  if (parallel !== undefined && parallel !== block?.loop) made.push(outerPart(parallel));
  if (block) made.push(outerPart(block.loop));
  for (const loop of outer) {
    if (block?.loop === loop) {
      const unit = tileExtent(micro, loop, lanes);
      made.push({ origin: loop, unit, trips: block.size, mode: "serial" });
    } else if (loop !== parallel) made.push(outerPart(loop));
  }
  return made;

  function outerPart(origin: number): LoopFigures {
    const size = block?.loop === origin ? block.size : 1;
    const unit = tileExtent(micro, origin, lanes) * size;
    const trips = Math.ceil(figures.loops[origin]!.extent / unit);
    return { origin, unit, trips, mode: origin === parallel ? "grid" : "serial" };
  }
}

/** The reduce loops and the loops of the tile. */
export function microLoops(
  figures: NestFigures,
  micro: MicroTile,
  lanes: number,
): readonly LoopFigures[] {
  const made: LoopFigures[] = [];
  const stepped = steppedLoop(micro);
  for (const origin of micro.reduce) {
    const terms = origin === micro.dot?.loop ? micro.dot.terms : 1;
    const extent = Math.ceil(figures.loops[origin]!.extent / terms);
    if (origin === micro.reduceLane) {
      const { step } = micro;
      const unit = lanes * step;
      made.push({ origin, unit, trips: Math.ceil(extent / unit), mode: "serial" });
      if (step > 1) made.push({ origin, unit: lanes, trips: step, mode: "unroll" });
      made.push({ origin, unit: 1, trips: lanes, mode: "vector" });
    } else if (origin === stepped) {
      const { step } = micro;
      const trips = Math.ceil(extent / step);
      made.push({ origin, unit: terms * step, trips, mode: "serial" });
      made.push({ origin, unit: terms, trips: step, mode: "unroll" });
    } else {
      const mode = micro.copied.includes(origin) ? "unroll" : "serial";
      made.push({ origin, unit: terms, trips: extent, mode });
    }
  }
  if (micro.dot !== undefined) {
    made.push({ origin: micro.dot.loop, unit: 1, trips: micro.dot.terms, mode: "vector" });
  }
  for (const { loop, part, count } of tileCopies(micro)) {
    made.push({ origin: loop, unit: part === "u" ? lanes : 1, trips: count, mode: "unroll" });
  }
  if (micro.lane) made.push({ origin: micro.lane.loop, unit: 1, trips: lanes, mode: "vector" });
  return made;
}
