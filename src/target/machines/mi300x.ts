/** AMD Instinct MI300X: CDNA 3. Planning only: no emitter writes its code. */
import { cdna3 } from "../architectures/other.ts";
import { perDevice, perLink } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";
import { pcie } from "./links.ts";

const datasheet =
  "AMD Instinct MI300X data sheet (amd.com/en/products/accelerators/instinct/mi300/mi300x.html)";

export const mi300x: MachineFile = {
  name: "mi300x",
  summary: "AMD Instinct MI300X, 192 GB HBM3 (planning only)",
  machine: {
    kind: "gpu",
    vendor: "AMD",
    driverNames: ["AMD Instinct MI300X"],
    architecture: cdna3,
    multiprocessors: perDevice(304, datasheet),
    boostMhz: perDevice(2100, datasheet),
    memoryKind: "HBM3",
    unifiedMemory: false,
    memoryBytes: perDevice(
      206141652992,
      "rocm-smi, VRAM Total Memory of a whole MI300X (ROCm/legacy-rocm-build#4750)",
      "measured",
    ),
    memoryBytesPerNs: perDevice(5300, datasheet),
    l2Bytes: perDevice(
      32 * 2 ** 20,
      "AMD CDNA 3 Architecture white paper: 4 MB on each of 8 dies; 256 MB Infinity Cache behind it",
    ),
    vectorTeraops: {
      f32: perDevice(163.4, datasheet),
      f64: perDevice(81.7, datasheet),
    },
    matrixTeraops: {
      f64: perDevice(163.4, datasheet),
      f32: perDevice(163.4, datasheet),
      tf32: perDevice(653.7, datasheet),
      bf16: perDevice(1307.4, datasheet),
      f16: perDevice(1307.4, datasheet),
      fp8: perDevice(2614.9, datasheet),
      int8: perDevice(2614.9, datasheet),
    },
    links: [
      {
        kind: "infinity-fabric",
        generation: "4",
        bytesPerNsEachWay: perDevice(
          64,
          "AMD Instinct MI300X data sheet: a link of 128 GB/s both ways together to each of 7 others, halved",
        ),
        joins: perLink(8, "AMD Instinct MI300X Platform data sheet: 8 accelerators, all linked"),
      },
      pcie("5.0", 16),
    ],
  },
};
