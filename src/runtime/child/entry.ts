/**
 * The process that runs candidates: a message in, a message out (protocol.ts). It ends with its parent,
 * even from inside a loop that never does: a second thread watches who the parent is.
 */
import { Worker } from "node:worker_threads";
import { CandidateHost, refusalOf } from "./candidate-host.ts";
import type { ChildReply, ChildRequest, Envelope } from "./protocol.ts";

const watch = `const parent = process.ppid;
setInterval(() => { if (process.ppid !== parent) process.kill(process.pid, "SIGKILL"); }, 500);`;
new Worker(watch, { eval: true, execArgv: [] }).unref();

const host = new CandidateHost(() => performance.now() * 1e6);

async function answer(request: ChildRequest): Promise<ChildReply> {
  try {
    return await host.handle(request);
  } catch (error) {
    return refusalOf(error);
  }
}

/** Requests are answered in their order, also where one takes several turns of the event loop. */
let last = Promise.resolve();

process.on("message", ({ sequence, body }: Envelope<ChildRequest>) => {
  last = last.then(async () => {
    const reply: Envelope<ChildReply> = { sequence, body: await answer(body) };
    process.send?.(reply);
  });
});
process.on("disconnect", () => process.exit(0));
