/**
 * The parts of an emitted program that threads run around its tasks, in physical registers:
 *
 *   enter(block)     the C entry: saves what the ABI wants kept, sets flush-to-zero, runs the tasks
 *   dispatch(block)  publishes a job to the workers, runs thread 0's part, waits for theirs
 *   work(block)      a worker thread: waits for jobs until it is told to quit
 *   quit(block)      tells the workers to end
 *   barrier          where all threads of a run meet
 *   claim, finish    parts of a launch that threads take as they come, and that they are done with
 *   settle           waits until all parts of a launch are finished
 *
 * A launch whose parts are claimed (program/dealing.ts) is cut into a share for each thread. Of each share a word counts
 * what is claimed, and one word of the launch what is finished; all of them begin with the number of the
 * launch, so that a word of an earlier launch stands for nothing and nobody resets it. A thread claims a quarter of
 * what is left of a share, its own first (guided self-scheduling; Polychronopoulos and Kuck, 1987). A job of
 * such launches is withdrawn from workers that have not begun it when thread 0 is through.
 *
 * The barrier is a counter of arrivals and a generation number (a central sense-reversing barrier with
 * the generation as sense; Mellor-Crummey and Scott, 1991). Waiting threads poll for a bounded time,
 * because waking a sleeping thread costs tens of microseconds, then sleep in a futex, because polling
 * on a core that another thread needs is worse. Every wait ends when the abort word is set. Both sides
 * of a sleep use a locked operation before they read the other's word, so no wake is lost.
 */
import {
  abortCodes,
  shareBytes,
  sharedBlock,
  shares,
  sleepNanoseconds,
  threadBlock,
} from "./context-block.ts";
import { contextPointer, FunctionCode, type FunctionParts, stackPointer } from "./function-code.ts";
import { gpr, type Label, memory, type RegisterBits, vec } from "./operand.ts";

export type System = "linux" | "windows" | "other";

const rax = gpr(0);
const rbx = gpr(3);
const rcx = gpr(1);
const rdx = gpr(2);
const rsi = gpr(6);
const rdi = gpr(7);
const rbp = gpr(5);
const r8 = gpr(8);
const r9 = gpr(9);
const r10 = gpr(10);
const r11 = gpr(11);
const [r12, r13, r14] = [gpr(12), gpr(13), gpr(14)];
const low = (r: typeof rax) => ({ ...r, bits: 32 as RegisterBits });

const futexCall = 202;
const threadNumberCall = 186;
const futexWait = 128;
const futexWake = 129;
const timedOut = -110;
const everyone = 0x7fffffff;
/** Flush to zero (bit 15) and denormals are zero (bit 6). */
const flushBits = 0x8040;

export interface ThreadCode {
  readonly functions: readonly FunctionCode[];
  readonly enter: Label;
  readonly dispatch: Label;
  readonly work: Label;
  readonly quit: Label;
}

/** Around the function at `run`; `isDealt`: its parts are claimed. */
export function emitThreadCode(
  parts: FunctionParts,
  system: System,
  { run, isDealt }: { readonly run: Label; readonly isDealt: boolean },
): ThreadCode {
  const make = (name: string, fill: (c: ThreadWriter) => void): FunctionCode => {
    const f = new FunctionCode(name, parts);
    fill(new ThreadWriter(f, system));
    return f;
  };
  const enter = make("enter", (c) => c.enter(run));
  const dispatch = make("dispatch", (c) => c.dispatch(run, isDealt));
  const work = make("work", (c) => c.work(run));
  const quit = make("quit", (c) => c.quit());
  const functions = [enter, dispatch, work, quit];
  const [a, b, d, e] = functions.map((f) => f.entry) as [Label, Label, Label, Label];
  return { functions, enter: a, dispatch: b, work: d, quit: e };
}

export function emitBarrier(parts: FunctionParts, system: System): FunctionCode {
  const f = new FunctionCode("barrier", parts);
  new ThreadWriter(f, system).barrier();
  return f;
}

