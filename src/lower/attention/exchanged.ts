/**
 * Results of rows whose columns are dealt out to the blocks of a cluster, each of which has met a part of the keys:
 * of each row every block knows its largest score, the sum of its weights by that and the weighted values. The
 * elements of a result are dealt out: every thread sends what it has of each share, with scores and sums, to
 * the thread of its number in the block whose share it is (../cluster-exchange.ts), and takes its own and what
 * comes together by the largest of all (Dao et al. 2023, "Flash-Decoding"), its own first, then in the order of
 * the blocks.
 */
import {
  applyExpr,
  callExpr,
  literalExpr,
  loadExpr,
  splatExpr,
  storeTo,
} from "../../program/expr.ts";
import type { Buffer } from "../../program/program.ts";
import type { Expr, Statement } from "../../program/statement.ts";
import type { IndexExpr } from "../../semantics/index-expr.ts";
import type { Block, Names } from "../block.ts";
import {
  awaitVectors,
  type ExchangePlace,
  expectVectors,
  forEachRank,
  receivedBuffer,
  receivedVector,
  sendVector,
  vectorLanes,
} from "../cluster-exchange.ts";
import { freeze } from "../exchange.ts";
import { ownName } from "../own-names.ts";
import { registerTile } from "../tiles.ts";
import { mostName, type OnlineSoftmax, totalName } from "./online-softmax.ts";
import type { AttentionPlan } from "./plan.ts";
import { resultName, type ThreadParts } from "./thread-parts.ts";

/** Registers of the block's share of the results, and of what each row has: largest scores, then sums, of both halves. */
export const shareName = ownName("share");
const partedName = ownName("parted");
const [f32, pair] = [
  { dtype: "f32", lanes: 1 },
  { dtype: "f32", lanes: 2 },
] as const;
const halves = [0, 1] as const;

export class ExchangedResults {
  readonly #plan: AttentionPlan;
  readonly #parts: ThreadParts;
  readonly #names: Names;
  readonly #at: ExchangePlace;

  constructor(
    plan: AttentionPlan,
    parts: ThreadParts,
    { names, rank, thread }: { names: Names; rank: IndexExpr; thread: string },
  ) {
    this.#plan = plan;
    this.#parts = parts;
    this.#names = names;
    this.#at = { parts: plan.directive.parts, rank, thread, threads: plan.threads, copy: 0 };
  }

