/**
 * The parts of attention whose keys and values one thread streams by tensor copies to warpgroups of 64 rows
 * each (PTX ISA, "wgmma.mma_async", "cp.async.bulk.tensor", "mbarrier"; the order of the work is that of Shah
 * et al. 2024, "FlashAttention-3"). Keys and values have a ring of stages each, with two counters of a cell
 * for each stage of both:
 *
 *   producer   queries · keys of step 0 · for each further step n: keys of n, values of n - 1 · last values
 *   consumer   scores of step 0, weights
 *              for each further step n:
 *                issue scores of n, then results += weights x values of n - 1
 *                scores done: give the keys back, weights of n while the results still multiply
 *                results done: give the values back, scale them, narrow the weights
 *              results += weights x values of the last step
 *
 * Weights are the left operand as their threads hold them. Rows and columns that hang over are zeros.
 */
import { issue, storeTo, tileAt } from "../../program/expr.ts";
import type { Buffer, Kernel } from "../../program/program.ts";
import type { Expr, Statement } from "../../program/statement.ts";
import type { Access, Write } from "../../region/nest.ts";
import { isOfRows } from "../../schedule/attention/attention-bounds.ts";
import {
  columnName,
  depthName,
  type OperandBox,
  rowName,
  widthName,
} from "../../schedule/attention/attention-form.ts";
import { dtypes } from "../../semantics/dtype.ts";
import {
  add,
  constant,
  constantValue,
  floorDiv,
  type IndexExpr,
  mod,
  mul,
  sub,
  substitute,
  variable,
} from "../../semantics/index-expr.ts";
import { type IndexRange, simplify } from "../../semantics/index-range.ts";
import { Block, type Names } from "../block.ts";
import { ownName } from "../own-names.ts";
import {
  arrive,
  groupThreads,
  onOne,
  phaseCounter,
  registerTile,
  shareRegisters,
} from "../tiles.ts";
import {
  type AttentionPlace,
  type AttentionPlan,
  firstColumn,
  mostTrips,
  type Staged,
  sharedPlace,
  tripsOf,
} from "./plan.ts";
import { resultName, scoreName, weightName } from "./thread-parts.ts";

/** Rows and depth of an instruction. */
const [groupRows, groupDepth] = [64, 16] as const;
/** The group of multiplications; whether queries are there; stages that are full and empty. */
const multiplying = "mma";
/** The group of copies to memory, the registers that one matrix store takes, and what they are in order. */
const [copied, packedName] = ["copies", ownName("packed")] as const;
const corners = [
  [0, 0],
  [0, 1],
  [1, 0],
  [1, 1],
] as const;
const [ready, full, empty] = ["ready", "full", "empty"] as const;

/** A tensor with the axes behind its lines as one. */
export interface LineView {
  readonly name: string;
  readonly of: string;
  readonly shape: readonly IndexExpr[];
}

type Shapes = (tensor: string) => readonly IndexExpr[];

/** An access by lines and elements, with the view that it goes through if it does. */
export function lineAccess<T extends Access | Write>(
  { access, box }: { readonly access: T; readonly box?: OperandBox },
  shapeOf: Shapes,
): { readonly access: T; readonly view?: LineView } {
  const { tensor, index } = access;
  const axis = box!.axis + 1;
  if (axis === index.length - 1) return { access };
  const shape = shapeOf(tensor);
  const behind = shape.slice(axis);
  const element = index
    .slice(axis)
    .reduce<IndexExpr>((at, e, i) => add(mul(at, behind[i]!), e), constant(0));
  // Named as region/coalesce.ts names the views of loops that run on together.
  const name = tensor + `.j${axis}`.repeat(behind.length - 1);
  const view = { name, of: tensor, shape: [...shape.slice(0, axis), mul(...behind)] };
  return { access: { ...access, tensor: name, index: [...index.slice(0, axis), element] }, view };
}