/** How threads take parts of a launch, whose number and extent stand in their blocks. */
export interface DealCode {
  readonly functions: readonly FunctionCode[];
  /** Sets the words of the thread's block to parts that it is to run; gives 0 where none is left. */
  readonly claim: Label;
  /** Those parts are finished. */
  readonly finish: Label;
  /** Gives the abort word once all parts are finished or the run is given up. */
  readonly settle: Label;
}

export function emitDealCode(parts: FunctionParts, system: System): DealCode {
  const make = (name: string, fill: (c: ThreadWriter) => void): FunctionCode => {
    const f = new FunctionCode(name, parts);
    fill(new ThreadWriter(f, system));
    return f;
  };
  const claim = make("claim", (c) => c.claim());
  const finish = make("finish", (c) => c.finish());
  const settle = make("settle", (c) => c.settle());
  const functions = [claim, finish, settle];
  return { functions, claim: claim.entry, finish: finish.entry, settle: settle.entry };
}

/** A claim is this part of what is left of a share, as a power of two, and not less than that part of the whole. */
const [partOfRest, leastPart] = [2, 5];

class ThreadWriter {
  readonly f: FunctionCode;
  readonly #system: System;

  constructor(f: FunctionCode, system: System) {
    this.f = f;
    this.#system = system;
  }

  enter(run: Label): void {
    this.#prologue();
    this.f.emit("call", run);
    this.#epilogue();
  }

  dispatch(run: Label, isDealt: boolean): void {
    const { f } = this;
    this.#prologue();
    this.#publishJob();
    f.emit("call", run);
    if (isDealt) this.#withdraw();
    const [again, sleep, done] = [f.label(), f.label(), f.label()];
    f.emit("mov", rbx, memory(contextPointer, threadBlock.shared));
    f.emit("mov", low(r12), memory(rbx, sharedBlock.spinLimit)).place(again);
    f.emit("mov", low(rax), memory(rbx, sharedBlock.pending)).emit("test", low(rax), low(rax));
    f.emit("je", done).emit("test", low(r12), low(r12)).emit("je", sleep);
    f.emit("pause").emit("sub", low(r12), 1).emit("jmp", again).place(sleep);
    f.emit("mov", low(rax), 1).emit("xchg", memory(rbx, sharedBlock.waiting), low(rax));
    f.emit("mov", low(r13), memory(rbx, sharedBlock.pending)).emit("test", low(r13), low(r13));
    f.emit("je", done);
    this.#sleepOn(sharedBlock.pending);
    f.emit("jmp", again).place(done);
    f.emit("xor", low(rax), low(rax)).emit("mov", memory(rbx, sharedBlock.waiting), low(rax));
    this.#epilogue();
  }

  work(run: Label): void {
    const { f } = this;
    this.#prologue();
    this.#sayNumber();
    const [next, spin, sleep, go, end] = [f.label(), f.label(), f.label(), f.label(), f.label()];
    f.place(next).emit("mov", rbx, memory(contextPointer, threadBlock.shared));
    f.emit("mov", low(r13), memory(contextPointer, threadBlock.lastJob));
    f.emit("mov", low(r12), memory(rbx, sharedBlock.idleSpinLimit)).place(spin);
    f.emit("mov", low(rax), memory(rbx, sharedBlock.job)).emit("cmp", low(rax), low(r13));
    f.emit("jne", go).emit("test", low(r12), low(r12)).emit("je", sleep);
    f.emit("pause").emit("sub", low(r12), 1).emit("jmp", spin).place(sleep);
    f.emit("mov", low(rax), 1).emit("lockxadd", memory(rbx, sharedBlock.idle), low(rax));
    this.#sleepOn(sharedBlock.job);
    f.emit("mov", low(rax), -1).emit("lockxadd", memory(rbx, sharedBlock.idle), low(rax));
    f.emit("jmp", spin).place(go);
    f.emit("mov", memory(contextPointer, threadBlock.lastJob), low(rax));
    f.emit("mov", low(rcx), memory(rbx, sharedBlock.quit)).emit("test", low(rcx), low(rcx));
    f.emit("jne", end);
    this.#join(next);
    f.emit("call", run);
    f.emit("mov", rbx, memory(contextPointer, threadBlock.shared));
    f.emit("mov", low(rax), -1).emit("lockxadd", memory(rbx, sharedBlock.pending), low(rax));
    // Only the last to finish looks for a publisher that sleeps.
    f.emit("cmp", low(rax), 1).emit("jne", next);
    f.emit("mov", low(rax), memory(rbx, sharedBlock.waiting)).emit("test", low(rax), low(rax));
    f.emit("je", next);
    this.#wake(sharedBlock.pending);
    f.emit("jmp", next).place(end);
    this.#epilogue();
  }

