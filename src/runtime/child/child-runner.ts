/**
 * A child process that runs candidates, as its owner sees it: it answers requests one after another, each
 * under a watchdog. A crash, a hang, an answer that is none, memory that ran out: each is an outcome, the child
 * is ended with all that waited for it, and the next request starts a fresh one, which knows no programs. The
 * owner lives.
 */
import { fork, type ChildProcess as NodeChild } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Diagnostic } from "../../support/diagnostic.ts";
import { shortRunFlags } from "../engine-flags.ts";
import { type ChildReply, type ChildRequest, readReply } from "./protocol.ts";

export type ChildOutcome =
  | { readonly kind: "answered"; readonly reply: Exclude<ChildReply, { kind: "failed" }> }
  /** The child refused, and says why; it goes on. */
  | { readonly kind: "refused"; readonly diagnostics: readonly Diagnostic[] }
  | { readonly kind: "outOfMemory"; readonly how: string }
  | { readonly kind: "crashed"; readonly how: string }
  | { readonly kind: "hung"; readonly afterMs: number }
  | { readonly kind: "garbled"; readonly what: string };

type LostOutcome = Exclude<ChildOutcome, { readonly kind: "answered" | "refused" }>;

interface Waiting {
  readonly sequence: number;
  readonly request: ChildRequest;
  /** Counted from where the child comes to it. */
  readonly deadlineMs: number;
  readonly resolve: (outcome: ChildOutcome) => void;
}

/** Where candidates run; the child process is one, a test's fake another. */
export interface CandidateRunner {
  /** Grows with every child: programs of an earlier one are gone. */
  readonly generation: number;
  request(request: ChildRequest, deadlineMs: number): Promise<ChildOutcome>;
  dispose(): Promise<void>;
}

export interface ChildOptions {
  /** The module to run; tests plant others. */
  readonly entry?: string;
}

/** By how much a timer may be late in an owner that listens. */
const latenessMs = 20;
/** How often a deadline begins anew in an owner that was busy when it passed. */
const mostLate = 3;
/** Bytes of the child's last words that are kept. */
const stderrBytes = 4096;

/** The entry beside this file: built, or from source through the loader of the tests and scripts. */
function defaultEntry(): string {
  const built = import.meta.url.endsWith(".js");
  return fileURLToPath(new URL(built ? "./candidate-child.js" : "./entry.ts", import.meta.url));
}

/** Arguments of the engine for a process that runs an entry. */
export function flagsFor(entry: string): readonly string[] {
  const own = process.execArgv.filter((a) => a.startsWith("--experimental-wasm"));
  const engine = [...own, ...shortRunFlags()];
  return entry.endsWith(".ts") ? [...engine, "--import", import.meta.resolve("tsx")] : engine;
}

export class ChildRunner implements CandidateRunner {
  readonly #entry: string;
  #child: NodeChild | undefined;
  #lastWords = "";
  #sequence = 0;
  /** Sent and not answered, in the order of their answers. */
  #waiting: Waiting[] = [];
  #watchdog: NodeJS.Timeout | undefined;
  generation = 0;
  readonly #endWithParent = (): void => {
    this.#child?.kill("SIGKILL");
  };

  constructor({ entry }: ChildOptions = {}) {
    this.#entry = entry ?? defaultEntry();
    process.on("exit", this.#endWithParent);
  }

  /** Of the present child; for tests. */
  get processId(): number | undefined {
    return this.#child?.pid;
  }

  /** Starts the child before it is asked anything, so that it is ready by then. */
  warm(): void {
    this.#child ??= this.#start();
  }

  /** Requests of several who do not wait for each other are queued in the child, which is never idle then. */
  request(request: ChildRequest, deadlineMs: number): Promise<ChildOutcome> {
    const child = this.#child ?? this.#start();
    const sequence = ++this.#sequence;
    return new Promise((resolve) => {
      this.#waiting.push({ sequence, request, deadlineMs, resolve });
      if (this.#waiting.length === 1) this.#watch();
      child.send({ sequence, body: request }, (error) => {
        if (error && child === this.#child)
          void this.#lose({ kind: "crashed", how: error.message });
      });
    });
  }

  async dispose(): Promise<void> {
    process.off("exit", this.#endWithParent);
    await this.#lose({ kind: "crashed", how: "it was ended" });
  }

  #start(): NodeChild {
    const child = fork(this.#entry, [], {
      serialization: "advanced",
      execArgv: [...flagsFor(this.#entry)],
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    this.#lastWords = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#lastWords = (this.#lastWords + text).slice(-stderrBytes);
    });
    child.on("message", (message) => this.#hear(child, message));
    child.on("exit", (code, signal) => {
      if (child === this.#child) void this.#lose(this.#deathOf(code, signal));
    });
    child.on("error", ({ message }) => {
      if (child === this.#child) void this.#lose({ kind: "crashed", how: message });
    });
    child.unref();
    child.channel?.unref();
    (child.stderr as unknown as { unref(): void } | null)?.unref();
    this.#child = child;
    this.generation++;
    return child;
  }

  /** The answer to the request that waits longest. */
  #hear(child: NodeChild, message: unknown): void {
    const [first] = this.#waiting;
    if (child !== this.#child || !first) return;
    const reply = readReply(message, first.sequence, first.request);
    if (!reply) {
      void this.#lose({ kind: "garbled", what: describe(message) });
      return;
    }
    this.#waiting.shift();
    this.#watch();
    first.resolve(
      reply.kind === "failed"
        ? { kind: "refused", diagnostics: reply.diagnostics }
        : { kind: "answered", reply },
    );
  }

  /**
   * The time of the request that the child has come to.
   * @param late how often the owner has listened again after it was busy itself
   */
  #watch(late = 0): void {
    clearTimeout(this.#watchdog);
    const [first] = this.#waiting;
    if (!first) return;
    const { deadlineMs } = first;
    const due = performance.now() + deadlineMs;
    // The timer keeps the owner alive until the answer; the child itself does not.
    this.#watchdog = setTimeout(() => {
      // An owner that was busy itself has not listened: the answer may be there. One that always is has
      // heard it in one of its pauses.
      const isLate = performance.now() > due + latenessMs;
      if (isLate && late < mostLate) this.#watch(late + 1);
      else void this.#lose({ kind: "hung", afterMs: deadlineMs });
    }, deadlineMs);
  }

  /** Ends the child. What waited longest is the cause, the others are lost with it. */
  async #lose(outcome: LostOutcome): Promise<void> {
    const [first, ...others] = this.#waiting;
    this.#waiting = [];
    clearTimeout(this.#watchdog);
    await this.#end();
    first?.resolve(outcome);
    for (const { resolve } of others) {
      resolve({ kind: "crashed", how: "what it had been asked before" });
    }
  }

  #deathOf(code: number | null, signal: string | null): LostOutcome {
    const how = signal ? `signal ${signal}` : `exit code ${code}`;
    const words = this.#lastWords.trim();
    if (/heap out of memory|Array buffer allocation failed/.test(words)) {
      return { kind: "outOfMemory", how };
    }
    // The system ends what takes too much memory with the one signal that we send only to hung children.
    if (signal === "SIGKILL") return { kind: "outOfMemory", how: `${how} from outside` };
    const last = words.split("\n").find((line) => /Error/.test(line)) ?? words.split("\n").at(-1);
    return { kind: "crashed", how: last ? `${how}: ${last}` : how };
  }

  async #end(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.ref();
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  }
}

function describe(message: unknown): string {
  const text = JSON.stringify(message) ?? String(message);
  return text.length > 200 ? `${text.slice(0, 200)}...` : text;
}
