/** Arm Neoverse N1, as in AWS Graviton2: 64 cores, eight channels of DDR4-3200. Planning only. */
import { perCore, perSocket } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";
import { pcie } from "./links.ts";

const manual =
  "Arm Neoverse N1 Software Optimization Guide and Technical Reference Manual (developer.arm.com)";
const machine =
  "AWS Graviton2: 64 cores at 2.5 GHz, 1 MiB of L2 a core, 32 MiB of L3, 8 channels DDR4-3200 (aws.amazon.com/ec2/graviton; Hot Chips 2020)";

export const neoverseN1: MachineFile = {
  name: "neoverse-n1",
  summary: "Arm Neoverse N1, 64 cores (planning only)",
  machine: {
    kind: "cpu",
    vendor: "Arm",
    instructionSet: "aarch64",
    extensions: ["neon", "dotprod", "fp16"],
    vectorBits: perCore(128, manual),
    vectorRegisters: perCore(32, manual),
    fmaPerCycle: perCore(2, manual),
    fmaLatencyCycles: perCore(4, manual),
    loadBytesPerCycle: perCore(32, manual),
    clockMhz: perCore(2500, machine),
    matrixExtensions: [
      {
        name: "udot",
        operands: "int8",
        operationsPerCycle: perCore(
          64,
          "2 x 128-bit dot products a cycle: Neoverse N1 Software Optimization Guide",
        ),
      },
    ],
    caches: [
      { level: 1, kind: "data", bytes: perCore(64 * 1024, manual) },
      { level: 2, kind: "unified", bytes: perCore(1024 * 1024, machine) },
      { level: 3, kind: "unified", bytes: perSocket(32 * 2 ** 20, machine) },
    ],
    cores: perSocket(64, machine),
    memoryKind: "DDR4",
    memoryBytes: perSocket(
      256 * 2 ** 30,
      "largest instance of Graviton2: 256 GiB (aws.amazon.com/ec2/instance-types)",
    ),
    memoryBytesPerNs: perSocket(204.8, machine),
    links: [pcie("4.0", 16)],
  },
};
