/**
 * A scheduled region as kernels: one for each statement that is not fused into another. Operands are
 * resolved here: a packed weight by its layout, a placed or staged tile by its offset; everything else
 * is the tensor's own buffer.
 */
import type { Buffer, Grid, Kernel, Role } from "../program/program.ts";
import type { Expr } from "../program/statement.ts";
import type { Access, NestTensor } from "../region/nest.ts";
import { isTreeOnly } from "../schedule/directive.ts";
import { printDirective } from "../schedule/directive-text.ts";
import {
  isBound,
  type PlacedTensor,
  type ScheduledAttention,
  type ScheduledLoop,
  type ScheduledRegion,
  type ScheduledRows,
  type ScheduledStatement,
  type ScheduledTurn,
  type StagedTensor,
  symbolRanges,
} from "../schedule/scheduled-region.ts";
import { dotInstruction } from "../schedule/states/dot-form.ts";
import { inRange } from "../semantics/condition.ts";
import { zeroOf } from "../semantics/dtype.ts";
import {
  add,
  constant,
  constantValue,
  floorDiv,
  type IndexExpr,
  mod,
  substitute,
  variable,
  variablesOf,
} from "../semantics/index-expr.ts";
import {
  type IndexRange,
  type IndexRanges,
  loopRange,
  provesAtMost,
  provesLess,
  simplify,
} from "../semantics/index-range.ts";
import type { LayoutMap } from "../semantics/layout.ts";
import { attempt, type Result, reject } from "../support/diagnostic.ts";
import { invariant } from "../support/invariant.ts";
import type { Target } from "../target/target.ts";
import { lowerAttention } from "./attention/lower-attention.ts";
import { Block, Names } from "./block.ts";
import { isRefuted, reduceConditions } from "./conditions.ts";
import { type FewRows, fewRows } from "./few-rows.ts";
import { type TileBox, tileBox } from "./footprint.ts";
import { sumInParts } from "./long-sums.ts";
import { type KernelContext, NestLowering, type Place } from "./nest-lowering.ts";
import { type Operand, tileOperand } from "./operands.ts";
import { nameApart } from "./own-names.ts";
import { lowerProduct } from "./product/lower-product.ts";
import { lowerRows } from "./rows/lower-rows.ts";
import { threadAxis, threadGrid } from "./thread-grid.ts";
import { lowerTurn } from "./turns/lower-turn.ts";

/** Values never change: a region that is checked by itself has the kernels that it has in its program. */
const lowered = new WeakMap<
  ScheduledRegion,
  { readonly target: Target; readonly kernels: Result<readonly Kernel[]> }
>();

/** The kernels of a region, or why it cannot be lowered. */
export function lowerRegion(scheduled: ScheduledRegion, target: Target): Result<readonly Kernel[]> {
  const known = lowered.get(scheduled);
  if (known?.target === target) return known.kernels;
  const kernels = lowerAnew(scheduled, target);
  lowered.set(scheduled, { target, kernels });
  return kernels;
}

function lowerAnew(scheduled: ScheduledRegion, target: Target): Result<readonly Kernel[]> {
  return attempt(() => {
    refuseTree(scheduled, target);
    if (scheduled.attention)
      return new KernelLowering(scheduled, target).lowerAttention(scheduled.attention);
    if (scheduled.rows) return [new KernelLowering(scheduled, target).lowerRows(scheduled.rows)];
    if (scheduled.turn) return [new KernelLowering(scheduled, target).lowerTurn(scheduled.turn)];
    const folded = scheduled.products.flatMap((p) => p.form.fold?.statement.name ?? []);
    const guests = new Set([...scheduled.fused.map((f) => f.statement), ...folded]);
    const roots = scheduled.statements.filter((s) => !guests.has(s.statement.name));
    return roots.map((root, i) => {
      const suffix = roots.length === 1 ? "" : `.${i}`;
      return new KernelLowering(scheduled, target).lower(root, suffix);
    });
  });
}

