/**
 * Candidate schedules of a statement for a CPU target: which loop runs in lanes, how many vectors and
 * rows make the register tile, which weights are packed for it. Deterministic and bounded; prices and
 * the choice are elsewhere.
 */
import type { Access, Region, Statement } from "../region/nest.ts";
import {
  add,
  ceilDiv,
  constantValue,
  floorDiv,
  type IndexExpr,
  mod,
  mul,
  splitLinear,
  variable,
} from "../semantics/index-expr.ts";
import { type IndexRanges, rangeOf } from "../semantics/index-range.ts";
import type { LayoutMap } from "../semantics/layout.ts";
import type { Target } from "../target/target.ts";
import { enumerateBlockSchedules } from "./block-candidates.ts";
import type { Directive, Schedule } from "./directive.ts";
import { symbolRanges } from "./scheduled-region.ts";

export interface CandidateOptions {
  /** Deal the outermost suitable loop out to threads. */
  readonly parallel: boolean;
}

/**
 * Rows of a matrix that lie this far apart fall into few sets of a cache and into a page each: a panel of
 * columns is then stored by itself.
 */
const longRowBytes = 1024;
/**
 * Lanes whose results lie apart are stored one by one. Beyond so many lanes that outweighs what they
 * save, and the ragged ends of such tiles are past what the validator proves to be covered.
 */
const mostScatteredLanes = 4;
/** Most copies of a statement's body that unrolling may make. */
const mostCopies = 48;

/** All candidates for the (single) statement of a region, the plain loop order first. */
export function enumerateSchedules(
  region: Region,
  target: Target,
  options: CandidateOptions,
): readonly Schedule[] {
  if (target.blocks) return enumerateBlockSchedules(region, target);
  const plain: Schedule = { region: region.name, target: target.name, directives: [] };
  const [statement] = region.statements;
  if (!statement || region.statements.length > 1) return [plain];
  const maker = new CandidateMaker(region, statement, target, options);
  return [maker.serial(), ...maker.vectorized(), ...maker.reducedInLanes()].map((directives) => ({
    ...plain,
    directives,
  }));
}

class CandidateMaker {
  readonly #region: Region;
  readonly #statement: Statement;
  readonly #lanes: number;
  readonly #registers: number;
  readonly #ranges: IndexRanges;
  readonly #parallel: boolean;

  constructor(region: Region, statement: Statement, target: Target, options: CandidateOptions) {
    this.#region = region;
    this.#statement = statement;
    this.#lanes = target.vectorBytes / 4;
    this.#registers = target.vectorRegisters;
    this.#ranges = symbolRanges(region);
    this.#parallel = options.parallel;
  }

  /** Loops as they stand; only threads. */
  serial(): readonly Directive[] {
    return this.#finish([], this.#space(), this.#reduce(), []);
  }

