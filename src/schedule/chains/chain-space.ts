/**
 * The superposition of a chain: statements that run one after another inside common loops, a piece of
 * one of these loops at a time, so that what they hand on lies in memory of the thread's own. In: a
 * chain, a target, prices (injected). Out: its states, cheapest first: which loop is cut into pieces of
 * how many iterations, which one is dealt out to threads, and for each statement the tile of one piece.
 * A statement's tile is chosen from the superposition that it has by itself with the extents of a piece
 * (region-states.ts): under the same cut no statement's choice changes another's price.
 */
import type { ChainRegion } from "../../region/chains.ts";
import type { Loop, Region, Statement } from "../../region/nest.ts";
import { substituteVariables } from "../../region/statement.ts";
import { dtypes } from "../../semantics/dtype.ts";
import { constant, type IndexExpr, variablesOf } from "../../semantics/index-expr.ts";
import { rangeOf } from "../../semantics/index-range.ts";
import type { Target } from "../../target/target.ts";
import type { Directive, Schedule } from "../directive.ts";
import { symbolRanges } from "../scheduled-region.ts";
import { type LoopFigures, type NestFigures, nestFigures } from "../states/nest-figures.ts";
import type { RegionState } from "../states/region-states.ts";

/** How the common loops are cut: `rows` iterations of one of them are a piece; absent: one of each. */
export interface ChainCut {
  readonly loop?: number;
  readonly rows: number;
}

/** How the tile of a statement's piece is spelled. */
type StatementTile = Pick<RegionState, "schedule">;

export interface ChainState {
  readonly cut: ChainCut;
  /** The common loop that is dealt out to threads. */
  readonly parallel?: number;
  /** What each statement does with a piece. */
  readonly tiles: readonly StatementTile[];
}

const pieceRows = [4, 8, 16, 32, 64] as const;

export class ChainSpace {
  readonly region: Region;
  readonly shared: number;
  readonly figures: NestFigures;
  readonly #target: Target;
  readonly #pieces = new Map<string, Region>();
  /** Upper ends of the common loops. */
  readonly #extents: readonly number[];

  constructor(region: ChainRegion, target: Target) {
    this.region = region;
    const shared = region.sharedLoops;
    this.shared = shared;
    this.#target = target;
    const ranges = symbolRanges(region);
    const [first] = region.statements;
    this.#extents = first!.loops
      .slice(0, shared)
      .map((l) => Math.max(1, rangeOf(l.extent, ranges).max));
    this.figures = this.#outsideFigures();
  }

