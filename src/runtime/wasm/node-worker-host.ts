/** Compute threads from Node's worker_threads. */
import { Worker } from "node:worker_threads";
import { usableCpus } from "../detect/threads-here.ts";
import type { WorkerHost } from "./worker-host.ts";
import type { FromWorker } from "./worker-source.ts";

const prologue = `const { parentPort } = require("node:worker_threads");
const port = {
  post: (message) => parentPort.postMessage(message),
  listen: (handler) => parentPort.on("message", handler),
};`;

export const nodeWorkerHost: WorkerHost = {
  parallelism: usableCpus(),
  spawn(source, name, events) {
    // No execArgv: a loader of the parent (a TypeScript runner) has no business in a compute thread.
    const worker = new Worker(`${prologue}\n${source}(port);`, { eval: true, name, execArgv: [] });
    let over = false;
    const end = (reason: string) => {
      if (!over) events.died(reason);
      over = true;
    };
    worker.on("message", (message: FromWorker) => events.message(message));
    worker.on("error", (error) => end(error.message));
    worker.on("exit", (code) => end(`exit code ${code}`));
    worker.unref();
    return {
      post: (message) => worker.postMessage(message),
      keepAlive: (alive) => (alive ? worker.ref() : worker.unref()),
      terminate: async () => {
        over = true;
        await worker.terminate();
      },
    };
  },
};
