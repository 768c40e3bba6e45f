/** Apple M4 Max: GPU and CPU on one memory. Planning only: no emitter writes its code. */
import { appleGpu } from "../architectures/other.ts";
import { perDevice } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";

const specifications =
  "Apple M4 Max technical specifications (apple.com/newsroom, support.apple.com)";

export const appleM4Max: MachineFile = {
  name: "apple-m4-max",
  summary: "Apple M4 Max, 128 GB at most (planning only)",
  machine: {
    kind: "gpu",
    vendor: "Apple",
    driverNames: ["Apple M4 Max"],
    architecture: appleGpu,
    multiprocessors: perDevice(40, specifications),
    boostMhz: perDevice(1578, "TechPowerUp GPU database, M4 Max", "measured"),
    memoryKind: "LPDDR5",
    unifiedMemory: true,
    memoryBytes: perDevice(128 * 2 ** 30, specifications),
    memoryBytesPerNs: perDevice(546, specifications),
    l2Bytes: perDevice(
      48 * 2 ** 20,
      "system level cache, philipturner/metal-benchmarks, README (GitHub)",
      "measured",
    ),
    vectorTeraops: {
      f32: perDevice(16.1, "2 x 128 lanes x 40 cores x 1.578 GHz", "predicted"),
      f16: perDevice(16.1, "2 x 128 lanes x 40 cores x 1.578 GHz", "predicted"),
    },
    matrixTeraops: {
      f16: perDevice(
        16.1,
        "simdgroup matrix instructions run on the vector lanes (metal-benchmarks)",
        "predicted",
      ),
      f32: perDevice(
        16.1,
        "simdgroup matrix instructions run on the vector lanes (metal-benchmarks)",
        "predicted",
      ),
    },
    links: [{ kind: "on-package", bytesPerNsEachWay: perDevice(546, specifications) }],
  },
};