/** Where a placed tensor lies while the loops of its owner stand still. */
interface PlacedTile {
  readonly base: Operand;
  readonly buffer: string;
  /** The element at position 0, in terms of the owner's loops. */
  readonly offset: readonly IndexExpr[];
  readonly owner: string;
}

/** Loops that only trees can say have no lowering. */
function refuseTree({ tree, schedule }: ScheduledRegion, target: Target): void {
  const first = tree && schedule.directives.find(isTreeOnly);
  if (!first) return;
  reject("SCH033", `${first.kind} is legal here, but ${target.name} has no lowering for it`, {
    at: printDirective(first),
    help: "leave it out, or look at its loops with inspect --schedule",
  });
}

class KernelLowering {
  readonly #region: ScheduledRegion;
  readonly #names: Names;
  readonly #buffers: Buffer[] = [];
  /** Tiles of placed tensors, for whoever uses them. */
  readonly #placed = new Map<string, PlacedTile>();
  /** By statement: its loops that are open, in terms of the program's variables. */
  readonly #open = new Map<string, ReadonlyMap<string, IndexExpr>>();
  /** Tiles of staged operands by statement and tensor: only that statement's reads go there. */
  readonly #staged = new Map<string, Operand>();
  /** Bound loops in terms of the grid's index variables. */
  readonly #axes = new Map<string, IndexExpr>();
  readonly #axisRanges = new Map<string, IndexRange>();
  /** Loops of statements that are not, just now, those of the region. */
  readonly #statements = new Map<string, ScheduledStatement>();
  readonly #context: KernelContext;
  readonly #target: Target;

