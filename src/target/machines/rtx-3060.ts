/** NVIDIA GeForce RTX 3060: GA106, Ampere. */
import { sm86 } from "../architectures/turing-ampere-ada.ts";
import { perDevice } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";
import { pcie } from "./links.ts";

const datasheet =
  "NVIDIA GeForce RTX 3060 specifications (nvidia.com/en-us/geforce/graphics-cards/30-series/rtx-3060-3060ti)";
const rate =
  "28 multiprocessors x 1.777 GHz x the operations a cycle of a GA10x SM (NVIDIA Ampere GA102 GPU Architecture white paper V2, Table 2), f32 accumulation";

export const rtx3060: MachineFile = {
  name: "rtx-3060",
  summary: "NVIDIA GeForce RTX 3060, 12 GB",
  emitter: "ptx",
  machine: {
    kind: "gpu",
    vendor: "NVIDIA",
    driverNames: ["NVIDIA GeForce RTX 3060"],
    architecture: sm86,
    multiprocessors: perDevice(28, datasheet),
    boostMhz: perDevice(1777, datasheet),
    memoryKind: "GDDR6",
    unifiedMemory: false,
    memoryBytes: perDevice(
      12288 * 2 ** 20,
      "nvidia-smi, memory.total (geerlingguy/raspberry-pi-pcie-devices#790)",
      "measured",
    ),
    memoryBytesPerNs: perDevice(360, datasheet),
    l2Bytes: perDevice(
      3 * 2 ** 20,
      "512 KB beside each of 6 memory controllers: NVIDIA Ampere GA102 GPU Architecture white paper, GA10x memory subsystem; 192-bit bus",
    ),
    vectorTeraops: {
      f32: perDevice(12.74, rate, "predicted"),
      f16: perDevice(12.74, rate, "predicted"),
      f64: perDevice(0.199, rate, "predicted"),
    },
    matrixTeraops: {
      tf32: perDevice(12.74, rate, "predicted"),
      bf16: perDevice(25.5, rate, "predicted"),
      f16: perDevice(25.5, rate, "predicted"),
      int8: perDevice(101.9, rate, "predicted"),
      int4: perDevice(203.8, rate, "predicted"),
    },
    links: [pcie("4.0", 16)],
  },
};
