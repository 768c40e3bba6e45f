/** NVIDIA GeForce RTX 4090: AD102, Ada. */
import { sm89 } from "../architectures/turing-ampere-ada.ts";
import { perDevice } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";
import { pcie } from "./links.ts";

const whitePaper = "NVIDIA Ada GPU Architecture white paper, Appendix A, dense, f32 accumulation";

export const rtx4090: MachineFile = {
  name: "rtx-4090",
  summary: "NVIDIA GeForce RTX 4090, 24 GB",
  emitter: "ptx",
  machine: {
    kind: "gpu",
    vendor: "NVIDIA",
    driverNames: ["NVIDIA GeForce RTX 4090"],
    architecture: sm89,
    multiprocessors: perDevice(128, whitePaper),
    boostMhz: perDevice(2520, whitePaper),
    memoryKind: "GDDR6X",
    unifiedMemory: false,
    memoryBytes: perDevice(
      24564 * 2 ** 20,
      "nvidia-smi, memory.total (RLinf/RLinf#255)",
      "measured",
    ),
    memoryBytesPerNs: perDevice(1008, whitePaper),
    l2Bytes: perDevice(72 * 2 ** 20, whitePaper),
    vectorTeraops: {
      f32: perDevice(82.6, whitePaper),
      f16: perDevice(82.6, whitePaper),
      f64: perDevice(1.29, whitePaper),
    },
    matrixTeraops: {
      tf32: perDevice(82.6, whitePaper),
      bf16: perDevice(165.2, whitePaper),
      f16: perDevice(165.2, whitePaper),
      fp8: perDevice(330.3, whitePaper),
      int8: perDevice(660.6, whitePaper),
      int4: perDevice(1321.2, whitePaper),
    },
    links: [pcie("4.0", 16)],
  },
};
