/** NVIDIA H100 SXM5: GH100, Hopper. */
import { perDevice } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";
import { gh100, h100WhitePaper } from "./gh100.ts";

export const h100: MachineFile = {
  name: "h100",
  summary: "NVIDIA H100 SXM5, 80 GB HBM3",
  emitter: "ptx",
  machine: {
    ...gh100,
    driverNames: ["NVIDIA H100 80GB HBM3"],
    memoryKind: "HBM3",
    memoryBytes: perDevice(
      81559 * 2 ** 20,
      "nvidia-smi, memory.total (modal-labs/modal-client#2797)",
      "measured",
    ),
    memoryBytesPerNs: perDevice(3352, h100WhitePaper),
    l2Bytes: perDevice(50 * 2 ** 20, h100WhitePaper),
  },
};
