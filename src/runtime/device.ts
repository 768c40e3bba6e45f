/** This machine in words: what a measurement depends on. */
import { arch, availableParallelism, cpus, platform, release, totalmem } from "node:os";

export interface DeviceDescription {
  /** Processor, cores, memory, system. */
  readonly device: string;
  /** Processor and cores alone: what stays when a system is updated. */
  readonly processor: string;
  /** What runs WebAssembly here. */
  readonly engine: string;
}

export function describeDevice(): DeviceDescription {
  const model = cpus()[0]?.model.trim() ?? "unknown processor";
  const processor = `${model}, ${availableParallelism()} cores, ${arch()}`;
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`;
  const system = `${platform()} ${release()} ${arch()}`;
  const { node, v8 } = process.versions;
  return {
    device: `${model}, ${availableParallelism()} cores, ${memory}, ${system}`,
    processor,
    engine: `node ${node} v8 ${v8}`,
  };
}