  get buffers(): readonly Buffer[] {
    const { threads } = this.#plan;
    const { parts } = this.#at;
    const { down } = this.#parts;
    return [
      receivedBuffer(down * (this.#pairs + 1), { parts, copies: 1, threads }),
      registerTile(shareName, "f32", [down, vectorLanes * this.#pairs]),
      registerTile(partedName, "f32", [down, vectorLanes]),
    ];
  }

  /** Pairs of a row's results that one block finishes. */
  get #pairs(): number {
    return this.#plan.form.width / 8 / this.#at.parts;
  }

  #number(i: number, j: number): number {
    return i * (this.#pairs + 1) + j;
  }

  /** Results of a part of the columns become the block's share of those of all, sums and largest scores those of all. */
  combine(block: Block, softmax: OnlineSoftmax): void {
    const at = this.#at;
    const rows = Array.from({ length: this.#parts.down }, (_, i) => i);
    softmax.sumRows(block);
    block.push(...expectVectors(at, rows.length * (this.#pairs + 1)));
    for (const i of rows) {
      for (const half of halves) {
        block.push(storeTo(partedName, [i, half], loadExpr(mostName, [i, half], f32)));
        block.push(storeTo(partedName, [i, 2 + half], loadExpr(totalName, [i, half], f32)));
      }
      for (let j = 0; j < this.#pairs; j++)
        block.push(storeTo(shareName, [i, vectorLanes * j], literalExpr(0, "f32", vectorLanes)));
    }
    block.push(
      ...forEachRank(at, (rank) => ({
        own: rows.flatMap((i) => this.#kept(i, rank)),
        other: rows.flatMap((i) => this.#sent(i, rank)),
      })),
      awaitVectors(at),
      ...forEachRank(at, (rank) => ({
        own: [],
        other: rows.flatMap((i) => this.#largest(block, i, rank)),
      })),
    );
    for (const i of rows) this.#scaleOwn(block, softmax, i);
    block.push(
      ...forEachRank(at, (rank) => ({
        own: [],
        other: rows.flatMap((i) => this.#added(block, softmax, { i, rank })),
      })),
    );
  }

  /** The block's own of its share. */
  #kept(i: number, rank: number): readonly Statement[] {
    const found: Statement[] = [];
    for (let j = 0; j < this.#pairs; j++) {
      const from = [i, vectorLanes * (rank * this.#pairs + j)];
      const value = loadExpr(resultName, from, { dtype: "f32", lanes: vectorLanes });
      found.push(storeTo(shareName, [i, vectorLanes * j], value));
    }
    return found;
  }

  #sent(i: number, rank: number): readonly Statement[] {
    const own = { rank, number: this.#number(i, this.#pairs) };
    const found = [sendVector(this.#at, { buffer: partedName, index: [i, 0] }, own)];
    for (let j = 0; j < this.#pairs; j++) {
      const index = [i, vectorLanes * (rank * this.#pairs + j)];
      const to = { rank, number: this.#number(i, j) };
      found.push(sendVector(this.#at, { buffer: resultName, index }, to));
    }
    return found;
  }

  /** What another block has of a row: its largest score, or from 2 on its sum. */
  #other(i: number, rank: number, first: number): Expr {
    const vector = { rank, number: this.#number(i, this.#pairs) };
    return receivedVector(this.#at, vector, { first, lanes: 1 });
  }

  #largest(block: Block, i: number, rank: number): readonly Statement[] {
    const own = block.inner();
    for (const half of halves) {
      const most = loadExpr(mostName, [i, half], f32);
      own.push(storeTo(mostName, [i, half], applyExpr("max", most, this.#other(i, rank, half))));
    }
    return own.statements;
  }

  #scaleOwn(block: Block, softmax: OnlineSoftmax, i: number): void {
    const own = block.inner();
    for (const half of halves) {
      const factor = softmax.factor(own, [i, half], loadExpr(partedName, [i, half], f32));
      const total = applyExpr("mul", loadExpr(partedName, [i, 2 + half], f32), factor);
      own.push(storeTo(totalName, [i, half], total));
      this.#eachPair(i, half, (at) => {
        own.push(
          storeTo(
            shareName,
            at,
            applyExpr("mul", loadExpr(shareName, at, pair), splatExpr(factor, 2)),
          ),
        );
      });
    }
    block.push(...own.statements);
  }

  #added(
    block: Block,
    softmax: OnlineSoftmax,
    { i, rank }: { readonly i: number; readonly rank: number },
  ): readonly Statement[] {
    const own = block.inner();
    for (const half of halves) {
      const factor = softmax.factor(own, [i, half], this.#other(i, rank, half));
      const total = loadExpr(totalName, [i, half], f32);
      const theirs = this.#other(i, rank, 2 + half);
      own.push(storeTo(totalName, [i, half], callExpr("fma.f32", theirs, factor, total)));
      this.#eachPair(i, half, (at, j) => {
        const vector = { rank, number: this.#number(i, j) };
        const sent = receivedVector(this.#at, vector, { first: 2 * half, lanes: 2 });
        const theirs = freeze(applyExpr("mul", sent, splatExpr(factor, 2)), this.#names, own);
        own.push(storeTo(shareName, at, applyExpr("add", loadExpr(shareName, at, pair), theirs)));
      });
    }
    return own.statements;
  }

  #eachPair(
    i: number,
    half: number,
    visit: (at: readonly [number, number], j: number) => void,
  ): void {
    for (let j = 0; j < this.#pairs; j++) visit(this.#parts.pair(i, j, half), j);
  }
}
