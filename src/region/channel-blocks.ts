/**
 * Tensors stored in blocks of channels: [n, c, …] as [n, c / b, …, c % b], so that the channels of a
 * block are neighbours and fill the lanes of a vector (NCHWc; Georganas et al., "Anatomy of
 * high-performance deep learning convolutions", 2018). In: a region and its channel loops (`channelLoops`
 * says which may be blocked). Out: the same computation over the blocked tensors. A loop over channels
 * becomes one over blocks and one within a block; where the channels do not fill their last block, what
 * is written there is what the statement makes of zero weights, and no fold reads it. Weights are stored
 * in blocks from the start. Which regions do so is decided elsewhere (choose-channel-blocks.ts).
 */
import type { Condition } from "../semantics/condition.ts";
import { less } from "../semantics/condition.ts";
import { isIntegerDType } from "../semantics/dtype.ts";
import {
  add,
  constant,
  constantValue,
  floorDiv,
  type IndexExpr,
  mod,
  mul,
  splitLinear,
  variable,
  variablesOf,
} from "../semantics/index-expr.ts";
import type { LayoutMap } from "../semantics/layout.ts";
import { argument, type ScalarExpr, scalarOperands } from "../semantics/scalar-expr.ts";
import { invariant } from "../support/invariant.ts";
import type { Access, Loop, Region, RegionTensor, Statement, Write } from "./nest.ts";
import { substituteVariables } from "./statement.ts";

/** The axis of a feature map that counts its channels. */
const channelAxis = 1;

/** What fills the lanes of a vector, alone or when it is widened. */
const blockedTypes: ReadonlySet<string> = new Set(["f32", "i32", "i16", "i8", "u8"]);

/** Whether a tensor can be stored in blocks of channels: a feature map with some channels. */
export function isFeatureMap({ dtype, shape, role }: RegionTensor, block: number): boolean {
  const channels = shape.length < 3 ? undefined : constantValue(shape[channelAxis]!);
  return (
    blockedTypes.has(dtype) && role !== "weight" && channels !== undefined && 2 * channels >= block
  );
}

/** Which loops of a region are cut into blocks, and which feature maps it then meets in blocks. */
export interface BlockPlan {
  readonly loops: ReadonlySet<string>;
  readonly maps: ReadonlySet<string>;
}

/**
 * How a region is computed on blocked feature maps; undefined where no loop runs over the channels of
 * one. A feature map that is met otherwise than channel by channel stays as it is.
 */
export function planBlocks(region: Region, block: number): BlockPlan | undefined {
  const [statement] = region.statements;
  if (!statement || region.statements.length !== 1 || statement.indirects.length > 0) {
    return undefined;
  }
  const loopOf = channelLoops(region, statement, block);
  for (;;) {
    const loops = new Set(loopOf.values());
    const isOn = (name: string): string | undefined => loopOf.get(name);
    const unfit = [...loops].find((name) => !mayCut(name, region, statement, isOn, block));
    if (unfit === undefined) break;
    for (const [tensor, name] of loopOf) if (name === unfit) loopOf.delete(tensor);
  }
  if (loopOf.size === 0) return undefined;
  const loops = new Set(loopOf.values());
  const isSpace = (name: string): boolean =>
    statement.loops.some((l) => l.name === name && l.kind === "space");
  const space = [...loops].filter(isSpace);
  if (space.length > 1) return undefined;
  if (space.length === 0) {
    const lane = freeLane(region, statement, (name) => loopOf.get(name), block);
    if (lane === undefined) return undefined;
    loops.add(lane);
  }
  return { loops, maps: new Set(loopOf.keys()) };
}

/** Each feature map with the one loop that runs over its channels wherever the statement meets it. */
function channelLoops(region: Region, statement: Statement, block: number): Map<string, string> {
  const found = new Map<string, string>();
  const mixed = new Set<string>();
  for (const access of accessesOf(statement)) {
    const tensor = region.tensors.get(access.tensor)!;
    if (!isFeatureMap(tensor, block)) continue;
    const loop = channelLoop(access, statement, tensor, block);
    const known = found.get(tensor.name);
    if (loop === undefined || (known ?? loop) !== loop) mixed.add(tensor.name);
    else found.set(tensor.name, loop);
  }
  for (const name of mixed) found.delete(name);
  return found;
}

