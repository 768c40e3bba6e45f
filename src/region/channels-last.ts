/**
 * Feature maps with their channels last: [n, c, h, w] as [n, h, w, c], so that the pixels of all pictures
 * are rows of one matrix, and what a convolution sums for one of them are lines of channels, which copies
 * move whole. In: a region and the maps that may be stored so. Out: the same computation over the turned
 * maps, loops in the order in which they run through memory, weights in that of the loops. Which regions do so
 * is decided elsewhere (choose-layouts.ts).
 */
import { less } from "../semantics/condition.ts";
import type { DType } from "../semantics/dtype.ts";
import {
  constant,
  constantValue,
  type IndexExpr,
  variable,
  variablesOf,
} from "../semantics/index-expr.ts";
import { argument, type ScalarExpr } from "../semantics/scalar-expr.ts";
import type { Access, Loop, Region, RegionTensor, Statement, Write } from "./nest.ts";
import { orderWeights } from "./weight-order.ts";

/** Stored axes by the axes of a feature map. */
const turned = [0, 2, 3, 1] as const;
const back = [0, 3, 1, 2] as const;
const lastSuffix = ".last";

/** Element types of feature maps. */
const mapTypes: readonly DType[] = ["f32", "f16", "bf16", "u8", "i8"];

/** Whether a tensor is a feature map of several channels and pixels. */
function isFeatureMap({ shape, role, dtype }: RegionTensor): boolean {
  if (shape.length !== 4 || role === "weight" || !mapTypes.includes(dtype)) return false;
  const [, channels, ...pixels] = shape.map((e) => constantValue(e));
  return (channels ?? 0) > 1 && pixels.every((n) => n !== undefined) && pixels.some((n) => n! > 1);
}

/** Feature maps by name, with the channels that they have in memory. */
export type LastMaps = ReadonlyMap<string, number>;

/** Feature maps that convolutions of these regions read or write. */
export function convolvedMaps(regions: readonly Region[]): LastMaps {
  const found = new Map<string, number>();
  for (const region of regions) {
    const [statement] = region.statements;
    if (!statement || region.statements.length !== 1 || !isConvolution(statement, region)) continue;
    for (const { tensor } of accessesOf(statement)) {
      const map = region.tensors.get(tensor)!;
      if (isFeatureMap(map)) found.set(tensor, constantValue(map.shape[1]!)!);
    }
  }
  for (const [name, channels] of found) {
    const writers = regions.filter((r) =>
      r.statements.some((s) => s.writes.some((w) => w.tensor === name)),
    );
    if (writers.every((w) => isCopy(w) && writesChannels(w)))
      found.set(name, wholeVectors(channels));
  }
  return found;
}

/** Whether a loop of its own runs through all channels of what is written. */
function writesChannels({ statements, tensors }: Region): boolean {
  const { writes, loops } = statements[0]!;
  return writes.every(({ tensor, index }) => {
    const channels = tensors.get(tensor)!.shape[1]!.key;
    return loops.some((l) => l.name === index[1]?.key && l.extent.key === channels);
  });
}

/** Few channels are filled up with zeros to what one copy of 8 or 16 bytes moves. */
function wholeVectors(channels: number): number {
  return channels < 4 ? 4 : Math.max(channels, 8);
}

/** Elements moved, and cast at most: what is zero stays so. */
function isCopy({ statements: [statement, other] }: Region): boolean {
  if (!statement || other || statement.reduction || statement.finish) return false;
  const isMoved = (e: ScalarExpr): boolean =>
    e.kind === "argument" || (e.kind === "cast" && isMoved(e.operand));
  return statement.body.length === 1 && isMoved(statement.body[0]!) && statement.guard.length === 0;
}

/** A fold of a map with a weight that has axes for the window too. */
function isConvolution({ reduction, reads }: Statement, { tensors }: Region): boolean {
  if (!reduction || reads.length !== 2) return false;
  const all = reads.map((r) => tensors.get(r.tensor)!);
  return all.some(isFeatureMap) && all.some((t) => t.role === "weight" && t.shape.length === 4);
}

