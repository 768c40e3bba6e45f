/**
 * Hostile models, inputs and artifacts (fuzz/hostile-trial.ts), each in a child process under a watchdog:
 * no crash, no trial over five seconds of processor time, no memory over 1 GiB, nothing read outside the
 * model's folder, every refusal with a code. A child that dies or is ended is replaced. What an old child
 * does in too long or with too much memory is done again in a new one, which decides: compilers that start
 * and garbage of thousands of earlier trials are not the trial's.
 */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Campaign, Finding, Trial } from "../campaign.ts";
import type { Answer } from "../fuzz/child.ts";

const limits = {
  processorMs: 5_000,
  /** Of the clock, for what waits for ever; a busy machine may take its time. */
  trialMs: 120_000,
  startMs: 240_000,
  bytes: 2 ** 30,
} as const;

export const fuzzOnnx: Campaign = {
  name: "fuzz-onnx",
  summary: "damaged models, inputs and artifacts: refused with a code, in time and memory",
  targets: ["library"],
  defaultCount: 20_000,
  open: async () => watchedTrial(),
};

function watchedTrial(): Trial {
  let child: ChildProcess | undefined;
  const end = (): void => {
    child?.kill("SIGKILL");
    child = undefined;
  };
  process.on("exit", end);
  const attempt = async (seed: number): Promise<Finding> => {
    child ??= await startChild();
    const answer = await ask(child, seed);
    const finding = judge(answer);
    if ("died" in answer || finding !== answer.finding) end();
    return finding;
  };
  return async (seed) => {
    const isOld = child !== undefined;
    const finding = await attempt(seed);
    return finding.kind === "failed" && isOld && !child ? attempt(seed) : finding;
  };
}

function judge(answer: Answer | { readonly died: string }): Finding {
  if ("died" in answer) return { kind: "failed", reason: answer.died };
  const { finding, largestBytes, processorMs } = answer;
  if (largestBytes > limits.bytes) {
    const mib = Math.round(largestBytes / 2 ** 20);
    return { kind: "failed", reason: `memory grew to ${mib} MiB` };
  }
  if (processorMs > limits.processorMs) {
    return { kind: "failed", reason: `it took ${Math.round(processorMs)} ms of processor time` };
  }
  return finding;
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
