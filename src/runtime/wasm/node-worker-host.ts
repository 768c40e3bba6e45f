/** Compute threads from Node's worker_threads. */
import { Worker } from "node:worker_threads";
import { usableCpus } from "../detect/threads-here.ts";
import { openHugePages } from "../ffi/huge-pages.ts";
import { openProcessors } from "../ffi/processors.ts";
import { compileWhole } from "./node-compile.ts";
import type { WorkerHost } from "./worker-host.ts";
import type { FromWorker } from "./worker-source.ts";

/** Linux names the thread that asks; elsewhere there is no such file, and no processors to keep threads on. */
const prologue = `const { parentPort } = require("node:worker_threads");
function systemThread() {
  try {
    return Number(require("node:fs").readlinkSync("/proc/thread-self").split("/").pop());
  } catch {
    return 0;
  }
}
const port = {
  systemThread: systemThread(),
  post: (message) => parentPort.postMessage(message),
  listen: (handler) => parentPort.on("message", handler),
};`;

export const nodeWorkerHost: WorkerHost = {
  parallelism: usableCpus(),
  processors: openProcessors,
  hugePages: openHugePages,
  compile: (bytes) => compileWhole(bytes),
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