/** Which maps a region would meet with their channels last; undefined where there is none. */
export function planChannelsLast(
  region: Region,
  maps: LastMaps,
): { readonly maps: ReadonlySet<string> } | undefined {
  const [statement] = region.statements;
  if (!statement || region.statements.length !== 1) return undefined;
  const met = accessesOf(statement).flatMap(({ tensor }) => (maps.has(tensor) ? [tensor] : []));
  return met.length === 0 ? undefined : { maps: new Set(met) };
}

/** A feature map with its channels last. */
function lastTensor(tensor: RegionTensor, channels: number): RegionTensor {
  const shape = turned.map((axis) => (axis === 1 ? constant(channels) : tensor.shape[axis]!));
  return { ...tensor, name: tensor.name + lastSuffix, shape, role: "intermediate" };
}

/** The region over such maps. */
export function turnChannels(region: Region, maps: LastMaps): Region {
  const statement = region.statements[0]!;
  const tensors = new Map(region.tensors);
  const turn = <T extends Access | Write>(access: T): T => {
    const channels = maps.get(access.tensor);
    if (channels === undefined) return access;
    const tensor = lastTensor(region.tensors.get(access.tensor)!, channels);
    tensors.set(tensor.name, tensor);
    return { ...access, tensor: tensor.name, index: turned.map((axis) => access.index[axis]!) };
  };
  const made: Statement = {
    ...statement,
    reads: statement.reads.map(turn),
    finishReads: statement.finishReads.map(turn),
    writes: statement.writes.map(turn),
    indirects: statement.indirects.map((v) => ({ ...v, access: turn(v.access) })),
  };
  const touched = new Set(accessesOf(made).map((a) => a.tensor));
  const kept = new Map([...tensors].filter(([name]) => touched.has(name)));
  const all = { ...region, statements: [{ ...made, loops: inMemoryOrder(made) }], tensors: kept };
  const filled = [...maps].flatMap(([name, channels]): [string, number][] => {
    const own = constantValue(region.tensors.get(name)?.shape[1] ?? constant(channels))!;
    return own < channels ? [[name + lastSuffix, own]] : [];
  });
  return withZeros(orderWeights(all) ?? all, new Map(filled));
}

/**
 * Over a map that has more channels than the computation (`filled`: its own, by name): what is moved there is
 * zero, and a fold of products runs through them too, over weights that are zero there.
 */
function withZeros(region: Region, filled: ReadonlyMap<string, number>): Region {
  const statement = region.statements[0]!;
  const loop = widerLoop(region, filled);
  if (!loop) return region;
  const { name, extent: own } = loop.loop;
  const uses = (index: readonly IndexExpr[]): boolean => variablesOf(...index).has(name);
  const loops = statement.loops.map((l) =>
    l.name === name ? { ...l, extent: constant(loop.channels) } : l,
  );
  if (loop.loop.kind === "space") {
    const guard = [less(variable(name), own)];
    const reads = statement.reads.map((a) =>
      uses(a.index) ? { ...a, guard: [...a.guard, ...guard] } : a,
    );
    return { ...region, statements: [{ ...statement, loops, reads }] };
  }
  const tensors = new Map(region.tensors);
  const weight = statement.reads.find((a) => tensors.get(a.tensor)!.stored && uses(a.index));
  const tensor = weight && tensors.get(weight.tensor)!;
  const axis = weight?.index.findIndex((e) => e.key === name) ?? -1;
  if (!weight || !tensor?.stored || axis < 0) return region;
  const shape = tensor.shape.with(axis, constant(loop.channels));
  const stored = { ...tensor.stored, layout: { ...tensor.stored.layout, shape } };
  const longer = { ...tensor, name: `${tensor.name}x${loop.channels}`, shape, stored };
  tensors.delete(tensor.name);
  tensors.set(longer.name, longer);
  const reads = statement.reads.map((a) => (a === weight ? { ...a, tensor: longer.name } : a));
  return { ...region, statements: [{ ...statement, loops, reads }], tensors };
}

