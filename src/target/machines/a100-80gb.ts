/** NVIDIA A100 SXM4 with 80 GB: GA100, Ampere. */
import { perDevice } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";
import { a100Datasheet, ga100 } from "./ga100.ts";

export const a10080gb: MachineFile = {
  name: "a100-80gb",
  summary: "NVIDIA A100 SXM4, 80 GB HBM2e",
  emitter: "ptx",
  machine: {
    ...ga100,
    driverNames: ["NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB"],
    memoryKind: "HBM2e",
    memoryBytes: perDevice(
      81920 * 2 ** 20,
      "nvidia-smi, memory.total (modal-labs/modal-client#2797)",
      "measured",
    ),
    memoryBytesPerNs: perDevice(2039, a100Datasheet),
  },
};
