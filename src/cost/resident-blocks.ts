/**
 * How many blocks of a kernel a multiprocessor holds at once by shared memory, threads and registers, or why it holds
 * none, in words that a refusal gives (SCH046).
 */
import type { BlockLimits } from "../target/target.ts";

/** What one block asks for. */
interface BlockNeeds {
  readonly threads: number;
  /** Of each thread. */
  readonly registers: number;
  readonly sharedBytes: number;
}

export function residentBlocks(
  { threads, registers, sharedBytes }: BlockNeeds,
  limits: BlockLimits,
): number | string {
  const { registersPerThread, registersPerCore, sharedBytesPerBlock } = limits;
  if (registers > registersPerThread)
    return `a thread needs ${registers} registers, of at most ${registersPerThread}`;
  if (sharedBytes > sharedBytesPerBlock)
    return `a block needs ${sharedBytes} bytes of shared memory, of at most ${sharedBytesPerBlock}`;
  if (threads > limits.threadsPerBlock)
    return `a block has ${threads} threads, of at most ${limits.threadsPerBlock}`;
  if (threads * registers > registersPerCore)
    return `${threads} threads of ${registers} registers need more than ${registersPerCore}`;
  return Math.min(
    limits.blocksPerCore,
    Math.floor(limits.threadsPerCore / threads),
    Math.floor(registersPerCore / (threads * registers)),
    Math.floor(limits.sharedBytesPerCore / (sharedBytes + limits.sharedBytesReserved)),
  );
}
