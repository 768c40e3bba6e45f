/**
 * A process that is asked one thing when it is started, and ends with its answer: work beside this process's
 * own. The question goes with its arguments, so that nothing here has to turn up for it to begin.
 */
import { fork, type ChildProcess as NodeChild } from "node:child_process";
import { fileURLToPath } from "node:url";
import { flagsFor } from "./child-runner.ts";

/** MiB of the young generation's halves: what one question allocates mostly lives until it is answered. */
const semiSpaceMiB = 64;

export class OneAnswer<T> {
  readonly #child: NodeChild;
  readonly #answer: Promise<T | undefined>;
  readonly #endWithParent = (): void => {
    this.#child.kill("SIGKILL");
  };

  /** @param entry the module to run: `answerOnce` in it */
  constructor(entry: string, question: unknown) {
    this.#child = fork(entry, [JSON.stringify(question)], {
      serialization: "advanced",
      execArgv: [...flagsFor(entry), `--max-semi-space-size=${semiSpaceMiB}`],
      stdio: ["ignore", "ignore", "ignore", "ipc"],
    });
    const child = this.#child;
    this.#answer = new Promise((resolve) => {
      child.once("message", (message) => resolve(message as T));
      // Not its exit, which may be told before what it sent is read.
      for (const end of ["disconnect", "error"] as const) child.once(end, () => resolve(undefined));
    });
    process.on("exit", this.#endWithParent);
    child.unref();
    child.channel?.unref();
  }

  /** Undefined where the process ended without one. */
  async answer(): Promise<T | undefined> {
    this.#child.ref();
    this.#child.channel?.ref();
    const told = await this.#answer;
    this.end();
    return told;
  }

  end(): void {
    process.off("exit", this.#endWithParent);
    this.#child.kill("SIGKILL");
    this.#child.unref();
    this.#child.channel?.unref();
  }
}

/** An entry of the built package, which lies beside its other files. */
export function builtEntry(name: string): string {
  return fileURLToPath(new URL(`./${name}.js`, import.meta.url));
}

/** The process's side: its answer is sent, then it ends, as it does where nobody listens any more. */
export function answerOnce<Q, T>(answer: (question: Q) => T): void {
  process.on("disconnect", () => process.exit(0));
  const told = answer(JSON.parse(process.argv[2]!) as Q);
  process.send!(told, () => process.exit(0));
}
