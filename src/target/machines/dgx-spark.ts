/** NVIDIA DGX Spark: GB10, GPU and 20 Arm cores on one memory. */
import { sm121a } from "../architectures/hopper-blackwell.ts";
import { perDevice } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";

const datasheet =
  "NVIDIA DGX Spark specifications (nvidia.com/en-us/products/workstations/dgx-spark)";
const device = "deviceQuery on a DGX Spark: 48 multiprocessors, 2,418 MHz, 24 MiB of L2";
const rate =
  "1 PFLOP/s of sparse FP4 (datasheet), halved for dense, halved again for each wider type";

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
    memoryBytes: perDevice(128 * 10 ** 9, datasheet),
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
        kind: "pcie",
        generation: "5.0 x4",
        bytesPerNsEachWay: perDevice(15.75, "PCI Express 5.0: 32 GT/s x 4 lanes, 128b/130b coding"),
      },
    ],
  },
};
