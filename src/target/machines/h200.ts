/** NVIDIA H200 SXM: GH100 with HBM3e. */
import { perDevice } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";
import { gh100 } from "./gh100.ts";

const device =
  "driver attributes and nvidia-smi of an H200, driver 580 (detect/fixtures/h200-host.json)";

export const h200: MachineFile = {
  name: "h200",
  summary: "NVIDIA H200 SXM, 141 GB HBM3e",
  emitter: "ptx",
  machine: {
    ...gh100,
    driverNames: ["NVIDIA H200"],
    multiprocessors: perDevice(132, device, "measured"),
    memoryKind: "HBM3e",
    memoryBytes: perDevice(143771 * 2 ** 20, device, "measured"),
    memoryBytesPerNs: perDevice(
      4800,
      "NVIDIA H200 Tensor Core GPU datasheet 3002446, Specifications, column H200 SXM: 4.8 TB/s (the driver's clock and bus give 4,814)",
    ),
    l2Bytes: perDevice(60 * 2 ** 20, device, "measured"),
  },
};
