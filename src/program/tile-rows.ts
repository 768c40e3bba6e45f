/**
 * Rows of the tile intrinsics: bulk copies between memory and shared scope (TMA), small asynchronous
 * copies (cp.async), matrix loads and stores, exchanges within a warp, the matrix instructions mma.sync and
 * wgmma, and the reallocation of registers between warpgroups.
 * Fragment layouts: PTX ISA, "Matrix Fragments for mma.m16n8k16" and "Register Fragments for
 * wgmma.mma_async.m64nNk16" (accumulator D).
 */
import { type DType, dtypes } from "../semantics/dtype.ts";
import * as ix from "../semantics/index-expr.ts";
import type { ScalarOp } from "../semantics/scalar-expr.ts";
import type { FragmentMap, TileIntrinsic, TileOperand } from "./intrinsics.ts";
import type { Expr, Statement } from "./statement.ts";

const e0 = ix.variable("e0");
const e1 = ix.variable("e1");
const k = ix.variable("k");

/** Accumulator of m64nN: 128 threads, N / 2 registers each. */
function wgmmaAccumulator(n: number): FragmentMap {
  return {
    extents: [64, n],
    thread: ix.add(
      ix.mul(32, ix.floorDiv(e0, 16)),
      ix.mul(4, ix.mod(e0, 8)),
      ix.floorDiv(ix.mod(e1, 8), 2),
    ),
    register: ix.add(
      ix.mul(4, ix.floorDiv(e1, 8)),
      ix.mul(2, ix.floorDiv(ix.mod(e0, 16), 8)),
      ix.mod(e1, 2),
    ),
  };
}

/** C and D of m16n8: 4 registers a thread. */
const accumulator16x8: FragmentMap = {
  extents: [16, 8],
  thread: ix.add(ix.mul(4, ix.mod(e0, 8)), ix.floorDiv(e1, 2)),
  register: ix.add(ix.mul(2, ix.floorDiv(e0, 8)), ix.mod(e1, 2)),
};

/** A of m16n8k16, rows by k: 8 elements a thread; also what ldmatrix.x4 gives and stmatrix.x4 takes. */
const left16x16: FragmentMap = {
  extents: [16, 16],
  thread: ix.add(ix.mul(4, ix.mod(e0, 8)), ix.floorDiv(ix.mod(e1, 8), 2)),
  register: ix.add(ix.mod(e1, 2), ix.mul(2, ix.floorDiv(e0, 8)), ix.mul(4, ix.floorDiv(e1, 8))),
};

/** Two neighbouring B operands of m16n8k16, columns by k: the first 4 registers are the first one's. */
const right16x16: FragmentMap = {
  ...left16x16,
  register: ix.add(ix.mod(e1, 2), ix.mul(2, ix.floorDiv(e1, 8)), ix.mul(4, ix.floorDiv(e0, 8))),
};

/** One element a lane of a warp. */
const lane32: FragmentMap = { extents: [32, 1], thread: e0, register: ix.constant(0) };

/** B of m16n8k16 as columns by k: 4 elements a thread. */
const right8x16: FragmentMap = {
  extents: [8, 16],
  thread: ix.add(ix.mul(4, e0), ix.floorDiv(ix.mod(e1, 8), 2)),
  register: ix.add(ix.mod(e1, 2), ix.mul(2, ix.floorDiv(e1, 8))),
};

/** A of m64nNk16 where each of 128 threads holds a part of it: 8 elements. */
const left64x16: FragmentMap = {
  extents: [64, 16],
  thread: ix.add(
    ix.mul(32, ix.floorDiv(e0, 16)),
    ix.mul(4, ix.mod(e0, 8)),
    ix.floorDiv(ix.mod(e1, 8), 2),
  ),
  register: ix.add(
    ix.mod(e1, 2),
    ix.mul(2, ix.floorDiv(ix.mod(e0, 16), 8)),
    ix.mul(4, ix.floorDiv(e1, 8)),
  ),
};

type OperandParts = Pick<TileOperand, "name" | "access" | "dtype" | "extents"> &
  Partial<Pick<TileOperand, "scopes" | "layout" | "mayHangOver">>;

