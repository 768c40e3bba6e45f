/**
 * Directives: the vocabulary of schedules. A schedule is a list of them applied in order to the loops
 * of a region's statements; it is a value: printable, replayable, diffable, searchable. Each directive
 * is checked on the transformed schedule by dependence analysis (legality.ts); none is trusted.
 *
 * Loops are named per statement. `split` and `tile` introduce new names; every later directive uses
 * the names that exist at its place in the list.
 */
import type { TreeDirective } from "../affine/index.ts";
import type { LayoutMap } from "../semantics/layout.ts";

/** Memory scopes, nearest last: `memory` is main or global memory. */
export type MemoryScope = "memory" | "shared" | "local" | "register";

/**
 * Where the iterations of a bound loop run when a grid is made of blocks of threads: each block takes
 * one, each thread of a block, or each group of threads of a block.
 */
export type GridLevel = "blocks" | "groups" | "threads";

export const gridLevels: readonly GridLevel[] = ["blocks", "groups", "threads"];

/** What changes loops in a way that only schedule trees can say; affine/tree/ has what each does. */
export const treeKinds = [
  "interchange",
  "jam",
  "skew",
  "shift",
  "diamond",
  "fission",
  "pipeline",
  "roles",
  "split-reduction",
  "split-scan",
  "fold",
  "overwrite",
  "buffer",
  "overlap",
] as const;

export type TreeOnlyDirective = Extract<
  TreeDirective,
  { readonly kind: (typeof treeKinds)[number] }
>;

export function isTreeOnly(d: Directive): d is TreeOnlyDirective {
  return (treeKinds as readonly string[]).includes(d.kind);
}

export type Directive =
  | TreeOnlyDirective
  /** loop = outer * factor + inner, 0 <= inner < factor; a ragged end is guarded or peeled by lowering. */
  | {
      readonly kind: "split";
      readonly statement: string;
      readonly loop: string;
      readonly factor: number;
      readonly outer: string;
      readonly inner: string;
    }
  /** Splits each loop and moves all inner loops inside all outer ones. */
  | {
      readonly kind: "tile";
      readonly statement: string;
      readonly loops: readonly string[];
      readonly factors: readonly number[];
      readonly outer: readonly string[];
      readonly inner: readonly string[];
    }
  /** The full order of the statement's loops, outermost first. */
  | { readonly kind: "reorder"; readonly statement: string; readonly order: readonly string[] }
  /** All iterations of a loop of constant extent at once, in lanes; must be innermost for its lanes. */
  | { readonly kind: "vectorize"; readonly statement: string; readonly loop: string }
  | { readonly kind: "unroll"; readonly statement: string; readonly loop: string }
  /** Iterations are dealt out to the instances of the grid. */
  | { readonly kind: "parallelize"; readonly statement: string; readonly loop: string }
  /** Each iteration runs on a block, a group of threads or a thread of its own. */
  | {
      readonly kind: "bind";
      readonly statement: string;
      readonly loop: string;
      readonly level: GridLevel;
    }
  /** Computes `statement` inside `into`, once per iteration of the loops down to `at`. */
  | {
      readonly kind: "fuse";
      readonly statement: string;
      readonly into: string;
      readonly at: string;
    }
  /** Keeps a tensor written in the region in a nearer scope, one tile per iteration of `at`. */
  | {
      readonly kind: "place";
      readonly tensor: string;
      readonly scope: MemoryScope;
      readonly statement: string;
      readonly at: string;
    }
  /** Copies the part of an operand that an iteration of `at` reads into a nearer scope first. */
  | {
      readonly kind: "stage";
      readonly tensor: string;
      readonly scope: MemoryScope;
      readonly statement: string;
      readonly at: string;
      /** Copies in flight: 1 is plain, 2 double buffering. */
      readonly depth: number;
    }
  /** A sum of products by blocks of threads that share tiles of both operands in shared memory. */
  | MultiplyDirective
  /** All statements of a region in one kernel of blocks of threads that keep whole rows. */
  | RowsDirective
  /** Attention, all statements of a region, in one kernel of blocks that walk the scores once. */
  | AttendDirective
  /** A map that turns what it reads, in one kernel of blocks that bring tiles of it into shared memory. */
  | TurnDirective
  /** Stores a tensor in another physical layout; weights are packed ahead of time. */
  | { readonly kind: "layout"; readonly tensor: string; readonly layout: LayoutMap };

