/** NVIDIA DGX Spark: GB10, GPU and 20 Arm cores on one memory. */
import { sm121a } from "../architectures/hopper-blackwell.ts";
import { perDevice } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";
import { pcie } from "./links.ts";

const datasheet =
  "NVIDIA DGX Spark specifications (nvidia.com/en-us/products/workstations/dgx-spark)";
const device =
  "device properties of a GB10: 48 multiprocessors, 24 MB of L2 (huggingface/kernels#283); clock by deviceQuery";
/** A BF16 product of PyTorch was measured at 92.3 TFLOP/s (huggingface/kernels#283): 74 % of this rate. */
const rate =
  "1 PFLOP/s of sparse FP4 (specifications), halved for dense, halved again for each wider type";

export const dgxSpark: MachineFile = {
  name: "dgx-spark",
  summary: "NVIDIA DGX Spark (GB10), 128 GB shared with the CPU",
  emitter: "ptx",
  machine: {
    kind: "gpu",
    vendor: "NVIDIA",
    driverNames: ["NVIDIA GB10"],
    architecture: sm121a,
    multiprocessors: perDevice(48, device, "measured"),
    boostMhz: perDevice(2418, device, "measured"),
    memoryKind: "LPDDR5X",
    unifiedMemory: true,
    memoryBytes: perDevice(
      Math.round(121.69 * 2 ** 30),
      "total by CUDA on a DGX Spark: 121.69 GiB of the 128 GB (MiaAI-Lab/GLM-5.3-Flash-EXL3-2x-DGX-Sparks#47; /proc/meminfo agrees: Syllo/nvtop#449)",
      "measured",
    ),
    memoryBytesPerNs: perDevice(273, datasheet),
    l2Bytes: perDevice(24 * 2 ** 20, device, "measured"),
    vectorTeraops: {
      f32: perDevice(29.7, "2 x 128 lanes x 48 multiprocessors x 2.418 GHz", "predicted"),
    },
    matrixTeraops: {
      bf16: perDevice(125, rate, "predicted"),
      f16: perDevice(125, rate, "predicted"),
      fp8: perDevice(250, rate, "predicted"),
      fp6: perDevice(250, rate, "predicted"),
      fp4: perDevice(500, rate, "predicted"),
      int8: perDevice(250, "as FP8, the ratio of an RTX PRO 6000", "predicted"),
    },
    links: [
      {
        kind: "nvlink-c2c",
        generation: "1",
        bytesPerNsEachWay: perDevice(
          300,
          "NVIDIA GB10, Hot Chips 2025: 600 GB/s both ways together, to the CPU",
        ),
      },
      {
        kind: "ethernet",
        generation: "200G",
        bytesPerNsEachWay: perDevice(25, `${datasheet}: ConnectX-7 at 200 Gb/s, to another one`),
      },
      pcie("5.0", 4),
    ],
  },
};
