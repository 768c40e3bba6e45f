/**
 * The part of a browser's globals that Wavetile uses. TypeScript declares them only in the DOM library,
 * which would bring all the others along.
 */
interface WebWorkerEvents {
  message: { readonly data: unknown };
  error: { readonly message?: string };
}

declare class WebWorker {
  constructor(url: string, options?: { readonly name?: string });
  postMessage(message: unknown): void;
  addEventListener<K extends keyof WebWorkerEvents>(
    kind: K,
    listener: (event: WebWorkerEvents[K]) => void,
  ): void;
  terminate(): void;
}

/** What a page or worker of a browser has beside the globals of every engine. */
interface WebGlobals {
  readonly Worker?: typeof WebWorker;
  readonly navigator?: { readonly hardwareConcurrency?: number };
  /** Whether the page may share memory between threads; engines outside of browsers lack the name. */
  readonly crossOriginIsolated?: boolean;
}
