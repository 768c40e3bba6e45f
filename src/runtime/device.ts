/** This machine in words: what a measurement depends on. */
import { arch, availableParallelism, cpus, platform, release, totalmem } from "node:os";

export interface DeviceDescription {
  /** Processor, cores, memory, system. */
  readonly device: string;
  /** What runs WebAssembly here. */
  readonly engine: string;
}

export function describeDevice(): DeviceDescription {
  const processor = cpus()[0]?.model.trim() ?? "unknown processor";
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`;
  const system = `${platform()} ${release()} ${arch()}`;
  const { node, v8 } = process.versions;
  return {
    device: `${processor}, ${availableParallelism()} cores, ${memory}, ${system}`,
    engine: `node ${node} v8 ${v8}`,
  };
}
