/**
 * Results of rows whose columns are dealt out to blocks that are in no cluster, as many as fill the machine (Dao et
 * al. 2023, "Flash-Decoding"). Each block leaves in memory, of every row, the weighted values so far, the largest
 * score and the sum of weights by it; a second kernel takes those of all parts by the largest score of all, in
 * the order of the parts, so that the bytes are the same in every run, and hands the results to the epilogue.
 *
 *   partials   [part, problem …, row, element]  weighted values
 *   sums       [part, problem …, row, 2]        largest score, sum of weights
 */
import {
  applyExpr,
  callExpr,
  literalExpr,
  loadExpr,
  packExpr,
  splatExpr,
  storeTo,
} from "../../program/expr.ts";
import type { Buffer, GridAxis, Kernel } from "../../program/program.ts";
import type { Expr } from "../../program/statement.ts";
import type { ScheduledRegion } from "../../schedule/scheduled-region.ts";
import { type Condition, equal } from "../../semantics/condition.ts";
import {
  add,
  constant,
  constantValue,
  type IndexExpr,
  mod,
  mul,
  variable,
} from "../../semantics/index-expr.ts";
import { Block, type Names } from "../block.ts";
import { isRefuted } from "../conditions.ts";
import { registerTile } from "../tiles.ts";
import { mostName, OnlineSoftmax, totalName } from "./online-softmax.ts";
import type { AttentionPlace, AttentionPlan } from "./plan.ts";
import { resultName, ThreadParts } from "./thread-parts.ts";

/** Elements of a result that a thread of the second kernel has, and parts whose loads it has on the way together. */
const [lanes, together] = [4, 8] as const;
/** Threads that share a row of a matrix instruction's results. */
const threadsOfRow = 4;
const [f32, pair, vector] = [
  { dtype: "f32", lanes: 1 },
  { dtype: "f32", lanes: 2 },
  { dtype: "f32", lanes },
] as const;

const partialsOf = (region: string): string => `${region}.partials`;
const sumsOf = (region: string): string => `${region}.sums`;

/** Buffers of memory through which the blocks of a region's attention meet. */
export function dealtBuffers({ region, attention }: ScheduledRegion): readonly Buffer[] {
  if (!attention || attention.directive.splits === 1) return [];
  const { form, directive } = attention;
  const rows = [constant(directive.splits), ...form.batch.map((l) => l.extent)];
  const buffer = (name: string, elements: number): Buffer => ({
    ...{ name, kind: "scratch", scope: "memory", dtype: "f32", lanes: 1 },
    shape: [...rows, constant(form.rows), constant(elements)],
  });
  return [buffer(partialsOf(region.name), form.width), buffer(sumsOf(region.name), 2)];
}

/** Where the second kernel hands neighbouring elements of a result to the epilogue. */
export interface ResultPlace {
  readonly batch: ReadonlyMap<string, IndexExpr>;
  readonly row: IndexExpr;
  /** The first of the elements. */
  readonly column: IndexExpr;
  readonly lanes: number;
  readonly ranges: ReadonlyMap<string, { readonly min: number; readonly max: number }>;
}

export class DealtResults {
  readonly #region: string;
  readonly #plan: AttentionPlan;
  readonly #names: Names;

  constructor(region: string, plan: AttentionPlan, names: Names) {
    this.#region = region;
    this.#plan = plan;
    this.#names = names;
  }

