/**
 * What the blocks of a cluster send to each other's shared memory from registers (PTX ISA, "st.async", "mapa"):
 * vectors of 16 bytes, each from a thread to the thread of its number in another block, whose counter knows how
 * many bytes come. A block has a place for each of the others, which is written once, so that nothing else is
 * awaited. Registers have no addresses: what hangs on a block's number is said for each number.
 */
import { issue, loadExpr, tileAt } from "../program/expr.ts";
import type { Buffer, Counter } from "../program/program.ts";
import type { Expr, Statement } from "../program/statement.ts";
import { equal } from "../semantics/condition.ts";
import {
  add,
  constant,
  type IndexExpr,
  type IndexLike,
  mod,
  sub,
  variable,
} from "../semantics/index-expr.ts";
import { ownName } from "./own-names.ts";
import { groupThreads, onOne, phaseCounter, sharedTile } from "./tiles.ts";

const [received, exchanged] = [ownName("received"), "exchanged"] as const;
/** Values of a vector, and its bytes. */
export const [vectorLanes, vectorBytes] = [4, 16] as const;

export interface ExchangePlace {
  /** Blocks of the cluster, and the block's number among them. */
  readonly parts: number;
  readonly rank: IndexExpr;
  readonly thread: string;
  /** Threads of a copy of the role, which exchange by themselves, and the number of the copy. */
  readonly threads: number;
  readonly copy: IndexLike;
}

/** Places for so many vectors a thread. */
export function receivedBuffer(
  vectors: number,
  of: { readonly parts: number; readonly copies: number; readonly threads?: number },
): Buffer {
  const { parts, copies, threads = groupThreads } = of;
  return sharedTile(received, "f32", [copies, parts - 1, vectors, threads, vectorLanes], 0);
}

export function exchangeCounter(copies: number): Counter {
  return phaseCounter(exchanged, [copies], 1);
}

/** Tells the block's counter what comes of so many vectors a thread. */
export function expectVectors(at: ExchangePlace, vectors: number): readonly Statement[] {
  const bytes = constant((at.parts - 1) * vectors * at.threads * vectorBytes);
  return onOne(at.thread, [{ kind: "expect", counter: exchanged, index: cellOf(at), bytes }]);
}

/** Until all of them are there. */
export function awaitVectors(at: ExchangePlace): Statement {
  return { kind: "wait", counter: exchanged, index: cellOf(at), value: constant(0) };
}

/** Sends registers as the vector of a number to the block of a rank. */
export function sendVector(
  at: ExchangePlace,
  from: { readonly buffer: string; readonly index: readonly IndexLike[] },
  to: { readonly rank: number; readonly number: number },
): Statement {
  const place = placeOf(at, to.number, slotOf(at, at.rank, constant(to.rank)));
  const operands = [
    tileAt(received, place, [vectorLanes]),
    tileAt(from.buffer, from.index, [vectorLanes]),
  ];
  const signals = { kind: "signals", counter: exchanged, index: cellOf(at) } as const;
  const peer = constant(to.rank);
  return issue("peer.store.x4.f32", operands, { ...signals, scope: "instance", peer });
}

/** The vector of a number that the block of a rank sent, or so many of its values from one on. */
export function receivedVector(
  at: ExchangePlace,
  { rank, number }: { readonly rank: number; readonly number: number },
  { first, lanes } = { first: 0, lanes: vectorLanes as number },
): Expr {
  const place = placeOf(at, number, slotOf(at, constant(rank), at.rank), first);
  return loadExpr(received, place, { dtype: "f32", lanes });
}

/** For every block of the cluster, what one does that is it, and what others do. */
export function forEachRank(
  { parts, rank }: Pick<ExchangePlace, "parts" | "rank">,
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

/** The vector of a number in the place for one of the others: place 0 is that of the block behind this one. */
export function slotVector(
  at: ExchangePlace,
  { slot, number }: { readonly slot: number; readonly number: number },
): Expr {
  const place = placeOf(at, number, constant(slot));
  return loadExpr(received, place, { dtype: "f32", lanes: vectorLanes });
}

function cellOf({ copy }: ExchangePlace): readonly IndexExpr[] {
  return [typeof copy === "number" ? constant(copy) : copy];
}

/** Of the places that a block has for the others, the one for what comes from one of them. */
function slotOf({ parts }: ExchangePlace, from: IndexExpr, to: IndexExpr): IndexExpr {
  return mod(add(sub(from, to), parts - 1), parts);
}

function placeOf(
  at: ExchangePlace,
  number: number,
  slot: IndexExpr,
  first = 0,
): readonly IndexLike[] {
  return [...cellOf(at), slot, number, variable(at.thread), first];
}
