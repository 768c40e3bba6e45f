/** One GPU of an NVIDIA GB200 superchip (two GPUs and a Grace CPU). */
import { sm100a } from "../architectures/hopper-blackwell.ts";
import { perDevice, perLink } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";
import { pcie } from "./links.ts";

const datasheet =
  "NVIDIA Blackwell datasheet, Individual Blackwell GPU Specifications, column GB200 NVL72; matrix rates halved: its figures are with sparsity";
const device = "device attributes of a B200 (pytorch/ao#4002); same dies";

export const gb200: MachineFile = {
  name: "gb200",
  summary: "One GPU of NVIDIA GB200, 186 GB HBM3e",
  emitter: "ptx",
  machine: {
    kind: "gpu",
    vendor: "NVIDIA",
    driverNames: ["NVIDIA GB200"],
    architecture: sm100a,
    multiprocessors: perDevice(148, device, "measured"),
    boostMhz: perDevice(
      2111,
      "80 TFLOP/s of f32 (datasheet) over 2 x 128 lanes x 148 multiprocessors",
      "predicted",
    ),
    memoryKind: "HBM3e",
    unifiedMemory: false,
    memoryBytes: perDevice(
      189471 * 2 ** 20,
      "nvidia-smi, memory.total of a GB200, driver 595 (NVIDIA/ISV-NCP-Validation-Suite, tests of isvtest.core.nvidia)",
      "measured",
    ),
    memoryBytesPerNs: perDevice(8000, datasheet),
    l2Bytes: perDevice(Math.round(126.5 * 2 ** 20), device, "measured"),
    vectorTeraops: {
      f32: perDevice(80, datasheet),
      f64: perDevice(40, datasheet),
    },
    matrixTeraops: {
      f64: perDevice(40, datasheet),
      tf32: perDevice(1250, datasheet),
      bf16: perDevice(2500, datasheet),
      f16: perDevice(2500, datasheet),
      fp8: perDevice(5000, datasheet),
      fp6: perDevice(5000, datasheet),
      fp4: perDevice(10000, datasheet),
      int8: perDevice(5000, datasheet),
    },
    links: [
      {
        kind: "nvlink",
        generation: "5",
        bytesPerNsEachWay: perDevice(
          900,
          `${datasheet}; NVLink 1.8 TB/s, both ways together, halved`,
        ),
        joins: perLink(72, "NVIDIA GB200 NVL72: 72 GPUs through NVSwitch"),
      },
      {
        kind: "nvlink-c2c",
        generation: "1",
        bytesPerNsEachWay: perDevice(
          450,
          "NVIDIA GB200 NVL72, NVLink-C2C to Grace: 900 GB/s, both ways together, halved",
        ),
      },
      pcie("5.0", 16),
    ],
  },
};