  /** Counts this worker among those that began the job in eax; leaves for `late` where no more may. */
  #join(late: Label): void {
    const { f } = this;
    const again = f.label();
    f.emit("mov", rdi, rax).emit("shl", rdi, 32).place(again);
    f.emit("mov", rax, memory(rbx, sharedBlock.open)).emit("mov", rcx, rax).emit("sub", rcx, rdi);
    f.emit("jle", late).emit("mov", rdx, rcx).emit("shr", rdx, 32).emit("jne", late);
    f.emit("mov", rcx, rax).emit("sub", rcx, 1);
    f.emit("lockcmpxchg", memory(rbx, sharedBlock.open), rcx).emit("jne", again);
  }

  /** No worker begins the job any more, and none that has not is waited for. */
  #withdraw(): void {
    const { f } = this;
    const again = f.label();
    f.emit("mov", rbx, memory(contextPointer, threadBlock.shared)).place(again);
    f.emit("mov", rax, memory(rbx, sharedBlock.open)).emit("mov", rcx, rax);
    f.emit("mov", low(rdx), low(rax)).emit("sub", rcx, rdx);
    f.emit("lockcmpxchg", memory(rbx, sharedBlock.open), rcx).emit("jne", again);
    f.emit("neg", low(rdx)).emit("lockxadd", memory(rbx, sharedBlock.pending), low(rdx));
  }

  claim(): void {
    const { f } = this;
    const [next, again, leave, none, around] = [1, 2, 3, 4, 5].map(() => f.label()) as [
      ...[Label, Label, Label, Label, Label],
    ];
    const [size, count, share, left] = [r9, r8, r10, r11];
    f.emit("mov", rbx, memory(contextPointer, threadBlock.shared)).emit("mov", count, shares);
    f.emit("mov", rcx, memory(contextPointer, threadBlock.threads));
    f.emit("cmp", rcx, count).emit("cmovl", count, rcx);
    f.emit("mov", rax, memory(contextPointer, threadBlock.extent)).emit("add", rax, count);
    f.emit("sub", rax, 1).emit("cqo").emit("idiv", count).emit("mov", size, rax);
    f.emit("mov", rax, memory(contextPointer, threadBlock.thread)).emit("cqo").emit("idiv", count);
    f.emit("mov", share, rdx).emit("mov", left, count);
    f.emit("mov", rdi, memory(contextPointer, threadBlock.launch)).emit("shl", rdi, 32);
    f.emit("mov", r13, size).emit("sar", r13, leastPart).emit("mov", low(rax), 1);
    f.emit("cmp", r13, rax).emit("cmovl", r13, rax).place(next);
    f.emit("mov", low(rax), memory(rbx, sharedBlock.abort)).emit("test", low(rax), low(rax));
    f.emit("jne", none).emit("mov", r14, share).emit("imul", r14, size);
    f.emit("mov", rcx, memory(contextPointer, threadBlock.extent)).emit("sub", rcx, r14);
    f.emit("cmp", rcx, size).emit("cmovg", rcx, size);
    f.emit("imul", r14, share, shareBytes).emit("add", r14, rbx).place(again);
    f.emit("mov", rax, memory(r14, sharedBlock.claims)).emit("mov", rbp, rax);
    f.emit("cmp", rbp, rdi).emit("cmovl", rbp, rdi).emit("mov", r12, rbp).emit("sub", r12, rdi);
    // A word of a later launch counts so many as claimed that nothing is left.
    f.emit("mov", rdx, rcx).emit("sub", rdx, r12).emit("jle", leave);
    f.emit("mov", rsi, rdx).emit("shr", rsi, partOfRest);
    f.emit("cmp", rsi, r13).emit("cmovl", rsi, r13).emit("cmp", rsi, rdx).emit("cmovg", rsi, rdx);
    f.emit("add", rbp, rsi).emit("lockcmpxchg", memory(r14, sharedBlock.claims), rbp);
    f.emit("jne", again).emit("imul", share, size).emit("add", share, r12);
    f.emit("mov", memory(contextPointer, threadBlock.firstPart), share).emit("add", share, rsi);
    f.emit("mov", memory(contextPointer, threadBlock.endPart), share);
    f.emit("mov", low(rax), 1).emit("ret").place(leave);
    f.emit("add", share, 1).emit("cmp", share, count).emit("jl", around).emit("xor", share, share);
    f.place(around).emit("sub", left, 1).emit("jne", next).place(none);
    f.emit("xor", low(rax), low(rax)).emit("ret");
  }

  finish(): void {
    const { f } = this;
    const [again, done] = [f.label(), f.label()];
    f.emit("mov", rbx, memory(contextPointer, threadBlock.shared));
    f.emit("mov", rdi, memory(contextPointer, threadBlock.launch)).emit("shl", rdi, 32);
    f.emit("mov", rsi, memory(contextPointer, threadBlock.endPart));
    f.emit("sub", rsi, memory(contextPointer, threadBlock.firstPart)).place(again);
    f.emit("mov", rax, memory(rbx, sharedBlock.finished)).emit("mov", rbp, rax);
    f.emit("cmp", rbp, rdi).emit("cmovl", rbp, rdi).emit("add", rbp, rsi);
    f.emit("lockcmpxchg", memory(rbx, sharedBlock.finished), rbp).emit("jne", again);
    f.emit("sub", rbp, rdi).emit("cmp", rbp, memory(contextPointer, threadBlock.extent));
    f.emit("jne", done).emit("mov", low(rax), 1);
    f.emit("lockxadd", memory(rbx, sharedBlock.generation), low(rax));
    f.emit("mov", low(rax), memory(rbx, sharedBlock.sleeping)).emit("test", low(rax), low(rax));
    f.emit("je", done);
    this.#wake(sharedBlock.generation);
    f.place(done).emit("ret");
  }

  settle(): void {
    const { f } = this;
    const done = f.label();
    f.emit("mov", rbx, memory(contextPointer, threadBlock.shared));
    f.emit("mov", rax, memory(contextPointer, threadBlock.extent)).emit("test", rax, rax);
    f.emit("jle", done).emit("mov", rbp, memory(contextPointer, threadBlock.launch));
    f.emit("shl", rbp, 32).emit("add", rbp, rax);
    this.#await(done, () => {
      f.emit("mov", low(r13), memory(rbx, sharedBlock.generation));
      f.emit("cmp", rbp, memory(rbx, sharedBlock.finished)).emit("jle", done);
    });
    f.place(done).emit("mov", low(rax), memory(rbx, sharedBlock.abort)).emit("ret");
  }

  quit(): void {
    const { f } = this;
    this.#prologue();
    f.emit("mov", rbx, memory(contextPointer, threadBlock.shared)).emit("mov", low(rax), 1);
    f.emit("mov", memory(rbx, sharedBlock.quit), low(rax));
    this.#publishJob();
    this.#epilogue();
  }

  /** Returns the abort word; other than 0 the caller has to end its run. */
  barrier(): void {
    const { f } = this;
    const [wait, done] = [f.label(), f.label()];
    f.emit("mov", rbx, memory(contextPointer, threadBlock.shared));
    f.emit("mov", low(r8), memory(contextPointer, threadBlock.threads));
    f.emit("cmp", low(r8), 1).emit("je", done);
    f.emit("mov", low(r13), memory(rbx, sharedBlock.generation)).emit("mov", low(rax), 1);
    f.emit("lockxadd", memory(rbx, sharedBlock.arrived), low(rax)).emit("add", low(rax), 1);
    f.emit("cmp", low(rax), low(r8)).emit("jne", wait);
    f.emit("xor", low(rax), low(rax)).emit("mov", memory(rbx, sharedBlock.arrived), low(rax));
    f.emit("add", low(r13), 1).emit("xchg", memory(rbx, sharedBlock.generation), low(r13));
    f.emit("mov", low(rax), memory(rbx, sharedBlock.sleeping)).emit("test", low(rax), low(rax));
    f.emit("je", done);
    this.#wake(sharedBlock.generation);
    f.emit("jmp", done).place(wait);
    this.#await(done, () => {
      f.emit("mov", low(rax), memory(rbx, sharedBlock.generation)).emit("cmp", low(rax), low(r13));
      f.emit("jne", done);
    });
    f.place(done).emit("mov", low(rax), memory(rbx, sharedBlock.abort)).emit("ret");
  }

  /**
   * Polls until `leaveIfOver` leaves or the run is given up, then sleeps as long as the generation is the one
   * in r13. Shared block in rbx; rbp keeps what it has.
   */
  #await(done: Label, leaveIfOver: () => void): void {
    const { f } = this;
    const [spin, sleep] = [f.label(), f.label()];
    f.emit("mov", low(r9), memory(rbx, sharedBlock.spinLimit));
    f.emit("mov", low(r12), memory(rbx, sharedBlock.stallLimit)).place(spin);
    leaveIfOver();
    f.emit("mov", low(rax), memory(rbx, sharedBlock.abort));
    f.emit("test", low(rax), low(rax)).emit("jne", done);
    f.emit("test", low(r9), low(r9)).emit("je", sleep);
    f.emit("pause").emit("sub", low(r9), 1).emit("jmp", spin).place(sleep);
    // Who polled in vain waits for a thread without a processor: the waits that follow in this run poll less.
    f.emit("mov", low(rax), memory(rbx, sharedBlock.spinLimit)).emit("shr", low(rax), 1);
    f.emit("mov", memory(rbx, sharedBlock.spinLimit), low(rax));
    f.emit("mov", low(rax), 1).emit("lockxadd", memory(rbx, sharedBlock.sleeping), low(rax));
    this.#sleepOn(sharedBlock.generation);
    f.emit("mov", r14, rax).emit("mov", low(rax), -1);
    f.emit("lockxadd", memory(rbx, sharedBlock.sleeping), low(rax));
    f.emit("xor", low(r9), low(r9)).emit("cmp", low(r14), timedOut).emit("jne", spin);
    f.emit("sub", low(r12), 1).emit("jne", spin);
    f.emit("xor", low(rax), low(rax)).emit("mov", low(rdx), abortCodes.stalled);
    f.emit("lockcmpxchg", memory(rbx, sharedBlock.abort), low(rdx)).emit("jmp", spin);
  }

  #publishJob(): void {
    const { f } = this;
    const awake = f.label();
    f.emit("mov", rbx, memory(contextPointer, threadBlock.shared)).emit("mov", low(rax), 1);
    f.emit("lockxadd", memory(rbx, sharedBlock.job), low(rax));
    f.emit("mov", low(rax), memory(rbx, sharedBlock.idle)).emit("test", low(rax), low(rax));
    f.emit("je", awake);
    this.#wake(sharedBlock.job);
    f.place(awake);
  }

  /** Sleeps until the word of the block in rbx is woken, is not r13 any more, or some time passed. */
  #sleepOn(word: number): void {
    const { f } = this;
    if (this.#system !== "linux") {
      this.#yield();
      return;
    }
    const time = memory(stackPointer, 0);
    f.emit("sub", stackPointer, 24).emit("xor", low(rax), low(rax)).emit("mov", time, rax);
    f.emit("mov", low(rax), sleepNanoseconds).emit("mov", memory(stackPointer, 8), rax);
    f.emit("lea", rdi, memory(rbx, word)).emit("mov", low(rsi), futexWait);
    f.emit("mov", low(rdx), low(r13)).emit("mov", r10, stackPointer);
    f.emit("mov", low(rax), futexCall).emit("syscall").emit("add", stackPointer, 24);
  }

  /** The system's number of this thread, for whoever says where it runs. */
  #sayNumber(): void {
    if (this.#system !== "linux") return;
    const { f } = this;
    f.emit("mov", low(rax), threadNumberCall).emit("syscall");
    f.emit("mov", memory(contextPointer, threadBlock.systemThread), rax);
  }

  #wake(word: number): void {
    const { f } = this;
    // Elsewhere a waiting thread never sleeps for longer than its yield.
    if (this.#system !== "linux") return;
    f.emit("lea", rdi, memory(rbx, word)).emit("mov", low(rsi), futexWake);
    f.emit("mov", low(rdx), everyone).emit("mov", low(rax), futexCall).emit("syscall");
  }

  /** Gives up the processor by a function of the system, and counts as a sleep that timed out. */
  #yield(): void {
    const { f } = this;
    f.emit("vzeroupper").emit("sub", stackPointer, 40);
    f.emit("mov", rax, memory(contextPointer, threadBlock.yieldThread)).emit("callreg", rax);
    f.emit("add", stackPointer, 40).emit("mov", low(rax), timedOut);
  }

  /** Saves what the C caller wants kept, aligns the stack, sets the control word. */
  #prologue(): void {
    const { f } = this;
    for (const r of this.#saved()) f.emit("push", r);
    f.emit("mov", rax, stackPointer);
    if (this.#system === "windows") {
      f.emit("sub", stackPointer, 160);
      for (let i = 0; i < 10; i++) f.emit("vmovups", memory(stackPointer, 16 * i), vec(6 + i, 128));
    }
    // The tasks use every register: where the stack was is on the stack.
    f.emit("and", stackPointer, -64).emit("sub", stackPointer, 64);
    f.emit("mov", memory(stackPointer), rax);
    f.emit("mov", contextPointer, this.#system === "windows" ? rcx : rdi);
    f.emit("vstmxcsr", memory(contextPointer, threadBlock.savedControl));
    f.emit("mov", low(rax), memory(contextPointer, threadBlock.savedControl));
    f.emit("or", low(rax), flushBits);
    f.emit("mov", memory(contextPointer, threadBlock.control), low(rax));
    f.emit("vldmxcsr", memory(contextPointer, threadBlock.control));
  }

  #epilogue(): void {
    const { f } = this;
    f.emit("vzeroupper").emit("vldmxcsr", memory(contextPointer, threadBlock.savedControl));
    f.emit("mov", rbp, memory(stackPointer));
    if (this.#system === "windows") {
      for (let i = 0; i < 10; i++) {
        f.emit("vmovups", vec(6 + i, 128), memory(rbp, 16 * i - 160));
      }
    }
    f.emit("mov", stackPointer, rbp);
    for (const r of this.#saved().toReversed()) f.emit("pop", r);
    f.emit("xor", low(rax), low(rax)).emit("ret");
  }

  #saved(): readonly (typeof rax)[] {
    const common = [rbx, rbp, r12, r13, r14, contextPointer];
    return this.#system === "windows" ? [...common, rsi, rdi] : common;
  }
}
