/**
 * The parts of a product whose tiles one thread streams by tensor copies to warpgroups that multiply (PTX
 * ISA, "wgmma.mma_async", "cp.async.bulk.tensor", "mbarrier"). A ring of stages with two counters each:
 *
 *   producer   wait until the stage is empty · announce its bytes · copy both tiles into it
 *   consumer   wait until it is full · multiply · once the step before is done, give its stage back
 *
 * One group of multiplications stays in flight over the turn of the loop. Registers go from the warpgroup that
 * only copies to those that hold sums (setmaxnreg). Copies bring zeros for what lies outside the operands.
 * Results are stored by the threads that hold them, or gathered and copied to memory like operands.
 */
import { issue, loadExpr, storeTo, tileAt } from "../../program/expr.ts";
import type { Buffer, Counter, Kernel } from "../../program/program.ts";
import type { Expr, Statement } from "../../program/statement.ts";
import { resultColumns } from "../../schedule/product-form.ts";
import { atMost, equal } from "../../semantics/condition.ts";
import { type DType, dtypes } from "../../semantics/dtype.ts";
import {
  add,
  constant,
  floorDiv,
  type IndexExpr,
  mod,
  mul,
  substitute,
  variable,
} from "../../semantics/index-expr.ts";
import type { Block, Names } from "../block.ts";
import type { ResultPiece } from "./accumulators.ts";
import type { BlockPlace } from "./copies.ts";
import { type ProductPlan, type StagedSide, sharedBuffer } from "./plan.ts";

/** Threads of a warpgroup. */
export const groupThreads = 128;
/** Rows and depth of one instruction. */
const groupRows = 64;
const groupDepth = 16;

const multiplying = "mma";
const copied = "copies";
const [gathered, packed] = ["gathered", "packed"];
/** Of rows of so many elements of 16 bits. */
const gatherSwizzles: Readonly<Record<number, 32 | 64 | 128>> = { 16: 32, 32: 64, 64: 128 };
/** Neighbouring blocks of eight columns, and rows eight apart. */
const corners = [
  [0, 0],
  [0, 1],
  [1, 0],
  [1, 1],
] as const;

/** Where gathered results go, and what becomes of a sum. */
export interface ResultTarget {
  readonly tensor: string;
  readonly dtype: DType;
  readonly value: (block: Block, piece: ResultPiece) => Expr;
}
const [full, empty] = ["full", "empty"];

/** Registers of a thread that copies and of one that multiplies, by warpgroups that multiply: 512 in all. */
const shares: Readonly<Record<number, readonly [number, number]>> = {
  1: [40, 232],
  2: [24, 240],
  3: [32, 160],
};
/** Sums of a thread up to which an equal share of the registers is enough. */
const fewSums = 64;

export class StreamedProduct {
  readonly #plan: ProductPlan;
  readonly #place: BlockPlace;
  readonly #step: string;
  /** Index variable of a warpgroup that multiplies. */
  readonly copy: string;
  readonly copies: number;

  constructor(plan: ProductPlan, place: BlockPlace, names: Names) {
    this.#plan = plan;
    this.#place = place;
    this.#step = names.fresh("step");
    this.copy = names.fresh("group");
    this.copies = copiesOf(plan);
  }

