/**
 * The parts of an emitted program that threads run around its tasks, in physical registers:
 *
 *   enter(block)     the C entry: saves what the ABI wants kept, sets flush-to-zero, runs the tasks
 *   dispatch(block)  publishes a job to the workers, runs thread 0's part, waits for theirs
 *   work(block)      a worker thread: waits for jobs until it is told to quit
 *   quit(block)      tells the workers to end
 *   barrier          where all threads of a run meet
 *
 * The barrier is a counter of arrivals and a generation number (a central sense-reversing barrier with
 * the generation as sense; Mellor-Crummey and Scott, 1991). Waiting threads poll for a bounded time,
 * because waking a sleeping thread costs tens of microseconds, then sleep in a futex, because polling
 * on a core that another thread needs is worse. Every wait ends when the abort word is set. Both sides
 * of a sleep use a locked operation before they read the other's word, so no wake is lost.
 */
import { abortCodes, sharedBlock, sleepNanoseconds, threadBlock } from "./context-block.ts";
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
const [r12, r13, r14] = [gpr(12), gpr(13), gpr(14)];
const low = (r: typeof rax) => ({ ...r, bits: 32 as RegisterBits });

const futexCall = 202;
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

/** Around the function at `run`. */
export function emitThreadCode(parts: FunctionParts, system: System, run: Label): ThreadCode {
  const make = (name: string, fill: (c: ThreadWriter) => void): FunctionCode => {
    const f = new FunctionCode(name, parts);
    fill(new ThreadWriter(f, system));
    return f;
  };
  const enter = make("enter", (c) => c.enter(run));
  const dispatch = make("dispatch", (c) => c.dispatch(run));
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

  dispatch(run: Label): void {
    const { f } = this;
    this.#prologue();
    this.#publishJob();
    f.emit("call", run);
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
    f.emit("jne", end).emit("call", run);
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
    this.#awaitGeneration(done);
    f.place(done).emit("mov", low(rax), memory(rbx, sharedBlock.abort)).emit("ret");
  }

  /** Generation before in r13, shared block in rbx. */
  #awaitGeneration(done: Label): void {
    const { f } = this;
    const [spin, sleep] = [f.label(), f.label()];
    f.emit("mov", low(r9), memory(rbx, sharedBlock.spinLimit));
    f.emit("mov", low(r12), memory(rbx, sharedBlock.stallLimit)).place(spin);
    f.emit("mov", low(rax), memory(rbx, sharedBlock.generation)).emit("cmp", low(rax), low(r13));
    f.emit("jne", done).emit("mov", low(rax), memory(rbx, sharedBlock.abort));
    f.emit("test", low(rax), low(rax)).emit("jne", done);
    f.emit("test", low(r9), low(r9)).emit("je", sleep);
    f.emit("pause").emit("sub", low(r9), 1).emit("jmp", spin).place(sleep);
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
    f.emit("sub", stackPointer, 40).emit(
      "mov",
      rax,
      memory(contextPointer, threadBlock.yieldThread),
    );
    f.emit("callreg", rax).emit("add", stackPointer, 40).emit("mov", low(rax), timedOut);
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
