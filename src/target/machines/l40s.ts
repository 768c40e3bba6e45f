/** NVIDIA L40S: AD102, Ada. */
import { sm89 } from "../architectures/turing-ampere-ada.ts";
import { perDevice } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";
import { pcie } from "./links.ts";

const datasheet = "NVIDIA L40S datasheet (nvidia.com/en-us/data-center/l40s), dense";
const whitePaper = "NVIDIA Ada GPU Architecture white paper, AD102";

export const l40s: MachineFile = {
  name: "l40s",
  summary: "NVIDIA L40S, 48 GB",
  emitter: "ptx",
  machine: {
    kind: "gpu",
    vendor: "NVIDIA",
    driverNames: ["NVIDIA L40S"],
    architecture: sm89,
    multiprocessors: perDevice(142, datasheet),
    boostMhz: perDevice(2520, "NVIDIA L40S product brief PB-11606-001: maximum boost clock"),
    memoryKind: "GDDR6",
    unifiedMemory: false,
    memoryBytes: perDevice(
      46068 * 2 ** 20,
      "nvidia-smi, memory.total (modal-labs/modal-client#2797)",
      "measured",
    ),
    memoryBytesPerNs: perDevice(864, datasheet),
    l2Bytes: perDevice(96 * 2 ** 20, whitePaper),
    vectorTeraops: {
      f32: perDevice(91.6, datasheet),
      f16: perDevice(91.6, "same as f32: NVIDIA Ada GPU Architecture white paper"),
    },
    matrixTeraops: {
      tf32: perDevice(183, datasheet),
      bf16: perDevice(362.05, datasheet),
      f16: perDevice(362.05, datasheet),
      fp8: perDevice(733, datasheet),
      int8: perDevice(733, datasheet),
      int4: perDevice(733, datasheet),
    },
    links: [pcie("4.0", 16)],
  },
};
