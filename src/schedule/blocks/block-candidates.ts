/**
 * Candidate schedules of a statement where a grid is made of blocks of threads. Every space loop is
 * spread: one loop over the threads of a group (so that neighbours touch neighbouring elements), one
 * over the groups of a block, all over blocks; each thread may keep a small tile of results in
 * registers. The reduction is serial in a thread, and so is a scan, of which a thread has whole lines, and so are
 * updates that may meet. Deterministic and bounded; prices and the choice are elsewhere. What is left (one line)
 * stays on one thread, in the loops' own order.
 */
import type { Access, Loop, Region, Statement, Write } from "../../region/nest.ts";
import { type DType, dtypes, isFloatDType } from "../../semantics/dtype.ts";
import { constantValue, splitLinear, variablesOf } from "../../semantics/index-expr.ts";
import { type IndexRanges, rangeOf } from "../../semantics/index-range.ts";
import type { BlockLimits, Target } from "../../target/target.ts";
import { enumerateAttention } from "../attention/attention-candidates.ts";
import type { Directive, Schedule } from "../directive.ts";
import { isExchanged } from "../exchanged-types.ts";
import { enumerateProducts } from "../products/product-candidates.ts";
import { productForm } from "../products/product-form.ts";
import { enumerateRows } from "../rows/rows-candidates.ts";
import { symbolRanges } from "../scheduled-region.ts";
import { enumerateTurns } from "../turns/turn-candidates.ts";
import { interleavedOf } from "./interleaved.ts";

/** Axes that a grid has beside each other; more space loops stay serial in the threads. */
const mostAxes = 3;
const threadsPerBlock = [64, 128, 256] as const;
/** Results of a thread along a second loop. */
const rowCounts = [1, 2, 4, 8] as const;
/** Bytes of a thread's neighbours that are loaded and stored as one vector. */
const vectorBytes = 16;
/** Types whose vectors are tried. */
const vectorTypes: ReadonlySet<string> = new Set([
  "f32",
  "f16",
  "bf16",
  "i32",
  "u32",
  "i16",
  "u16",
  "i8",
  "u8",
  "i4",
  "u4",
  "bool",
  "f8e4m3fn",
  "f8e5m2",
]);
/** Most results that a thread holds at once. */
const mostResults = 32;
/** Most copies of the body that an unrolled window may make. */
const mostCopies = 64;

/** Elements that one thread folds by vectors, at most. */
const longestFolded = 64;

/** Warps of a block that share its results out among them. */
const warpCounts = [2, 4, 8] as const;

/** All candidates of a region; with several statements, each is a kernel of its own. */
export function enumerateBlockSchedules(region: Region, target: Target): readonly Schedule[] {
  const limits = target.blocks;
  if (!limits) return [];
  const products = enumerateProducts(region, target);
  const whole = [
    ...products,
    ...enumerateRows(region, limits, target.capabilities.has("cluster")),
    ...enumerateAttention(region, target),
    ...enumerateTurns(region),
  ].map((directive) => scheduleOf(region, target, [directive]));
  // Loops over columns do not show that heads, which a product writes apart, are.
  if (products.length > 0 && writesHeads(region)) return whole;
  const isOfRows = region.statements.some((s) => scansForRows(region, s));
  if (isOfRows && whole.length > 0) return whole;
  return [...loopsOf(region, target, limits), ...whole];
}

/** Loops on threads alone, also where other candidates leave them out; none where they would compute something else. */
export function enumerateBlockLoops(region: Region, target: Target): readonly Schedule[] {
  const limits = target.blocks;
  // Loops would round what a scan of narrow floats carries at every step, and a scan that leaves it in memory of a
  // kernel's own has its reader in the same one.
  if (!limits || region.statements.some((s) => scansForRows(region, s))) return [];
  return loopsOf(region, target, limits);
}

/** The loops as they are, and spread over blocks and threads. */
function loopsOf(region: Region, target: Target, limits: BlockLimits): readonly Schedule[] {
  const lists = region.statements.map((s) => new BlockCandidates(region, s, limits).all());
  const [only] = lists;
  const choices = lists.length === 1 ? only! : [lists.flatMap((list) => list[0] ?? [])];
  return [[], ...choices].map((directives) => scheduleOf(region, target, directives));
}

