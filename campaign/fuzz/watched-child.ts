/**
 * A child process that answers one message after another, under a watchdog. One that does not start within
 * its time, ends, or keeps silent is killed: none is left behind.
 */
import { type ChildProcess, fork } from "node:child_process";

export type Died = { readonly died: string };

export interface ChildLimits {
  readonly startMs: number;
  /** Of the clock, from a message to its answer. */
  readonly answerMs: number;
}

export class WatchedChild<Answer extends object> {
  readonly #process: ChildProcess;
  readonly #limits: ChildLimits;
  readonly #end = (): void => this.end();

  private constructor(process: ChildProcess, limits: ChildLimits) {
    this.#process = process;
    this.#limits = limits;
  }

  /** Its number as a process. */
  get id(): number | undefined {
    return this.#process.pid;
  }

  /** Resolves when the script has said "ready"; rejects where it does not. */
  static async start<Answer extends object>(
    path: string,
    execArgv: readonly string[],
    limits: ChildLimits,
  ): Promise<WatchedChild<Answer>> {
    const forked = fork(path, { execArgv: [...execArgv] });
    const child = new WatchedChild<Answer>(forked, limits);
    process.on("exit", child.#end);
    // The owner ends when its work does, not when the child does.
    forked.unref();
    forked.channel?.unref();
    const ready = await child.#next(limits.startMs);
    if (ready === "ready") return child;
    child.end();
    throw new Error(`the child does not start: ${JSON.stringify(ready)}`);
  }

  async ask(message: number): Promise<Answer | Died> {
    const reply = this.#next(this.#limits.answerMs);
    this.#process.send(message);
    const answer = await reply;
    if (typeof answer === "object" && !("died" in answer)) return answer as Answer;
    this.end();
    return { died: typeof answer === "object" ? String(answer.died) : String(answer) };
  }

  end(): void {
    process.off("exit", this.#end);
    this.#process.kill("SIGKILL");
  }

  /** The next message, or how the process ended without one. */
  #next(ms: number): Promise<Answer | string | Died> {
    const child = this.#process;
    return new Promise((resolve) => {
      const settle = (message: Answer | string | Died): void => {
        clearTimeout(timer);
        child.removeAllListeners("message").removeAllListeners("exit");
        resolve(message);
      };
      const timer = setTimeout(() => settle({ died: `no answer within ${ms} ms` }), ms);
      child.once("message", (message) => settle(message as Answer | string));
      child.once("exit", (code, signal) =>
        settle({ died: `the process ended (${code ?? signal})` }),
      );
    });
  }
}
