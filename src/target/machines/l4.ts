/** NVIDIA L4: AD104, Ada. */
import { sm89 } from "../architectures/turing-ampere-ada.ts";
import { perDevice } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";
import { pcie } from "./links.ts";

const datasheet =
  "NVIDIA L4 datasheet (nvidia.com/en-us/data-center/l4), matrix rates halved: its figures are with sparsity";
const whitePaper = "NVIDIA Ada GPU Architecture white paper, AD104";

export const l4: MachineFile = {
  name: "l4",
  summary: "NVIDIA L4, 24 GB",
  emitter: "ptx",
  machine: {
    kind: "gpu",
    vendor: "NVIDIA",
    driverNames: ["NVIDIA L4"],
    architecture: sm89,
    multiprocessors: perDevice(58, datasheet),
    boostMhz: perDevice(2040, "NVIDIA L4 product brief PB-11316-001: maximum boost clock"),
    memoryKind: "GDDR6",
    unifiedMemory: false,
    memoryBytes: perDevice(
      23034 * 2 ** 20,
      "nvidia-smi, memory.total (modal-labs/modal-client#2797)",
      "measured",
    ),
    memoryBytesPerNs: perDevice(300, datasheet),
    l2Bytes: perDevice(48 * 2 ** 20, whitePaper),
    vectorTeraops: {
      f32: perDevice(30.3, datasheet),
      f16: perDevice(30.3, "same as f32: NVIDIA Ada GPU Architecture white paper"),
    },
    matrixTeraops: {
      tf32: perDevice(60, datasheet),
      bf16: perDevice(121, datasheet),
      f16: perDevice(121, datasheet),
      fp8: perDevice(242.5, datasheet),
      int8: perDevice(242.5, datasheet),
    },
    links: [pcie("4.0", 16)],
  },
};