function scheduleOf(region: Region, target: Target, directives: readonly Directive[]): Schedule {
  return { region: region.name, target: target.name, directives };
}

function writesHeads(region: Region): boolean {
  const form = productForm(region, region.statements[0]!);
  return typeof form !== "string" && form.run !== undefined;
}

/** A scan that only a kernel over rows computes as it is meant. */
function scansForRows({ tensors }: Region, { loops, writes }: Statement): boolean {
  const { dtype, role } = tensors.get(writes[0]!.tensor)!;
  const isNarrow = isFloatDType(dtype) && dtypes[dtype].bits < 32;
  return loops.some((l) => l.kind === "scan") && (isNarrow || role === "local");
}

interface Tile {
  readonly thread: string;
  readonly threads: number;
  readonly lanes: number;
  readonly group: string | undefined;
  readonly groups: number;
  readonly row: string | undefined;
  readonly rows: number;
  /** A reduction that each thread folds by vectors, and their lanes. */
  readonly along?: { readonly reduce: string; readonly lanes: number };
}

class BlockCandidates {
  readonly #statement: Statement;
  readonly #limits: BlockLimits;
  readonly #ranges: IndexRanges;
  readonly #space: readonly string[];
  readonly #typeOf: (tensor: string) => DType;
  /** What is scanned runs in order in a thread. */
  readonly #scans: boolean;
  /** What a line was is read again, one result at a time. */
  readonly #readsItself: boolean;

  constructor(region: Region, statement: Statement, limits: BlockLimits) {
    this.#statement = statement;
    this.#limits = limits;
    this.#ranges = symbolRanges(region);
    this.#space = statement.loops.filter((l) => l.kind === "space").map((l) => l.name);
    this.#typeOf = (tensor) => region.tensors.get(tensor)!.dtype;
    this.#scans = statement.loops.some((l) => l.kind === "scan");
    const written = new Set(statement.writes.map((w) => w.tensor));
    this.#readsItself = this.#scans && statement.reads.some((a) => written.has(a.tensor));
  }

