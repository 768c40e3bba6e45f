/** AMD EPYC 9654 (Zen 4): 96 cores. */
import { perCore, perCoreCluster, perSocket } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";
import { pcie } from "./links.ts";
import { v4Extensions } from "./x86-levels.ts";

const manual = "AMD Software Optimization Guide for the Zen 4 Microarchitecture (57647)";
const page =
  "AMD EPYC 9654 product page: 96 cores, 2.4 GHz base, 384 MB of L3 in 12 complexes, 12 channels DDR5-4800, 460.8 GB/s, up to 6 TB";

export const epyc9654: MachineFile = {
  name: "epyc-9654",
  summary: "AMD EPYC 9654, 96 cores",
  emitter: "x64",
  machine: {
    kind: "cpu",
    vendor: "AMD",
    instructionSet: "x86-64",
    extensions: [...v4Extensions, "avx512-vnni", "avx512-bf16"],
    vectorBits: perCore(512, manual),
    vectorRegisters: perCore(32, manual),
    fmaPerCycle: perCore(1, manual),
    fmaLatencyCycles: perCore(4, manual),
    loadBytesPerCycle: perCore(64, manual),
    clockMhz: perCore(2400, page),
    matrixExtensions: [
      { name: "vdpbf16ps", operands: "bf16", operationsPerCycle: perCore(64, manual) },
      { name: "vpdpbusd", operands: "int8", operationsPerCycle: perCore(128, manual) },
    ],
    caches: [
      { level: 1, kind: "data", bytes: perCore(32 * 1024, manual) },
      { level: 2, kind: "unified", bytes: perCore(1024 * 1024, manual) },
      { level: 3, kind: "unified", bytes: perCoreCluster(32 * 2 ** 20, page) },
    ],
    cores: perSocket(96, page),
    memoryKind: "DDR5",
    memoryBytes: perSocket(6 * 10 ** 12, page),
    memoryBytesPerNs: perSocket(460.8, page),
    links: [pcie("5.0", 16)],
  },
};