  /** What a block has of its rows goes to memory; sums are those of all threads of a row. */
  store(
    block: Block,
    parts: ThreadParts,
    place: Pick<AttentionPlace, "part" | "batch" | "firstRow" | "thread" | "ranges">,
    isRow: (row: IndexExpr) => readonly Condition[],
  ): void {
    const { form } = this.#plan;
    const outer = [place.part, ...place.batch.values()];
    const isFirst = equal(mod(variable(place.thread), threadsOfRow), constant(0));
    for (let i = 0; i < parts.down; i++) {
      for (const half of [0, 1]) {
        const row = add(place.firstRow, parts.row(i, half));
        const inside = isRow(row);
        if (inside.some((c) => isRefuted(c, place.ranges))) continue;
        block.branch(inside, (body) => {
          for (let j = 0; j < form.width / 8; j++) {
            const value = loadExpr(resultName, parts.pair(i, j, half), pair);
            body.push(storeTo(partialsOf(this.#region), [...outer, row, parts.column(j)], value));
          }
          body.branch([isFirst], (one) => {
            const both = [mostName, totalName].map((name) => loadExpr(name, [i, half], f32));
            one.push(storeTo(sumsOf(this.#region), [...outer, row, 0], packExpr(both)));
          });
        });
      }
    }
  }

  /** The second kernel: a block a row, a thread for each four elements of it. */
  merge(name: string, finish: (block: Block, at: ResultPlace, value: Expr) => void): Kernel {
    const { form } = this.#plan;
    const names = this.#names;
    const axes: GridAxis[] = [];
    const ranges = new Map<string, { min: number; max: number }>();
    const over = (stem: string, extent: number): string => {
      const own = names.fresh(stem);
      ranges.set(own, { min: 0, max: extent - 1 });
      return own;
    };
    const axis = (stem: string, extent: number): IndexExpr => {
      if (extent === 1) return constant(0);
      const own = over(stem, extent);
      axes.push({ name: own, extent: constant(extent) });
      return variable(own);
    };
    const batch = new Map(
      form.batch.map((l) => [l.name, axis("problem", constantValue(l.extent)!)] as const),
    );
    const row = axis("row", form.rows);
    const threads = form.width / lanes;
    const threadVariable = over("thread", threads);
    const column = mul(lanes, variable(threadVariable));
    const block = new Block(names);
    const value = this.#take(block, [...batch.values(), row], column);
    finish(block, { batch, row, column, lanes, ranges }, value);
    const one = [{ name: names.fresh("block"), extent: constant(1) }];
    return {
      name,
      grid: {
        ...{ unit: "blocks", axes: axes.length > 0 ? axes : one },
        ...{ clusterSize: 1, resident: false },
      },
      buffers: [
        registerTile(mostName, "f32", [1, 1]),
        registerTile(totalName, "f32", [1, 1]),
        registerTile(resultName, "f32", [1, lanes]),
      ],
      counters: [],
      roles: [{ name: "main", copies: 1, threads, threadVariable, body: block.statements }],
      region: this.#region,
    };
  }

  /** Elements of a row over all parts, by the sum of all weights. */
  #take(block: Block, at: readonly IndexExpr[], column: IndexExpr): Expr {
    const softmax = new OnlineSoftmax(this.#plan, new ThreadParts(this.#plan, "", 0), this.#names);
    const place = [0, 0] as const;
    const [most, total, result] = [
      loadExpr(mostName, place, f32),
      loadExpr(totalName, place, f32),
      loadExpr(resultName, place, vector),
    ];
    block.push(
      storeTo(mostName, place, literalExpr(-Infinity, "f32")),
      storeTo(totalName, place, literalExpr(0, "f32")),
      storeTo(resultName, place, literalExpr(0, "f32", lanes)),
    );
    const sums = (part: IndexExpr, which: number): Expr =>
      loadExpr(sumsOf(this.#region), [part, ...at, constant(which)], f32);
    this.#eachPart(block, (body, part) => {
      body.push(storeTo(mostName, place, applyExpr("max", most, sums(part, 0))));
    });
    this.#eachPart(block, (body, part) => {
      const own = body.inner();
      const factor = own.bind(softmax.factor(own, place, sums(part, 0)));
      const theirs = loadExpr(partialsOf(this.#region), [part, ...at, column], vector);
      const scaled = applyExpr("mul", theirs, splatExpr(factor, lanes));
      own.push(
        storeTo(totalName, place, callExpr("fma.f32", sums(part, 1), factor, total)),
        storeTo(resultName, place, applyExpr("add", result, scaled)),
      );
      body.push(...own.statements);
    });
    return applyExpr("mul", result, splatExpr(applyExpr("reciprocal", total), lanes));
  }

  /** Parts in order, some at once. */
  #eachPart(block: Block, visit: (body: Block, part: IndexExpr) => void): void {
    const { splits } = this.#plan.directive;
    let each = Math.min(together, splits);
    while (splits % each !== 0) each--;
    const [outer, inner] = [this.#names.fresh("parts"), this.#names.fresh("part")];
    block.loop(outer, constant(splits / each), { kind: "serial" }, (body) => {
      body.loop(inner, constant(each), { kind: "unrolled" }, (one) => {
        visit(one, add(mul(each, variable(outer)), variable(inner)));
      });
    });
  }
}