  all(): readonly (readonly Directive[])[] {
    const { loops } = this.#statement;
    const nested = loops.some((l) => this.#space.some((name) => variablesOf(l.extent).has(name)));
    if (nested || (this.#scans && this.#space.length === 0)) return [];
    const found = new Map<string, readonly Directive[]>();
    for (const tile of this.#space.length === 0 ? [] : this.#tiles()) {
      const directives = this.#directives(tile);
      found.set(JSON.stringify(directives), directives);
    }
    if (this.#scans) return [...found.values()];
    for (const tile of this.#folding()) {
      const directives = this.#directives(tile);
      found.set(JSON.stringify(directives), directives);
    }
    for (const directives of this.#shared()) found.set(JSON.stringify(directives), directives);
    return [...found.values()];
  }

  /** Short reductions of neighbours, each in one thread, by vectors: a warp's threads are that far from each other. */
  *#folding(): Generator<Tile> {
    const { reduction, loops, reads } = this.#statement;
    if (!reduction || reduction.numericClass === "approximates" || this.#space.length === 0) return;
    const last = loops.at(-1)!;
    const { name } = last;
    const isNear = reads.some((a) => splitLinear(a.index.at(-1)!, name)?.coefficient === 1);
    if (last.kind !== "reduce" || !isNear || this.#extentOf(last) > longestFolded) return;
    if (loops.some((l) => nestedReduce(l, loops))) return;
    const lanes = Math.max(...this.#lanesOf(name));
    if (lanes === 1) return;
    for (const thread of this.#threadLoops()) {
      for (const size of threadsPerBlock) {
        const threads = Math.min(size, this.#fit(this.#extent(thread)));
        const part = { thread, threads, lanes: 1, row: undefined, rows: 1 };
        for (const tile of this.#groupings(part, size))
          yield { ...tile, along: { reduce: name, lanes } };
      }
    }
  }

  /** The reduction of each result dealt out to the threads of a warp. */
  *#shared(): Generator<readonly Directive[]> {
    const { reduction, loops } = this.#statement;
    const { warpThreads } = this.#limits;
    if (!reduction || reduction.numericClass === "approximates") return;
    const exchanged = reduction.monoid.components.every(isExchanged);
    const long = loops.filter((l) => l.kind === "reduce" && this.#extentOf(l) >= warpThreads / 2);
    if (!exchanged || loops.some((l) => nestedReduce(l, loops))) return;
    for (const { name } of long) {
      for (const group of [undefined, ...this.#space.slice(-2)]) {
        for (const groups of group === undefined ? [1] : warpCounts) {
          if (group !== undefined && this.#extent(group) < groups) continue;
          const rows = this.#space.filter((l) => l !== group && this.#extent(l) > 1).slice(-2);
          for (const row of [undefined, ...rows]) {
            for (const count of row === undefined ? [1] : rowCounts.slice(1, 3)) {
              if (row !== undefined && this.#extent(row) < count) continue;
              for (const lanes of this.#lanesAlong(name)) {
                yield this.#inWarps(name, { group, groups, row, rows: count, lanes });
              }
            }
          }
        }
      }
    }
  }

  /** Vectors along a reduction: some operand has its elements in neighbouring places, and all warps have some. */
  #lanesAlong(reduce: string): readonly number[] {
    const { reads } = this.#statement;
    const steps = reads.map((a) => splitLinear(a.index.at(-1)!, reduce)?.coefficient);
    if (!steps.includes(1)) return [1];
    const possible = this.#lanesOf(reduce);
    let widest = Math.max(...possible);
    while (widest > 1 && this.#extent(reduce) < 32 * widest) widest /= 2;
    return [...new Set([...possible.filter((n) => n <= widest), widest])];
  }

  #inWarps(
    reduce: string,
    { group, groups, row, rows, lanes }: Omit<Tile, "thread" | "threads">,
  ): readonly Directive[] {
    const statement = this.#statement.name;
    const directives: Directive[] = [];
    const split = (loop: string, factor: number, outer: string, inner: string): void => {
      directives.push({ kind: "split", statement, loop, factor, outer, inner });
    };
    const blocks = this.#space.map((name) => {
      if (name === row) {
        split(name, rows, `${name}_q`, `${name}_r`);
        directives.push({ kind: "unroll", statement, loop: `${name}_r` });
        return `${name}_q`;
      }
      if (name !== group) return name;
      split(name, groups, `${name}_b`, `${name}_g`);
      directives.push({ kind: "bind", statement, loop: `${name}_g`, level: "groups" });
      return `${name}_b`;
    });
    const { warpThreads } = this.#limits;
    const registers = row === undefined ? [] : [`${row}_r`];
    if (lanes > 1) split(reduce, lanes, `${reduce}_v`, `${reduce}_l`);
    split(lanes > 1 ? `${reduce}_v` : reduce, warpThreads, `${reduce}_o`, `${reduce}_t`);
    directives.push({ kind: "bind", statement, loop: `${reduce}_t`, level: "threads" });
    if (lanes > 1) {
      directives.push({ kind: "vectorize", statement, loop: `${reduce}_l` });
      registers.push(`${reduce}_l`);
    }
    const longest = [...blocks].sort((a, b) => this.#extent(b) - this.#extent(a));
    const chosen = new Set(longest.slice(0, mostAxes));
    const spread = blocks.filter((b) => chosen.has(b));
    const serial = blocks.filter((b) => !chosen.has(b));
    const inner = this.#statement.loops.flatMap((l) =>
      l.kind !== "reduce" ? [] : [l.name === reduce ? `${reduce}_o` : l.name],
    );
    const inside = group === undefined ? [] : [`${group}_g`];
    const order = [...spread, ...inside, ...serial, `${reduce}_t`, ...inner, ...registers];
    return [
      ...directives,
      { kind: "reorder", statement, order },
      ...spread.map((loop) => ({ kind: "bind", statement, loop, level: "blocks" }) as const),
    ];
  }

  #extentOf(loop: Loop): number {
    return Math.max(1, rangeOf(loop.extent, this.#ranges).max);
  }

  *#tiles(): Generator<Tile> {
    for (const thread of this.#threadLoops()) {
      for (const size of threadsPerBlock) {
        for (const lanes of this.#lanesOfThread(thread)) {
          const threads = Math.min(size, this.#fit(Math.ceil(this.#extent(thread) / lanes)));
          for (const row of [undefined, ...(this.#scans ? [] : this.#others(thread))]) {
            const most = row === undefined ? 1 : this.#extent(row);
            for (const rows of row === undefined ? [1] : rowCounts.slice(1)) {
              if (rows > most || rows * lanes > mostResults) continue;
              yield* this.#groupings({ thread, threads, lanes, row, rows }, size);
            }
          }
        }
      }
    }
  }

  *#groupings(part: Omit<Tile, "group" | "groups">, size: number): Generator<Tile> {
    const { thread, threads, row, rows } = part;
    yield { ...part, group: undefined, groups: 1 };
    for (const group of this.#others(thread)) {
      const trips = Math.ceil(this.#extent(group) / (group === row ? rows : 1));
      const groups = evenShare(trips, Math.floor(size / threads));
      if (groups > 1) yield { ...part, group, groups };
    }
  }

  /** Loops along which some access moves by one element, else the last one. */
  #threadLoops(): readonly string[] {
    const { reads, writes, finishReads } = this.#statement;
    const accesses = [...writes, ...reads, ...finishReads];
    const near = this.#space.filter((name) =>
      accesses.some((a) => {
        const steps = a.index.map((e) => splitLinear(e, name)?.coefficient);
        return steps.at(-1) === 1 && steps.slice(0, -1).every((c) => c === 0);
      }),
    );
    return near.length > 0 ? near : this.#space.slice(-1);
  }

  /** As many as vectors have, and as many as have one vector together with accesses between theirs. */
  #lanesOfThread(thread: string): readonly number[] {
    const possible = this.#lanesOf(thread);
    const { reads, writes } = this.#statement;
    const shared = [reads, writes].flatMap((accesses) => {
      return [...interleavedOf<Access | Write>(accesses, new Map(), thread)];
    });
    const fewer = shared.flatMap(([{ tensor }, { step }]) => {
      const lanes = (8 * vectorBytes) / dtypes[this.#typeOf(tensor)].bits / step;
      return Number.isInteger(lanes) && possible.some((n) => n % lanes === 0) ? [lanes] : [];
    });
    return [...new Set([...possible, ...fewer])].sort((m, n) => m - n);
  }

  /**
   * Vectors need whole, aligned ones: the extent is a multiple; and all their lanes share what indices are loaded.
   * What does not move with the loop is the same in all lanes, whatever its type.
   */
  #lanesOf(thread: string): readonly number[] {
    const { loops, indirects, reads, finishReads, writes } = this.#statement;
    const extent = constantValue(loops.find((l) => l.name === thread)!.extent);
    const isLoaded = indirects.some(({ access: { index, guard } }) =>
      variablesOf(...index, ...guard.map((c) => c.expr)).has(thread),
    );
    const moving = [...reads, ...finishReads, ...writes].filter((a) =>
      variablesOf(...a.index).has(thread),
    );
    const types = moving.map((a) => this.#typeOf(a.tensor));
    if (
      isLoaded ||
      this.#readsItself ||
      extent === undefined ||
      !types.every((t) => vectorTypes.has(t))
    )
      return [1];
    const counts = types.map((t) => (8 * vectorBytes) / dtypes[t].bits).sort((m, n) => m - n);
    return [...new Set([1, ...counts])].filter((n) => extent % n === 0);
  }

  #others(thread: string): readonly string[] {
    return this.#space.filter((name) => name !== thread && this.#extent(name) > 1);
  }

  /** The power of two that holds `count`, at most a block and at least a warp. */
  #fit(count: number): number {
    const { warpThreads, threadsPerBlock } = this.#limits;
    const power = 2 ** Math.ceil(Math.log2(Math.max(1, count)));
    return Math.min(threadsPerBlock, count >= warpThreads ? power : Math.max(1, power));
  }

  #directives(tile: Tile): readonly Directive[] {
    const statement = this.#statement.name;
    const directives: Directive[] = [];
    const split = (loop: string, factor: number, outer: string, inner: string): void => {
      directives.push({ kind: "split", statement, loop, factor, outer, inner });
    };
    const blocks: string[] = [];
    const bound: Directive[] = [];
    const bind = (loop: string, level: "groups" | "threads"): string => {
      bound.push({ kind: "bind", statement, loop, level });
      return loop;
    };
    const registers: string[] = [];
    let [group, thread]: (string | undefined)[] = [];
    for (const name of this.#space) {
      let rest = name;
      if (name === tile.row && tile.rows > 1) {
        split(rest, tile.rows, `${name}_q`, `${name}_r`);
        bound.push({ kind: "unroll", statement, loop: `${name}_r` });
        registers.push(`${name}_r`);
        rest = `${name}_q`;
      }
      if (name === tile.thread && tile.lanes > 1) {
        split(rest, tile.lanes, `${name}_q`, `${name}_l`);
        bound.push({ kind: "vectorize", statement, loop: `${name}_l` });
        registers.push(`${name}_l`);
        rest = `${name}_q`;
      }
      if (name === tile.group) {
        split(rest, tile.groups, `${name}_b`, `${name}_g`);
        group = bind(`${name}_g`, "groups");
        rest = `${name}_b`;
      }
      if (name === tile.thread) {
        split(rest, tile.threads, `${name}_b`, `${name}_t`);
        thread = bind(`${name}_t`, "threads");
        rest = `${name}_b`;
      }
      blocks.push(rest);
    }
    const spread = this.#axesOf(blocks, tile);
    const serial = blocks.filter((b) => !spread.includes(b));
    const { along } = tile;
    if (along) {
      const [outer, inner] = [`${along.reduce}_v`, `${along.reduce}_l`];
      split(along.reduce, along.lanes, outer, inner);
      bound.push({ kind: "vectorize", statement, loop: inner });
      registers.push(inner);
    }
    const folded = this.#statement.loops.filter((l) => l.kind !== "space").map((l) => l.name);
    const inOrder = folded.map((name) => (name === along?.reduce ? `${name}_v` : name));
    const inside = [group, thread].filter((l) => l !== undefined);
    const order = [...spread, ...inside, ...serial, ...inOrder, ...registers];
    return [
      ...directives,
      ...bound,
      ...(along ? [] : this.#unrollWindow(tile.rows * tile.lanes)),
      { kind: "reorder", statement, order },
      ...spread.map((loop) => ({ kind: "bind", statement, loop, level: "blocks" }) as const),
    ];
  }

  /** The longest loops become axes, in the order of the statement. */
  #axesOf(blocks: readonly string[], tile: Tile): readonly string[] {
    if (blocks.length <= mostAxes) return blocks;
    const kept = blocks.filter((b) => b.startsWith(`${tile.thread}_`));
    const rest = blocks.filter((b) => !kept.includes(b));
    const longest = [...rest].sort((a, b) => this.#extent(b) - this.#extent(a));
    const chosen = new Set([...kept, ...longest.slice(0, mostAxes - kept.length)]);
    return blocks.filter((b) => chosen.has(b));
  }

  /** Short innermost reduce loops (the window of a convolution) are copied out. */
  #unrollWindow(results: number): readonly Directive[] {
    const directives: Directive[] = [];
    if (this.#scans) return [];
    let copies = results;
    for (const loop of [...this.#statement.loops].reverse()) {
      if (loop.kind !== "reduce") continue;
      const extent = constantValue(loop.extent);
      if (extent === undefined || extent > 7 || copies * extent > mostCopies) break;
      copies *= extent;
      directives.push({ kind: "unroll", statement: this.#statement.name, loop: loop.name });
    }
    return directives;
  }

  #extent(name: string): number {
    const stem = this.#statement.loops.find((l) =>
      [l.name, `${l.name}_b`, `${l.name}_q`].includes(name),
    );
    return stem ? this.#extentOf(stem) : 1;
  }
}

/** At most `most` of `count` at a time: all, or a divisor that is not far from it, else as many as fit. */
function evenShare(count: number, most: number): number {
  for (let n = Math.min(count, most); 2 * n > most; n--) if (count % n === 0) return n;
  return Math.min(count, most);
}

/** Whether the extent of a reduce loop hangs on another loop. */
function nestedReduce(loop: Loop, loops: readonly Loop[]): boolean {
  const used = variablesOf(loop.extent);
  return loop.kind === "reduce" && loops.some((l) => used.has(l.name));
}
