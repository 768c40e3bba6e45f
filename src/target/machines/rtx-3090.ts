/** NVIDIA GeForce RTX 3090: GA102, Ampere. */
import { sm86 } from "../architectures/turing-ampere-ada.ts";
import { perDevice, perLink } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";
import { pcie } from "./links.ts";

const whitePaper =
  "NVIDIA Ampere GA102 GPU Architecture white paper, Table 2, dense, f32 accumulation";

export const rtx3090: MachineFile = {
  name: "rtx-3090",
  summary: "NVIDIA GeForce RTX 3090, 24 GB",
  emitter: "ptx",
  machine: {
    kind: "gpu",
    vendor: "NVIDIA",
    driverNames: ["NVIDIA GeForce RTX 3090"],
    architecture: sm86,
    multiprocessors: perDevice(82, whitePaper),
    boostMhz: perDevice(1695, whitePaper),
    memoryKind: "GDDR6X",
    unifiedMemory: false,
    memoryBytes: perDevice(
      24576 * 2 ** 20,
      "nvidia-smi, memory.total (noonghunna/club-3090#1128)",
      "measured",
    ),
    memoryBytesPerNs: perDevice(936, whitePaper),
    l2Bytes: perDevice(6 * 2 ** 20, whitePaper),
    vectorTeraops: {
      f32: perDevice(35.6, whitePaper),
      f16: perDevice(35.6, whitePaper),
      f64: perDevice(0.556, whitePaper),
    },
    matrixTeraops: {
      tf32: perDevice(35.6, whitePaper),
      bf16: perDevice(71, whitePaper),
      f16: perDevice(71, whitePaper),
      int8: perDevice(284, whitePaper),
      int4: perDevice(568, whitePaper),
    },
    links: [
      {
        kind: "nvlink",
        generation: "3",
        bytesPerNsEachWay: perDevice(56.25, whitePaper),
        joins: perLink(2, `${whitePaper}: a bridge between two boards`),
      },
      pcie("4.0", 16),
    ],
  },
};
