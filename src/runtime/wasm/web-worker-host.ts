/** Compute threads from a browser's Worker. The code goes through a blob, so no file has to be served. */
import type { WorkerHost } from "./worker-host.ts";
import type { FromWorker } from "./worker-source.ts";

const prologue = `const port = {
  post: (message) => self.postMessage(message),
  listen: (handler) => self.addEventListener("message", (event) => handler(event.data)),
};`;

/** The host of this page or worker, unless the engine has no workers. */
export function webWorkerHost(
  globals: WebGlobals = globalThis as WebGlobals,
): WorkerHost | undefined {
  const { Worker, navigator } = globals;
  if (!Worker) return undefined;
  return {
    parallelism: Math.max(1, navigator?.hardwareConcurrency ?? 1),
    spawn(source, name, events) {
      const text = `"use strict";${prologue}\n${source}(port);`;
      const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
      const worker = new Worker(url, { name });
      let over = false;
      worker.addEventListener("message", ({ data }) => events.message(data as FromWorker));
      worker.addEventListener("error", ({ message }) => {
        if (!over) events.died(message ?? "its worker could not start");
        over = true;
      });
      return {
        post: (message) => worker.postMessage(message),
        // A page ends its workers with itself; nothing keeps it alive.
        keepAlive: () => undefined,
        terminate: async () => {
          over = true;
          worker.terminate();
          URL.revokeObjectURL(url);
        },
      };
    },
  };
}
