/**
 * Offsets for blocks that live over intervals of time and must fit below a capacity, by exact search over
 * canonical solutions (Moffitt, MiniMalloc, ASPLOS 2023): blocks are placed in the order of their offsets,
 * each as low as those below it allow. At every node each section of time must still hold what waits in it
 * above the least offset that any of that may have. Independent stretches of time are
 * solved apart. Several static orders take turns, each with a growing share of the work.
 */

export interface Block {
  /** First moment alive, and the first after. */
  readonly start: number;
  readonly end: number;
  readonly size: number;
}

export interface Offsets {
  /** `packed`: offsets fit; `impossible`: proven that none do; `stopped`: the work ended first. */
  readonly status: "packed" | "impossible" | "stopped";
  /** Per block, when packed. */
  readonly offsets: Float64Array | undefined;
  readonly nodes: number;
}

export interface OffsetOptions {
  readonly capacity: number;
  /** Placements tried. */
  readonly nodes?: number;
  readonly expired?: () => boolean;
}

/** Nodes of the first turn of each order; every round has three times as many. */
const firstTurn = 5_000;

export function planOffsets(blocks: readonly Block[], options: OffsetOptions): Offsets {
  const offsets = new Float64Array(blocks.length);
  let nodes = 0;
  for (const part of stretches(blocks)) {
    const own = part.map((i) => blocks[i]!);
    const found = solveStretch(own, options, nodes);
    nodes = found.nodes;
    if (found.offsets === undefined) return { status: found.status, offsets: undefined, nodes };
    part.forEach((i, at) => {
      offsets[i] = found.offsets![at]!;
    });
  }
  return { status: "packed", offsets, nodes };
}

/** Blocks by stretches of time that no block joins. */
function stretches(blocks: readonly Block[]): number[][] {
  const order = blocks
    .map((_, i) => i)
    .sort((a, b) => blocks[a]!.start - blocks[b]!.start || a - b);
  const parts: number[][] = [];
  let end = -Infinity;
  for (const i of order) {
    if (blocks[i]!.start >= end) parts.push([]);
    parts.at(-1)!.push(i);
    end = Math.max(end, blocks[i]!.end);
  }
  return parts;
}

function solveStretch(blocks: readonly Block[], options: OffsetOptions, spent: number): Offsets {
  const orders = staticOrders(blocks);
  let nodes = spent;
  for (let turn = firstTurn; ; turn *= 2) {
    for (const order of orders) {
      const allowed = Math.min(turn, (options.nodes ?? Infinity) - nodes);
      const search = new OffsetSearch(
        order.map((i) => blocks[i]!),
        options,
        allowed,
      );
      const status = search.run();
      nodes += search.nodes;
      if (status === "packed") {
        const offsets = new Float64Array(blocks.length);
        order.forEach((i, at) => {
          offsets[i] = search.offsets[at]!;
        });
        return { status, offsets, nodes };
      }
      if (status === "impossible") return { status, offsets: undefined, nodes };
      const over = nodes >= (options.nodes ?? Infinity) || options.expired?.() === true;
      if (over) return { status: "stopped", offsets: undefined, nodes };
    }
  }
}

/** Most contended time, area and length, in every sequence: they complement each other. */
function staticOrders(blocks: readonly Block[]): number[][] {
  const contention = blocks.map((b) => {
    let most = 0;
    for (const at of blocks) {
      if (at.start < b.start || at.start >= b.end) continue;
      most = Math.max(most, loadAt(blocks, at.start));
    }
    return most;
  });
  const keys: readonly ((i: number) => number)[] = [
    (i) => contention[i]!,
    (i) => blocks[i]!.size * (blocks[i]!.end - blocks[i]!.start),
    (i) => blocks[i]!.end - blocks[i]!.start,
  ];
  const ids = blocks.map((_, i) => i);
  return [
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
    [0, 1, 2],
    [0, 2, 1],
  ].map((sequence) =>
    [...ids].sort((a, b) => {
      for (const k of sequence) {
        const difference = keys[k]!(b) - keys[k]!(a);
        if (difference !== 0) return difference;
      }
      return a - b;
    }),
  );
}

function loadAt(blocks: readonly Block[], time: number): number {
  let sum = 0;
  for (const b of blocks) if (b.start <= time && time < b.end) sum += b.size;
  return sum;
}

class OffsetSearch {
  nodes = 0;
  readonly offsets: Float64Array;
  readonly #blocks: readonly Block[];
  readonly #options: OffsetOptions;
  readonly #turn: number;
  /** Sections of time between starts and ends; a block spans first … last. */
  readonly #first: Int32Array;
  readonly #last: Int32Array;
  /** Sizes that wait in a section. */
  readonly #waiting: Float64Array;
  readonly #placed: Uint8Array;
  /** Lowest offset that each block may have now. */
  readonly #low: Float64Array;
  readonly #over: Int32Array[];
  /** Scratch: least offset that something waiting in a section may have. */
  readonly #least: Float64Array;
  #stopped = false;

