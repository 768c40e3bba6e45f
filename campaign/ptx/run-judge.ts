/** Assemblers and disassemblers, started by a process of their own (judge-process.ts), which ends with this one. */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";

/** What a judge says and whether it ended well. */
export interface Said {
  readonly ok: boolean;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Asked {
  readonly number: number;
  readonly judge: string;
  readonly args: readonly string[];
}

/** What is said, or why the judge did not start. */
export type Answer =
  | { readonly number: number; readonly said: Said }
  | { readonly number: number; readonly failure: string };

interface Waiting {
  readonly resolve: (said: Said) => void;
  readonly reject: (error: Error) => void;
}

const waiting = new Map<number, Waiting>();
let started: ChildProcess | undefined;
let asked = 0;

function start(): ChildProcess {
  const entry = fileURLToPath(new URL("./judge-process.ts", import.meta.url));
  const tsx = ["--import", import.meta.resolve("tsx")];
  const child = fork(entry, { execArgv: tsx, serialization: "advanced" });
  child.on("message", (answer: Answer) => {
    const who = waiting.get(answer.number)!;
    waiting.delete(answer.number);
    if (waiting.size === 0) rest(child);
    if ("said" in answer) who.resolve(answer.said);
    else who.reject(new Error(answer.failure));
  });
  child.on("exit", (code) => {
    started = undefined;
    for (const { reject } of waiting.values()) reject(new Error(`judges ended with ${code}`));
    waiting.clear();
  });
  return child;
}

/** Lets this process end while nothing is asked. */
function rest(child: ChildProcess): void {
  child.unref();
  child.channel?.unref();
}

/** Throws where the judge did not start. */
export function said(judge: string, args: readonly string[]): Promise<Said> {
  started ??= start();
  const child = started;
  child.ref();
  child.channel?.ref();
  return new Promise((resolve, reject) => {
    const number = asked++;
    waiting.set(number, { resolve, reject });
    child.send({ number, judge, args } satisfies Asked);
  });
}