  /** A space loop in lanes, with 1, 2 or 4 vectors, and another space loop unrolled. */
  vectorized(): readonly (readonly Directive[])[] {
    if (!this.#mayVectorize()) return [];
    const found: (readonly Directive[])[] = [];
    for (const lane of this.#laneLoops()) {
      if (this.#lanes > mostScatteredLanes && this.#isScattered(lane)) continue;
      for (const vectors of [1, 2, 4]) {
        if (vectors > 1 && this.#extent(lane) < this.#lanes * vectors) continue;
        found.push(this.#tiled(lane, vectors, undefined, 1));
        for (const row of this.#rowLoops(lane)) {
          for (const rows of [2, 4, 6]) {
            if (rows * vectors > this.#registers || this.#extent(row) < rows) continue;
            found.push(this.#tiled(lane, vectors, row, rows));
          }
        }
      }
    }
    return found;
  }

  #isScattered(lane: string): boolean {
    return this.#statement.writes.some((w) => lastCoefficient(w, lane) !== 1);
  }

  /** The innermost reduce loop in lanes, when a read is contiguous along it. */
  reducedInLanes(): readonly (readonly Directive[])[] {
    const { reduction, reads } = this.#statement;
    const lane = this.#statement.loops.findLast((l) => l.kind === "reduce")?.name;
    if (!reduction || !lane || !this.#mayVectorize() || this.#extent(lane) < this.#lanes) return [];
    if (!reads.some((r) => lastCoefficient(r, lane) === 1)) return [];
    const rows = [undefined, ...this.#rowLoops(lane).slice(-2)];
    return rows.flatMap((row) =>
      (row === undefined ? [1] : [2, 4]).flatMap((count) => {
        if (row !== undefined && this.#extent(row) < count) return [];
        const [outer, inner] = [`${lane}_o`, `${lane}_l`];
        const s = this.#statement.name;
        const directives: Directive[] = [
          { kind: "split", statement: s, loop: lane, factor: this.#lanes, outer, inner },
        ];
        const space = this.#space();
        const tile: string[] = [];
        if (row !== undefined) directives.push(...this.#splitRow(row, count, space, tile));
        const reduce = this.#reduce().flatMap((r) => (r === lane ? [outer, inner] : [r]));
        directives.push({ kind: "vectorize", statement: s, loop: inner });
        return [this.#finish(directives, space, reduce, tile)];
      }),
    );
  }

  #tiled(
    lane: string,
    vectors: number,
    row: string | undefined,
    rows: number,
  ): readonly Directive[] {
    const s = this.#statement.name;
    const width = this.#lanes * vectors;
    const [outer, inner, many, one] = [`${lane}_o`, `${lane}_i`, `${lane}_u`, `${lane}_l`];
    const directives: Directive[] = [];
    const space = this.#space();
    const tile: string[] = [];
    if (row !== undefined) directives.push(...this.#splitRow(row, rows, space, tile));
    directives.push({ kind: "split", statement: s, loop: lane, factor: width, outer, inner });
    space.splice(space.indexOf(lane), 1, outer);
    if (vectors === 1) {
      tile.push(inner);
      directives.push({ kind: "vectorize", statement: s, loop: inner });
    } else {
      tile.push(many, one);
      directives.push(
        { kind: "split", statement: s, loop: inner, factor: this.#lanes, outer: many, inner: one },
        { kind: "unroll", statement: s, loop: many },
        { kind: "vectorize", statement: s, loop: one },
      );
    }
    const copies = vectors * rows;
    const packed = this.#packWeights(lane, width);
    directives.push(...this.#unrollReduce(copies), ...packed);
    // A packed panel stays in a near cache while all rows pass by it.
    const [panel, rowsAt] = [space.indexOf(outer), space.indexOf(`${row}_o`)];
    if (packed.length > 0 && panel > rowsAt && rowsAt >= 0) {
      space.splice(panel, 1);
      space.splice(rowsAt, 0, outer);
    }
    return this.#finish(directives, space, this.#reduce(), tile);
  }

  #splitRow(row: string, rows: number, space: string[], tile: string[]): readonly Directive[] {
    const s = this.#statement.name;
    const [outer, inner] = [`${row}_o`, `${row}_r`];
    space.splice(space.indexOf(row), 1, outer);
    tile.push(inner);
    return [
      { kind: "split", statement: s, loop: row, factor: rows, outer, inner },
      { kind: "unroll", statement: s, loop: inner },
    ];
  }

  /** Short innermost reduce loops (the window of a convolution) are copied out. */
  #unrollReduce(copies: number): readonly Directive[] {
    const directives: Directive[] = [];
    let total = copies;
    for (const loop of [...this.#statement.loops].reverse()) {
      const extent = constantValue(loop.extent);
      if (loop.kind !== "reduce") continue;
      if (extent === undefined || extent > 7 || total * extent > mostCopies) break;
      total *= extent;
      directives.push({ kind: "unroll", statement: this.#statement.name, loop: loop.name });
    }
    return directives;
  }

  /** Order, threads: outer space loops, reduce loops, register tile. */
  #finish(
    directives: readonly Directive[],
    space: readonly string[],
    reduce: readonly string[],
    tile: readonly string[],
  ): readonly Directive[] {
    const s = this.#statement.name;
    const shared = this.#parallel ? this.#sharedLoop(space) : undefined;
    const outer = shared ? [shared, ...space.filter((l) => l !== shared)] : space;
    const order = [...outer, ...reduce, ...tile];
    const scans = this.#statement.loops.some((l) => l.kind === "scan");
    const same = scans || order.join() === this.#statement.loops.map((l) => l.name).join();
    return [
      ...directives,
      ...(same ? [] : [{ kind: "reorder", statement: s, order } as const]),
      ...(shared && !scans ? [{ kind: "parallelize", statement: s, loop: shared } as const] : []),
    ];
  }

  /** The loop with the most trips to deal out; the outermost one that has plenty. */
  #sharedLoop(space: readonly string[]): string | undefined {
    const trips = (name: string): number => {
      const original = this.#statement.loops.find((l) => l.name === name || name === `${l.name}_o`);
      return original?.kind === "space" ? this.#extent(original.name) : 1;
    };
    if (this.#statement.writes.some((w) => w.combine !== "overwrite")) return undefined;
    const plenty = space.find((name) => trips(name) >= 32);
    if (plenty) return plenty;
    const best = [...space].sort((a, b) => trips(b) - trips(a))[0];
    return best !== undefined && trips(best) > 1 ? best : undefined;
  }

  /** Reads that stride along the lane are packed when they are weights indexed by the loop itself. */
  #packWeights(lane: string, width: number): readonly Directive[] {
    const packed = new Map<string, Directive>();
    for (const access of this.#statement.reads) {
      const tensor = this.#region.tensors.get(access.tensor);
      if (tensor?.role !== "weight" || access.guard.length > 0) continue;
      const axis = access.index.findIndex((e) => e.key === lane);
      const others = access.index.filter((_, i) => i !== axis);
      const last = axis === access.index.length - 1;
      const strided = axis >= 0 && (!last || 4 * this.#extent(lane) >= longRowBytes);
      if (!strided || others.some((e) => splitLinear(e, lane)?.coefficient !== 0)) continue;
      if (this.#region.statements[0]!.finishReads.some((r) => r.tensor === access.tensor)) continue;
      const layout = blockedLayout(tensor.shape, axis, width);
      packed.set(access.tensor, { kind: "layout", tensor: access.tensor, layout });
    }
    return [...packed.values()];
  }

  #mayVectorize(): boolean {
    const { indirects, reads, writes, finishReads } = this.#statement;
    if (indirects.length > 0 || writes.some((w) => w.combine !== "overwrite")) return false;
    const dtypes = [...reads, ...finishReads, ...writes].map(
      (a) => this.#region.tensors.get(a.tensor)!.dtype,
    );
    return dtypes.every((d) => d === "f32" || d === "i32");
  }

  /** Space loops worth vectors: long enough, and contiguous for a write or a read. */
  #laneLoops(): readonly string[] {
    const { reads, writes, finishReads } = this.#statement;
    const accesses = [...writes, ...reads, ...finishReads];
    return this.#independent().filter((name) => {
      if (this.#extent(name) < this.#lanes) return false;
      const weights = this.#packWeights(name, this.#lanes).length > 0;
      return weights || accesses.some((a) => lastCoefficient(a, name) === 1);
    });
  }

  #rowLoops(lane: string): readonly string[] {
    return this.#independent().filter((name) => name !== lane && this.#extent(name) > 1);
  }

  /** Loops whose iterations need nothing of each other. */
  #independent(): string[] {
    return this.#statement.loops.filter((l) => l.kind === "space").map((l) => l.name);
  }

  #space(): string[] {
    return this.#statement.loops.filter((l) => l.kind !== "reduce").map((l) => l.name);
  }

  #reduce(): string[] {
    return this.#statement.loops.filter((l) => l.kind === "reduce").map((l) => l.name);
  }

  #extent(loop: string): number {
    const found = this.#statement.loops.find((l) => l.name === loop);
    return found ? rangeOf(found.extent, this.#ranges).max : 1;
  }
}

/** Blocks of `width` along one axis moved innermost: [axis / width, …the rest…, axis % width]. */
export function blockedLayout(shape: readonly IndexExpr[], axis: number, width: number): LayoutMap {
  const rest = shape.flatMap((_, i) => (i === axis ? [] : [i]));
  const last = rest.length + 1;
  const logical = shape.map((_, i) =>
    i === axis
      ? add(mul(width, variable("p0")), variable(`p${last}`))
      : variable(`p${1 + rest.indexOf(i)}`),
  );
  const blocked = variable(`l${axis}`);
  return {
    shape: [ceilDiv(shape[axis]!, width), ...rest.map((i) => shape[i]!), add(width)],
    logical,
    stored: [floorDiv(blocked, width), ...rest.map((i) => variable(`l${i}`)), mod(blocked, width)],
  };
}

/** Step of the last axis per trip of `loop`; undefined when another axis moves too. */
function lastCoefficient(access: Pick<Access, "index">, loop: string): number | undefined {
  const steps = access.index.map((e) => splitLinear(e, loop)?.coefficient);
  return steps.slice(0, -1).every((c) => c === 0) ? steps.at(-1) : undefined;
}
