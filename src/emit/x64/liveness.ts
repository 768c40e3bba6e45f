/**
 * Which virtual registers an instruction reads and writes, and from where to where each is alive: basic
 * blocks, backward data flow over the registers that live across blocks, and one interval a register
 * that covers all of its life (Poletto and Sarkar, "Linear scan register allocation", 1999). Position
 * 2 i is where instruction i reads, 2 i + 1 where it writes.
 */

import type { PlacedInstruction } from "./function-code.ts";
import { firstVirtual, type Register } from "./operand.ts";
import { accessOf } from "./rows/instruction-row.ts";

export interface Access {
  readonly reads: readonly Register[];
  readonly writes: readonly Register[];
}

const zeroIdioms = new Set(["vxorps", "xor", "kxorw"]);
const none: Access = { reads: [], writes: [] };

/** Virtual registers that an instruction reads and writes. */
export function accessesOf(instruction: PlacedInstruction): Access {
  const { op, operands, mask, zeroing } = instruction;
  if (op === "label" || op === "align") return none;
  const reads: Register[] = [];
  const writes: Register[] = [];
  const read = (r: Register): void => {
    if (r.id >= firstVirtual) reads.push(r);
  };
  const write = (r: Register): void => {
    if (r.id >= firstVirtual) writes.push(r);
  };
  const access = accessOf(op);
  const [first] = operands;
  if (zeroIdioms.has(op) && isZeroing(instruction)) {
    return {
      reads: [],
      writes: first?.kind === "register" && first.id >= firstVirtual ? [first] : [],
    };
  }
  operands.forEach((o, i) => {
    if (o.kind === "memory") {
      if (o.base) read(o.base);
      if (o.index) read(o.index);
    } else if (o.kind === "register") {
      const merges = mask !== undefined && !zeroing && o.class === "vec";
      if (i > 0 || access !== "write" || merges) read(o);
      if (i === 0 && access !== "read") write(o);
      // Both operands of an exchange change.
      if (i === 1 && (op === "xchg" || op === "lockxadd")) write(o);
    }
  });
  if (mask) read(mask);
  return { reads, writes };
}

function isZeroing({ operands }: PlacedInstruction): boolean {
  const ids = operands.map((o) => (o.kind === "register" ? o.id : -1));
  return ids.length >= 2 && ids[0]! >= 0 && ids.every((id) => id === ids[0]);
}

/** Instructions from `first` to before `end` that run one after another, and the blocks that may follow. */
export interface Block {
  readonly first: number;
  readonly end: number;
  readonly next: number[];
  readonly uses: Set<number>;
  readonly defines: Set<number>;
  /** Of registers that occur in more than one block. */
  liveIn: Set<number>;
  liveOut: Set<number>;
}

function isJump(op: string): boolean {
  return op.startsWith("j");
}

function blocksOf(body: readonly PlacedInstruction[]): Block[] {
  const starts = new Set<number>([0]);
  body.forEach(({ op }, i) => {
    if (op === "label") starts.add(i);
    if (isJump(op) || op === "ret") starts.add(i + 1);
  });
  const sorted = [...starts].filter((s) => s < body.length).sort((a, b) => a - b);
  const blockOfLabel = new Map<number, number>();
  const blocks = sorted.map((first, b): Block => {
    const [target] = body[first]!.operands;
    if (body[first]!.op === "label" && target?.kind === "label") blockOfLabel.set(target.id, b);
    const sets = { uses: new Set<number>(), defines: new Set<number>() };
    const live = { liveIn: new Set<number>(), liveOut: new Set<number>() };
    return { first, end: sorted[b + 1] ?? body.length, next: [], ...sets, ...live };
  });
  blocks.forEach((block, b) => {
    const last = body[block.end - 1]!;
    const [target] = last.operands;
    if (isJump(last.op) && target?.kind === "label") block.next.push(blockOfLabel.get(target.id)!);
    if (last.op !== "jmp" && last.op !== "ret" && b + 1 < blocks.length) block.next.push(b + 1);
  });
  return blocks;
}

export interface Interval {
  readonly id: number;
  readonly register: Register;
  start: number;
  end: number;
  /** Reads and writes, each counted by how often it is expected to run. */
  weight: number;
  /** Whether some instruction adds to it. */
  isSum: boolean;
  /** Another register that it is copied from or to. */
  readonly hints: number[];
}

/**
 * Writes that a sum's own update counts for: on the stack, each addition of the chain waits for a store and a
 * load too.
 */
