/**
 * Copies of whole tensors into other buffers: what steps carry and collect. In: tensors, where they go; out: kernels,
 * on CPUs one of one thread for all, on blocks one for each shape, an element a thread.
 */
import type { Kernel } from "../program/program.ts";
import type { Expr, Statement } from "../program/statement.ts";
import type { NestTensor } from "../region/nest.ts";
import { less } from "../semantics/condition.ts";
import { zeroOf } from "../semantics/dtype.ts";
import {
  add,
  ceilDiv,
  constant,
  constantValue,
  type IndexExpr,
  mul,
  variable,
} from "../semantics/index-expr.ts";
import type { Target } from "../target/target.ts";
import { threadGrid } from "./thread-grid.ts";

export interface TensorCopy {
  readonly from: NestTensor;
  readonly to: string;
  /** Where along a further axis. */
  readonly row?: { readonly axis: number; readonly position: IndexExpr };
}

export function copies(
  name: string,
  all: readonly TensorCopy[],
  target: Target,
): readonly Kernel[] {
  if (all.length === 0) return [];
  return target.blocks ? blockKernels(name, all) : [threadKernel(name, all, target.vectorBytes)];
}

/** One kernel, of one thread. */
function threadKernel(name: string, all: readonly TensorCopy[], vectorBytes: number): Kernel {
  const body = all.flatMap((one, i) => loopsOf(one, `c${i}x`, vectorBytes));
  return {
    name,
    grid: threadGrid(false),
    buffers: [],
    counters: [],
    roles: [{ name: "main", copies: 1, threads: 1, body }],
    region: name,
  };
}

/** Loops over a tensor, along its last axis in vectors where neighbours stay neighbours. */
function loopsOf(one: TensorCopy, prefix: string, vectorBytes: number): readonly Statement[] {
  const { dtype, shape } = one.from;
  const width = vectorBytes / 4;
  const last = constantValue(shape.at(-1) ?? constant(0)) ?? 0;
  const isDense = isOfLanes(dtype) && (one.row?.axis ?? 0) < Math.max(1, shape.length);
  const inLanes = isDense ? Math.floor(last / width) : 0;
  /** So many iterations along the last axis, from `start`. */
  const part = (of: string, start: number, extent: IndexExpr, lanes: number): Statement => {
    const extents = [...shape.slice(0, -1), ...(shape.length > 0 ? [extent] : [])];
    const loops = extents.map((e, i) => ({ name: `${of}${i}`, extent: e }));
    const index = loops.map((l) => variable(l.name));
    if (index.length > 0) index.push(add(start, mul(lanes, index.pop()!)));
    return loops.reduceRight<Statement>(
      (inner, l) => ({
        ...{ kind: "for", variable: l.name, extent: l.extent },
        ...{ mode: { kind: "serial" }, body: [inner] },
      }),
      moved(one, index, lanes),
    );
  };
  if (inLanes === 0) return [part(prefix, 0, shape.at(-1) ?? constant(1), 1)];
  const whole = part(`${prefix}v`, 0, constant(inLanes), width);
  const left = last - inLanes * width;
  if (left === 0) return [whole];
  return [whole, part(`${prefix}r`, inLanes * width, constant(left), 1)];
}

/** One store of so many elements. */
function moved(
  { from: { name, dtype }, to, row }: TensorCopy,
  index: readonly IndexExpr[],
  lanes: number,
): Statement {
  const into = row ? [...index.slice(0, row.axis), row.position, ...index.slice(row.axis)] : index;
  const value: Expr = {
    ...{ kind: "load", dtype, lanes, buffer: name, index },
    ...{ guard: [], fill: zeroOf(dtype) },
  };
  return { kind: "store", buffer: to, index: into, value };
}

function isOfLanes(dtype: NestTensor["dtype"]): boolean {
  return dtype === "f32" || dtype === "i32";
}

/** Threads of a block at most, neighbours along the last axis; whole warps. */
const [mostThreads, warp] = [256, 32];

/** Tensors of one shape are copied by one kernel, element by element in their order. */
function blockKernels(name: string, all: readonly TensorCopy[]): readonly Kernel[] {
  const alike = new Map<string, TensorCopy[]>();
  for (const one of all) {
    const key = one.from.shape.map((e) => e.key).join();
    alike.set(key, [...(alike.get(key) ?? []), one]);
  }
  return [...alike.values()].map((some, i) =>
    blockKernel(alike.size === 1 ? name : `${name}.${i}`, some),
  );
}

function blockKernel(name: string, some: readonly TensorCopy[]): Kernel {
  const { shape } = some[0]!.from;
  const last = shape.at(-1) ?? constant(1);
  const known = constantValue(last);
  const threads = Math.min(
    mostThreads,
    Math.max(1, Math.ceil((known ?? mostThreads) / warp)) * warp,
  );
  const axes = [
    ...shape.slice(0, -1).map((extent, axis) => ({ name: `c${axis}`, extent })),
    { name: "c_b", extent: ceilDiv(last, threads) },
  ];
  const along = add(mul(threads, variable("c_b")), variable("c_t"));
  const before = axes.slice(0, -1).map((axis) => variable(axis.name));
  const index = shape.length > 0 ? [...before, along] : [];
  const stores = some.map((one) => moved(one, index, 1));
  const isWhole = known !== undefined && known % threads === 0;
  const body: readonly Statement[] = isWhole
    ? stores
    : [{ kind: "if", conditions: [less(along, last)], then: stores, else: [] }];
  return {
    name,
    grid: { unit: "blocks", axes, clusterSize: 1, resident: false },
    buffers: [],
    counters: [],
    roles: [{ name: "main", copies: 1, threads, threadVariable: "c_t", body }],
    region: name,
  };
}
