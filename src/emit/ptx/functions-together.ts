/**
 * The order in which an assembler issues functions of the special unit in a block: all that are ready before those
 * that wait for one of them, as of sigmoids every power before every quotient (ptxas 13.0), so that what each
 * element holds in between is held of all elements at once. In: a block without branches. Out: its instructions in
 * such an order. An estimate for people, like what is made from it.
 */
import type { PtxInstruction } from "./ptx-flow.ts";

const functions = /^(ex2|lg2|rcp|rsqrt|sqrt|sin|cos|tanh)\.approx\b/;
/** What stays where it is, apart from plain loads. */
const stays = /^(stmatrix|ldmatrix|mma|movmatrix|ld\.(volatile|relaxed|acquire|shared|local))\b/;

/** @param part instructions over which nothing keeps others from being moved, but for stores */
export function functionsTogether(part: readonly PtxInstruction[]): readonly PtxInstruction[] {
  // Results that are stored one behind the other end what an assembler looks through (ptxas 13.0).
  const ends = part.flatMap((i, at) => (i.opcode.startsWith("st.") ? [at + 1] : []));
  return [...ends, part.length].flatMap((end, i) => inStages(part.slice(ends[i - 1] ?? 0, end)));
}

function inStages(part: readonly PtxInstruction[]): readonly PtxInstruction[] {
  const { stages, makers } = stagesOf(part);
  if (stages.length < 2) return part;
  const order: PtxInstruction[] = [];
  const issued = new Set<number>();
  const issue = (at: number): void => {
    if (issued.has(at)) return;
    issued.add(at);
    for (const r of part[at]!.reads) {
      const maker = makers.get(r);
      if (maker !== undefined) issue(maker);
    }
    order.push(part[at]!);
  };
  for (const at of stages.flat()) issue(at);
  return [...order, ...part.filter((_, i) => !issued.has(i))];
}

interface Stages {
  /** Functions that can be moved, by number of the instruction and how many others each waits for. */
  readonly stages: readonly (readonly number[])[];
  /** What makes a register that is written once, of what can be moved. */
  readonly makers: ReadonlyMap<number, number>;
}

function stagesOf(part: readonly PtxInstruction[]): Stages {
  const writers = new Map<number, number>();
  for (const w of part.flatMap((i) => i.writes)) writers.set(w, (writers.get(w) ?? 0) + 1);
  const stages: number[][] = [];
  const makers = new Map<number, number>();
  /** Functions on the way to a register; none is known of what stays where it is. */
  const passed = new Map<number, number>();
  for (const [i, { opcode, reads, writes, keeps }] of part.entries()) {
    const isMoved =
      !keeps &&
      !stays.test(opcode) &&
      writes.every((w) => writers.get(w) === 1) &&
      reads.every((r) => !writers.has(r) || passed.has(r));
    if (!isMoved) continue;
    const stage = Math.max(0, ...reads.map((r) => passed.get(r) ?? 0));
    const isFunction = functions.test(opcode);
    if (isFunction) {
      stages[stage] ??= [];
      stages[stage].push(i);
    }
    for (const w of writes) {
      makers.set(w, i);
      passed.set(w, stage + (isFunction ? 1 : 0));
    }
  }
  return { stages, makers };
}