/** The loop that runs over the access's channels, from the start of a block. */
function channelLoop(
  { index }: Pick<Access, "index">,
  statement: Statement,
  { shape }: RegionTensor,
  block: number,
): string | undefined {
  const at = index[channelAxis]!;
  const used = variablesOf(at);
  const channels = constantValue(shape[channelAxis]!)!;
  const loop = statement.loops.find((l) => {
    const start = used.has(l.name) ? firstBlock(at, l, block) : undefined;
    if (start === undefined) return false;
    const count = constantValue(l.extent)!;
    const first = constantValue(start);
    return count % block === 0 || (first ?? 0) * block + count === channels;
  });
  return loop?.name;
}

/**
 * The block that a loop starts in where an index is the loop's variable and what other loops add to it, whole
 * blocks: those of a group of channels. Undefined where it is not, or where a group ends within a block.
 */
function firstBlock(index: IndexExpr, loop: Loop, block: number): IndexExpr | undefined {
  const linear = splitLinear(index, loop.name);
  const count = constantValue(loop.extent);
  if (linear?.coefficient !== 1 || count === undefined) return undefined;
  const first = floorDiv(linear.rest, block);
  if (mul(block, first).key !== linear.rest.key) return undefined;
  return constantValue(first) !== undefined || count % block === 0 ? first : undefined;
}

/** Whether an axis of weights is cut where the loop is: lanes past the loop's end meet zeros, no other weights. */
function isCutWhole(index: IndexExpr, loop: Loop, block: number): boolean {
  const first = firstBlock(index, loop, block);
  return first?.key === "0" || (first !== undefined && constantValue(loop.extent)! % block === 0);
}

/**
 * Whether a loop can be cut in two wherever it is used: as the channel of feature maps, along one axis of
 * weights, and along the last axis of what else there is.
 */
function mayCut(
  name: string,
  region: Region,
  statement: Statement,
  loopOf: (tensor: string) => string | undefined,
  block: number,
): boolean {
  const loop = statement.loops.find((l) => l.name === name)!;
  if (loop.kind === "scan") return false;
  const guards = [...statement.reads, ...statement.finishReads].flatMap((a) => a.guard);
  const values = [...statement.body, ...(statement.finish ?? [])];
  const fixed = [
    ...[...statement.guard, ...guards].map((c) => c.expr),
    ...statement.loops.map((l) => l.extent),
    ...values.flatMap(indexValues),
  ];
  if (variablesOf(...fixed).has(name)) return false;
  const isOn = (w: Write): boolean => variablesOf(...w.index).has(name);
  const inBlocks = new Set(statement.writes.filter(isOn).map((w) => loopOf(w.tensor) === name));
  if (inBlocks.size > 1) return false;
  return accessesOf(statement).every(({ tensor, index }) => {
    const axes = index.flatMap((e, axis) => (variablesOf(e).has(name) ? [axis] : []));
    const [axis] = axes;
    if (axis === undefined) return true;
    if (axes.length > 1) return false;
    if (loopOf(tensor) === name) return axis === channelAxis;
    if (region.tensors.get(tensor)!.role === "weight") return isCutWhole(index[axis]!, loop, block);
    if (index[axis]!.key !== name) return false;
    return axis === index.length - 1 && loopOf(tensor) === undefined;
  });
}

/** A loop over results that only weights and the results know, for the lanes of a fold over channels. */
function freeLane(
  region: Region,
  statement: Statement,
  loopOf: (tensor: string) => string | undefined,
  block: number,
): string | undefined {
  const weights = statement.reads.filter((a) => region.tensors.get(a.tensor)!.role === "weight");
  const used = variablesOf(...weights.flatMap((a) => a.index));
  const free = statement.loops.filter(
    (l) => l.kind === "space" && used.has(l.name) && constantValue(l.extent) !== undefined,
  );
  return free.find((l) => mayCut(l.name, region, statement, loopOf, block))?.name;
}

