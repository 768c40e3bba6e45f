/** Streams, events and captured graphs of a device. */
import type { CudaDevice } from "./device.ts";
import { takeHandle } from "./driver.ts";

/** Flags of cuda.h: no implicit order with the legacy stream; capture seen by this thread alone. */
const nonBlocking = 1;
const threadLocalCapture = 1;

export interface CudaStream {
  readonly handle: bigint;
  synchronize(): void;
  /** Whether all that was enqueued is done; a fault of it is thrown. */
  isDone(): boolean;
  close(): void;
}

const notReady = 600;

export function createStream(device: CudaDevice): CudaStream {
  device.makeCurrent();
  const cell = new BigUint64Array(1);
  device.driver.call("cuStreamCreate", cell, nonBlocking);
  const handle = takeHandle(cell);
  return {
    handle,
    synchronize: () => device.driver.call("cuStreamSynchronize", handle),
    isDone: () => {
      if (device.driver.ask("cuStreamQuery", handle) === notReady) return false;
      device.driver.call("cuStreamSynchronize", handle);
      return true;
    },
    close: device.own(() => device.driver.call("cuStreamDestroy_v2", handle)),
  };
}

export interface CudaEvent {
  record(stream: CudaStream): void;
  /** Milliseconds from the other event to this one, once both have passed (resolution about 0.5 us). */
  since(start: CudaEvent): number;
  readonly handle: bigint;
  close(): void;
}

export function createEvent(device: CudaDevice): CudaEvent {
  const { driver } = device;
  device.makeCurrent();
  const cell = new BigUint64Array(1);
  driver.call("cuEventCreate", cell, 0);
  const handle = takeHandle(cell);
  return {
    handle,
    record: (stream) => driver.call("cuEventRecord", handle, stream.handle),
    since: (start) => {
      driver.call("cuEventSynchronize", handle);
      const milliseconds = new Float32Array(1);
      driver.call("cuEventElapsedTime", milliseconds, start.handle, handle);
      return milliseconds[0]!;
    },
    close: device.own(() => driver.call("cuEventDestroy_v2", handle)),
  };
}

export interface CudaGraph {
  launch(stream: CudaStream): void;
  close(): void;
}

/** What `body` enqueues on the stream, as a graph; nothing of it runs yet. */
export function captureGraph(device: CudaDevice, stream: CudaStream, body: () => void): CudaGraph {
  const { driver } = device;
  device.makeCurrent();
  driver.call("cuStreamBeginCapture_v2", stream.handle, threadLocalCapture);
  const graph = new BigUint64Array(1);
  try {
    body();
  } finally {
    driver.call("cuStreamEndCapture", stream.handle, graph);
  }
  const executable = new BigUint64Array(1);
  const captured = takeHandle(graph);
  try {
    driver.call("cuGraphInstantiateWithFlags", executable, captured, 0n);
  } finally {
    driver.call("cuGraphDestroy", captured);
  }
  const handle = takeHandle(executable);
  return {
    launch: (on) => driver.call("cuGraphLaunch", handle, on.handle),
    close: device.own(() => driver.call("cuGraphExecDestroy", handle)),
  };
}