function operand(parts: OperandParts): TileOperand {
  return { scopes: ["shared"], layout: "buffer", mayHangOver: false, ...parts };
}

function fragment(
  name: string,
  access: TileOperand["access"],
  dtype: DType,
  map: FragmentMap,
): TileOperand {
  const threads = 1 + ix.evaluate(map.thread, lastElement(map));
  const extents = [(map.extents[0]! * map.extents[1]!) / threads];
  const base = operand({ name, access, dtype, extents, scopes: ["register"], layout: "fragment" });
  return { ...base, fragment: map };
}

function lastElement(map: FragmentMap): ReadonlyMap<string, number> {
  return new Map(map.extents.map((extent, axis) => [`e${axis}`, extent - 1]));
}

function loadOf(buffer: string, index: readonly ix.IndexExpr[], dtype: DType): Expr {
  const fill = dtype === "i64" || dtype === "u64" ? 0n : 0;
  return { kind: "load", buffer, index, guard: [], fill, dtype, lanes: 1 };
}

function toF32(value: Expr): Expr {
  if (value.dtype === "f32") return value;
  return { kind: "cast", dtype: "f32", lanes: 1, saturate: false, operand: value };
}

function applyOf(op: ScalarOp, ...operands: readonly Expr[]): Expr {
  return { kind: "apply", op, dtype: operands[0]!.dtype, lanes: 1, operands };
}

/** d[e0, e1] += sum over k < depth of f32(a[e0, k]) * f32(b[e1, k]), each step rounded to f32. */
function multiplyAccumulate(
  input: DType,
  depth: number,
  right: readonly ix.IndexExpr[] = [e1, k],
): Statement {
  const product = applyOf(
    "mul",
    toF32(loadOf("a", [e0, k], input)),
    toF32(loadOf("b", right, input)),
  );
  const sum = applyOf("add", loadOf("d", [e0, e1], "f32"), product);
  const body: Statement = { kind: "store", buffer: "d", index: [e0, e1], value: sum };
  const mode = { kind: "serial" } as const;
  return { kind: "for", variable: "k", extent: ix.constant(depth), mode, body: [body] };
}

const zeroAccumulator: Statement = {
  kind: "store",
  buffer: "d",
  index: [e0, e1],
  value: { kind: "literal", dtype: "f32", lanes: 1, value: 0 },
};

/** D += A B^T by the four warps of a role copy of 128 threads, 32 bytes of the depth; `set` forgets the old D. */
function wgmma(n: number, input: DType, variant: "add" | "set"): TileIntrinsic {
  const set = variant === "set";
  const layout = "swizzle128";
  const { bits } = dtypes[input];
  const depth = 256 / bits;
  return {
    kind: "tile",
    name: `wgmma.${set ? "set." : ""}m64n${n}k${depth}.f32.${input}`,
    needs: bits === 8 ? "wgmma.fp8" : `wgmma.${input}`,
    operands: [
      fragment("d", set ? "write" : "readWrite", "f32", wgmmaAccumulator(n)),
      operand({ name: "a", access: "read", dtype: input, extents: [64, depth], layout }),
      operand({ name: "b", access: "read", dtype: input, extents: [n, depth], layout }),
    ],
    collective: "copy",
    completion: "group",
    proxy: "async",
    body: [...(set ? [zeroAccumulator] : []), multiplyAccumulate(input, depth)],
  };
}

/** Columns of a panel of an operand whose rows lie along the depth: as wide as its swizzle. */
const panel = 64;

/** D += A B by the four warps of a role copy, A as their threads hold it, B in panels of columns, [panel, k, column]. */
function wgmmaHeld(n: number, input: DType): TileIntrinsic {
  const extents = [n / panel, 16, panel];
  const right = [ix.floorDiv(e1, panel), k, ix.mod(e1, panel)];
  return {
    kind: "tile",
    name: `wgmma.held.m64n${n}k16.f32.${input}`,
    needs: `wgmma.${input}`,
    operands: [
      fragment("d", "readWrite", "f32", wgmmaAccumulator(n)),
      fragment("a", "read", input, left64x16),
      operand({ name: "b", access: "read", dtype: input, extents, layout: "swizzle128" }),
    ],
    collective: "copy",
    completion: "group",
    proxy: "async",
    body: [multiplyAccumulate(input, 16, right)],
  };
}