  constructor(region: ScheduledRegion, target: Target) {
    this.#region = region;
    this.#target = target;
    this.#names = new Names(region.region.tensors);
    this.#context = {
      names: this.#names,
      operand: (tensor) => this.#wholeOperand(tensor),
      buffers: this.#buffers,
      gridAxis: threadAxis,
      axes: this.#axes,
      axisRanges: this.#axisRanges,
      fused: target.capabilities.has("fma"),
      comparesPairs: target.blocks !== undefined && target.capabilities.has("bf16"),
      isPadded: (access, loop, ranges) => this.#isPadded(access, loop, ranges),
    };
  }

  lowerRows(rows: ScheduledRows): Kernel {
    if (!this.#target.blocks) rejectBlocks(this.#target, printDirective(rows.directive));
    return lowerRows(this.#region, rows, this.#region.region.name, this.#context);
  }

  lowerTurn(turn: ScheduledTurn): Kernel {
    if (!this.#target.blocks) rejectBlocks(this.#target, printDirective(turn.directive));
    return lowerTurn(this.#region, turn, this.#region.region.name, this.#context);
  }

  lowerAttention(attention: ScheduledAttention): readonly Kernel[] {
    if (!this.#target.blocks) rejectBlocks(this.#target, printDirective(attention.directive));
    const { region } = this.#region;
    const kernels = lowerAttention(this.#region, attention, region.name, this.#context);
    return kernels.map((k) => nameApart(k, region.tensors));
  }

  lower(root: ScheduledStatement, suffix: string): Kernel {
    const { name } = root.statement;
    const product = this.#region.products.find((p) => p.directive.statement === name);
    if (product) {
      if (!this.#target.blocks) rejectBlocks(this.#target, printDirective(product.directive));
      const { names, operand } = this.#context;
      const kernelName = `${this.#region.region.name}${suffix}`;
      const kernel = lowerProduct(this.#region, product, kernelName, { names, operand });
      return nameApart(kernel, this.#region.region.tensors);
    }
    refuseDots(root, this.#target);
    this.#placeTiles();
    const block = new Block(this.#names);
    const ranges = symbolRanges(this.#region.region);
    const grid = this.#target.blocks ? this.#blockGrid(root) : gridOfThreads(root, this.#target);
    const role = this.#role(root);
    const forms = this.#fewRows(root).filter((f) => !isRefuted(f.when, ranges));
    this.#lowerForms(root, forms, block, ranges);
    return {
      name: `${this.#region.region.name}${suffix}`,
      grid,
      buffers: this.#buffers,
      counters: [],
      roles: [{ ...role, body: block.statements }],
      region: this.#region.region.name,
    };
  }

  #lowerNest(scheduled: ScheduledStatement, block: Block, ranges: IndexRanges): void {
    const nest = this.#nest(scheduled);
    const start = nest.start(block, ranges, new Map());
    nest.settle(
      start,
      () => false,
      (inside) => nest.lower(inside, 0),
    );
  }

  /** The first form whose condition holds, and else the statement as it is. */
  #lowerForms(
    root: ScheduledStatement,
    [form, ...others]: readonly FewRows[],
    block: Block,
    ranges: IndexRanges,
  ): void {
    if (!form) {
      this.#lowerNest(root, block, ranges);
      return;
    }
    const { name } = root.statement;
    const few = (into: Block): void => {
      this.#statements.set(name, form.scheduled);
      this.#lowerNest(form.scheduled, into, ranges);
      this.#statements.delete(name);
    };
    const conditions = reduceConditions([form.when], ranges);
    block.branch(conditions, few, (into) => this.#lowerForms(root, others, into, ranges));
  }

  /** What few rows do of a statement that stands by itself. */
  #fewRows(root: ScheduledStatement): readonly FewRows[] {
    const { vectorRegisters, blocks, compiledByEngine } = this.#target;
    const { fused, staged, placed, plainRows } = this.#region;
    const { name } = root.statement;
    if (plainRows || blocks || fused.length > 0 || placed.length > 0) return [];
    if (staged.some((s) => s.statement === name)) return [];
    return fewRows(root, { sums: vectorRegisters / 2, streams: compiledByEngine === true });
  }

  #blockGrid({ statement, loops }: ScheduledStatement): Grid {
    const known = new Set(this.#region.region.symbols.map((s) => s.name));
    const axes = loops.filter((l) => l.mode === "blocks");
    const open = axes.find((l) => [...variablesOf(l.extent)].some((name) => !known.has(name)));
    if (open) {
      reject("SCH006", `loop ${open.name} has the extent ${open.extent.key}, not one of the grid`, {
        at: `bind ${statement.name}:${open.name} to blocks`,
        help: "bind loops whose extents are constants or over symbols of the model",
      });
    }
    const given = axes.map((l) => ({ name: this.#axisName(l.name), extent: l.extent }));
    axes.forEach((l, i) => {
      this.#bindAxis(l, variable(given[i]!.name));
    });
    const one = [{ name: "block", extent: constant(1) }];
    const unit = "blocks";
    return { unit, axes: given.length > 0 ? given : one, clusterSize: 1, resident: false };
  }

  /** Groups and the threads in them are numbered together: a group need not fill a warp. */
  #role({ loops }: ScheduledStatement): Omit<Role, "body"> {
    const [groups, threads] = (["groups", "threads"] as const).map((level) =>
      loops.find((l) => l.mode === level),
    );
    if (threads?.kind === "reduce") return this.#warps(groups, threads);
    const [rows, width] = [groups, threads].map((l) => (l ? constantValue(l.extent)! : 1));
    const count = rows! * width!;
    const role = { name: "main", copies: 1, threads: count };
    if (!groups && !threads) return role;
    const name = this.#axisName(groups && threads ? "thread" : (groups ?? threads)!.name);
    this.#axisRanges.set(name, { min: 0, max: count - 1 });
    const thread = variable(name);
    if (groups) this.#axes.set(groups.name, floorDiv(thread, width!));
    if (threads) this.#axes.set(threads.name, groups ? mod(thread, width!) : thread);
    return { ...role, threadVariable: name };
  }

  /** A warp for each group: its threads share the reduction of the group's results. */
  #warps(groups: ScheduledLoop | undefined, threads: ScheduledLoop): Omit<Role, "body"> {
    const { warpThreads } = this.#target.blocks!;
    if (constantValue(threads.extent) !== warpThreads) {
      reject("SCH031", `${threads.name} has the extent ${threads.extent.key}, not a warp`, {
        at: `bind ${threads.name} to threads`,
        help: `split the loop by ${warpThreads} first`,
      });
    }
    const name = this.#axisName(threads.name);
    this.#axes.set(threads.name, variable(name));
    this.#axisRanges.set(name, { min: 0, max: warpThreads - 1 });
    const role = { name: "main", threads: warpThreads, threadVariable: name };
    if (!groups) return { ...role, copies: 1 };
    const copy = this.#axisName(groups.name);
    const copies = constantValue(groups.extent)!;
    this.#axes.set(groups.name, variable(copy));
    this.#axisRanges.set(copy, { min: 0, max: copies - 1 });
    return { ...role, copies, copyVariable: copy };
  }

  #bindAxis({ name, extent }: ScheduledLoop, axis: IndexExpr): void {
    this.#axes.set(name, axis);
    this.#axisRanges.set(axis.key, loopRange(extent, symbolRanges(this.#region.region)));
  }

  #axisName(name: string): string {
    return symbolRanges(this.#region.region).has(name) ? this.#names.fresh(name) : name;
  }

  /** A statement with its guests and staged operands hooked in at their depths. */
  #nest(scheduled: ScheduledStatement): NestLowering {
    const name = scheduled.statement.name;
    const operand = (tensor: string): Operand => this.#operand(name, tensor);
    // Blocks of threads have short sums each.
    const { scheduled: parts, outside } = this.#target.blocks
      ? { scheduled, outside: 0 }
      : sumInParts(this.#region, scheduled);
    const nest = new NestLowering({ ...this.#context, operand }, parts, outside);
    const guests = this.#region.fused.filter((f) => f.into === name);
    const staged = this.#region.staged.filter((s) => s.statement === name);
    const order = this.#region.statements.map((s) => s.statement.name);
    for (const s of staged) checkStage(scheduled, nest.plan.outer, s);
    nest.interrupt = (depth, place, proceed) => {
      this.#open.set(name, place.loops);
      for (const s of staged) {
        if (s.depth === depth) this.#copyTile(scheduled, s, place);
      }
      const here = guests.filter((g) => g.depth === depth);
      const before = (g: { statement: string }): boolean =>
        order.indexOf(g.statement) < order.indexOf(name);
      for (const g of here.filter(before)) this.#lowerGuest(g.statement, scheduled, depth, place);
      proceed();
      for (const g of here.filter((x) => !before(x))) {
        this.#lowerGuest(g.statement, scheduled, depth, place);
      }
    };
    return nest;
  }

  #lowerGuest(name: string, host: ScheduledStatement, depth: number, place: Place): void {
    const guest = this.#region.statements.find((s) => s.statement.name === name)!;
    const nest = this.#nest(guest);
    const loops = new Map<string, IndexExpr>();
    for (let i = 0; i < depth; i++) {
      loops.set(guest.loops[i]!.name, place.loops.get(host.loops[i]!.name)!);
    }
    const start = { ...nest.start(place.block, place.ranges, loops), assumed: place.assumed };
    nest.settle(
      start,
      () => false,
      (inside) => nest.lower(inside, depth),
    );
  }

  #operand(statement: string, tensor: string): Operand {
    const staged = this.#staged.get(`${statement} ${tensor}`);
    const placed = this.#placed.get(tensor);
    return staged ?? (placed ? this.#placedOperand(placed) : this.#wholeOperand(tensor));
  }

  /** The tile begins where its owner stands: all who use it share these loops with it. */
  #placedOperand({ base, buffer, offset, owner }: PlacedTile): Operand {
    const open = this.#open.get(owner);
    const here = open ? offset.map((e) => substitute(e, open)) : offset;
    return tileOperand(base, buffer, here);
  }

  #wholeOperand(tensor: string): Operand {
    const { dtype } = this.#tensor(tensor);
    const layout = this.#region.layouts.get(tensor);
    if (!layout) return { buffer: tensor, dtype, position: (index) => index };
    const position = (index: readonly IndexExpr[]): readonly IndexExpr[] =>
      storedPosition(layout, index);
    return { buffer: packedName(tensor, layout), dtype, position };
  }

  #tensor(name: string): NestTensor {
    const tensor = this.#region.region.tensors.get(name);
    invariant(tensor, () => `region ${this.#region.region.name} has no tensor ${name}`);
    return tensor;
  }

  #isPadded(access: Access, loop: string, ranges: Place["ranges"]): boolean {
    const layout = this.#region.layouts.get(access.tensor);
    if (!layout || access.guard.length > 0) return false;
    const found = this.#region.statements.find((s) =>
      s.statement.reads.some((read) => read === access),
    );
    const statement = found && (this.#statements.get(found.statement.name) ?? found);
    if (!statement?.loops.some((l) => l.name === loop)) return false;
    const all = new Map(ranges);
    for (const l of statement.loops) {
      if (!all.has(l.name)) all.set(l.name, loopRange(l.extent, all));
    }
    const index = access.index.map((e) => simplify(substitute(e, statement.index), all));
    return storedPosition(layout, index)
      .map((e) => simplify(e, all))
      .every((e, axis) => provesAtMost(0, e, all) && provesLess(e, layout.shape[axis]!, all));
  }

  /** Buffers for tensors that live in a nearer scope, one tile per iteration of the loops outside. */
  #placeTiles(): void {
    for (const { tensor, scope, statement, depth } of this.#region.placed) {
      if (scope === "memory") continue;
      const scheduled = this.#region.statements.find((s) => s.statement.name === statement)!;
      const written = scheduled.statement.writes.filter((w) => w.tensor === tensor);
      const indices = written.map((w) => w.index);
      const tile = this.#makeTile(scheduled, { tensor, scope, depth }, indices);
      const { base, buffer, box } = tile;
      this.#placed.set(tensor, { base, buffer, offset: box.offset, owner: statement });
    }
  }

  #makeTile(
    scheduled: ScheduledStatement,
    { tensor, scope, depth }: Pick<PlacedTensor, "tensor" | "scope" | "depth">,
    indices: readonly (readonly IndexExpr[])[],
  ): { readonly base: Operand; readonly buffer: string; readonly box: TileBox } {
    const box = tileBox(scheduled, depth, indices, symbolRanges(this.#region.region));
    if (!box || indices.length === 0) {
      reject("SCH013", `the part of ${tensor} that one iteration touches has no constant size`, {
        at: `${scheduled.statement.name} in region ${this.#region.region.name}`,
        help: "place or stage it further inside, or bound the loops by a split",
      });
    }
    const name = this.#names.freshBuffer(`${tensor}.tile`);
    const base: Operand = { buffer: tensor, dtype: this.#tensor(tensor).dtype, position: (i) => i };
    this.#buffers.push({
      name,
      kind: "scratch",
      scope: scope === "memory" ? "local" : scope,
      dtype: base.dtype,
      lanes: 1,
      shape: box.extents.map((e) => constant(e)),
    });
    return { base, buffer: name, box };
  }

  #copyTile(scheduled: ScheduledStatement, staged: StagedTensor, place: Place): void {
    const { tensor } = staged;
    if (staged.copies > 1) {
      reject("SCH014", `copies in loops are not asynchronous on ${this.#region.schedule.target}`, {
        at: `stage ${tensor} depth ${staged.copies}`,
        help: "use depth 1; on a GPU, multiply and attend keep several stages in flight",
      });
    }
    const { name, reads, finishReads } = scheduled.statement;
    const indices = [...reads, ...finishReads].flatMap((r) =>
      r.tensor === tensor ? [r.index] : [],
    );
    const { base, buffer, box } = this.#makeTile(scheduled, staged, indices);
    const tile = tileOperand(base, buffer, box.offset);
    this.#staged.set(`${name} ${tensor}`, tile);
    const { shape, dtype } = this.#tensor(tensor);
    const whole = this.#wholeOperand(tensor);
    const copy = (axis: number, block: Block, at: readonly IndexExpr[]): void => {
      if (axis < shape.length) {
        const name = this.#names.fresh("c");
        block.loop(name, constant(box.extents[axis]!), { kind: "serial" }, (body) =>
          copy(axis + 1, body, [...at, variable(name)]),
        );
        return;
      }
      const source = at.map((v, i) => add(v, substitute(box.offset[i]!, place.loops)));
      const guard = source.flatMap((e, i) => inRange(e, shape[i]!));
      const value: Expr = {
        kind: "load",
        dtype,
        lanes: 1,
        buffer: whole.buffer,
        index: whole.position(source),
        guard,
        fill: zeroOf(dtype),
      };
      block.push({ kind: "store", buffer: tile.buffer, index: at, value });
    };
    copy(0, place.block, []);
  }
}

/** Lanes of results and of the depth together need the target's dot products. */
function refuseDots({ statement, loops }: ScheduledStatement, target: Target): void {
  const vectors = loops.filter((l) => l.mode === "vector");
  if (vectors.length < 2) return;
  const [lane, depth] = ["space", "reduce"].map((kind) => vectors.find((l) => l.kind === kind)!);
  const sizes = [depth, lane].map((l) => constantValue(l!.extent)!) as [number, number];
  const name = dotInstruction(statement.body[0]!.dtype, ...sizes);
  if (name !== undefined && target.capabilities.has(name)) return;
  reject("SCH039", `${target.name} sums no ${sizes[0]} products in each of ${sizes[1]} lanes`, {
    at: `vectorize ${statement.name}:${lane!.name}`,
    help: "vectorize the loop over results alone, split the depth by 4 (VNNI) or 2 (WebAssembly), or choose another target",
  });
}

function gridOfThreads({ statement, loops }: ScheduledStatement, target: Target): Grid {
  const bound = loops.find((l) => isBound(l.mode));
  if (bound) {
    rejectBlocks(target, `bind ${statement.name}:${bound.name} to ${bound.mode}`);
  }
  return threadGrid(loops.some((l) => l.mode === "grid"));
}

function rejectBlocks(target: Target, at: string): never {
  const help = "use parallelize, or another target";
  return reject("SCH030", `${target.name} has no blocks of threads`, { at, help });
}

/** The copy is made in the loops that stand outside it, which must be those that run outside it. */
function checkStage(
  { loops, statement }: ScheduledStatement,
  outer: readonly ScheduledLoop[],
  { tensor, depth }: StagedTensor,
): void {
  const inside = loops.slice(0, depth).find((l, at) => outer[at] !== l);
  if (!inside) return;
  reject("SCH018", `loop ${inside.name} is inside the tile or the reduction of ${statement.name}`, {
    at: `stage ${tensor} at ${statement.name}:${loops[depth - 1]!.name}`,
    help: `stage it at one of the outer loops: ${outer.map((l) => l.name).join(" ") || "there is none"}`,
  });
}

/** Buffer of a tensor stored in a layout: two regions that want the same layout share it. */
export function packedName(tensor: string, layout: LayoutMap): string {
  return `${tensor}.packed.${layout.shape.map((e) => e.key.replace(/\W+/g, "_")).join(".")}`;
}

function storedPosition(layout: LayoutMap, index: readonly IndexExpr[]): readonly IndexExpr[] {
  const bindings = new Map(index.map((e, axis) => [`l${axis}`, e]));
  return layout.stored.map((e) => substitute(e, bindings));
}
