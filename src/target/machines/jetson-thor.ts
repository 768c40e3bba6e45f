/** NVIDIA Jetson T5000 (AGX Thor): Blackwell GPU and 14 Arm cores on one memory. */
import { sm110a } from "../architectures/hopper-blackwell.ts";
import { perDevice } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";
import { pcie } from "./links.ts";

const datasheet =
  "NVIDIA Jetson Thor series modules datasheet, Technical Specifications, column T5000 (developer.nvidia.com/embedded/jetson-thor)";
const device = "deviceQuery on Jetson AGX Thor (NVIDIA/cutlass#2784)";
/** 1,035 TFLOP/s over 20 multiprocessors at 1.575 GHz are 8,192 operations a cycle of BF16, as on a B200. */
const rate =
  "2,070 TFLOP/s of sparse FP4 (datasheet), halved for dense, halved again for each wider type";

export const jetsonThor: MachineFile = {
  name: "jetson-thor",
  summary: "NVIDIA Jetson AGX Thor (T5000), 128 GB shared with the CPU",
  emitter: "ptx",
  machine: {
    kind: "gpu",
    vendor: "NVIDIA",
    driverNames: ["NVIDIA Thor"],
    architecture: sm110a,
    multiprocessors: perDevice(20, device, "measured"),
    boostMhz: perDevice(1575, datasheet),
    memoryKind: "LPDDR5X",
    unifiedMemory: true,
    memoryBytes: perDevice(131_881_680_896, device, "measured"),
    memoryBytesPerNs: perDevice(273, datasheet),
    l2Bytes: perDevice(32 * 2 ** 20, device, "measured"),
    vectorTeraops: {
      f32: perDevice(8.06, "2 x 128 lanes x 20 multiprocessors x 1.575 GHz", "predicted"),
    },
    matrixTeraops: {
      bf16: perDevice(258.8, rate, "predicted"),
      f16: perDevice(258.8, rate, "predicted"),
      fp8: perDevice(517.5, rate, "predicted"),
      fp6: perDevice(517.5, rate, "predicted"),
      fp4: perDevice(1035, rate, "predicted"),
      int8: perDevice(517.5, "as FP8, the ratio of a B200", "predicted"),
    },
    links: [pcie("5.0", 8)],
  },
};