function mma(input: DType): TileIntrinsic {
  return {
    kind: "tile",
    name: `mma.m16n8k16.f32.${input}`,
    needs: `mma.${input}`,
    operands: [
      fragment("d", "readWrite", "f32", accumulator16x8),
      fragment("a", "read", input, left16x16),
      fragment("b", "read", input, right8x16),
    ],
    collective: "warp",
    completion: "sync",
    proxy: "ordinary",
    body: [multiplyAccumulate(input, 16)],
  };
}

interface CopyParts {
  readonly name: string;
  readonly needs: string;
  readonly from: TileOperand;
  readonly to: TileOperand;
  readonly rank: number;
  readonly add?: true;
}

/** A copy row without its way of completing; the body names the dtype `u8` for "any". */
function copyBody(parts: CopyParts): readonly Statement[] {
  const at = Array.from({ length: parts.rank }, (_, axis) => ix.variable(`e${axis}`));
  const dtype = parts.to.dtype === "any" ? "u8" : parts.to.dtype;
  const read = loadOf(parts.from.name, at, dtype);
  const value = parts.add ? applyOf("add", loadOf(parts.to.name, at, dtype), read) : read;
  return [{ kind: "store", buffer: parts.to.name, index: at, value }];
}

const any = { dtype: "any", extents: "any" } as const;

/** TMA: memory to shared, zero outside, bytes counted on a phase counter. */
function bulkLoad(rank: number): TileIntrinsic {
  const to = operand({ name: "dst", access: "write", ...any });
  const from = operand({
    name: "src",
    access: "read",
    ...any,
    scopes: ["memory"],
    mayHangOver: true,
  });
  const parts = { name: `bulk.load.${rank}d`, needs: "bulk.tile", from, to, rank };
  return {
    kind: "tile",
    name: parts.name,
    needs: parts.needs,
    operands: [to, from],
    collective: "thread",
    completion: "signals",
    proxy: "async",
    body: copyBody(parts),
  };
}

/** TMA: shared to memory, nothing written outside, in bulk groups. */
function bulkStore(rank: number): TileIntrinsic {
  const scopes = ["memory"] as const;
  const to = operand({ name: "dst", access: "write", ...any, scopes, mayHangOver: true });
  const from = operand({ name: "src", access: "read", ...any });
  const parts = { name: `bulk.store.${rank}d`, needs: "bulk.tile", from, to, rank };
  return {
    kind: "tile",
    name: parts.name,
    needs: parts.needs,
    operands: [to, from],
    collective: "thread",
    completion: "group",
    proxy: "async",
    body: copyBody(parts),
  };
}

/** A few contiguous elements (4, 8 or 16 bytes) from memory to shared by the thread itself. */
function asyncCopy(): TileIntrinsic {
  const to = operand({ name: "dst", access: "write", ...any });
  const from = operand({ name: "src", access: "read", ...any, scopes: ["memory"] });
  const parts = { name: "cp.async", needs: "cp.async", from, to, rank: 1 };
  return {
    kind: "tile",
    name: parts.name,
    needs: parts.needs,
    operands: [to, from],
    collective: "thread",
    completion: "group",
    proxy: "ordinary",
    body: copyBody(parts),
  };
}

/** Which operand of a matrix instruction a fragment is for, and whether memory has it transposed. */
interface MatrixMove {
  readonly side: "left" | "right";
  readonly transposed: boolean;
}

/**
 * ldmatrix.x4 and stmatrix.x4: a 16 x 16 tile of 16-bit elements between shared and a fragment; for
 * the right side it is two B operands of m16n8k16, and transposed ones are read across.
 */
