/** NVIDIA RTX PRO 6000 Blackwell Workstation Edition: GB202. */
import { sm120a } from "../architectures/hopper-blackwell.ts";
import { perDevice } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";
import { pcie } from "./links.ts";

const datasheet =
  "NVIDIA RTX PRO 6000 Blackwell Workstation Edition datasheet (nvidia.com/en-us/products/workstations/professional-desktop-gpus/rtx-pro-6000)";
const whitePaper = "NVIDIA RTX Blackwell PRO GPU Architecture white paper, dense";

export const rtxPro6000: MachineFile = {
  name: "rtx-pro-6000",
  summary: "NVIDIA RTX PRO 6000 Blackwell, 96 GB",
  emitter: "ptx",
  machine: {
    kind: "gpu",
    vendor: "NVIDIA",
    driverNames: ["NVIDIA RTX PRO 6000 Blackwell Workstation Edition"],
    architecture: sm120a,
    multiprocessors: perDevice(188, whitePaper),
    boostMhz: perDevice(2617, whitePaper),
    memoryKind: "GDDR7",
    unifiedMemory: false,
    memoryBytes: perDevice(
      97887 * 2 ** 20,
      "nvidia-smi, memory.total of an RTX PRO 6000 Blackwell (spore-host/calque#178)",
      "measured",
    ),
    memoryBytesPerNs: perDevice(1792, datasheet),
    l2Bytes: perDevice(128 * 2 ** 20, whitePaper),
    vectorTeraops: {
      f32: perDevice(125, datasheet),
      f16: perDevice(125, "same as f32: NVIDIA RTX Blackwell PRO GPU Architecture white paper"),
    },
    matrixTeraops: {
      tf32: perDevice(251.9, whitePaper),
      bf16: perDevice(503.8, whitePaper),
      f16: perDevice(503.8, whitePaper),
      fp8: perDevice(1007.6, whitePaper),
      fp6: perDevice(1007.6, whitePaper),
      fp4: perDevice(2015.2, whitePaper),
      int8: perDevice(1007.6, whitePaper),
    },
    links: [pcie("5.0", 16)],
  },
};
