/**
 * Sums under another register from where their loops end: what is done to finished sums may need more
 * registers than there are, and one of them then waits on the stack. Under one register from the first
 * addition to the last use, that one would be on the stack in the loop too. The copies are none where both
 * registers get one home.
 */
import type { PlacedInstruction } from "./function-code.ts";
import { type Access, type Block, isLink, liveBlocks } from "./liveness.ts";
import type { Register } from "./operand.ts";

/** From the start of a block on, another register stands for one that no later instruction writes. */
export interface Split {
  /** Index of the instruction that the copy precedes. */
  readonly at: number;
  readonly register: Register;
}

/**
 * Where sums leave their loops for good, in the order of the code.
 *
 * @param accesses of each instruction
 * @param registerCount ids of the virtual registers are below
 */
export function splitsOf(
  body: readonly PlacedInstruction[],
  accesses: readonly Access[],
  registerCount: number,
): readonly Split[] {
  const blocks = liveBlocks(body, accesses, registerCount);
  const lastWrites = lastSums(blocks, accesses);
  if (lastWrites.size === 0) return [];
  const before = earliestBefore(blocks);
  const splits: Split[] = [];
  for (const { register, block } of lastWrites.values()) {
    const exit = exitOf(register.id, block, blocks);
    const from = exit && firstAlone(register.id, exit, { blocks, before });
    // A label begins its block: the copy stands behind it.
    if (from) splits.push({ at: afterLabel(body, blocks[from]!), register });
  }
  return splits.sort((a, b) => a.at - b.at || a.register.id - b.register.id);
}

/** Registers whose last write, in the order of the code, adds to them, with the block of it. */
function lastSums(blocks: readonly Block[], accesses: readonly Access[]) {
  const found = new Map<number, { readonly register: Register; readonly block: number }>();
  blocks.forEach(({ first, end }, block) => {
    for (let i = first; i < end; i++) {
      for (const register of accesses[i]!.writes) {
        if (register.class !== "vec") continue;
        if (isLink(register, accesses[i]!)) found.set(register.id, { register, block });
        else found.delete(register.id);
      }
    }
  });
  return found;
}

/** The first block behind the outermost loop around `block` that hands the register on to its next turn. */
function exitOf(id: number, block: number, blocks: readonly Block[]): number | undefined {
  let exit: number | undefined;
  for (let last = block; last < blocks.length; last++) {
    for (const head of blocks[last]!.next) {
      if (head <= block && blocks[head]!.liveIn.has(id)) exit = last + 1;
    }
  }
  return exit !== undefined && exit < blocks.length ? exit : undefined;
}

/**
 * The first block from `exit` on through which every path to later uses of the register leads. Nothing
 * behind `exit` writes it.
 */
function firstAlone(
  id: number,
  exit: number,
  { blocks, before }: { readonly blocks: readonly Block[]; readonly before: readonly number[] },
): number | undefined {
  let from: number | undefined;
  let least = blocks.length;
  for (let b = blocks.length - 1; b >= exit; b--) {
    if (!blocks[b]!.liveIn.has(id)) continue;
    if (least >= b) from = b;
    least = Math.min(least, before[b]!);
  }
  return from;
}

/** For each block the first one that leads to it. */
function earliestBefore(blocks: readonly Block[]): readonly number[] {
  const before = blocks.map(() => blocks.length);
  blocks.forEach(({ next }, b) => {
    for (const n of next) before[n] = Math.min(before[n]!, b);
  });
  return before;
}

function afterLabel(body: readonly PlacedInstruction[], { first }: Block): number {
  return body[first]!.op === "label" ? first + 1 : first;
}
