/** Intel Xeon Platinum 8480+ (Sapphire Rapids): 56 cores with AMX. */
import { perCore, perSocket } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";
import { pcie } from "./links.ts";
import { v4Extensions } from "./x86-levels.ts";

const manual =
  "Intel 64 and IA-32 Architectures Optimization Reference Manual, Golden Cove; chapter on AMX";
const ark =
  "Intel ARK, Xeon Platinum 8480+: 56 cores, 2.0 GHz base, 105 MB of L3, 8 channels DDR5-4800, up to 4 TB";

export const xeon8480: MachineFile = {
  name: "xeon-8480",
  summary: "Intel Xeon Platinum 8480+, 56 cores",
  emitter: "x64",
  machine: {
    kind: "cpu",
    vendor: "Intel",
    instructionSet: "x86-64",
    extensions: [
      ...v4Extensions,
      "avx512-vnni",
      "avx512-bf16",
      "avx512-fp16",
      "amx-tile",
      "amx-int8",
      "amx-bf16",
    ],
    vectorBits: perCore(512, manual),
    vectorRegisters: perCore(32, manual),
    fmaPerCycle: perCore(2, manual),
    fmaLatencyCycles: perCore(4, manual),
    loadBytesPerCycle: perCore(128, manual),
    clockMhz: perCore(2000, ark),
    matrixExtensions: [
      { name: "tdpbf16ps", operands: "bf16", operationsPerCycle: perCore(1024, manual) },
      { name: "tdpbssd", operands: "int8", operationsPerCycle: perCore(2048, manual) },
    ],
    caches: [
      { level: 1, kind: "data", bytes: perCore(48 * 1024, manual) },
      { level: 2, kind: "unified", bytes: perCore(2 * 2 ** 20, manual) },
      { level: 3, kind: "unified", bytes: perSocket(105 * 2 ** 20, ark) },
    ],
    cores: perSocket(56, ark),
    memoryKind: "DDR5",
    memoryBytes: perSocket(4 * 10 ** 12, ark),
    memoryBytesPerNs: perSocket(307.2, ark),
    links: [pcie("5.0", 16)],
  },
};
