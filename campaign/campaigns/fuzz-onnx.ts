/**
 * Hostile models, inputs and artifacts (fuzz/hostile-trial.ts), each in a child process under a watchdog:
 * no crash, no trial over five seconds of processor time, no memory over 1 GiB, nothing read outside the
 * model's folder, every refusal with a code. A child that dies or is ended is replaced. What an old child
 * does in too long or with too much memory is done again in a new one, which decides: compilers that start
 * and garbage of thousands of earlier trials are not the trial's.
 */
import { fileURLToPath } from "node:url";
import type { Campaign, Finding, Trial } from "../campaign.ts";
import type { Answer } from "../fuzz/child.ts";
import { type Died, WatchedChild } from "../fuzz/watched-child.ts";

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
  let child: WatchedChild<Answer> | undefined;
  const attempt = async (seed: number): Promise<Finding> => {
    child ??= await startChild();
    const answer = await child.ask(seed);
    const finding = judge(answer);
    if ("died" in answer || finding !== answer.finding) {
      child.end();
      child = undefined;
    }
    return finding;
  };
  return async (seed) => {
    const isOld = child !== undefined;
    const finding = await attempt(seed);
    return finding.kind === "failed" && isOld && !child ? attempt(seed) : finding;
  };
}

function judge(answer: Answer | Died): Finding {
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

function startChild(): Promise<WatchedChild<Answer>> {
  const path = fileURLToPath(new URL("../fuzz/child.ts", import.meta.url));
  return WatchedChild.start(path, ["--import", "tsx", "--max-old-space-size=1024"], {
    startMs: limits.startMs,
    answerMs: limits.trialMs,
  });
}
