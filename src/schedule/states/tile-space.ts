/**
 * The superposition of a statement on a CPU target: every tile in registers (lanes, vectors, rows, copies
 * and steps of the reduction, packing), and for each all orders, cache blocks and dealings-out of the
 * loops outside. In: a region and a target. Out: micro tiles and, per tile, outer choices; what a hard
 * constraint takes away is counted under the constraint's name. Prices and the choice are elsewhere
 * (choose-tile.ts), legality is proved for what is chosen (legality.ts).
 */
import type { Region, Statement, Write } from "../../region/nest.ts";
import { dtypes } from "../../semantics/dtype.ts";
import { type IndexExpr, splitLinear, variablesOf } from "../../semantics/index-expr.ts";
import { halfLanes, type Target } from "../../target/target.ts";
import { dotAxes, dotTermsFor } from "./dot-form.ts";
import { laneOrder, workingSetBytes } from "./footprint.ts";
import {
  type AccessFigures,
  type NestFigures,
  nestFigures,
  type PackedAxis,
  packedAccess,
} from "./nest-figures.ts";
import {
  ChoiceSpeller,
  type MicroTile,
  microLoops,
  type OuterChoice,
  outerLoops,
  type TileChoice,
  tileExtent,
  type UnrolledRows,
} from "./tile-choice.ts";

/** Reasons for which states are no candidates. */
export const hardConstraints = [
  "vector multiple",
  "lanes apart",
  "registers",
  "code size",
  "step divides",
  "extent",
  "cache capacity",
] as const;
export type HardConstraint = (typeof hardConstraints)[number];

/** States that were named, and how many of them each constraint took away. */
export class FunnelCounts {
  generated = 0;
  readonly removed = new Map<HardConstraint, number>();

  take(constraint: HardConstraint, states: number): void {
    this.removed.set(constraint, (this.removed.get(constraint) ?? 0) + states);
  }

  get left(): number {
    let left = this.generated;
    for (const n of this.removed.values()) left -= n;
    return left;
  }
}

/** Rows of a matrix that lie this far apart fall into few sets of a cache and into a page each. */
const longRowBytes = 1024;
/**
 * Lanes whose results lie apart are stored one by one. Beyond so many lanes that outweighs what they
 * save, and the ragged ends of such tiles are past what the validator proves to be covered.
 */
const mostScatteredLanes = 4;
/** Most copies of a statement's body that unrolling may make. */
const mostCopies = 48;
/** Longest reduce loop that is copied out whole. */
const longestCopied = 7;
/** What lanes hold: as wide as the arithmetic, or shorter and widened where they are read. */
const laneTypes: ReadonlySet<string> = new Set(["f32", "i32", "i16", "i8", "u8", "bool"]);
const vectorCounts = [1, 2, 3, 4, 6] as const;
const rowCounts = [2, 3, 4, 5, 6, 8] as const;
const pairCounts = [2, 3, 4, 6] as const;
/** Counts of rows for extents that the usual ones leave a rest of, or fill few of many registers with. */
const oddCounts = [5, 7] as const;
/** With so many vector registers threes and fours are few sums: an extent has to be a multiple of six or eight. */
const manyRegisters = 24;
const stepCounts = [2, 4] as const;
const blockSizes = [4, 16, 64] as const;
/** One list, by which prices know what is stored alike. */
const unpacked: readonly PackedAxis[] = [];

/** Which reduce loops are copied out, how the one that is left is stepped, and in which order all run. */
type Stepping = Pick<MicroTile, "copied" | "step" | "reduce">;

/** What is packed beside lanes of one width, and how the reduction is stepped then. */
type StoredForms = readonly {
  readonly form: Pick<MicroTile, "packed" | "dot">;
  readonly steppings: readonly Stepping[];
  readonly undivided: number;
}[];