  /** Buffers, counters and roles; `consume` is what a warpgroup does. */
  parts(consume: readonly Statement[]): Pick<Kernel, "buffers" | "counters" | "roles"> {
    const { left, right, columns, stages, directive } = this.#plan;
    const shape = [this.#instructions, columns / 2].map((n) => constant(n));
    const sums: Buffer = {
      name: "sums",
      kind: "scratch",
      scope: "register",
      dtype: "f32",
      lanes: 1,
      shape,
    };
    const counter = (name: string, arrivals: number): Counter => ({
      name,
      scope: "shared",
      protocol: "phase",
      shape: [constant(stages)],
      arrivals,
    });
    const { thread } = this.#place;
    const [few, many] = this.#registers();
    const consumer = { copies: this.copies, threads: groupThreads, threadVariable: thread };
    const copyVariable = { copyVariable: this.copy };
    return {
      buffers: [
        ...[left, right].map((s) => sharedBuffer(this.#plan, s)),
        sums,
        ...(directive.results > 0 ? gatherBuffers(this.#plan, this.copies) : []),
      ],
      counters: [counter(full!, 1), counter(empty!, this.copies)],
      roles: [
        {
          name: "producer",
          copies: 1,
          threads: groupThreads,
          threadVariable: thread,
          body: [...few, ...onOne(thread, this.#produce())],
        },
        { name: "consumer", ...consumer, ...copyVariable, body: [...many, ...consume] },
      ],
    };
  }

  get #instructions(): number {
    return instructionsOf(this.#plan);
  }

  #registers(): readonly [readonly Statement[], readonly Statement[]] {
    const { rows, columns } = this.#plan;
    if ((rows * columns) / (groupThreads * this.copies) <= fewSums) return [[], []];
    const [few, many] = shares[this.copies]!;
    return [[issue(`setmaxnreg.dec.${few}`, [])], [issue(`setmaxnreg.inc.${many}`, [])]];
  }

  #loop(body: readonly Statement[]): Statement {
    const extent = constant(this.#plan.steps);
    return { kind: "for", variable: this.#step, extent, mode: { kind: "serial" }, body };
  }

  /** The stage of a step some steps away. */
  #slot(away = 0): IndexExpr {
    return mod(add(variable(this.#step), away), this.#plan.stages);
  }

  #produce(): readonly Statement[] {
    const { form, left, right, rows, columns, depth, stages } = this.#plan;
    const step = variable(this.#step);
    const slot = this.#slot();
    const bytes = ((rows + columns) * depth * dtypes[form.dtype].bits) / 8;
    const copy = (staged: StagedSide, start: IndexExpr): Statement => {
      const box = [staged.extent, depth];
      const to = tileAt(staged.buffer, [slot, 0, 0], box);
      const { tensor, index } = staged.side.access;
      const deep = new Map(this.#place.batch).set(form.depth.loops[0]!.name, mul(depth, step));
      const from = tileAt(tensor, [start, substitute(index[1]!, deep)], box);
      const completion = {
        kind: "signals",
        counter: full!,
        index: [slot],
        scope: "instance",
      } as const;
      return issue("bulk.load.2d", [to, from], completion);
    };
    return [
      this.#loop([
        { kind: "wait", counter: empty!, index: [slot], value: add(floorDiv(step, stages), 1) },
        { kind: "expect", counter: full!, index: [slot], bytes: constant(bytes) },
        copy(left, this.#place.left),
        copy(right, this.#place.right),
      ]),
    ];
  }

  /** All steps of a warpgroup, with the sums at the end. */
  multiply(): readonly Statement[] {
    const { depth, stages } = this.#plan;
    const step = variable(this.#step);
    const steps: Statement[] = [
      { kind: "wait", counter: full!, index: [this.#slot()], value: floorDiv(step, stages) },
    ];
    for (let k = 0; k < depth; k += groupDepth) {
      for (let i = 0; i < this.#instructions; i++) steps.push(this.#instruction(i, k));
    }
    const before = this.#slot(stages - 1);
    const free: Statement = {
      kind: "signal",
      counter: empty!,
      index: [before],
      amount: constant(1),
      scope: "instance",
    };
    steps.push({ kind: "commitGroup", group: multiplying });
    steps.push({
      kind: "if",
      conditions: [atMost(1, step)],
      then: [
        { kind: "waitGroup", group: multiplying, pending: 1 },
        ...onOne(this.#place.thread, [free]),
      ],
      else: [],
    });
    return [this.#loop(steps), { kind: "waitGroup", group: multiplying, pending: 0 }];
  }

  /** The first step forgets what the registers held. */
  #instruction(i: number, k: number): Statement {
    const { columns, form, left, right } = this.#plan;
    const row = add(mul(groupRows * this.#instructions, variable(this.copy)), groupRows * i);
    const operands = [
      tileAt("sums", [i, 0], [columns / 2]),
      tileAt(left.buffer, [this.#slot(), row, k], [groupRows, groupDepth]),
      tileAt(right.buffer, [this.#slot(), 0, k], [columns, groupDepth]),
    ];
    const group = { kind: "group", group: multiplying } as const;
    const name = `m64n${columns}k16.f32.${form.dtype}`;
    const next = issue(`wgmma.${name}`, operands, group);
    if (k > 0) return next;
    const first = issue(`wgmma.set.${name}`, operands, group);
    const conditions = [equal(variable(this.#step), constant(0))];
    return { kind: "if", conditions, then: [first], else: [next] };
  }

  /**
   * Results by way of shared memory: each warpgroup writes parts of 64 rows into buffers that take turns, and
   * one thread has them copied to memory, whole lines at a time, dropping what lies outside.
   */
  gather(block: Block, to: ResultTarget): void {
    const { columns, directive } = this.#plan;
    const { left, right, thread } = this.#place;
    const wide = resultColumns(columns);
    const start = mul(groupRows * this.#instructions, variable(this.copy));
    const pieces = this.pieces();
    const pending = (count: number): Statement => ({
      kind: "waitGroup",
      group: copied,
      pending: count,
    });
    const warpRow = mul(16, floorDiv(variable(thread), 32));
    for (let part = 0; part < (this.#instructions * columns) / wide; part++) {
      const [i, first] = [Math.floor((part * wide) / columns), (part * wide) % columns];
      const slot = part % directive.results;
      if (part >= directive.results) {
        block.push(...onOne(thread, [pending(directive.results - 1)]));
        block.push({ kind: "barrier", scope: "copy" });
      }
      for (let column = 0; column < wide; column += 16) {
        // A thread's eight results of 16 columns, in the order of its registers.
        for (const [near, half] of corners) {
          const j = (first + column) / 8 + near;
          const piece = pieces[(2 * i + half) * (columns / 8) + j]!;
          block.push(storeTo(packed, [4 * near + 2 * half], to.value(block, piece)));
        }
        const tile = tileAt(gathered, [variable(this.copy), slot, warpRow, column], [16, 16]);
        block.push(issue(`stmatrix.x4.${to.dtype}`, [tile, tileAt(packed, [0], [8])]));
      }
      block.push({ kind: "fence", scope: "shared" }, { kind: "barrier", scope: "copy" });
      const box = [groupRows, wide];
      const place = [add(left, start, groupRows * i), add(right, first)];
      const from = tileAt(gathered, [variable(this.copy), slot, 0, 0], box);
      const group = { kind: "group", group: copied } as const;
      const copy = issue("bulk.store.2d", [tileAt(to.tensor, place, box), from], group);
      block.push(...onOne(thread, [copy, { kind: "commitGroup", group: copied }]));
    }
    block.push(...onOne(thread, [pending(0)]));
  }

  pieces(): readonly ResultPiece[] {
    return streamedPieces(this.#plan, variable(this.#place.thread), variable(this.copy));
  }
}

/** Sums as threads of a warpgroup hold them (PTX ISA, "wgmma.mma_async.m64nNk16", accumulator D). */
export function streamedPieces(
  plan: ProductPlan,
  thread: IndexExpr,
  copy: IndexExpr,
): readonly ResultPiece[] {
  const instructions = instructionsOf(plan);
  const warp = mul(16, floorDiv(thread, 32));
  const inRow = floorDiv(mod(thread, 32), 4);
  const inColumn = mul(2, mod(thread, 4));
  const start = mul(groupRows * instructions, copy);
  const found: ResultPiece[] = [];
  for (let i = 0; i < instructions; i++) {
    for (const half of [0, 1]) {
      for (let j = 0; j < plan.columns / 8; j++) {
        found.push({
          row: add(start, warp, inRow, groupRows * i + 8 * half),
          column: add(inColumn, 8 * j),
          lanes: 2,
          value: loadExpr("sums", [i, 4 * j + 2 * half], { dtype: "f32", lanes: 2 }),
        });
      }
    }
  }
  return found;
}

/** Warpgroups that multiply. */
export function copiesOf({ directive }: ProductPlan): number {
  return directive.warps[0] / 4;
}

/** Instructions of 64 rows that one warpgroup issues for each 16 of the depth. */
function instructionsOf(plan: ProductPlan): number {
  return plan.rows / (groupRows * copiesOf(plan));
}

/** Parts of the results on their way, and the registers that one matrix store takes. */
function gatherBuffers(
  { columns, form, directive }: ProductPlan,
  copies: number,
): readonly Buffer[] {
  const wide = resultColumns(columns);
  const buffer = { kind: "scratch", dtype: form.dtype, lanes: 1 } as const;
  const extents = (...shape: readonly number[]) => shape.map((n) => constant(n));
  return [
    {
      ...buffer,
      name: gathered,
      scope: "shared",
      shape: extents(copies, directive.results, groupRows, wide),
      swizzleBytes: gatherSwizzles[wide]!,
    },
    { ...buffer, name: packed, scope: "register", shape: extents(8) },
  ];
}

function onOne(thread: string, body: readonly Statement[]): readonly Statement[] {
  const conditions = [equal(variable(thread), constant(0))];
  return [{ kind: "if", conditions, then: body, else: [] }];
}
