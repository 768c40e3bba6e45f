/** NVIDIA A100 SXM4 with 40 GB: GA100, Ampere. */
import { perDevice } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";
import { a100Datasheet, ga100 } from "./ga100.ts";

export const a10040gb: MachineFile = {
  name: "a100-40gb",
  summary: "NVIDIA A100 SXM4, 40 GB HBM2",
  emitter: "ptx",
  machine: {
    ...ga100,
    driverNames: ["NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB"],
    memoryKind: "HBM2",
    memoryBytes: perDevice(
      40960 * 2 ** 20,
      "nvidia-smi, memory.total (modal-labs/modal-client#2797)",
      "measured",
    ),
    memoryBytesPerNs: perDevice(1555, a100Datasheet),
  },
};
