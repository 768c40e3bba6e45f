/** NVIDIA T4: TU104, Turing. */
import { sm75 } from "../architectures/turing-ampere-ada.ts";
import { perDevice } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";
import { pcie } from "./links.ts";

const datasheet =
  "NVIDIA T4 Tensor Core GPU datasheet 951643, Specifications (nvidia.com/content/dam/en-zz/Solutions/Data-Center/tesla-t4/t4-tensor-core-datasheet-951643.pdf)";
const query = "deviceQuery on a Tesla T4 (chiemon.github.io, 2024-12-25)";

export const t4: MachineFile = {
  // For planning: kernels are written for compute capability 8.0 on.
  name: "t4",
  summary: "NVIDIA T4, 16 GB",
  machine: {
    kind: "gpu",
    vendor: "NVIDIA",
    driverNames: ["Tesla T4", "NVIDIA T4"],
    architecture: sm75,
    multiprocessors: perDevice(40, query, "measured"),
    boostMhz: perDevice(1590, query, "measured"),
    memoryKind: "GDDR6",
    unifiedMemory: false,
    memoryBytes: perDevice(
      15360 * 2 ** 20,
      "nvidia-smi, memory.total (modal-labs/modal-client#2797)",
      "measured",
    ),
    memoryBytesPerNs: perDevice(
      320,
      `256-bit bus x 5,001 MHz x 2: ${query}; the datasheet says 320+ GB/s`,
      "predicted",
    ),
    l2Bytes: perDevice(4 * 2 ** 20, query, "measured"),
    vectorTeraops: {
      f32: perDevice(8.1, datasheet),
      f16: perDevice(
        16.2,
        "NVIDIA Turing GPU Architecture white paper WP-09183, Turing TU102: FP16 at twice the FP32 rate",
      ),
    },
    matrixTeraops: {
      f16: perDevice(65, datasheet),
      int8: perDevice(130, datasheet),
      int4: perDevice(260, datasheet),
    },
    links: [pcie("3.0", 16)],
  },
};
