/**
 * Sums that the blocks of a cluster made of one tile, each of a part of the depth: the columns are dealt out,
 * every thread sends the sums of each share to the thread of its number in the block whose share it is
 * (../cluster-exchange.ts), and adds what all others send to its own, in the order of the blocks. One counter
 * a warpgroup tells that all has come; a thread's sums keep their order, so that nothing but the number of the
 * share tells columns apart.
 */
import { literalExpr, loadExpr, storeTo } from "../../program/expr.ts";
import type { Buffer } from "../../program/program.ts";
import type { Statement } from "../../program/statement.ts";
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
import { registerTile } from "../tiles.ts";
import type { ProductPlan } from "./plan.ts";

const vector = { dtype: "f32", lanes: vectorLanes } as const;

export interface ExchangedSums {
  /** Registers of the tile's sums, [instruction, sum], and of the block's share of them. */
  readonly sums: string;
  readonly share: string;
  readonly instructions: number;
  /** Warpgroups. */
  readonly copies: number;
}

/** Sums of a thread that one block finishes, of one instruction. */
function shareOf({ columns, directive }: ProductPlan): number {
  return columns / 2 / directive.parts;
}

export function exchangeBuffers(plan: ProductPlan, given: ExchangedSums): readonly Buffer[] {
  const { instructions, copies, share } = given;
  const { parts } = plan.directive;
  const width = shareOf(plan);
  const vectors = (instructions * width) / vectorLanes;
  return [
    receivedBuffer(vectors, { parts, copies }),
    registerTile(share, "f32", [instructions, width]),
  ];
}

export function exchangeSums(
  plan: ProductPlan,
  given: ExchangedSums,
  at: ExchangePlace,
): readonly Statement[] {
  const vectors = vectorsOf(plan, given);
  return [
    ...expectVectors(at, vectors.length),
    // Which of the sums are the block's own is not known before it runs; registers have no addresses.
    ...vectors.map(({ to }) => storeTo(given.share, to, literalExpr(0, "f32", vectorLanes))),
    ...forEachRank(at, (rank) => ({
      own: vectors.map((v) =>
        storeTo(given.share, v.to, loadExpr(given.sums, v.from(rank), vector)),
      ),
      other: vectors.map(({ from, number }) =>
        sendVector(at, { buffer: given.sums, index: from(rank) }, { rank, number }),
      ),
    })),
    awaitVectors(at),
    ...forEachRank(at, (rank) => ({
      own: [],
      other: vectors.map(({ to, number }) => {
        const operands = [loadExpr(given.share, to, vector), receivedVector(at, { rank, number })];
        return storeTo(given.share, to, { kind: "apply", op: "add", ...vector, operands });
      }),
    })),
  ];
}

interface Vector {
  readonly number: number;
  /** In the registers of the share, and of the tile's sums. */
  readonly to: readonly number[];
  readonly from: (rank: number) => readonly number[];
}

function vectorsOf(plan: ProductPlan, { instructions }: ExchangedSums): readonly Vector[] {
  const width = shareOf(plan);
  const found: Vector[] = [];
  for (let i = 0; i < instructions; i++) {
    for (let first = 0; first < width; first += vectorLanes) {
      const from = (rank: number): readonly number[] => [i, rank * width + first];
      found.push({ number: found.length, to: [i, first], from });
    }
  }
  return found;
}
