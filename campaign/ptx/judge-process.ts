/**
 * Runs judges for a campaign (run-judge.ts) from a process that is small: to start a program, a process is
 * copied, which takes milliseconds for each hundred megabytes that it holds. In: messages with a path and
 * arguments. Out: what was said.
 */
import { execFile } from "node:child_process";
import type { Answer, Asked } from "./run-judge.ts";

process.on("message", ({ number, judge, args }: Asked) => {
  const answer = (given: Answer): void => void process.send!(given);
  execFile(judge, args, { encoding: "utf8", maxBuffer: 1 << 28 }, (error, stdout, stderr) => {
    if (error && typeof error.code !== "number") answer({ number, failure: String(error) });
    else answer({ number, said: { ok: !error, stdout, stderr } });
  });
});