/** Names of blocked tensors. */
export function blockedName(tensor: string, block: number): string {
  return `${tensor}.c${block}`;
}

/** A feature map in blocks of channels. */
export function blockedTensor(tensor: RegionTensor, block: number): RegionTensor {
  const { shape, name } = tensor;
  const channels = constantValue(shape[channelAxis]!)!;
  const blocks = constant(Math.ceil(channels / block));
  return {
    ...tensor,
    name: blockedName(name, block),
    shape: [...shape.with(channelAxis, blocks), constant(block)],
    role: "intermediate",
  };
}

/** The region over blocked feature maps, by what `planBlocks` gave. */
export function blockRegion(region: Region, plan: BlockPlan, block: number): Region {
  const statement = region.statements[0]!;
  const maker = new BlockedStatement(region, statement, plan, block);
  const made = maker.make();
  const touched = new Set(accessesOf(made).map((a) => a.tensor));
  const tensors = new Map(
    [...touched].map((name) => [name, maker.tensors.get(name) ?? region.tensors.get(name)!]),
  );
  return { ...region, statements: [made], tensors };
}

class BlockedStatement {
  readonly tensors = new Map<string, RegionTensor>();
  readonly #region: Region;
  readonly #statement: Statement;
  readonly #loops: ReadonlySet<string>;
  readonly #maps: ReadonlySet<string>;
  readonly #block: number;
  readonly #split: ReadonlyMap<string, IndexExpr>;

  constructor(region: Region, statement: Statement, plan: BlockPlan, block: number) {
    this.#region = region;
    this.#statement = statement;
    this.#loops = plan.loops;
    this.#maps = plan.maps;
    this.#block = block;
    const value = (name: string): IndexExpr =>
      add(mul(block, variable(outerName(name))), variable(laneName(name)));
    this.#split = new Map([...plan.loops].map((name) => [name, value(name)]));
  }