  /** Cuts of the longest common loop whose pieces fit a thread's own cache. */
  cuts(): readonly ChainCut[] {
    const longest = Math.max(...this.#extents);
    const loop = this.#extents.lastIndexOf(longest);
    const counts: number[] = pieceRows.filter((rows) => rows < longest);
    if (longest > 1 && longest <= pieceRows.at(-1)!) counts.push(longest);
    const all: ChainCut[] = [{ rows: 1 }, ...counts.map((rows) => ({ loop, rows }))];
    const room = this.#target.memory.filter((m) => m.capacityBytes)[1]?.capacityBytes?.value;
    return all.filter((cut) => this.pieceBytes(cut) <= (room ?? Infinity));
  }

  /** Bytes of what the statements hand on in one piece, at the largest sizes. */
  pieceBytes(cut: ChainCut): number {
    let bytes = 0;
    for (const tensor of this.inner()) {
      const { dtype, shape } = this.piece(cut).tensors.get(tensor)!;
      const ranges = symbolRanges(this.region);
      const elements = shape.reduce((n, e) => n * Math.max(0, rangeOf(e, ranges).max), 1);
      bytes += (elements * dtypes[dtype].bits) / 8;
    }
    return bytes;
  }

  /** Pieces of a cut, at the largest sizes. */
  pieces({ loop, rows }: ChainCut): number {
    return this.#extents.reduce((n, e, i) => n * (i === loop ? Math.ceil(e / rows) : e), 1);
  }

  /** Iterations of a loop outside a piece. */
  trips({ loop, rows }: ChainCut, of: number): number {
    return of === loop ? Math.ceil(this.#extents[of]! / rows) : this.#extents[of]!;
  }

  inner(): readonly string[] {
    return [...this.region.tensors].flatMap(([name, t]) => (t.role === "local" ? [name] : []));
  }

  /** One piece as a region: the common loops stand still but for the rows of the cut. */
  piece(cut: ChainCut): Region {
    const key = `${cut.loop ?? ""} ${cut.rows}`;
    const known = this.#pieces.get(key) ?? this.#pieceAnew(cut);
    this.#pieces.set(key, known);
    return known;
  }

  #pieceAnew(cut: ChainCut): Region {
    const statements = this.region.statements.map((s) => this.#pieceOf(s, cut));
    const tensors = new Map<
      string,
      Region["tensors"] extends ReadonlyMap<string, infer T> ? T : never
    >();
    for (const [name, tensor] of this.region.tensors) {
      const shape =
        tensor.role === "local" ? this.#pieceShape(name, tensor.shape, cut) : tensor.shape;
      // Nothing is packed for a piece.
      const role = tensor.role === "weight" ? "intermediate" : tensor.role;
      tensors.set(name, { ...tensor, shape, role });
    }
    return { ...this.region, statements, tensors };
  }

  /** The piece's part of one statement, as a region by itself. */
  statementRegion(at: number, cut: ChainCut): Region {
    const piece = this.piece(cut);
    const statement = piece.statements[at]!;
    const { reads, finishReads, writes, name } = statement;
    const used = new Set([...reads, ...finishReads, ...writes].map((a) => a.tensor));
    const { sharedLoops: _, ...rest } = piece;
    return {
      ...rest,
      name,
      statements: [statement],
      tensors: new Map([...piece.tensors].filter(([tensor]) => used.has(tensor))),
    };
  }

  schedule({ cut, parallel, tiles }: ChainState): Schedule {
    const { statements, name } = this.region;
    const made: Directive[] = [];
    const order = this.#sharedOrder(cut, parallel);
    const host = statements.at(-1)!;
    for (const [at, s] of statements.entries()) {
      const loops = s.loops.slice(0, this.shared).map((l) => l.name);
      const outer = order.map((i) => (i === cut.loop ? pieceLoop(loops[i]!) : loops[i]!));
      if (cut.loop !== undefined) made.push(cutDirective(s, loops[cut.loop]!, cut.rows));
      made.push(...this.#ownDirectives(s, { cut, outer, tile: tiles[at]! }));
      if (parallel !== undefined) {
        made.push({ kind: "parallelize", statement: s.name, loop: outer[0]! });
      }
    }
    const innermost = (s: Statement): string => {
      const i = order.at(-1)!;
      const loop = s.loops[i]!.name;
      return i === cut.loop ? pieceLoop(loop) : loop;
    };
    for (const s of statements.slice(0, -1)) {
      made.push({ kind: "fuse", statement: s.name, into: host.name, at: innermost(host) });
    }
    for (const tensor of this.inner()) {
      const writer = statements.find((s) => s.writes.some((w) => w.tensor === tensor))!;
      const at = innermost(writer);
      made.push({ kind: "place", tensor, scope: "local", statement: writer.name, at });
    }
    return { region: name, target: this.#target.name, directives: made };
  }

  /** The common loops outermost first: what is dealt out, the others, the pieces innermost. */
  #sharedOrder({ loop }: ChainCut, parallel: number | undefined): readonly number[] {
    const all = Array.from({ length: this.shared }, (_, i) => i);
    const rest = all.filter((i) => i !== loop && i !== parallel);
    const first = parallel === undefined ? [] : [parallel];
    return [...first, ...rest, ...(loop === undefined || loop === parallel ? [] : [loop])];
  }

  /** The directives of a piece's statement with the common loops around them. */
  #ownDirectives(
    s: Statement,
    {
      cut,
      outer,
      tile,
    }: { readonly cut: ChainCut; readonly outer: readonly string[]; readonly tile: StatementTile },
  ): readonly Directive[] {
    const { directives } = tile.schedule();
    const order = directives.find((d) => d.kind === "reorder");
    const whole = s.loops.slice(this.shared).map((l) => l.name);
    const rows = cut.loop === undefined ? [] : [s.loops[cut.loop]!.name];
    const own = order?.kind === "reorder" ? order.order : [...rows, ...whole];
    const rest = directives.filter((d) => d.kind !== "reorder");
    return [...rest, { kind: "reorder", statement: s.name, order: [...outer, ...own] }];
  }

  #pieceOf(s: Statement, { loop, rows }: ChainCut): Statement {
    const still = s.loops.slice(0, this.shared).filter((_, i) => i !== loop);
    const bound = substituteVariables(s, new Map(still.map((l) => [l.name, 0])));
    const loops = s.loops.flatMap((l, i): readonly Loop[] => {
      if (i === loop) return [{ ...l, extent: constant(rows) }];
      return i < this.shared ? [] : [l];
    });
    return { ...bound, loops };
  }

  #pieceShape(
    tensor: string,
    shape: readonly IndexExpr[],
    { loop, rows }: ChainCut,
  ): readonly IndexExpr[] {
    const writer = this.region.statements.find((s) => s.writes.some((w) => w.tensor === tensor))!;
    const { index } = writer.writes.find((w) => w.tensor === tensor)!;
    const names = writer.loops.slice(0, this.shared).map((l) => l.name);
    return shape.map((extent, axis) => {
      const used = variablesOf(index[axis]!);
      const i = names.findIndex((name) => used.has(name));
      if (i < 0) return extent;
      return constant(i === loop ? rows : 1);
    });
  }

  /** What the surroundings see: the common loops, and accesses to tensors that others meet. */
  #outsideFigures(): NestFigures {
    const all = this.region.statements.map((s) => nestFigures(this.region, s));
    const accesses = all.flatMap((f) =>
      f.accesses
        .filter((a) => a.role !== "local")
        .map((a) => ({
          ...a,
          axes: a.axes.map((x) => ({ ...x, steps: x.steps.slice(0, this.shared) })),
        })),
    );
    return { ...all.at(-1)!, loops: all.at(-1)!.loops.slice(0, this.shared), accesses };
  }
}

function cutDirective({ name }: Statement, loop: string, factor: number): Directive {
  return { kind: "split", statement: name, loop, factor, outer: pieceLoop(loop), inner: loop };
}

function pieceLoop(loop: string): string {
  return `${loop}_p`;
}

/**
 * Figures in which the loops outside a piece move nothing that lies in the piece's own memory: these
 * loops count as others, as many again behind the statement's own.
 */
export function placedFigures(
  figures: NestFigures,
  loops: readonly LoopFigures[],
  { depth, placed }: { readonly depth: number; readonly placed: ReadonlySet<string> },
): { readonly accesses: NestFigures["accesses"]; readonly loops: readonly LoopFigures[] } {
  const count = figures.loops.length;
  const accesses = figures.accesses.map((a) => ({
    ...a,
    axes: a.axes.map((x) => {
      const steps = new Float64Array(2 * count);
      steps.set(x.steps);
      if (!placed.has(a.tensor)) steps.set(x.steps, count);
      return { ...x, steps };
    }),
  }));
  const around = loops.map((l, at) => (at < depth ? { ...l, origin: l.origin + count } : l));
  return { accesses, loops: around };
}