function moveMatrix(
  direction: "load" | "store",
  dtype: DType,
  { side, transposed }: MatrixMove,
): TileIntrinsic {
  const loads = direction === "load";
  const map = side === "left" ? left16x16 : right16x16;
  const inRegisters = fragment(loads ? "dst" : "src", loads ? "write" : "read", dtype, map);
  const inShared = operand({
    name: loads ? "src" : "dst",
    access: loads ? "read" : "write",
    dtype,
    extents: [16, 16],
  });
  const variant = `${transposed ? "trans." : ""}${side === "right" ? "right." : ""}`;
  const at = transposed ? [e1, e0] : [e0, e1];
  const [registers, shared] = [
    [e0, e1],
    [at[0]!, at[1]!],
  ];
  return {
    kind: "tile",
    name: `${loads ? "ldmatrix" : "stmatrix"}.x4.${variant}${dtype}`,
    needs: loads ? "ldmatrix" : "stmatrix",
    operands: loads ? [inRegisters, inShared] : [inShared, inRegisters],
    collective: "warp",
    completion: "sync",
    proxy: "ordinary",
    body: [
      loads
        ? { kind: "store", buffer: "dst", index: registers, value: loadOf("src", shared, dtype) }
        : { kind: "store", buffer: "dst", index: shared, value: loadOf("src", registers, dtype) },
    ],
  };
}

/** Every lane of a warp gets the value of the lane whose number differs in one bit. */
function shuffle(distance: number, dtype: DType): TileIntrinsic {
  const bit = ix.mod(ix.floorDiv(e0, distance), 2);
  const other = ix.add(e0, distance, ix.mul(-2 * distance, bit));
  return {
    kind: "tile",
    name: `shuffle.xor${distance}.${dtype}`,
    needs: "shuffle",
    operands: [fragment("dst", "write", dtype, lane32), fragment("src", "read", dtype, lane32)],
    collective: "warp",
    completion: "sync",
    proxy: "ordinary",
    body: [
      {
        kind: "store",
        buffer: "dst",
        index: [e0, ix.constant(0)],
        value: loadOf("src", [other, ix.constant(0)], dtype),
      },
    ],
  };
}

/** Registers of the threads of four warps given back or taken: no effect on values. */
function setRegisters(direction: "dec" | "inc", count: number): TileIntrinsic {
  return {
    kind: "tile",
    name: `setmaxnreg.${direction}.${count}`,
    needs: "setmaxnreg",
    operands: [],
    collective: "copy",
    completion: "sync",
    proxy: "ordinary",
    body: [],
  };
}

const ranks = [1, 2, 3, 4, 5];
const widths = Array.from({ length: 32 }, (_, i) => 8 * (i + 1));
const halves = ["bf16", "f16"] as const;
const bytes = ["f8e4m3fn", "f8e5m2"] as const;
const matrixMoves: readonly MatrixMove[] = [
  { side: "left", transposed: false },
  { side: "right", transposed: false },
  { side: "left", transposed: true },
  { side: "right", transposed: true },
];
const registerCounts = Array.from({ length: 30 }, (_, i) => 24 + 8 * i);

/** Made when they are asked for: programs of processors have none, and there are hundreds. */
export function tileRows(): readonly TileIntrinsic[] {
  return [
    ...ranks.map(bulkLoad),
    ...ranks.map(bulkStore),
    asyncCopy(),
    ...halves.flatMap((dtype) => [
      ...matrixMoves.map((move) => moveMatrix("load", dtype, move)),
      moveMatrix("store", dtype, { side: "left", transposed: false }),
    ]),
    ...(["f32", "i32", "u32"] as const).flatMap((dtype) =>
      [1, 2, 4, 8, 16].map((distance) => shuffle(distance, dtype)),
    ),
    ...registerCounts.flatMap((n) => [setRegisters("dec", n), setRegisters("inc", n)]),
    ...halves.map(mma),
    ...[...halves, ...bytes].flatMap((dtype) =>
      widths.flatMap((n) => [wgmma(n, dtype, "add"), wgmma(n, dtype, "set")]),
    ),
    ...halves.flatMap((dtype) =>
      widths.filter((n) => n % panel === 0).map((n) => wgmmaHeld(n, dtype)),
    ),
  ];
}