/** A staged operand's panels one by one: its number in its buffer, and its first element. */
function panelsIn({ panels }: Staged) {
  return panels.flatMap(({ buffer, panel, first, elements }) =>
    Array.from({ length: elements / panel }, (_, number) => {
      return { buffer, panel, number, first: first + number * panel };
    }),
  );
}

export interface StreamContext {
  readonly names: Names;
  readonly shapeOf: Shapes;
  /** Of the copy of the role that multiplies. */
  readonly group: string;
  /** What a role needs to know before its first step. */
  readonly bind: (block: Block) => void;
}

/** What comes behind the multiplications of a step. */
export interface StepWork {
  /** From the sums of a step its weights. */
  readonly weigh: (block: Block, step: IndexExpr, ranges: Map<string, IndexRange>) => void;
  /** Results so far by the new largest scores. */
  readonly scale: (block: Block) => void;
  readonly narrow: (block: Block) => void;
}

export class StreamedAttention {
  readonly #plan: AttentionPlan;
  readonly #place: AttentionPlace;
  readonly #context: StreamContext;
  /** Steps behind the first one, and their variable, the same for all, who come round together. */
  readonly #further: IndexExpr;
  readonly #step: string;

  constructor(plan: AttentionPlan, place: AttentionPlace, context: StreamContext) {
    this.#plan = plan;
    this.#place = place;
    this.#context = context;
    this.#step = context.names.fresh("step");
    this.#further = simplify(sub(tripsOf(plan, place), 1), place.ranges);
  }

