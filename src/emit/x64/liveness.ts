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

/** Instructions are values that several rounds of allocation look at. */
const known = new WeakMap<PlacedInstruction, Access>();

/** Virtual registers that an instruction reads and writes. */
export function accessesOf(instruction: PlacedInstruction): Access {
  const found = known.get(instruction);
  if (found) return found;
  const made = findAccesses(instruction);
  known.set(instruction, made);
  return made;
}

function findAccesses(instruction: PlacedInstruction): Access {
  const { op, operands, mask, zeroing } = instruction;
  if (op === "label" || op === "align") return none;
  const reads: Register[] = [];
  const writes: Register[] = [];
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
      if (o.base) reads.push(o.base);
      if (o.index) reads.push(o.index);
    } else if (o.kind === "register") {
      const merges = mask !== undefined && !zeroing && o.class === "vec";
      if (i > 0 || access !== "write" || merges) reads.push(o);
      if (i === 0 && access !== "read") writes.push(o);
      // Both operands of an exchange change.
      if (i === 1 && (op === "xchg" || op === "lockxadd")) writes.push(o);
    }
  });
  if (mask) reads.push(mask);
  const virtual = (r: Register): boolean => r.id >= firstVirtual;
  return { reads: reads.filter(virtual), writes: writes.filter(virtual) };
}

function isZeroing({ operands }: PlacedInstruction): boolean {
  const ids = operands.map((o) => (o.kind === "register" ? o.id : -1));
  return ids.length >= 2 && ids[0]! >= 0 && ids.every((id) => id === ids[0]);
}

interface Block {
  readonly first: number;
  readonly end: number;
  readonly next: number[];
  readonly uses: Set<number>;
  readonly defines: Set<number>;
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
  /** Another register that it is copied from or to. */
  readonly hints: number[];
}

/** Each loop around an instruction is taken to run so many times. */
const tripsPerLoop = 10;

/** One interval for each virtual register of the code, by start. */
export function intervalsOf(body: readonly PlacedInstruction[]): Interval[] {
  const accesses = body.map(accessesOf);
  const blocks = blocksOf(body);
  const shared = sharedRegisters(blocks, accesses);
  for (const block of blocks) {
    for (let i = block.first; i < block.end; i++) {
      for (const { id } of accesses[i]!.reads) {
        if (shared.has(id) && !block.defines.has(id)) block.uses.add(id);
      }
      for (const { id } of accesses[i]!.writes) if (shared.has(id)) block.defines.add(id);
    }
  }
  solve(blocks);
  const intervals = new Map<number, Interval>();
  const touch = (register: Register, at: number, weight: number): Interval => {
    const known = intervals.get(register.id);
    if (!known) {
      const made = { id: register.id, register, start: at, end: at, weight, hints: [] };
      intervals.set(register.id, made);
      return made;
    }
    known.start = Math.min(known.start, at);
    known.end = Math.max(known.end, at);
    known.weight += weight;
    return known;
  };
  body.forEach((instruction, i) => {
    const weight = tripsPerLoop ** instruction.depth;
    for (const r of accesses[i]!.reads) touch(r, 2 * i, weight);
    for (const r of accesses[i]!.writes) touch(r, 2 * i + 1, weight);
    hint(instruction, intervals);
  });
  for (const block of blocks) {
    for (const id of block.liveIn) extend(intervals.get(id)!, 2 * block.first);
    for (const id of block.liveOut) extend(intervals.get(id)!, 2 * block.end - 1);
  }
  return [...intervals.values()].sort((a, b) => a.start - b.start || a.id - b.id);
}

/** Registers that occur in more than one block: the others need no data flow. */
function sharedRegisters(blocks: readonly Block[], accesses: readonly Access[]): Set<number> {
  const home = new Map<number, number>();
  const shared = new Set<number>();
  blocks.forEach(({ first, end }, b) => {
    const note = ({ id }: Register): void => {
      const other = home.get(id);
      if (other === undefined) home.set(id, b);
      else if (other !== b) shared.add(id);
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

function hint({ op, operands }: PlacedInstruction, intervals: Map<number, Interval>): void {
  const [to, from] = operands;
  if (!copies.has(op) || to?.kind !== "register" || from?.kind !== "register") return;
  intervals.get(to.id)?.hints.push(from.id);
  intervals.get(from.id)?.hints.push(to.id);
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