export class TileSpace {
  readonly figures: NestFigures;
  readonly speller: ChoiceSpeller;
  readonly lanes: number;
  readonly funnel = new FunnelCounts();
  readonly #region: Region;
  readonly #statement: Statement;
  readonly #target: Target;
  /** Loops may be dealt out: no two threads write to one element or one byte. */
  readonly #parallel: boolean;
  /** Whether the funnel is read: states that are told by their number alone are counted. */
  readonly #isCounted: boolean;
  readonly #space: readonly number[];
  readonly #reduce: readonly number[];
  readonly #ordersOf = new Map<string, readonly (readonly number[])[]>();
  readonly #stored = new Map<string, StoredForms>();
  readonly #rowsBeside = new Map<number, readonly (readonly UnrolledRows[])[]>();
  readonly #dealt: boolean[] = [];
  /** Bytes of the largest cache that a block may fill. */
  readonly #outerCache: number | undefined;

  constructor(
    region: Region,
    target: Target,
    { parallel, isCounted = true }: { readonly parallel: boolean; readonly isCounted?: boolean },
  ) {
    const [statement] = region.statements;
    this.#region = region;
    this.#statement = statement!;
    this.#target = target;
    this.#isCounted = isCounted;
    this.figures = nestFigures(region, statement!);
    this.lanes = target.vectorBytes / 4;
    this.speller = new ChoiceSpeller(region, statement!, this.figures, this.lanes);
    const { loops } = this.figures;
    const numbered = (reduce: boolean): number[] =>
      loops.flatMap((l, i) => ((l.kind === "reduce") === reduce ? [i] : []));
    this.#space = numbered(false);
    this.#reduce = numbered(true);
    this.#outerCache = target.memory.filter((m) => m.capacityBytes)[1]?.capacityBytes?.value;
    const alone = ({ combine, tensor }: Write): boolean =>
      combine === "overwrite" && dtypes[region.tensors.get(tensor)!.dtype].bits >= 8;
    this.#parallel = parallel && statement!.writes.every(alone);
  }

  /** Regions of one statement without a scan have choices; the others run as they stand. */
  static applies(region: Region): boolean {
    const [statement] = region.statements;
    return (
      statement !== undefined &&
      region.statements.length === 1 &&
      statement.loops.every((l) => l.kind !== "scan")
    );
  }