  /** Buffers of its own, counters and roles; `consume` is what a warpgroup does. */
  parts(consume: readonly Statement[]): Pick<Kernel, "buffers" | "counters" | "roles"> {
    const { groups, stages, directive, form } = this.#plan;
    const packed: readonly Buffer[] = [registerTile(packedName, form.dtype, [8])];
    const { thread } = this.#place;
    const [few, many] = shareRegisters(groups);
    const role = { threads: groupThreads, threadVariable: thread };
    const copyVariable = this.#context.group;
    return {
      buffers: directive.gathered ? packed : [],
      counters: [
        phaseCounter(ready, [1], 1),
        phaseCounter(full, [2, stages], 1),
        phaseCounter(empty, [2, stages], groups),
      ],
      roles: [
        { ...role, name: "producer", copies: 1, body: this.#producer(few) },
        { ...role, name: "consumer", copies: groups, copyVariable, body: [many, ...consume] },
      ],
    };
  }

  /** Cell of the stage of a step of keys or values. */
  #cell(staged: Staged, step: IndexExpr): readonly [IndexExpr, IndexExpr] {
    return [constant(staged === this.#plan.key ? 0 : 1), mod(step, this.#plan.stages)];
  }

  #loop(body: readonly Statement[]): readonly Statement[] {
    if (this.#further.key === "0") return [];
    const mode = { kind: "serial" } as const;
    return [{ kind: "for", variable: this.#step, extent: this.#further, mode, body }];
  }

  /** What rows say of their columns is read by many registers, so before it gives them away. */
  #producer(few: Statement): readonly Statement[] {
    const { thread } = this.#place;
    const block = new Block(this.#context.names);
    this.#context.bind(block);
    const bound = block.statements;
    const { reach } = this.#plan.form;
    if (reach && isOfRows(reach)) return [...bound, few, ...onOne(thread, this.#produce())];
    return [few, ...onOne(thread, [...bound, ...this.#produce()])];
  }

  #produce(): readonly Statement[] {
    const { query, key, value } = this.#plan;
    const at = variable(this.#step);
    const none = constant(0);
    return [
      { kind: "expect", counter: ready, index: [none], bytes: constant(this.#bytes(query)) },
      ...this.#copies(query, this.#place.firstRow, none, { counter: ready, index: [none] }),
      ...this.#bring(key, none),
      ...this.#loop([...this.#bring(key, add(at, 1)), ...this.#bring(value, at)]),
      ...this.#bring(value, this.#further),
    ];
  }

  #bytes({ lines, elements }: Staged): number {
    return (lines * elements * dtypes[this.#plan.form.dtype].bits) / 8;
  }

  /** Keys or values of a step into their stage, once it is empty, as stages are at first. */
  #bring(staged: Staged, step: IndexExpr): readonly Statement[] {
    const index = this.#cell(staged, step);
    const value = add(floorDiv(step, this.#plan.stages), 1);
    const start = firstColumn(this.#plan, this.#place, step);
    const isFirst = (constantValue(step) ?? Infinity) < this.#plan.stages;
    return [
      ...(isFirst ? [] : [{ kind: "wait", counter: empty, index, value } as const]),
      { kind: "expect", counter: full, index, bytes: constant(this.#bytes(staged)) },
      ...this.#copies(staged, start, index[1], { counter: full, index }),
    ];
  }

  /** A copy for each panel of a tile. */
  #copies(
    staged: Staged,
    start: IndexExpr,
    slot: IndexExpr,
    signals: { readonly counter: string; readonly index: readonly IndexExpr[] },
  ): readonly Statement[] {
    const { batch, ranges } = this.#place;
    const { access } = lineAccess(staged.operand, this.#context.shapeOf);
    const completion = { kind: "signals", ...signals, scope: "instance" } as const;
    return panelsIn(staged).map(({ buffer, panel, number, first }) => {
      const box = [staged.lines, panel];
      const element = constant(first);
      const bindings = new Map([
        ...batch,
        ...[rowName!, columnName!].map((name) => [name, start] as const),
        ...[depthName!, widthName!].map((name) => [name, element] as const),
      ]);
      const from = access.index.map((e) => simplify(substitute(e, bindings), ranges));
      const to = tileAt(buffer, [slot, number, 0, 0], box);
      return issue("bulk.load.2d", [to, tileAt(access.tensor, from, box)], completion);
    });
  }

  /** All steps of a warpgroup. */
  consume(block: Block, work: StepWork): void {
    const { key, value } = this.#plan;
    const first = constant(0);
    const ranges = new Map(this.#place.ranges);
    block.push({ kind: "wait", counter: ready, index: [first], value: first });
    this.#multiplyKeys(block, first);
    this.#await(block, 0);
    this.#free(block, key, first);
    work.weigh(block, first, ranges);
    work.narrow(block);
    const most = mostTrips(this.#plan);
    const inside = new Map(ranges).set(this.#step, { min: 0, max: Math.max(0, most - 2) });
    const last = variable(this.#step);
    const next = add(last, 1);
    const body = block.inner();
    this.#multiplyKeys(body, next);
    this.#multiplyValues(body, last);
    this.#await(body, 1);
    this.#free(body, key, next);
    work.weigh(body, next, inside);
    this.#await(body, 0);
    this.#free(body, value, last);
    work.scale(body);
    work.narrow(body);
    block.push(...this.#loop(body.statements));
    this.#multiplyValues(block, this.#further);
    this.#await(block, 0);
  }

  /**
   * Results by way of where the queries were, each group its own rows, and from there to memory, whole lines at
   * a time: what hangs over is dropped. `value` gives two neighbours of a half of a block of 16 rows.
   */
  gather(
    block: Block,
    warpRow: IndexExpr,
    value: (block: Block, half: number, j: number) => Expr,
  ): void {
    const { query, form } = this.#plan;
    const { thread, batch, firstRow, ranges } = this.#place;
    for (let column = 0; column < form.width; column += 16) {
      // A thread's eight results of 16 columns, in the order of its registers.
      for (const [near, half] of corners) {
        const pair = value(block, half, column / 8 + near);
        block.push(storeTo(packedName, [4 * near + 2 * half], pair));
      }
      const { buffer, index } = sharedPlace(query, constant(0), warpRow, constant(column));
      const tile = tileAt(buffer, index, [16, 16]);
      block.push(issue(`stmatrix.x4.${form.dtype}`, [tile, tileAt(packedName, [0], [8])]));
    }
    block.push({ kind: "fence", scope: "shared" }, { kind: "barrier", scope: "copy" });
    const [write] = form.writes;
    const { access } = lineAccess({ access: write!, box: form.result! }, this.#context.shapeOf);
    const own = mul(groupRows, variable(this.#context.group));
    const copies = panelsIn(query).map(({ buffer, panel, number, first }) => {
      const box = [groupRows, panel];
      const bindings = new Map([
        ...batch,
        [rowName!, add(firstRow, own)] as const,
        [widthName!, constant(first)] as const,
      ]);
      const to = access.index.map((e) => simplify(substitute(e, bindings), ranges));
      const from = tileAt(buffer, [0, number, own, 0], box);
      const group = { kind: "group", group: copied } as const;
      return issue("bulk.store.2d", [tileAt(access.tensor, to, box), from], group);
    });
    block.push(
      ...onOne(thread, [
        ...copies,
        { kind: "commitGroup", group: copied },
        { kind: "waitGroup", group: copied, pending: 0 },
      ]),
    );
  }

  #await(block: Block, pending: number): void {
    block.push({ kind: "waitGroup", group: multiplying, pending });
  }

  #free(block: Block, staged: Staged, step: IndexExpr): void {
    block.push(...onOne(this.#place.thread, [arrive(empty, this.#cell(staged, step))]));
  }

  #awaitTile(block: Block, staged: Staged, step: IndexExpr): void {
    const value = floorDiv(step, this.#plan.stages);
    block.push({ kind: "wait", counter: full, index: this.#cell(staged, step), value });
  }

  /** Scores of a step, from nothing. */
  #multiplyKeys(block: Block, step: IndexExpr): void {
    const { query, key, form, columns } = this.#plan;
    this.#awaitTile(block, key, step);
    const row = mul(groupRows, variable(this.#context.group));
    const group = { kind: "group", group: multiplying } as const;
    const slot = mod(step, this.#plan.stages);
    for (let k = 0; k < form.depth; k += groupDepth) {
      const ownRow = this.#plan.groups === 1 ? constant(0) : row;
      const left = sharedPlace(query, constant(0), ownRow, constant(k));
      const right = sharedPlace(key, slot, constant(0), constant(k));
      const operands = [
        tileAt(scoreName, [0, 0], [columns / 2]),
        tileAt(left.buffer, left.index, [groupRows, groupDepth]),
        tileAt(right.buffer, right.index, [columns, groupDepth]),
      ];
      const set = k === 0 ? "set." : "";
      block.push(issue(`wgmma.${set}m64n${columns}k16.f32.${form.dtype}`, operands, group));
    }
    block.push({ kind: "commitGroup", group: multiplying });
  }

  /** Adds to the results the products of weights and the values of a step. */
  #multiplyValues(block: Block, step: IndexExpr): void {
    const { value, form, columns } = this.#plan;
    this.#awaitTile(block, value, step);
    const group = { kind: "group", group: multiplying } as const;
    const slot = mod(step, this.#plan.stages);
    for (let k = 0; k < columns; k += groupDepth) {
      for (const { first, elements, panel } of value.panels) {
        const { buffer, index } = sharedPlace(value, slot, constant(k), constant(first));
        const operands = [
          tileAt(resultName, [0, first / 2], [elements / 2]),
          tileAt(weightName, [0, k / groupDepth, 0], [8]),
          tileAt(buffer, index, [elements / panel, groupDepth, panel]),
        ];
        block.push(issue(`wgmma.held.m64n${elements}k16.f32.${form.dtype}`, operands, group));
      }
    }
    block.push({ kind: "commitGroup", group: multiplying });
  }
}
