/** NVIDIA A100 SXM4 with 40 GB: GA100, Ampere. */
import { sm80 } from "../architectures/turing-ampere-ada.ts";
import { perDevice } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";

const datasheet = "NVIDIA A100 datasheet (nvidia.com/en-us/data-center/a100)";
const whitePaper = "NVIDIA A100 Tensor Core GPU Architecture white paper, Table 4";

export const a10040gb: MachineFile = {
  name: "a100-40gb",
  summary: "NVIDIA A100 SXM4, 40 GB HBM2",
  emitter: "ptx",
  machine: {
    kind: "gpu",
    vendor: "NVIDIA",
    driverNames: ["NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB"],
    architecture: sm80,
    multiprocessors: perDevice(108, whitePaper),
    boostMhz: perDevice(1410, whitePaper),
    memoryKind: "HBM2",
    unifiedMemory: false,
    memoryBytes: perDevice(40 * 2 ** 30, datasheet),
    memoryBytesPerNs: perDevice(1555, datasheet),
    l2Bytes: perDevice(40 * 2 ** 20, whitePaper),
    vectorTeraops: {
      f32: perDevice(19.5, datasheet),
      f64: perDevice(9.7, datasheet),
      f16: perDevice(78, whitePaper),
      bf16: perDevice(39, whitePaper),
    },
    matrixTeraops: {
      f64: perDevice(19.5, datasheet),
      tf32: perDevice(156, datasheet),
      bf16: perDevice(312, datasheet),
      f16: perDevice(312, datasheet),
      int8: perDevice(624, datasheet),
      int4: perDevice(1248, whitePaper),
    },
    links: [
      {
        kind: "nvlink",
        generation: "3",
        bytesPerNsEachWay: perDevice(300, "NVIDIA A100 datasheet: 600 GB/s both ways together"),
      },
      {
        kind: "pcie",
        generation: "4.0 x16",
        bytesPerNsEachWay: perDevice(31.5, "PCI Express 4.0: 16 GT/s x 16 lanes, 128b/130b coding"),
      },
    ],
  },
};
