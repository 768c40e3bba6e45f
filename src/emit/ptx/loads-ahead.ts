/**
 * What an assembler makes of a block of text before it gives out registers: loads whose places are known are brought
 * to the front, so that they are on the way together, and short loops are copied out and their trips' loads brought
 * forward too (ptxas 13.0; unrolling.ts says which loops it may not copy). In: a block without branches. Out: its
 * instructions in such an order, and the registers that loads of later trips hold beside them. An estimate for people,
 * like what it is made from.
 */
import type { PtxBlock, PtxFlow, PtxInstruction } from "./ptx-flow.ts";

/** Nothing is moved over these. */
const fences =
  /^(bra|ret|bar|barrier|fence|membar|mbarrier|cp\.async|wgmma|setmaxnreg|griddepcontrol|atom|red|shfl|nanosleep)/;
/** Threads see each other's writes by these: they stay where they are. */
const ordered = /^ld\.(volatile|relaxed|acquire|shared|local)/;
/** Registers that the loads of a loop of known trips fill, at most, where all are copied out. */
const mostWhole = 64;
/** Copies of a trip, by the registers that its loads fill at most. */
const copiesOf = [
  { words: 8, copies: 4 },
  { words: 16, copies: 2 },
] as const;

/** The same instructions, those in front that nothing keeps from it. */
export function loadsForward(instructions: readonly PtxInstruction[]): readonly PtxInstruction[] {
  const moved: PtxInstruction[] = [];
  let part: PtxInstruction[] = [];
  for (const instruction of instructions) {
    if (!fences.test(instruction.opcode)) {
      part.push(instruction);
      continue;
    }
    moved.push(...forwardIn(part), instruction);
    part = [];
  }
  return [...moved, ...forwardIn(part)];
}

function forwardIn(part: readonly PtxInstruction[]): readonly PtxInstruction[] {
  const moves = part.map(isMove);
  const writers = new Map<number, number>();
  for (const [i, { writes }] of part.entries()) {
    if (!moves[i]) for (const w of writes) writers.set(w, (writers.get(w) ?? 0) + 1);
  }
  /** Registers that are known late, and instructions that make places of loads. */
  const late = new Set<number>();
  const makers = new Map<number, number>();
  const early = new Set<number>();
  const bring = (at: number): void => {
    if (early.has(at)) return;
    early.add(at);
    for (const r of part[at]!.reads) {
      const maker = makers.get(r);
      if (maker !== undefined) bring(maker);
    }
  };
  let isStored = false;
  for (const [i, { opcode, reads, writes, keeps }] of part.entries()) {
    // A place that moves by a number is that number more: loads say it themselves.
    if (moves[i]) continue;
    isStored ||= opcode.startsWith("st.");
    const isLoad = opcode.startsWith("ld.global");
    const isFree =
      !keeps &&
      !opcode.startsWith("st.") &&
      !ordered.test(opcode) &&
      !(isLoad && isStored && !opcode.includes(".nc")) &&
      writes.every((w) => writers.get(w) === 1) &&
      reads.every((r) => !late.has(r));
    if (isFree && isLoad) bring(i);
    for (const w of writes) {
      if (isFree && !isLoad) makers.set(w, i);
      else late.add(w);
    }
  }
  return [...part.filter((_, i) => early.has(i)), ...part.filter((_, i) => !early.has(i))];
}

/** A register plus a number in its own place. */
function isMove({ opcode, reads, writes, operands }: PtxInstruction): boolean {
  const [own, ...others] = writes;
  return (
    opcode.startsWith("add.") &&
    others.length === 0 &&
    reads.length === 1 &&
    reads[0] === own &&
    /^%\w+,\s*-?\d+$/.test(operands.trim())
  );
}

/** Registers that loads of later trips fill while a trip of the block runs; 0: it is no loop that is copied out. */
export function aheadOfTrips(number: number, flow: PtxFlow, weights: readonly number[]): number {
  const block = flow.blocks[number]!;
  const { instructions, next, isRolled } = block;
  if (isRolled || !next.includes(number)) return 0;
  if (instructions.slice(0, -1).some((i) => fences.test(i.opcode))) return 0;
  const loads = instructions.filter((i) => i.opcode.startsWith("ld.global"));
  const words = loads.flatMap((i) => i.writes).reduce((sum, w) => sum + weights[w]!, 0);
  const trips = tripsOf(block, flow);
  const isWhole = trips !== undefined && trips * words <= mostWhole;
  const few = copiesOf.find((c) => words <= c.words)?.copies ?? 1;
  return ((isWhole ? trips : few) - 1) * words;
}

/** Trips of a loop whose counter goes up by one to a number. */
function tripsOf({ instructions }: PtxBlock, { blocks }: PtxFlow): number | undefined {
  const test = instructions.findLast((i) => i.opcode.startsWith("setp.lt.s"));
  const end = /^%\w+,\s*(\d+)$/.exec(test?.operands.trim() ?? "")?.[1];
  const counter = test?.reads[0];
  if (end === undefined || counter === undefined) return undefined;
  const starts = blocks.flatMap((b) =>
    b.instructions.filter((i) => i.opcode.startsWith("mov") && i.writes[0] === counter),
  );
  const [start, ...others] = starts.map((i) => Number(i.operands));
  if (start === undefined || others.length > 0 || !Number.isSafeInteger(start)) return undefined;
  return Math.max(1, Number(end) - start);
}