const linkWeight = 10;
/** Each loop around an instruction is taken to run so many times. */
const tripsPerLoop = 10;

/** The blocks of the code in order, with what lives where they begin and end. */
export function liveBlocks(
  body: readonly PlacedInstruction[],
  accesses: readonly Access[],
  registerCount: number,
): readonly Block[] {
  const blocks = blocksOf(body);
  const shared = sharedRegisters(blocks, accesses, registerCount);
  for (const block of blocks) {
    for (let i = block.first; i < block.end; i++) {
      for (const { id } of accesses[i]!.reads) {
        if (shared[id] && !block.defines.has(id)) block.uses.add(id);
      }
      for (const { id } of accesses[i]!.writes) if (shared[id]) block.defines.add(id);
    }
  }
  solve(blocks);
  return blocks;
}

/**
 * One interval for each virtual register of the code, by start.
 *
 * @param accesses of each instruction
 * @param registerCount ids of the virtual registers are below
 */
export function intervalsOf(
  body: readonly PlacedInstruction[],
  accesses: readonly Access[],
  registerCount: number,
): Interval[] {
  const blocks = liveBlocks(body, accesses, registerCount);
  const found: Interval[] = [];
  const intervals = new Array<Interval | undefined>(registerCount).fill(undefined);
  const touch = (register: Register, at: number, weight: number): Interval => {
    const known = intervals[register.id];
    if (!known) {
      const { id } = register;
      const made = { id, register, start: at, end: at, weight, isSum: false, hints: [] };
      intervals[id] = made;
      found.push(made);
      return made;
    }
    extend(known, at);
    known.weight += weight;
    return known;
  };
  for (let i = 0; i < body.length; i++) {
    const instruction = body[i]!;
    const weight = tripsPerLoop ** instruction.depth;
    const { reads, writes } = accesses[i]!;
    for (const r of reads) touch(r, 2 * i, weight);
    for (const r of writes) {
      const adds = isLink(r, accesses[i]!);
      const interval = touch(r, 2 * i + 1, adds ? linkWeight * weight : weight);
      interval.isSum ||= adds;
    }
    hint(instruction, intervals);
  }
  for (const block of blocks) {
    for (const id of block.liveIn) extend(intervals[id]!, 2 * block.first);
    for (const id of block.liveOut) extend(intervals[id]!, 2 * block.end - 1);
  }
  return found.sort((a, b) => a.start - b.start || a.id - b.id);
}

/** Whether an instruction that writes the register adds to what it holds. */
export function isLink(r: Register, { reads }: Access): boolean {
  return r.class === "vec" && reads.some((other) => other.id === r.id);
}

/** 1 for registers that occur in more than one block: the others need no data flow. */
function sharedRegisters(
  blocks: readonly Block[],
  accesses: readonly Access[],
  registerCount: number,
): Uint8Array {
  /** The block of a register plus one; 0: not seen yet. */
  const home = new Int32Array(registerCount);
  const shared = new Uint8Array(registerCount);
  blocks.forEach(({ first, end }, b) => {
    const note = ({ id }: Register): void => {
      if (home[id] === 0) home[id] = b + 1;
      else if (home[id] !== b + 1) shared[id] = 1;
    };
    for (let i = first; i < end; i++) {
      accesses[i]!.reads.forEach(note);
      accesses[i]!.writes.forEach(note);
    }
  });
  return shared;
}

function extend(interval: Interval, at: number): void {
  interval.start = Math.min(interval.start, at);
  interval.end = Math.max(interval.end, at);
}

const copies = new Set(["mov", "vmovaps", "vmovups"]);

function hint(
  { op, operands }: PlacedInstruction,
  intervals: readonly (Interval | undefined)[],
): void {
  const [to, from] = operands;
  if (!copies.has(op) || to?.kind !== "register" || from?.kind !== "register") return;
  intervals[to.id]?.hints.push(from.id);
  intervals[from.id]?.hints.push(to.id);
}

/** Live sets at block ends, by iteration to the fixed point, last block first. */
function solve(blocks: readonly Block[]): void {
  for (let changed = true; changed; ) {
    changed = false;
    for (let b = blocks.length - 1; b >= 0; b--) {
      const block = blocks[b]!;
      const out = block.liveOut;
      for (const n of block.next) for (const id of blocks[n]!.liveIn) out.add(id);
      const before = block.liveIn.size;
      for (const id of block.uses) block.liveIn.add(id);
      for (const id of out) if (!block.defines.has(id)) block.liveIn.add(id);
      if (block.liveIn.size !== before) changed = true;
    }
  }
}
