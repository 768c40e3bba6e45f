/**
 * The barrier between phases of a program, as a WebAssembly function over the control block: a counter
 * of arrivals and a generation number (a central sense-reversing barrier with the generation as sense;
 * Mellor-Crummey and Scott, 1991). Waiting threads poll for a bounded time, because waking a sleeping
 * thread costs tens of microseconds, then sleep, because polling on a core that another thread needs
 * is worse. Every wait ends when the abort word is set, so no thread is left behind by one that failed.
 */
import { abortCodes, controlBlock, sleepMilliseconds } from "./control-block.ts";
import type { FunctionBuilder, FunctionIndex, Label, Local } from "./function-builder.ts";
import type { ModuleBuilder } from "./module-builder.ts";

const nanosecondsPerMillisecond = 1_000_000n;

/** Some tens of microseconds, as waking a thread takes (Karlin and others 1988, as in runtime/thread-choice.ts). */
const leastPolls = 60_000;

/**
 * Adds `barrier(threads) -> abort word` to a module with a shared memory and returns its index. All
 * `threads` threads have to call it; a result other than 0 means that the caller has to end its run.
 */
export function emitBarrier(module: ModuleBuilder): FunctionIndex {
  const signature = { params: ["i32"], results: ["i32"] } as const;
  return module.function("barrier", signature, (f) => {
    const generation = f.local("i32");
    loadWord(f, "generation").set(generation);
    f.i32Const(0).i32Const(1).memory("i32.atomic.rmw.add", controlBlock.arrived);
    f.i32Const(1).op("i32.add").get(f.param(0)).op("i32.eq");
    f.if(
      () => openBarrier(f, generation),
      () => awaitGeneration(f, generation),
    );
    loadWord(f, "abort");
  }).index;
}

/** The last thread to arrive resets the counter, publishes the next generation and wakes sleepers. */
function openBarrier(f: FunctionBuilder, generation: Local): void {
  f.i32Const(0).i32Const(0).memory("i32.atomic.store", controlBlock.arrived);
  f.i32Const(0).get(generation).i32Const(1).op("i32.add");
  f.memory("i32.atomic.store", controlBlock.generation);
  // A sleeper counts itself before it compares the generation, so one of the two sees the other.
  loadWord(f, "sleeping").if(() => {
    f.i32Const(0).i32Const(-1).memory("memory.atomic.notify", controlBlock.generation).op("drop");
  });
}

function awaitGeneration(f: FunctionBuilder, generation: Local): void {
  awaitWord(f, generation, () => {
    loadWord(f, "generation").get(generation).op("i32.ne");
  });
}

/**
 * Polls until what `isOver` leaves on the stack is true or the abort word is set, for a bounded time; then sleeps
 * as long as the generation is the one in the local, and looks again.
 */
export function awaitWord(f: FunctionBuilder, generation: Local, isOver: () => void): void {
  const spins = f.local("i32");
  const sleeps = f.local("i32");
  f.i32Const(0).memory("i32.load", controlBlock.spinLimit).set(spins);
  f.i32Const(0).memory("i32.load", controlBlock.stallLimit).set(sleeps);
  f.block((leave) => {
    f.loop((again) => {
      isOver();
      f.brIf(leave);
      loadWord(f, "abort").brIf(leave);
      f.get(spins).if(() => {
        f.get(spins).i32Const(1).op("i32.sub").set(spins).br(again);
      });
      halveSpins(f);
      sleepOnce(f, generation, again);
      f.get(sleeps).i32Const(1).op("i32.sub").tee(sleeps).brIf(again);
      f.i32Const(0).i32Const(abortCodes.none).i32Const(abortCodes.stalled);
      f.memory("i32.atomic.rmw.cmpxchg", controlBlock.abort).op("drop");
    });
  });
}

/**
 * Who polled in vain waits for a thread without a processor: the waits that follow in this run poll less, but never for
 * less than waking takes.
 */
function halveSpins(f: FunctionBuilder): void {
  const polls = f.local("i32");
  f.i32Const(0).memory("i32.load", controlBlock.spinLimit).tee(polls).i32Const(leastPolls);
  f.op("i32.gt_u").if(() => {
    f.i32Const(0).get(polls).i32Const(1).op("i32.shr_u");
    f.memory("i32.store", controlBlock.spinLimit);
  });
  f.release(polls);
}

/** Sleeps until the generation changes; continues at `again` unless the time ran out. */
function sleepOnce(f: FunctionBuilder, generation: Local, again: Label): void {
  const outcome = f.local("i32");
  const timedOut = 2;
  f.i32Const(0).i32Const(1).memory("i32.atomic.rmw.add", controlBlock.sleeping).op("drop");
  f.i32Const(0)
    .get(generation)
    .i64Const(BigInt(sleepMilliseconds) * nanosecondsPerMillisecond);
  f.memory("memory.atomic.wait32", controlBlock.generation).set(outcome);
  f.i32Const(0).i32Const(1).memory("i32.atomic.rmw.sub", controlBlock.sleeping).op("drop");
  f.get(outcome).i32Const(timedOut).op("i32.ne").brIf(again);
}

/** Pushes a word of the control block, read atomically. */
export function loadWord(f: FunctionBuilder, word: keyof typeof controlBlock): FunctionBuilder {
  return f.i32Const(0).memory("i32.atomic.load", controlBlock[word]);
}
