/** NVIDIA H100 SXM5: GH100, Hopper. */
import { sm90a } from "../architectures/hopper-blackwell.ts";
import { perDevice } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";

const datasheet =
  "NVIDIA H100 datasheet, SXM (nvidia.com/en-us/data-center/h100), matrix rates halved: its figures are with sparsity";
const whitePaper = "NVIDIA H100 Tensor Core GPU Architecture white paper, Table 2";

export const h100: MachineFile = {
  name: "h100",
  summary: "NVIDIA H100 SXM5, 80 GB HBM3",
  emitter: "ptx",
  machine: {
    kind: "gpu",
    vendor: "NVIDIA",
    driverNames: ["NVIDIA H100 80GB HBM3"],
    architecture: sm90a,
    multiprocessors: perDevice(132, whitePaper),
    boostMhz: perDevice(
      1980,
      "nvidia-smi -q -d CLOCK on an H100 SXM: maximum SM clock",
      "measured",
    ),
    memoryKind: "HBM3",
    unifiedMemory: false,
    memoryBytes: perDevice(80 * 2 ** 30, datasheet),
    memoryBytesPerNs: perDevice(3352, datasheet),
    l2Bytes: perDevice(50 * 2 ** 20, whitePaper),
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
