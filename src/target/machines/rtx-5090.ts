/** NVIDIA GeForce RTX 5090: GB202, Blackwell with warp-wide matrix instructions. */
import { sm120a } from "../architectures/hopper-blackwell.ts";
import { perDevice } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";
import { pcie } from "./links.ts";

const whitePaper =
  "NVIDIA RTX Blackwell GPU Architecture white paper, Appendix A, dense, f32 accumulation";

export const rtx5090: MachineFile = {
  name: "rtx-5090",
  summary: "NVIDIA GeForce RTX 5090, 32 GB",
  emitter: "ptx",
  machine: {
    kind: "gpu",
    vendor: "NVIDIA",
    driverNames: ["NVIDIA GeForce RTX 5090"],
    architecture: sm120a,
    multiprocessors: perDevice(170, whitePaper),
    boostMhz: perDevice(2407, whitePaper),
    memoryKind: "GDDR7",
    unifiedMemory: false,
    memoryBytes: perDevice(
      32607 * 2 ** 20,
      "nvidia-smi, memory.total (noonghunna/club-3090#1229)",
      "measured",
    ),
    memoryBytesPerNs: perDevice(1792, whitePaper),
    l2Bytes: perDevice(96 * 2 ** 20, whitePaper),
    vectorTeraops: {
      f32: perDevice(104.8, whitePaper),
      f16: perDevice(104.8, whitePaper),
      f64: perDevice(1.64, whitePaper),
    },
    matrixTeraops: {
      tf32: perDevice(104.8, whitePaper),
      bf16: perDevice(209.5, whitePaper),
      f16: perDevice(209.5, whitePaper),
      fp8: perDevice(419, whitePaper),
      fp6: perDevice(419, "same rate as FP8: NVIDIA RTX Blackwell GPU Architecture white paper"),
      fp4: perDevice(1676, whitePaper),
      int8: perDevice(838, whitePaper),
    },
    links: [pcie("5.0", 16)],
  },
};