  constructor(blocks: readonly Block[], options: OffsetOptions, turn: number) {
    this.#blocks = blocks;
    this.#options = options;
    this.#turn = turn;
    const times = [...new Set(blocks.flatMap((b) => [b.start, b.end]))].sort((a, b) => a - b);
    const numbers = new Map(times.map((t, k) => [t, k]));
    this.#first = Int32Array.from(blocks, (b) => numbers.get(b.start)!);
    this.#last = Int32Array.from(blocks, (b) => numbers.get(b.end)! - 1);
    this.#waiting = new Float64Array(times.length);
    this.#least = new Float64Array(times.length);
    blocks.forEach((b, i) => {
      for (let k = this.#first[i]!; k <= this.#last[i]!; k++) this.#waiting[k]! += b.size;
    });
    this.#placed = new Uint8Array(blocks.length);
    this.#low = new Float64Array(blocks.length);
    this.offsets = new Float64Array(blocks.length);
    this.#over = blocks.map((b, i) =>
      Int32Array.from(
        blocks.flatMap((c, j) => (i !== j && b.start < c.end && c.start < b.end ? [j] : [])),
      ),
    );
  }

  run(): "packed" | "impossible" | "stopped" {
    if (this.#waiting.some((w) => w > this.#options.capacity)) return "impossible";
    if (this.#descend(0, 0, -1)) return "packed";
    return this.#stopped ? "stopped" : "impossible";
  }

  /** `depth` blocks are placed, the last at `height` with number `before`. */
  #descend(depth: number, height: number, before: number): boolean {
    const count = this.#blocks.length;
    if (depth === count) return true;
    if (this.#stopped) return false;
    // Whatever comes next lies at least as high as the lowest top that a waiting block would have.
    let ceiling = Infinity;
    for (let i = 0; i < count; i++) {
      if (this.#placed[i] === 1) continue;
      const at = Math.max(this.#low[i]!, height);
      const top = at + this.#blocks[i]!.size;
      if (top > this.#options.capacity) return false;
      if (top < ceiling) ceiling = top;
    }
    const ready: number[] = [];
    for (let i = 0; i < count; i++) {
      if (this.#placed[i] === 1) continue;
      const at = this.#low[i]!;
      // Canonical: offsets do not fall, and equal ones come in the order of the numbers.
      if (at < height || (at === height && i < before) || at >= ceiling) continue;
      ready.push(i);
    }
    ready.sort((x, y) => this.#low[x]! - this.#low[y]! || x - y);
    for (const i of ready) {
      if (++this.nodes > this.#turn || (this.nodes % 256 === 0 && this.#options.expired?.())) {
        this.#stopped = true;
        return false;
      }
      if (this.#place(depth, i, this.#low[i]!)) return true;
      if (this.#stopped) return false;
    }
    return false;
  }

  #place(depth: number, i: number, at: number): boolean {
    const { size } = this.#blocks[i]!;
    const [first, last] = [this.#first[i]!, this.#last[i]!];
    const lows = Float64Array.from(this.#over[i]!, (j) => this.#low[j]!);
    for (let k = first; k <= last; k++) this.#waiting[k]! -= size;
    this.#placed[i] = 1;
    this.offsets[i] = at;
    for (const j of this.#over[i]!) {
      if (this.#placed[j] === 0 && this.#low[j]! < at + size) this.#low[j] = at + size;
    }
    if (this.#sectionsHold(at) && this.#descend(depth + 1, at, i)) return true;
    this.#placed[i] = 0;
    for (let k = first; k <= last; k++) this.#waiting[k]! += size;
    this.#over[i]!.forEach((j, k) => {
      this.#low[j] = lows[k]!;
    });
    return false;
  }

  /** Least offset that a waiting block may have: what lies below the height must be lifted by another. */
  #lowest(i: number, height: number): number {
    if (this.#low[i]! >= height) return this.#low[i]!;
    let least = Infinity;
    for (const j of this.#over[i]!) {
      if (this.#placed[j] === 1) continue;
      const top = Math.max(this.#low[j]!, height) + this.#blocks[j]!.size;
      if (top < least) least = top;
    }
    return least;
  }

  /** Every section holds what waits in it above the least offset that any of that may have. */
  #sectionsHold(height: number): boolean {
    const { capacity } = this.#options;
    const least = this.#least.fill(Infinity);
    for (let i = 0; i < this.#blocks.length; i++) {
      if (this.#placed[i] === 1) continue;
      const low = this.#lowest(i, height);
      if (low + this.#blocks[i]!.size > capacity) return false;
      for (let k = this.#first[i]!, end = this.#last[i]!; k <= end; k++) {
        if (low < least[k]!) least[k] = low;
      }
    }
    for (let k = 0; k < least.length; k++) {
      if (this.#waiting[k]! > 0 && least[k]! + this.#waiting[k]! > capacity) return false;
    }
    return true;
  }
}
