/**
 * Rows of the tile intrinsics: bulk copies between memory and shared scope (TMA), small asynchronous
 * copies (cp.async), matrix loads and stores, exchanges within a warp, the matrix instructions mma.sync and
 * wgmma, and the reallocation of registers between warpgroups.
 * Fragment layouts: PTX ISA, "Matrix Fragments for mma.m16n8k16" (and .m16n8k8 of tf32, .m16n8k32 of integers),
 * "Register Fragments for wgmma.mma_async.m64nNk16" (accumulator D). An instruction takes 32 bytes of the depth
 * whatever the elements are, so that fragments differ in the elements of a register alone.
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

/** C and D of m16n8: four registers a thread. */
const accumulator16x8: FragmentMap = {
  extents: [16, 8],
  thread: ix.add(ix.mul(4, ix.mod(e0, 8)), ix.floorDiv(e1, 2)),
  register: ix.add(ix.mul(2, ix.floorDiv(e0, 8)), ix.mod(e1, 2)),
};

/** Elements in a register of 32 bits. */
function inRegister(dtype: DType): number {
  return 32 / dtypes[dtype].bits;
}

/** Elements of 32 bytes: the depth of one instruction. */
function depthOf(dtype: DType): number {
  return 8 * inRegister(dtype);
}

/** The lane within its four, and the element of one of its two registers: neighbours along the depth are together. */
function alongDepth(dtype: DType): readonly [lane: ix.IndexExpr, element: ix.IndexExpr] {
  const n = inRegister(dtype);
  return [ix.floorDiv(ix.mod(e1, 4 * n), n), ix.mod(e1, n)];
}

/** A of m16n8, 32 bytes of the depth: four registers a thread; also what ldmatrix.x4 gives and stmatrix.x4 takes. */
function leftFragment(dtype: DType): FragmentMap {
  const n = inRegister(dtype);
  const [lane, element] = alongDepth(dtype);
  return {
    extents: [16, 8 * n],
    thread: ix.add(ix.mul(4, ix.mod(e0, 8)), lane),
    register: ix.add(element, ix.mul(n, ix.floorDiv(e0, 8)), ix.mul(2 * n, ix.floorDiv(e1, 4 * n))),
  };
}

/** Two neighbouring B operands of m16n8, columns by k: the first two registers are the first one's. */
function rightFragments(dtype: DType): FragmentMap {
  const n = inRegister(dtype);
  const [, element] = alongDepth(dtype);
  return {
    ...leftFragment(dtype),
    register: ix.add(element, ix.mul(n, ix.floorDiv(e1, 4 * n)), ix.mul(2 * n, ix.floorDiv(e0, 8))),
  };
}

/** B of m16n8 as columns by k: two registers a thread. */
function rightFragment(dtype: DType): FragmentMap {
  const n = inRegister(dtype);
  const [lane, element] = alongDepth(dtype);
  return {
    extents: [8, 8 * n],
    thread: ix.add(ix.mul(4, e0), lane),
    register: ix.add(element, ix.mul(n, ix.floorDiv(e1, 4 * n))),
  };
}

/** One element a lane of a warp. */
const lane32: FragmentMap = { extents: [32, 1], thread: e0, register: ix.constant(0) };

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

function castTo(dtype: DType, value: Expr): Expr {
  if (value.dtype === dtype) return value;
  return { kind: "cast", dtype, lanes: 1, saturate: false, operand: value };
}

function applyOf(op: ScalarOp, ...operands: readonly Expr[]): Expr {
  return { kind: "apply", op, dtype: operands[0]!.dtype, lanes: 1, operands };
}

/** What a matrix instruction multiplies and sums; floats of more than 8 bits are two of one type. */
interface Multiplied {
  readonly sum: "f32" | "i32";
  readonly left: DType;
  readonly right: DType;
  /** The operands as the instruction is told of them: f32 is read as tf32. */
  readonly spelled: string;
}

function ofFloats(dtype: DType): Multiplied {
  const spelled = dtype === "f32" ? "tf32" : dtype;
  return { sum: "f32", left: dtype, right: dtype, spelled };
}

const byteFloats = ["f8e4m3fn", "f8e5m2"] as const;

/** Floats of 8 bits: two of one type are spelled once. */
const byteFloatPairs: readonly Multiplied[] = byteFloats.flatMap((left) =>
  byteFloats.map((right) => {
    const spelled = left === right ? left : `${left}.${right}`;
    return { sum: "f32", left, right, spelled } as const;
  }),
);

const bytePairs: readonly Multiplied[] = (["u8", "i8"] as const).flatMap((left) =>
  (["u8", "i8"] as const).map((right) => {
    const spelled = `${left}.${right}`;
    return { sum: "i32", left, right, spelled } as const;
  }),
);

/**
 * d[e0, e1] += sum over k < depth of a[e0, k] * b[e1, k] in the type of the sums: integers exactly, floats with
 * each step rounded. Of f32 the instruction leaves out the 13 lowest bits: a result of the body is one that
 * its bound allows, not the one that a machine gives.
 */
