/** NVIDIA B200 of an HGX board: two dies, Blackwell. */
import { sm100a } from "../architectures/hopper-blackwell.ts";
import { perDevice } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";

const datasheet = "NVIDIA HGX B200 datasheet, per GPU, dense (nvidia.com/en-us/data-center/hgx)";
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
    boostMhz: perDevice(1965, "nvidia-smi -q -d CLOCK on a B200: maximum SM clock", "measured"),
    memoryKind: "HBM3e",
    unifiedMemory: false,
    memoryBytes: perDevice(Math.round(178.35 * 2 ** 30), device, "measured"),
    memoryBytesPerNs: perDevice(
      7672,
      "7,680-bit bus x 3,996 MHz x 2 (pytorch/ao#4002)",
      "predicted",
    ),
    l2Bytes: perDevice(Math.round(126.5 * 2 ** 20), device, "measured"),
    vectorTeraops: {
      f32: perDevice(
        74.4,
        "2 x 128 lanes x 148 multiprocessors x 1.965 GHz; datasheet: 75",
        "predicted",
      ),
      f64: perDevice(37, datasheet),
    },
    matrixTeraops: {
      f64: perDevice(37, datasheet),
      tf32: perDevice(1125, datasheet),
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
        bytesPerNsEachWay: perDevice(900, "NVIDIA HGX B200 datasheet: 1.8 TB/s both ways together"),
      },
      {
        kind: "pcie",
        generation: "5.0 x16",
        bytesPerNsEachWay: perDevice(63.0, "PCI Express 5.0: 32 GT/s x 16 lanes, 128b/130b coding"),
      },
    ],
  },
};