  /** The loops as they stand. */
  plain(): TileChoice {
    const micro = { rows: [], copied: [], step: 1, reduce: this.#reduce, packed: unpacked };
    return { ...micro, outer: this.#space };
  }

  /** Every register tile that the hard constraints allow, plain loops first. */
  microTiles(): readonly MicroTile[] {
    const [plain, ...scalar] = this.scalarTiles();
    return [plain!, ...this.tilesInLanes(), ...scalar];
  }

  tilesInLanes(): readonly MicroTile[] {
    const found: MicroTile[] = [];
    for (const lane of this.#space) this.#addLaneTiles(lane, found);
    this.#addReduceLanes(found);
    return found;
  }

  /** Tiles without lanes, plain loops first. */
  scalarTiles(): readonly MicroTile[] {
    const { outer: _, ...plain } = this.plain();
    this.funnel.generated += this.outerCount(plain);
    const found: MicroTile[] = [plain];
    this.#addScalarTiles(found);
    return found;
  }

  /** Number of the choices that `outerChoices` looks at, without making them. */
  outerCount(micro: MicroTile): number {
    if (!this.#isCounted) return 0;
    let long = 0;
    let blocks = 0;
    for (const l of this.#space) {
      const trips = this.#trips(micro, l);
      if (trips > 1) long++;
      for (const size of blockSizes) if (trips > size) blocks++;
    }
    if (long < 2 || this.#outerCache === undefined) blocks = 0;
    return orderCount(long) * (1 + blocks) * (this.#parallel && long > 0 ? 2 : 1);
  }

  /** Orders, blocks and threads around a tile. */
  outerChoices(micro: MicroTile): readonly OuterChoice[] {
    const long = this.#longLoops(micro);
    const short = this.#space.filter((l) => !long.includes(l));
    const found: OuterChoice[] = [];
    const add = (choice: OuterChoice): void => {
      found.push(choice);
      const first = choice.block?.loop ?? choice.outer.find((l) => long.includes(l));
      if (!this.#parallel || first === undefined || !this.#mayDealOut(first)) return;
      found.push({ ...choice, parallel: first });
    };
    const orders = this.#orders(long).map((order) => [...short, ...order]);
    for (const outer of orders) add({ outer });
    for (const choice of this.#blocks(micro, long, orders)) add(choice);
    return found;
  }

  /** The trips of a loop write windows of their own: no other loop moves further along the same axis. */
  #mayDealOut(loop: number): boolean {
    this.#dealt[loop] ??= this.#ownsWindows(loop);
    return this.#dealt[loop];
  }

  #ownsWindows(loop: number): boolean {
    return this.figures.accesses.every(
      ({ use, axes }) =>
        use !== "write" ||
        axes.every(({ steps }) => {
          const own = Math.abs(steps[loop]!);
          return own === 0 || steps.every((step) => Math.abs(step) <= own);
        }),
    );
  }

  /** Accesses as they are stored under a tile's packing. */
  accesses(packed: readonly PackedAxis[]): readonly AccessFigures[] {
    return this.figures.accesses.map((a) => {
      const by = packed.find((p) => p.tensor === a.tensor);
      return by ? packedAccess(a, by) : a;
    });
  }

  #blocks(
    micro: MicroTile,
    long: readonly number[],
    orders: readonly (readonly number[])[],
  ): readonly OuterChoice[] {
    const far = this.#outerCache;
    if (far === undefined || long.length < 2) return [];
    const inner = microLoops(this.figures, micro, this.lanes);
    const accesses = this.accesses(micro.packed);
    const found: OuterChoice[] = [];
    for (const loop of long) {
      for (const size of blockSizes) {
        if (this.#trips(micro, loop) <= size) continue;
        const block = { loop, size };
        // A block meets the same elements in any order.
        const one = { outer: orders[0]!, block };
        const loops = outerLoops(this.figures, micro, one, this.lanes).slice(1);
        const bytes = workingSetBytes(accesses, [...loops, ...inner]);
        if (bytes > far) {
          this.funnel.take("cache capacity", orders.length * (this.#parallel ? 2 : 1));
        } else for (const outer of orders) found.push({ outer, block });
      }
    }
    return found;
  }

  #addLaneTiles(lane: number, found: MicroTile[]): void {
    const { loops, accesses } = this.figures;
    const refuse = (constraint: HardConstraint): void => {
      if (!this.#isCounted) return;
      const all = this.#combinations(lane);
      this.funnel.generated += all;
      this.funnel.take(constraint, all);
    };
    if (!this.#mayVectorize(lane) || loops[lane]!.extent < this.lanes) {
      refuse("vector multiple");
      return;
    }
    const contiguous = accesses.some((a) => laneOrder(a, lane) === "contiguous" && !a.scattered);
    const packable = [...this.#packings(lane, this.lanes), ...this.#dotTiles(lane, this.lanes)];
    const apart = accesses.some((a) => a.use === "write" && laneOrder(a, lane) !== "contiguous");
    const useless = !contiguous && packable.length === 0;
    if (useless || (apart && this.lanes > mostScatteredLanes)) {
      refuse("lanes apart");
      return;
    }
    const choices = this.#rowChoices(lane);
    for (const vectors of vectorCounts) {
      for (const rows of choices) this.#addTile({ loop: lane, vectors }, rows, found);
    }
  }

  /** One tile with each packing and each stepping of its reduction. */
  #addTile(
    lane: { readonly loop: number; readonly vectors: number },
    rows: readonly UnrolledRows[],
    found: MicroTile[],
  ): void {
    const width = this.lanes * lane.vectors;
    const tooWide = lane.vectors > 1 && this.figures.loops[lane.loop]!.extent < width;
    for (const { form, steppings, undivided } of this.#storedForms(lane.loop, width)) {
      this.#refuseSteps(undivided);
      for (const { copied, step, reduce } of steppings) {
        const tile: MicroTile = { lane, rows, copied, step, reduce, ...form };
        const states = this.outerCount(tile);
        this.funnel.generated += states;
        if (tooWide) this.funnel.take("extent", states);
        else this.#addUnlessLarge(tile, rows, states, found);
      }
    }
  }

  /** How operands may be stored for lanes along a loop, with the steppings of the reduction under each. */
  #storedForms(lane: number, width: number): StoredForms {
    const key = `${lane} ${width}`;
    const known = this.#stored.get(key);
    if (known) return known;
    const packings = this.#packings(lane, width);
    const plain = packings.length === 0 ? [unpacked] : [packings, unpacked];
    const dots = this.#dotTiles(lane, width);
    // Bytes are multiplied one by one only where four at a time are not possible.
    const wanted: readonly StoredForms[number]["form"][] =
      dots.length > 0 ? dots : plain.map((packed) => ({ packed }));
    const made = wanted.map((form) => ({ form, ...this.#steppings(form.dot) }));
    this.#stored.set(key, made);
    return made;
  }

  #refuseSteps(undivided: number): void {
    if (undivided === 0) return;
    this.funnel.generated += undivided;
    this.funnel.take("step divides", undivided);
  }

  /** Depths along which dot products may run beside these lanes, with the packing of the weights. */
  #dotTiles(lane: number, width: number): readonly Required<Pick<MicroTile, "dot" | "packed">>[] {
    const terms = dotTermsFor(this.#target, this.#region, this.#statement);
    if (terms === undefined) return [];
    const { loops } = this.figures;
    return this.#reduce.flatMap((loop) => {
      const names = { lane: loops[lane]!.name, depth: loops[loop]!.name, terms };
      const axes = dotAxes(this.#region, this.#statement, names);
      if (!axes) return [];
      const depth = { axis: axes.depth, terms };
      return [
        { dot: { loop, terms }, packed: [{ tensor: axes.tensor, axis: axes.lane, width, depth }] },
      ];
    });
  }

  /**
   * Which reduce loops are copied out, and how many steps of the one that is left are; `undivided` is the
   * number of step counts that do not divide it.
   */
  #steppings(dot?: MicroTile["dot"]): Omit<StoredForms[number], "form"> {
    const loops = this.figures.loops.map((l, i) =>
      i === dot?.loop ? { ...l, extent: l.extent / dot.terms } : l,
    );
    const copied: number[] = [];
    const plain: Stepping = { copied: [], step: 1, reduce: this.#reduce };
    const found = [plain];
    for (const l of [...this.#reduce].reverse()) {
      const { extent, constant } = loops[l]!;
      if (!constant || extent > longestCopied) break;
      copied.unshift(l);
      found.push({ copied: [...copied], step: 1, reduce: this.#ordered(copied) });
    }
    const last = this.#reduce.at(-1);
    if (last === undefined || copied.includes(last)) return { steppings: found, undivided: 0 };
    const { extent, constant } = loops[last]!;
    const dividing = stepCounts.filter((step) => constant && extent % step === 0 && extent > step);
    for (const step of dividing) found.push({ ...plain, step });
    return { steppings: found, undivided: stepCounts.length - dividing.length };
  }

  /** Rows beside a lane; -1: beside none. */
  #rowChoices(lane: number): readonly (readonly UnrolledRows[])[] {
    const known = this.#rowsBeside.get(lane) ?? this.#rowChoicesAnew(lane);
    this.#rowsBeside.set(lane, known);
    return known;
  }

  #rowChoicesAnew(lane: number): readonly (readonly UnrolledRows[])[] {
    const loops = this.#rowLoops(lane);
    const odd = new Map(loops.map((loop) => [loop, this.#oddCounts(loop)]));
    const single = loops.flatMap((loop) =>
      [...new Set([...rowCounts, ...odd.get(loop)!])].map((count) => [{ loop, count }]),
    );
    const pairs = loops.flatMap((a, i) =>
      loops.slice(i + 1).flatMap((b) =>
        [...pairCounts, ...odd.get(a)!].flatMap((n) =>
          [...pairCounts, ...odd.get(b)!].flatMap((m) =>
            n * m > this.#target.vectorRegisters
              ? []
              : [
                  [
                    { loop: a, count: n },
                    { loop: b, count: m },
                  ],
                ],
          ),
        ),
      ),
    );
    return [[], ...single, ...pairs];
  }

  #oddCounts(loop: number): readonly number[] {
    const { extent, constant } = this.figures.loops[loop]!;
    const usual = this.#target.vectorRegisters >= manyRegisters ? [6, 8] : [3, 4];
    if (!constant || usual.some((n) => extent % n === 0)) return [];
    return oddCounts.filter((n) => extent % n === 0);
  }

  #rowLoops(lane: number): readonly number[] {
    return this.#space.filter((l) => l !== lane && this.figures.loops[l]!.extent > 1);
  }

  /** The innermost reduce loop in lanes, when a read is contiguous along it. */
  #addReduceLanes(found: MicroTile[]): void {
    const lane = this.#reduce.at(-1);
    if (lane === undefined) return;
    const { loops, accesses } = this.figures;
    const reads = accesses.filter((a) => a.use === "read" && !a.scattered);
    const contiguous = reads.some((a) => laneOrder(a, lane) === "contiguous");
    const { extent, constant } = loops[lane]!;
    for (const rows of this.#rowChoices(lane)) {
      for (const step of [1, ...stepCounts]) {
        const tile: MicroTile = {
          reduceLane: lane,
          rows,
          copied: [],
          step,
          reduce: this.#reduce,
          packed: unpacked,
        };
        const states = this.outerCount(tile);
        this.funnel.generated += states;
        const divides = constant && extent % (step * this.lanes) === 0;
        if (!this.#mayVectorize() || extent < this.lanes) {
          this.funnel.take("vector multiple", states);
        } else if (!contiguous) this.funnel.take("lanes apart", states);
        else if (step > 1 && !divides) this.funnel.take("step divides", states);
        else this.#addUnlessLarge(tile, rows, states, found);
      }
    }
  }

  /** No lanes: rows copied out, the reduction stepped. */
  #addScalarTiles(found: MicroTile[]): void {
    if (!this.#mayVectorize()) return;
    const { steppings, undivided } = this.#steppings();
    for (const rows of this.#rowChoices(-1)) {
      this.#refuseSteps(undivided);
      for (const { copied, step, reduce } of steppings) {
        const tile: MicroTile = { rows, copied, step, reduce, packed: unpacked };
        if (rows.length === 0 && copied.length === 0 && step === 1) continue;
        const states = this.outerCount(tile);
        this.funnel.generated += states;
        this.#addUnlessLarge(tile, rows, states, found);
      }
    }
  }

  /** Reduce loops that run first, then those that are copied out. */
  #ordered(copied: readonly number[]): readonly number[] {
    return [...this.#reduce.filter((l) => !copied.includes(l)), ...copied];
  }

  #addUnlessLarge(
    tile: MicroTile,
    rows: readonly UnrolledRows[],
    states: number,
    found: MicroTile[],
  ): void {
    const { loops } = this.figures;
    let points = tile.lane?.vectors ?? 1;
    let isBeyond = false;
    for (const { loop, count } of rows) {
      points *= count;
      isBeyond ||= loops[loop]!.extent < count;
    }
    let copies = points * tile.step;
    for (const l of tile.copied) {
      copies = (copies * loops[l]!.extent) / (l === tile.dot?.loop ? tile.dot.terms : 1);
    }
    if (isBeyond) this.funnel.take("extent", states);
    else if (points > this.#target.vectorRegisters) this.funnel.take("registers", states);
    else if (copies > mostCopies) this.funnel.take("code size", states);
    else found.push(tile);
  }

  /** Reads that stride along the lane, or end within a vector, are packed when they are weights whose blocks the loop walks whole. */
  #packings(lane: number, width: number): readonly PackedAxis[] {
    const loop = this.figures.loops[lane]!;
    const found = new Map<string, PackedAxis>();
    // A row that data picks is read as a whole: in panels it would lie apart.
    if (this.#statement.indirects.length > 0) return [];
    for (const access of this.#statement.reads) {
      const tensor = this.#region.tensors.get(access.tensor);
      if (tensor?.role !== "weight" || access.guard.length > 0) continue;
      const axis = access.index.findIndex((e) => fillsBlocks(e, loop.name, width));
      const last = axis === access.index.length - 1;
      // Lanes past the end of rows find zeros in panels, and what is left of a row is a whole vector.
      const isRagged = loop.constant && loop.extent % this.lanes !== 0;
      const strided = axis >= 0 && (!last || 4 * loop.extent >= longRowBytes || isRagged);
      const figures = this.figures.accesses[this.#statement.reads.indexOf(access)]!;
      const elsewhere = figures.axes.some((a, i) => i !== axis && a.steps[lane] !== 0);
      const inFinish = this.#statement.finishReads.some((r) => r.tensor === access.tensor);
      if (!strided || elsewhere || figures.scattered || inFinish) continue;
      found.set(access.tensor, { tensor: access.tensor, axis, width });
    }
    return [...found.values()];
  }

  /** @param lane a loop over results; absent: of a reduction, or none */
  #mayVectorize(lane?: number): boolean {
    const vectorizes = this.#allowsLanes(lane !== undefined);
    const { indirects, reduction } = this.#statement;
    if (indirects.length === 0 || !vectorizes) return vectorizes;
    return lane !== undefined && !reduction && this.#isSameForLanes(this.figures.loops[lane]!.name);
  }

  /** Whether the indices that are loaded are the same for all iterations of a loop. */
  #isSameForLanes(loop: string): boolean {
    return this.#statement.indirects.every(({ access, extent }) => {
      const guards = access.guard.map((c) => c.expr);
      return !variablesOf(...access.index, ...guards, extent).has(loop);
    });
  }

  /** @param overResults whether results stand in lanes too: lanes of a reduction are folded before its finish */
  #allowsLanes(overResults: boolean): boolean {
    const { reads, writes, finishReads } = this.#statement;
    if (writes.some((w) => w.combine !== "overwrite")) return false;
    const ofResults = overResults || this.#reduce.length === 0 ? [...finishReads, ...writes] : [];
    const dtypes = [...reads, ...ofResults].map((a) => this.#region.tensors.get(a.tensor)!.dtype);
    const halves = this.#target.capabilities.has(halfLanes);
    return dtypes.every((d) => laneTypes.has(d) || (halves && (d === "f16" || d === "bf16")));
  }

  #trips(micro: MicroTile, loop: number): number {
    return Math.ceil(this.figures.loops[loop]!.extent / tileExtent(micro, loop, this.lanes));
  }

  /** Space loops that a tile leaves more than one trip of. */
  #longLoops(micro: MicroTile): readonly number[] {
    return this.#space.filter((l) => this.#trips(micro, l) > 1);
  }

  #orders(loops: readonly number[]): readonly (readonly number[])[] {
    const key = loops.join();
    const known = this.#ordersOf.get(key) ?? ordersOf(loops);
    this.#ordersOf.set(key, known);
    return known;
  }

  #combinations(lane: number): number {
    return vectorCounts.length * this.#rowChoices(lane).length * orderCount(this.#space.length);
  }
}

/** The loop itself, from where a block of so many begins: a group's part of an axis, say. */
function fillsBlocks(index: IndexExpr, loop: string, width: number): boolean {
  const linear = splitLinear(index, loop);
  if (linear?.coefficient !== 1) return false;
  const { constant, terms } = linear.rest;
  return constant % width === 0 && terms.every((t) => t.coefficient % width === 0);
}

/** All orders of up to three loops; of more, those that bring each loop innermost and the lane out. */
function ordersOf(loops: readonly number[]): readonly (readonly number[])[] {
  if (loops.length <= 3) return permutations(loops);
  const orders = [loops, ...loops.slice(0, -1).map((l) => [...loops.filter((x) => x !== l), l])];
  const turned = loops.slice(1).map((l) => [l, ...loops.filter((x) => x !== l)]);
  const seen = new Set<string>();
  return [...orders, ...turned].filter((o) => {
    const known = seen.has(o.join());
    seen.add(o.join());
    return !known;
  });
}

/** Number of those orders, which hangs on the number of loops alone. */
function orderCount(loops: number): number {
  orderCounts[loops] ??= ordersOf(Array.from({ length: loops }, (_, i) => i)).length;
  return orderCounts[loops];
}

const orderCounts: number[] = [];

function permutations(items: readonly number[]): readonly (readonly number[])[] {
  if (items.length <= 1) return [items];
  return items.flatMap((x, i) => permutations(items.toSpliced(i, 1)).map((rest) => [x, ...rest]));
}