function multiplyAccumulate(
  { sum: type, left, right }: Multiplied,
  depth: number,
  place: Readonly<Record<"left" | "right", readonly ix.IndexExpr[]>> = {
    left: [e0, k],
    right: [e1, k],
  },
): Statement {
  const [a, b] = [loadOf("a", place.left, left), loadOf("b", place.right, right)];
  const product = applyOf("mul", castTo(type, a), castTo(type, b));
  const sum = applyOf("add", loadOf("d", [e0, e1], type), product);
  const body: Statement = { kind: "store", buffer: "d", index: [e0, e1], value: sum };
  const mode = { kind: "serial" } as const;
  return { kind: "for", variable: "k", extent: ix.constant(depth), mode, body: [body] };
}

function zeroAccumulator(dtype: DType): Statement {
  const value = { kind: "literal", dtype, lanes: 1, value: 0 } as const;
  return { kind: "store", buffer: "d", index: [e0, e1], value };
}

function isByteFloat(dtype: DType): boolean {
  return byteFloats.some((f) => f === dtype);
}

function needsOf(instruction: "mma" | "wgmma", { sum, left, spelled }: Multiplied): string {
  if (sum === "i32") return `${instruction}.int8`;
  return `${instruction}.${isByteFloat(left) ? "fp8" : spelled}`;
}

/** Which operands of a matrix instruction lie with their rows (or columns), not the depth, as neighbours. */
type Turned = "left" | "right" | "both" | undefined;

/**
 * D += A B^T by the four warps of a role copy of 128 threads, 32 bytes of the depth; `set` forgets the old D.
 * Operands lie along the depth, [row, k], in rows as wide as their swizzle, or those of 16 bits that are `turned` in panels, [panel, k, row].
 */
function wgmma(
  n: number,
  given: Multiplied,
  variant: "add" | "set",
  turned?: Turned,
): TileIntrinsic {
  const set = variant === "set";
  const { sum, left, right, spelled } = given;
  const depth = depthOf(left);
  const [a, b] = [
    sharedOperand(64, depth, { at: e0, isTurned: turned === "left" || turned === "both" }),
    sharedOperand(n, depth, { at: e1, isTurned: turned === "right" || turned === "both" }),
  ];
  const variants = `${set ? "set." : ""}${turned ? `trans.${turned}.` : ""}`;
  const multiplied = multiplyAccumulate(given, depth, { left: a.place, right: b.place });
  return {
    kind: "tile",
    name: `wgmma.${variants}m64n${n}k${depth}.${sum}.${spelled}`,
    needs: needsOf("wgmma", given),
    operands: [
      fragment("d", set ? "write" : "readWrite", sum, wgmmaAccumulator(n)),
      operand({ name: "a", access: "read", dtype: left, ...a }),
      operand({ name: "b", access: "read", dtype: right, ...b }),
    ],
    collective: "copy",
    completion: "group",
    proxy: "async",
    body: [...(set ? [zeroAccumulator(sum)] : []), multiplied],
  };
}

/** How an operand of a matrix instruction lies in shared memory, and the place of its row `at` at a depth of k. */
function sharedOperand(
  extent: number,
  depth: number,
  { at, isTurned }: { readonly at: ix.IndexExpr; readonly isTurned: boolean },
): Pick<TileOperand, "extents" | "layout"> & { readonly place: readonly ix.IndexExpr[] } {
  if (!isTurned) return { extents: [extent, depth], layout: "swizzled", place: [at, k] };
  const wide = panelOf(extent);
  const place = [ix.floorDiv(at, wide), k, ix.mod(at, wide)];
  const layouts = { 64: "swizzle128", 32: "swizzle64", 16: "swizzle32" } as const;
  return { extents: [extent / wide, depth, wide], layout: layouts[wide], place };
}

/** Rows of a panel of an operand of 16 bits whose neighbours are rows: as many as the widest swizzle spans that divides. */
function panelOf(extent: number): 64 | 32 | 16 {
  return ([64, 32] as const).find((n) => extent % n === 0) ?? 16;
}

/** D += A B by the four warps of a role copy, A as their threads hold it, B in panels of columns, [panel, k, column]. */
function wgmmaHeld(n: number, input: DType): TileIntrinsic {
  const { place: right, ...b } = sharedOperand(n, 16, { at: e1, isTurned: true });
  return {
    kind: "tile",
    name: `wgmma.held.m64n${n}k16.f32.${input}`,
    needs: `wgmma.${input}`,
    operands: [
      fragment("d", "readWrite", "f32", wgmmaAccumulator(n)),
      fragment("a", "read", input, left64x16),
      operand({ name: "b", access: "read", dtype: input, ...b }),
    ],
    collective: "copy",
    completion: "group",
    proxy: "async",
    body: [multiplyAccumulate(ofFloats(input), 16, { left: [e0, k], right })],
  };
}

