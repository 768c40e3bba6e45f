/** NVIDIA B200 of an HGX board: two dies, Blackwell. */
import { sm100a } from "../architectures/hopper-blackwell.ts";
import { perDevice, perLink } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";
import { pcie } from "./links.ts";

const datasheet =
  "NVIDIA Blackwell datasheet, Individual Blackwell GPU Specifications, column HGX B200; matrix rates halved: its figures are with sparsity";
const device = "device attributes of a B200 (pytorch/ao#4002)";

export const b200: MachineFile = {
  name: "b200",
  summary: "NVIDIA B200 (HGX), 180 GB HBM3e",
  emitter: "ptx",
  machine: {
    kind: "gpu",
    vendor: "NVIDIA",
    driverNames: ["NVIDIA B200"],
    architecture: sm100a,
    multiprocessors: perDevice(148, device, "measured"),
    boostMhz: perDevice(
      1980,
      "75 TFLOP/s of f32 (datasheet) over 2 x 128 lanes x 148 multiprocessors",
      "predicted",
    ),
    memoryKind: "HBM3e",
    unifiedMemory: false,
    memoryBytes: perDevice(Math.round(178.35 * 2 ** 30), device, "measured"),
    memoryBytesPerNs: perDevice(
      7672,
      "7,680-bit bus x 3,996 MHz x 2 (pytorch/ao#4002); the datasheet says 7.7 TB/s",
      "predicted",
    ),
    l2Bytes: perDevice(Math.round(126.5 * 2 ** 20), device, "measured"),
    vectorTeraops: {
      f32: perDevice(75, datasheet),
      f64: perDevice(37, datasheet),
    },
    matrixTeraops: {
      f64: perDevice(37, datasheet),
      tf32: perDevice(1100, datasheet),
      bf16: perDevice(2250, datasheet),
      f16: perDevice(2250, datasheet),
      fp8: perDevice(4500, datasheet),
      fp6: perDevice(4500, datasheet),
      fp4: perDevice(9000, datasheet),
      int8: perDevice(4500, datasheet),
    },
    links: [
      {
        kind: "nvlink",
        generation: "5",
        bytesPerNsEachWay: perDevice(
          900,
          `${datasheet}; NVLink 1.8 TB/s, both ways together, halved`,
        ),
        joins: perLink(8, "NVIDIA HGX B200: 8 GPUs through NVSwitch"),
      },
      pcie("5.0", 16),
    ],
  },
};
