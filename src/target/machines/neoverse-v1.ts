/** Arm Neoverse V1, as in AWS Graviton3: 64 cores, eight channels of DDR5-4800. Planning only. */
import { perCore, perSocket } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";
import { pcie } from "./links.ts";

const manual =
  "Arm Neoverse V1 Software Optimization Guide and Technical Reference Manual (developer.arm.com)";
const machine =
  "AWS Graviton3: 64 cores at 2.6 GHz, 1 MiB of L2 a core, 32 MiB of L3, 8 channels DDR5-4800 (aws.amazon.com/ec2/graviton; re:Invent 2021)";

export const neoverseV1: MachineFile = {
  name: "neoverse-v1",
  summary: "Arm Neoverse V1, 64 cores (planning only)",
  machine: {
    kind: "cpu",
    vendor: "Arm",
    instructionSet: "aarch64",
    extensions: ["neon", "sve", "dotprod", "fp16", "bf16", "i8mm"],
    vectorBits: perCore(256, manual),
    vectorRegisters: perCore(32, manual),
    fmaPerCycle: perCore(2, manual),
    fmaLatencyCycles: perCore(4, manual),
    loadBytesPerCycle: perCore(64, manual),
    clockMhz: perCore(2600, machine),
    matrixExtensions: [
      {
        name: "bfmmla",
        operands: "bf16",
        operationsPerCycle: perCore(
          128,
          "2 x 256-bit BFMMLA a cycle of 32 multiply-adds each: Neoverse V1 Software Optimization Guide",
        ),
      },
      {
        name: "smmla",
        operands: "int8",
        operationsPerCycle: perCore(
          256,
          "2 x 256-bit SMMLA a cycle of 64 multiply-adds each: Neoverse V1 Software Optimization Guide",
        ),
      },
    ],
    caches: [
      { level: 1, kind: "data", bytes: perCore(64 * 1024, manual) },
      { level: 2, kind: "unified", bytes: perCore(1024 * 1024, machine) },
      { level: 3, kind: "unified", bytes: perSocket(32 * 2 ** 20, machine) },
    ],
    cores: perSocket(64, machine),
    memoryKind: "DDR5",
    memoryBytes: perSocket(
      512 * 2 ** 30,
      "largest instance of Graviton3: 512 GiB (aws.amazon.com/ec2/instance-types)",
    ),
    memoryBytesPerNs: perSocket(307.2, machine),
    links: [pcie("5.0", 16)],
  },
};
