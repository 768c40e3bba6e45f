/**
 * How many loads from memory a kernel makes one behind the other, at least: a load whose place is computed from
 * what another one brought waits for that. In: the text of an entry. Out: the longest such chain, where every
 * loop takes one trip; what goes by way of shared memory is followed no further. What no schedule of the same
 * text hides: each is the latency of memory.
 */
import { readFlow } from "./ptx-flow.ts";

/** Opcodes that read memory outside the block, whether into registers or into shared memory. */
const fromMemory = /^(ld\.global|atom\.|cp\.async\.(ca|cg|bulk).*\.global)/;

export function loadsInChain(text: string): number {
  const { registers, blocks } = readFlow(text);
  const behind = new Uint32Array(registers.length);
  let longest = 0;
  for (const { opcode, reads, writes } of blocks.flatMap((b) => b.instructions)) {
    const before = reads.reduce((most, r) => Math.max(most, behind[r]!), 0);
    // Results of copies in bulk leave by the same opcode: what they are copied to stands first.
    const isLoad = fromMemory.test(opcode) && !/^cp\.async\.bulk.*\.global\.shared/.test(opcode);
    const depth = before + (isLoad ? 1 : 0);
    if (isLoad) longest = Math.max(longest, depth);
    for (const w of writes) behind[w] = Math.max(behind[w]!, depth);
  }
  return longest;
}
