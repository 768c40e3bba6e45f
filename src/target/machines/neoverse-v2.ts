/** Arm Neoverse V2, as in NVIDIA Grace: 72 cores, LPDDR5X. Planning only. */
import { perCore, perDevice, perSocket } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";
import { pcie } from "./links.ts";

const manual =
  "Arm Neoverse V2 Software Optimization Guide and Technical Reference Manual (developer.arm.com)";
/** Of two CPUs; with 960 GB it is 768 GB/s: the densest packages are slower. */
const machine =
  "NVIDIA Grace CPU Superchip datasheet, halved: 144 cores, 3.1 GHz base, 1 MB of L2 a core, 228 MB of L3, 480 GB of LPDDR5X at 1,024 GB/s";

export const neoverseV2: MachineFile = {
  name: "neoverse-v2",
  summary: "Arm Neoverse V2, 72 cores (planning only)",
  machine: {
    kind: "cpu",
    vendor: "Arm",
    instructionSet: "aarch64",
    extensions: ["neon", "sve", "sve2", "dotprod", "fp16", "bf16", "i8mm"],
    vectorBits: perCore(128, manual),
    vectorRegisters: perCore(32, manual),
    fmaPerCycle: perCore(4, manual),
    fmaLatencyCycles: perCore(4, manual),
    loadBytesPerCycle: perCore(48, manual),
    clockMhz: perCore(3100, machine),
    matrixExtensions: [
      {
        name: "bfmmla",
        operands: "bf16",
        operationsPerCycle: perCore(
          128,
          "4 x 128-bit BFMMLA a cycle of 16 multiply-adds each: Neoverse V2 Software Optimization Guide",
        ),
      },
      {
        name: "smmla",
        operands: "int8",
        operationsPerCycle: perCore(
          256,
          "4 x 128-bit SMMLA a cycle of 32 multiply-adds each: Neoverse V2 Software Optimization Guide",
        ),
      },
    ],
    caches: [
      { level: 1, kind: "data", bytes: perCore(64 * 1024, manual) },
      { level: 2, kind: "unified", bytes: perCore(1024 * 1024, machine) },
      { level: 3, kind: "unified", bytes: perSocket(114 * 2 ** 20, machine) },
    ],
    cores: perSocket(72, machine),
    memoryKind: "LPDDR5X",
    memoryBytes: perSocket(240 * 10 ** 9, machine),
    memoryBytesPerNs: perSocket(512, machine),
    links: [
      {
        kind: "nvlink-c2c",
        generation: "1",
        bytesPerNsEachWay: perDevice(
          450,
          "NVIDIA Grace CPU white paper: 900 GB/s both ways together",
        ),
      },
      pcie("5.0", 16),
    ],
  },
};