  make(): Statement {
    const statement = this.#statement;
    const change = <T extends Access | Write>(access: T): T => this.#access(access);
    return substituteVariables(
      {
        ...statement,
        loops: this.#newLoops(),
        guard: [...statement.guard, ...this.#ends()],
        reads: statement.reads.map(change),
        finishReads: statement.finishReads.map(change),
        writes: statement.writes.map(change),
      },
      this.#split,
    );
  }

  /** Blocks where the loop was; the lanes of results last, those of a fold around its last tap. */
  #newLoops(): readonly Loop[] {
    const { loops } = this.#statement;
    const blocked = loops.map((l) => {
      if (!this.#loops.has(l.name)) return l;
      const blocks = Math.ceil(constantValue(l.extent)! / this.#block);
      return { ...l, name: outerName(l.name), extent: constant(blocks) };
    });
    const lanes = loops
      .filter((l) => this.#loops.has(l.name))
      .map((l) => ({ ...l, name: laneName(l.name), extent: constant(this.#block) }));
    const space = blocked.filter((l) => l.kind !== "reduce");
    const reduce = blocked.filter((l) => l.kind === "reduce");
    const [over] = lanes.filter((l) => l.kind === "reduce");
    const taps = reduce.filter((l) => l.name !== (over && outerName(originalName(over.name))));
    const at = taps.length === 0 ? reduce.length : reduce.indexOf(taps.at(-1)!);
    const folded = over ? reduce.toSpliced(at, 0, over) : reduce;
    return [...space, ...lanes.filter((l) => l.kind !== "reduce"), ...folded];
  }

  /** Where the channels do not fill the last block: a fold ends with them, and so do plain tensors. */
  #ends(): readonly Condition[] {
    return this.#statement.loops.flatMap((l) => {
      if (!this.#isRagged(l)) return [];
      const ends = l.kind === "reduce" ? !this.#addsNothing(l.name) : this.#meetsPlain(l.name);
      return ends ? [less(this.#split.get(l.name)!, l.extent)] : [];
    });
  }

  /** Past the end a sum of products of integers meets weights that are zero, and zero times any is zero. */
  #addsNothing(loop: string): boolean {
    const { reads, reduction, body } = this.#statement;
    const [root] = body;
    if (reduction?.monoid.name !== "sum" || root!.kind !== "apply" || root!.op !== "mul")
      return false;
    const isZero = ({ tensor, index }: Access): boolean =>
      this.#region.tensors.get(tensor)!.role === "weight" && index.some((e) => e.key === loop);
    return isIntegerDType(root!.dtype) && reads.some(isZero);
  }

  #meetsPlain(loop: string): boolean {
    return this.#statement.writes.some(
      ({ tensor, index }) => !this.#maps.has(tensor) && variablesOf(...index).has(loop),
    );
  }

  /** What is read past the last channel of a plain tensor is zero. */
  #withEnds<T extends Access | Write>(access: T): T {
    if (!("guard" in access)) return access;
    const ends = this.#statement.loops.flatMap((l) => {
      const isEnd = this.#isRagged(l) && access.index.some((e) => e.key === l.name);
      return isEnd ? [less(this.#split.get(l.name)!, l.extent)] : [];
    });
    return ends.length === 0 ? access : { ...access, guard: [...access.guard, ...ends] };
  }

  #isRagged(l: Loop): boolean {
    return this.#loops.has(l.name) && constantValue(l.extent)! % this.#block !== 0;
  }

  #access<T extends Access | Write>(access: T): T {
    const tensor = this.#region.tensors.get(access.tensor)!;
    if (this.#maps.has(tensor.name)) {
      const made = blockedTensor(tensor, this.#block);
      this.tensors.set(made.name, made);
      return { ...access, tensor: made.name, index: this.#mapIndex(access.index) };
    }
    const cut = access.index.flatMap((e, axis) => {
      const loop = this.#loopOn(e);
      return loop ? [{ axis, loop, first: firstBlock(e, loop, this.#block)! }] : [];
    });
    if (cut.length === 0) return access;
    if (tensor.role !== "weight") return this.#withEnds(access);
    const lanesLast = [...cut].sort((a, b) => rankOf(a.loop) - rankOf(b.loop));
    const axes = lanesLast.map(({ axis }) => axis);
    const layout = blockedAxes(tensor.shape, axes, this.#block);
    const name = `${tensor.name}.b${cut.map(({ axis }) => axis).join("_")}x${this.#block}`;
    const stored = { of: tensor.name, layout };
    this.tensors.set(name, { ...tensor, name, shape: layout.shape, stored });
    const index = [...access.index];
    for (const { axis, loop, first } of cut)
      index[axis] = add(first, variable(outerName(loop.name)));
    index.push(...lanesLast.map(({ loop }) => variable(laneName(loop.name))));
    return { ...access, tensor: name, index };
  }

  /** The loop that is cut where an index that is no channel of a map runs over its blocks. */
  #loopOn(index: IndexExpr): Loop | undefined {
    const used = variablesOf(index);
    return this.#statement.loops.find((l) => this.#loops.has(l.name) && used.has(l.name));
  }

  #mapIndex(index: readonly IndexExpr[]): readonly IndexExpr[] {
    const at = index[channelAxis]!;
    const loop = this.#loopOn(at);
    invariant(loop, () => `no channel loop in ${at.key}`);
    const outer = add(firstBlock(at, loop, this.#block)!, variable(outerName(loop.name)));
    return [...index.with(channelAxis, outer), variable(laneName(loop.name))];
  }
}

/** Lanes of results lie innermost. */
function rankOf({ kind }: Loop): number {
  return kind === "reduce" ? 0 : 1;
}

function outerName(loop: string): string {
  return `${loop}_cb`;
}

function laneName(loop: string): string {
  return `${loop}_cl`;
}

function originalName(lane: string): string {
  return lane.slice(0, -"_cl".length);
}

/** Blocks of `block` along several axes; their inner parts stand last, in the order given. */
export function blockedAxes(
  shape: readonly IndexExpr[],
  axes: readonly number[],
  block: number,
): LayoutMap {
  const rank = shape.length;
  const lane = (axis: number): IndexExpr => variable(`p${rank + axes.indexOf(axis)}`);
  const isCut = (axis: number): boolean => axes.includes(axis);
  const blocks = (extent: IndexExpr): IndexExpr =>
    constant(Math.ceil(constantValue(extent)! / block));
  return {
    shape: [
      ...shape.map((e, axis) => (isCut(axis) ? blocks(e) : e)),
      ...axes.map(() => constant(block)),
    ],
    logical: shape.map((_, axis) =>
      isCut(axis) ? add(mul(block, variable(`p${axis}`)), lane(axis)) : variable(`p${axis}`),
    ),
    stored: [
      ...shape.map((_, axis) =>
        isCut(axis) ? floorDiv(variable(`l${axis}`), block) : variable(`l${axis}`),
      ),
      ...axes.map((axis) => mod(variable(`l${axis}`), block)),
    ],
  };
}

/** Brings a feature map into blocks, or back, as a region of its own. */
export function conversionRegion(
  tensor: RegionTensor,
  block: number,
  direction: "pack" | "unpack",
  symbols: Region["symbols"],
): Region {
  const blocked = blockedTensor(tensor, block);
  const name = `${direction}.${tensor.name}`;
  const statement = direction === "pack" ? packing(tensor, blocked) : unpacking(tensor, blocked);
  const tensors = [tensor, blocked].map((t) => [t.name, t] as const);
  const group = { name, anchor: name, inlined: [], epilogue: [] };
  const origin = `layout of ${tensor.name}`;
  const statements = [{ ...statement, name, indirects: [], finishReads: [], origin }];
  return { name, group, statements, symbols, tensors: new Map(tensors) };
}

type Movement = Omit<Statement, "name" | "indirects" | "finishReads" | "origin">;

/** Zeros fill the last block. */
function packing(tensor: RegionTensor, blocked: RegionTensor): Movement {
  const block = blocked.shape.at(-1)!;
  const loops = spaceLoops(blocked.shape);
  const at = loops.map((l) => variable(l.name));
  const channel = add(mul(block, at[channelAxis]!), at.at(-1)!);
  const channels = tensor.shape[channelAxis]!;
  const ragged = constantValue(mod(channels, block)) !== 0;
  const guard = ragged ? [less(channel, channels)] : [];
  const index = at.slice(0, -1).with(channelAxis, channel);
  return {
    loops,
    guard: [],
    reads: [{ tensor: tensor.name, index, guard, fill: 0 }],
    body: [argument(0, tensor.dtype)],
    writes: [{ tensor: blocked.name, index: at, combine: "overwrite" }],
  };
}

function unpacking(tensor: RegionTensor, blocked: RegionTensor): Movement {
  const block = blocked.shape.at(-1)!;
  const loops = spaceLoops(tensor.shape);
  const at = loops.map((l) => variable(l.name));
  const channel = at[channelAxis]!;
  const index = [...at.with(channelAxis, floorDiv(channel, block)), mod(channel, block)];
  return {
    loops,
    guard: [],
    reads: [{ tensor: blocked.name, index, guard: [], fill: 0 }],
    body: [argument(0, tensor.dtype)],
    writes: [{ tensor: tensor.name, index: at, combine: "overwrite" }],
  };
}

function spaceLoops(shape: readonly IndexExpr[]): readonly Loop[] {
  return shape.map((extent, axis) => ({ name: `i${axis}`, extent, kind: "space" }));
}

function accessesOf(statement: Statement): readonly Pick<Access, "tensor" | "index">[] {
  return [...statement.reads, ...statement.finishReads, ...statement.writes];
}

function indexValues(expr: ScalarExpr): readonly IndexExpr[] {
  if (expr.kind === "index") return [expr.expr];
  return scalarOperands(expr).flatMap(indexValues);
}
