/**
 * The seam between the pool and whatever gives it threads: worker_threads in Node, Worker in a browser.
 * The pool knows only this interface; node-worker-host.ts is the first implementation.
 */
import type { HugePages } from "../ffi/huge-pages.ts";
import type { Processors } from "../ffi/processors.ts";
import type { FromWorker, ToWorker } from "./worker-source.ts";

export interface WorkerEvents {
  readonly message: (message: FromWorker) => void;
  /** The worker is gone and it was not asked to go. */
  readonly died: (reason: string) => void;
}

export interface WorkerHandle {
  post(message: ToWorker): void;
  /** Whether the worker keeps the process alive. */
  keepAlive(alive: boolean): void;
  /** Ends the worker whatever it is doing; `died` is not called. */
  terminate(): Promise<void>;
}

export interface WorkerHost {
  /** Hardware threads; more compute threads than this must not poll. */
  readonly parallelism: number;
  /** Where its threads run; absent: nobody can say. Asked when threads are first needed. */
  readonly processors?: () => Processors | undefined;
  /** Pages of the memory of programs; absent: they are the engine's own choice. */
  readonly hugePages?: () => HugePages | undefined;
  /** A module whose functions run as fast the first time as later; absent: the engine decides. */
  readonly compile?: (bytes: Uint8Array<ArrayBuffer>) => WebAssembly.Module;
  /** Starts a worker that runs `source` (worker-source.ts) with a port to this side. */
  spawn(source: string, name: string, events: WorkerEvents): WorkerHandle;
}
