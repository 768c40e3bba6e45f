/** NVIDIA H200 SXM: GH100 with HBM3e. */
import { sm90a } from "../architectures/hopper-blackwell.ts";
import { perDevice } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";

const datasheet =
  "NVIDIA H200 datasheet, SXM (nvidia.com/en-us/data-center/h200), matrix rates halved: its figures are with sparsity";
const device = "driver attributes of an H200 (driver 580)";

export const h200: MachineFile = {
  name: "h200",
  summary: "NVIDIA H200 SXM, 141 GB HBM3e",
  emitter: "ptx",
  machine: {
    kind: "gpu",
    vendor: "NVIDIA",
    driverNames: ["NVIDIA H200"],
    architecture: sm90a,
    multiprocessors: perDevice(132, device, "measured"),
    boostMhz: perDevice(1980, device, "measured"),
    memoryKind: "HBM3e",
    unifiedMemory: false,
    memoryBytes: perDevice(143771 * 2 ** 20, device, "measured"),
    memoryBytesPerNs: perDevice(4800, datasheet),
    l2Bytes: perDevice(60 * 2 ** 20, device, "measured"),
    vectorTeraops: {
      f32: perDevice(66.9, datasheet),
      f64: perDevice(33.5, datasheet),
      f16: perDevice(133.8, "NVIDIA H100 white paper: FP16 (non-tensor) is twice FP32"),
      bf16: perDevice(133.8, "NVIDIA H100 white paper: BF16 (non-tensor) is twice FP32"),
    },
    matrixTeraops: {
      f64: perDevice(66.9, datasheet),
      tf32: perDevice(494.7, datasheet),
      bf16: perDevice(989.4, datasheet),
      f16: perDevice(989.4, datasheet),
      fp8: perDevice(1978.9, datasheet),
      int8: perDevice(1978.9, datasheet),
    },
    links: [
      { kind: "nvlink", generation: "4", bytesPerNsEachWay: perDevice(450, datasheet) },
      {
        kind: "pcie",
        generation: "5.0 x16",
        bytesPerNsEachWay: perDevice(63.0, "PCI Express 5.0: 32 GT/s x 16 lanes, 128b/130b coding"),
      },
    ],
  },
};