/** D += A B^T by a warp, 32 bytes of the depth; `set` forgets the old D. */
function mma(given: Multiplied, variant: "add" | "set" = "add"): TileIntrinsic {
  const set = variant === "set";
  const { sum, left, right, spelled } = given;
  const depth = depthOf(left);
  return {
    kind: "tile",
    name: `mma.${set ? "set." : ""}m16n8k${depth}.${sum}.${spelled}`,
    needs: needsOf("mma", given),
    operands: [
      fragment("d", set ? "write" : "readWrite", sum, accumulator16x8),
      fragment("a", "read", left, leftFragment(left)),
      fragment("b", "read", right, rightFragment(right)),
    ],
    collective: "warp",
    completion: "sync",
    proxy: "ordinary",
    body: [...(set ? [zeroAccumulator(sum)] : []), multiplyAccumulate(given, depth)],
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

/** Four f32 of a thread. */
const vector4: FragmentMap = { extents: [4, 1], thread: ix.constant(0), register: e0 };

/** Registers of a thread into another block's shared memory, bytes counted on that one's phase counter (st.async). */
function peerStore(): TileIntrinsic {
  const to = operand({ name: "dst", access: "write", dtype: "f32", extents: [4] });
  return {
    kind: "tile",
    name: "peer.store.x4.f32",
    needs: "cluster",
    operands: [to, fragment("src", "read", "f32", vector4)],
    collective: "thread",
    completion: "signals",
    toPeer: true,
    proxy: "ordinary",
    body: [
      {
        kind: "store",
        buffer: "dst",
        index: [e0],
        value: loadOf("src", [e0, ix.constant(0)], "f32"),
      },
    ],
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
 * ldmatrix.x4 and stmatrix.x4: a tile of 16 rows of 32 bytes between shared and a fragment; for the right side it
 * is two B operands, and transposed ones, of 16-bit elements, are read across.
 */
function moveMatrix(
  direction: "load" | "store",
  dtype: DType,
  { side, transposed }: MatrixMove,
): TileIntrinsic {
  const loads = direction === "load";
  const map = side === "left" ? leftFragment(dtype) : rightFragments(dtype);
  const inRegisters = fragment(loads ? "dst" : "src", loads ? "write" : "read", dtype, map);
  const inShared = operand({
    name: loads ? "src" : "dst",
    access: loads ? "read" : "write",
    dtype,
    extents: map.extents,
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

/** What the lanes of a warp tell each other: a word, or two. */
const exchangedTypes: readonly DType[] = ["f32", "i32", "u32", "f64", "i64", "u64"];

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
const matrixMoves: readonly MatrixMove[] = [
  { side: "left", transposed: false },
  { side: "right", transposed: false },
  { side: "left", transposed: true },
  { side: "right", transposed: true },
];
/** Elements of other sizes than 16 bits are not read across. */
const plainMoves = matrixMoves.filter((move) => !move.transposed);
/** Columns of integer wgmma: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions", shapes. */
const integerWidths = widths.filter((n) => n <= 32 || n % 16 === 0);
/** Columns that are neighbours lie in panels, of 16 at least. */
const turnedWidths = widths.filter((n) => n % 16 === 0);
const turns = ["left", "right", "both"] as const;
const registerCounts = Array.from({ length: 30 }, (_, i) => 24 + 8 * i);

/** Made when they are asked for: programs of processors have none, and there are hundreds. */
export function tileRows(): readonly TileIntrinsic[] {
  return [
    ...ranks.map(bulkLoad),
    ...ranks.map(bulkStore),
    asyncCopy(),
    peerStore(),
    ...halves.flatMap((dtype) => [
      ...matrixMoves.map((move) => moveMatrix("load", dtype, move)),
      moveMatrix("store", dtype, { side: "left", transposed: false }),
    ]),
    ...exchangedTypes.flatMap((dtype) =>
      [1, 2, 4, 8, 16].map((distance) => shuffle(distance, dtype)),
    ),
    ...registerCounts.flatMap((n) => [setRegisters("dec", n), setRegisters("inc", n)]),
    ...(["u8", "i8", "f32", ...byteFloats] as const).flatMap((dtype) =>
      plainMoves.map((move) => moveMatrix("load", dtype, move)),
    ),
    ...[...halves, "f32" as const].map((dtype) => mma(ofFloats(dtype))),
    ...bytePairs.map((given) => mma(given)),
    ...byteFloatPairs.flatMap((given) => [mma(given), mma(given, "set")]),
    ...[...halves.map(ofFloats), ...byteFloatPairs, ofFloats("f32")].flatMap((given) =>
      widths.flatMap((n) => [wgmma(n, given, "add"), wgmma(n, given, "set")]),
    ),
    ...halves.flatMap((dtype) =>
      turns.flatMap((turned) =>
        (turned === "left" ? widths : turnedWidths).flatMap((n) => {
          const given = ofFloats(dtype);
          return [wgmma(n, given, "add", turned), wgmma(n, given, "set", turned)];
        }),
      ),
    ),
    ...bytePairs.flatMap((given) =>
      integerWidths.flatMap((n) => [wgmma(n, given, "add"), wgmma(n, given, "set")]),
    ),
    ...halves.flatMap((dtype) => turnedWidths.map((n) => wgmmaHeld(n, dtype))),
  ];
}
