/**
 * Hostile models, inputs and artifacts (fuzz/hostile-trial.ts), each in a child process under a watchdog:
 * no crash, no trial over five seconds, no memory over 1 GiB, nothing read outside the model's folder,
 * every refusal with a code. A child that dies or is ended is replaced.
 */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { type Campaign, passed, type Trial } from "../campaign.ts";
import type { Answer } from "../fuzz/child.ts";

const limits = { trialMs: 5_000, startMs: 120_000, bytes: 2 ** 30 } as const;

export const fuzzOnnx: Campaign = {
  name: "fuzz-onnx",
  summary: "damaged models, inputs and artifacts: refused with a code, in time and memory",
  targets: ["library"],
  defaultCount: 20_000,
  open: async () => watchedTrial(),
};

function watchedTrial(): Trial {
  let child: ChildProcess | undefined;
  process.on("exit", () => child?.kill("SIGKILL"));
  return async (seed) => {
    child ??= await startChild();
    const answer = await ask(child, seed);
    if ("died" in answer) {
      child = undefined;
      return { kind: "failed", reason: answer.died };
    }
    if (answer.largestBytes > limits.bytes) {
      child.kill("SIGKILL");
      child = undefined;
      const mib = Math.round(answer.largestBytes / 2 ** 20);
      return { kind: "failed", reason: `memory grew to ${mib} MiB` };
    }
    return answer.finding.kind === "passed" ? passed : answer.finding;
  };
}

async function startChild(): Promise<ChildProcess> {
  const path = fileURLToPath(new URL("../fuzz/child.ts", import.meta.url));
  const child = fork(path, { execArgv: ["--import", "tsx", "--max-old-space-size=1024"] });
  // The campaign ends when its trials do, not when the child does.
  child.unref();
  child.channel?.unref();
  const ready = await next(child, limits.startMs);
  if (ready !== "ready") throw new Error(`the child does not start: ${JSON.stringify(ready)}`);
  return child;
}

async function ask(child: ChildProcess, seed: number): Promise<Answer | { died: string }> {
  const reply = next(child, limits.trialMs);
  child.send(seed);
  const answer = await reply;
  if (typeof answer === "object" && "finding" in answer) return answer;
  child.kill("SIGKILL");
  return { died: String(typeof answer === "object" ? answer.died : answer) };
}

type Message = Answer | "ready" | { readonly died: string };

/** The child's next message, or how it ended without one. */
function next(child: ChildProcess, ms: number): Promise<Message> {
  return new Promise((resolve) => {
    const settle = (message: Message): void => {
      clearTimeout(timer);
      child.removeAllListeners("message").removeAllListeners("exit");
      resolve(message);
    };
    const timer = setTimeout(() => settle({ died: `no answer within ${ms} ms` }), ms);
    child.once("message", (message) => settle(message as Message));
    child.once("exit", (code, signal) => settle({ died: `the process ended (${code ?? signal})` }));
  });
}