/** Who multiplies: each thread by itself, the threads of a warp together, or four warps together. */
export const multipliers = ["fma", "mma", "wgmma"] as const;
export type Multiplier = (typeof multipliers)[number];

export const swizzles = [0, 32, 64, 128] as const;

export interface MultiplyDirective {
  readonly kind: "multiply";
  readonly statement: string;
  readonly by: Multiplier;
  /** Rows, columns and depth of a block's tile. */
  readonly tile: readonly [number, number, number];
  /** Warps of a block down the rows and across the columns. */
  readonly warps: readonly [number, number];
  /** Tiles along the depth that shared memory holds at once. */
  readonly stages: number;
  /** Bytes over which rows of shared memory are exchanged; 0: rows are padded. */
  readonly swizzle: (typeof swizzles)[number];
  /** Tiles below each other that blocks work through before they go on to the next columns. */
  readonly group: number;
  /** Parts of the results that each warpgroup gathers in shared memory at once; 0: threads store them. */
  readonly results: number;
  /** Blocks that go on from tile to tile, as long as there are some; 0: one block a tile. */
  readonly blocks: number;
  /** Sets of such warps, which take turns: each multiplies tiles of its own while others store theirs. */
  readonly teams: number;
  /** Parts of the depth, each a block's of a cluster, which exchange their sums and finish a share of the columns each. */
  readonly parts: number;
  /** Neighbouring blocks that bring the operand they share together, a part each; 1: each its own. */
  readonly cluster: number;
  /** The columns of the results, which neighbour in memory, are the rows of the tiles. */
  readonly swapped: boolean;
  /** Whether threads load what the epilogue reads for each result before they multiply. */
  readonly ahead: boolean;
}

/**
 * What a thread keeps of its elements between the statements: all in registers; what came from memory,
 * while what statements make is computed again; nothing, and memory is read again.
 */
export const rowKeepers = ["registers", "operands", "memory"] as const;
export type RowKeeper = (typeof rowKeepers)[number];

export interface RowsDirective {
  readonly kind: "rows";
  /** The last statement of the region: what the rows are for. */
  readonly statement: string;
  /** Threads of a block that share a row, a power of two. */
  readonly threads: number;
  /** Neighbouring elements that a thread loads and stores as one vector; across rows, neighbouring rows of one element. */
  readonly lanes: number;
  /** Rows that a block works on at once; across rows, vectors of rows beside each other. */
  readonly rows: number;
  /** Neighbours in memory are rows, not elements of a row: vectors and neighbouring threads lie across them. */
  readonly across: boolean;
  /** Across rows: elements behind each other of its row that a thread takes at once; 1 along them, where `lanes` are. */
  readonly items: number;
  /** Parts of a row, each a block's of a cluster, which tell each other what they fold. */
  readonly parts: number;
  readonly keep: RowKeeper;
  /** Vectors of a thread, its last ones, whose operands are kept in shared memory, where the others are in registers. */
  readonly shared: number;
}

/** Who multiplies: the threads of a warp together, or of a warpgroup, to which one thread streams keys and values. */
export const attenders = ["mma", "wgmma"] as const;
export type Attender = (typeof attenders)[number];

export interface AttendDirective {
  readonly kind: "attend";
  /** The last statement of the region: the product with the values. */
  readonly statement: string;
  readonly by: Attender;
  /** Rows of a block, and columns of the scores that it works on in a step. */
  readonly tile: readonly [number, number];
  /** Warps of a block that multiply, below each other. */
  readonly warps: number;
  /** Steps whose keys and values shared memory holds at once. */
  readonly stages: number;
  /** Whether results are gathered in shared memory and copied out in whole lines, or stored by each thread. */
  readonly gathered: boolean;
  /** Parts of the columns, each a block's of a cluster, which finish a share of each result together. */
  readonly parts: number;
  /** Parts of the columns, each any block's, which meet in memory: a second kernel finishes the results. */
  readonly splits: number;
}

export interface TurnDirective {
  readonly kind: "turn";
  readonly statement: string;
  /** Elements of a block's tile along what is turned, and along the results. */
  readonly tile: readonly [read: number, written: number];
  /** Threads of a block. */
  readonly threads: number;
  /** Neighbours that a thread loads as one vector, and that it stores as one. */
  readonly lanes: readonly [loaded: number, stored: number];
}

export interface Schedule {
  readonly region: string;
  readonly target: string;
  readonly directives: readonly Directive[];
}
