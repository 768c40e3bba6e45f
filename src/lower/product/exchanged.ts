/**
 * Sums that the blocks of a cluster made of one tile, each of a part of the depth, and exchange through each
 * other's shared memory (PTX ISA, "st.async", "mapa"): the columns are dealt out, every thread sends the sums of
 * each share to the thread of its number in the block whose share it is, and adds what all others send to its
 * own. One counter a warpgroup tells that all has come; a thread's sums keep their order, so that nothing but
 * the number of the share tells columns apart. Each place is written once, by one block.
 */
import { issue, literalExpr, loadExpr, storeTo, tileAt } from "../../program/expr.ts";
import type { Buffer, Counter } from "../../program/program.ts";
import type { Statement } from "../../program/statement.ts";
import { equal } from "../../semantics/condition.ts";
import { add, constant, type IndexExpr, mod, sub, variable } from "../../semantics/index-expr.ts";
import { groupThreads, onOne, phaseCounter, registerTile, sharedTile } from "../tiles.ts";
import type { ProductPlan } from "./plan.ts";

const [received, exchanged] = ["received", "exchanged"] as const;
/** Sums that are sent together, and bytes of them. */
const [together, vectorBytes] = [4, 16] as const;
const vector = { dtype: "f32", lanes: together } as const;

export interface ExchangedSums {
  /** Registers of the tile's sums, [instruction, sum], and of the block's share of them. */
  readonly sums: string;
  readonly share: string;
  readonly instructions: number;
  /** Warpgroups. */
  readonly copies: number;
}

export interface ExchangePlace {
  /** The block's number in its cluster. */
  readonly rank: IndexExpr;
  readonly thread: string;
  readonly copy: string;
}

/** Sums of a thread that one block finishes, of one instruction. */
function shareOf({ columns, directive }: ProductPlan): number {
  return columns / 2 / directive.parts;
}

export function exchangeBuffers(plan: ProductPlan, given: ExchangedSums): readonly Buffer[] {
  const { instructions, copies, share } = given;
  const width = shareOf(plan);
  const vectors = (instructions * width) / together;
  const shape = [copies, plan.directive.parts - 1, vectors, groupThreads, together];
  return [sharedTile(received, "f32", shape, 0), registerTile(share, "f32", [instructions, width])];
}

export function exchangeCounter(copies: number): Counter {
  return phaseCounter(exchanged, [copies], 1);
}

export function exchangeSums(
  plan: ProductPlan,
  given: ExchangedSums,
  at: ExchangePlace,
): readonly Statement[] {
  const { parts } = plan.directive;
  const vectors = vectorsOf(plan, given);
  const cell = [variable(at.copy)];
  const bytes = constant((parts - 1) * vectors.length * groupThreads * vectorBytes);
  return [
    ...onOne(at.thread, [{ kind: "expect", counter: exchanged, index: cell, bytes }]),
    // Which of the sums are the block's own is not known before it runs; registers have no addresses.
    ...vectors.map(({ to }) => storeTo(given.share, to, literalExpr(0, "f32", together))),
    ...ranks(plan, at, (rank) => ({
      own: vectors.map((v) =>
        storeTo(given.share, v.to, loadExpr(given.sums, v.from(rank), vector)),
      ),
      other: vectors.map((v) => {
        const slot = slotOf(plan, at.rank, constant(rank));
        const place = [variable(at.copy), slot, v.number, variable(at.thread), 0];
        const operands = [
          tileAt(received, place, [together]),
          tileAt(given.sums, v.from(rank), [together]),
        ];
        const signals = { kind: "signals", counter: exchanged, index: cell } as const;
        const peer = constant(rank);
        return issue("peer.store.x4.f32", operands, { ...signals, scope: "instance", peer });
      }),
    })),
    { kind: "wait", counter: exchanged, index: cell, value: constant(0) },
    ...ranks(plan, at, (rank) => ({
      own: [],
      other: vectors.map(({ to, number }) => {
        const slot = slotOf(plan, constant(rank), at.rank);
        const place = [variable(at.copy), slot, number, variable(at.thread), 0];
        const operands = [loadExpr(given.share, to, vector), loadExpr(received, place, vector)];
        return storeTo(given.share, to, { kind: "apply", op: "add", ...vector, operands });
      }),
    })),
  ];
}

/** Where what a block sends to another lies there: a block has a slot for each of the others. */
function slotOf({ directive: { parts } }: ProductPlan, from: IndexExpr, to: IndexExpr): IndexExpr {
  return mod(add(sub(from, to), parts - 1), parts);
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
    for (let first = 0; first < width; first += together) {
      const from = (rank: number): readonly number[] => [i, rank * width + first];
      found.push({ number: found.length, to: [i, first], from });
    }
  }
  return found;
}

/** For every block of the cluster, what one does that is it, and what others do. */
function ranks(
  { directive: { parts } }: ProductPlan,
  { rank }: ExchangePlace,
  bodies: (rank: number) => {
    readonly own: readonly Statement[];
    readonly other: readonly Statement[];
  },
): readonly Statement[] {
  return Array.from({ length: parts }, (_, number) => {
    const { own, other } = bodies(number);
    return { kind: "if", conditions: [equal(rank, constant(number))], then: own, else: other };
  });
}