/**
 * The loop that writes, or folds by products, all channels of a map that has more of them in memory. A loop
 * over some of the channels leaves the others to whoever writes them.
 */
function widerLoop(
  region: Region,
  filled: ReadonlyMap<string, number>,
): { readonly loop: Loop; readonly channels: number } | undefined {
  const statement = region.statements[0]!;
  const isSum = statement.reduction?.monoid.name === "sum" && isConvolved(region);
  const met = isSum ? statement.reads : isCopy(region) ? statement.writes : [];
  for (const { tensor, index } of met) {
    if (!filled.has(tensor)) continue;
    const loop = statement.loops.find((l) => l.name === index.at(-1)!.key);
    const channels = constantValue(region.tensors.get(tensor)!.shape.at(-1)!)!;
    const own = loop && constantValue(loop.extent);
    if (own === undefined || own !== filled.get(tensor)) continue;
    if ((loop!.kind === "reduce") === isSum) return { loop: loop!, channels };
  }
  return undefined;
}

/** Whether a sum is of products of a map and a weight. */
function isConvolved({ statements, tensors }: Region): boolean {
  const { body, reads } = statements[0]!;
  const [value] = body;
  const isProduct = body.length === 1 && value!.kind === "apply" && value!.op === "mul";
  return isProduct && reads.length === 2 && reads.some((a) => tensors.get(a.tensor)!.stored);
}

/** Loops in the order of the axes that they move: of the results, then of what is folded. */
function inMemoryOrder({ loops, writes, reads }: Statement): readonly Loop[] {
  if (loops.some((l) => l.kind === "scan")) return loops;
  const read = reads.findLast(({ tensor }) => tensor.endsWith(lastSuffix)) ?? reads[0];
  const rank = (l: Loop): number => {
    const index = l.kind === "reduce" ? read?.index : writes[0]!.index;
    const axis = (index ?? []).findIndex((e) => variablesOf(e).has(l.name));
    return (l.kind === "reduce" ? loops.length : 0) + Math.max(axis, 0);
  };
  return [...loops].sort((a, b) => rank(a) - rank(b));
}

/** Brings the channels of a feature map last, or back, as a region of its own. */
export function turningRegion(
  tensor: RegionTensor,
  channels: number,
  direction: "pack" | "unpack",
  symbols: Region["symbols"],
): Region {
  const last = lastTensor(tensor, channels);
  const [from, to] = direction === "pack" ? [tensor, last] : [last, tensor];
  const order = direction === "pack" ? back : turned;
  const loops = to.shape.map((extent, axis): Loop => ({ name: `i${axis}`, extent, kind: "space" }));
  const channel = variable(`i${to.shape.length - 1}`);
  const isWider = direction === "pack" && last.shape.at(-1)!.key !== tensor.shape[1]!.key;
  const guard = isWider ? [less(channel, tensor.shape[1]!)] : [];
  const at: readonly IndexExpr[] = loops.map((l) => variable(l.name));
  const name = `${direction}.${tensor.name}`;
  const statement: Statement = {
    name,
    loops,
    guard: [],
    indirects: [],
    reads: [{ tensor: from.name, index: order.map((axis) => at[axis]!), guard, fill: 0 }],
    body: [argument(0, tensor.dtype)],
    finishReads: [],
    writes: [{ tensor: to.name, index: at, combine: "overwrite" }],
    origin: `layout of ${tensor.name}`,
  };
  const group = { name, anchor: name, inlined: [], epilogue: [] };
  const tensors = new Map([from, to].map((t) => [t.name, t] as const));
  return { name, group, statements: [statement], symbols, tensors };
}

function accessesOf(statement: Statement): readonly Pick<Access, "tensor" | "index">[] {
  return [
    ...statement.reads,
    ...statement.finishReads,
    ...statement.writes,
    ...statement.indirects.map((v) => v.access),
  ];
}
