/** Apple M2: GPU and CPU on one memory. Planning only: no emitter writes its code. */
import { appleGpu } from "../architectures/other.ts";
import { perDevice } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";

const specifications = "Apple M2 technical specifications (apple.com/newsroom, support.apple.com)";
const cluster = "philipturner/metal-benchmarks, README (GitHub)";

export const appleM2: MachineFile = {
  name: "apple-m2",
  summary: "Apple M2, 24 GB at most (planning only)",
  machine: {
    kind: "gpu",
    vendor: "Apple",
    driverNames: ["Apple M2"],
    architecture: appleGpu,
    multiprocessors: perDevice(10, specifications),
    boostMhz: perDevice(1398, cluster, "measured"),
    memoryKind: "LPDDR5",
    unifiedMemory: true,
    memoryBytes: perDevice(24 * 2 ** 30, specifications),
    memoryBytesPerNs: perDevice(100, specifications),
    l2Bytes: perDevice(
      8 * 2 ** 20,
      "system level cache, philipturner/metal-benchmarks, README (GitHub)",
      "measured",
    ),
    vectorTeraops: {
      f32: perDevice(3.6, specifications),
      f16: perDevice(3.6, specifications),
    },
    matrixTeraops: {
      f16: perDevice(
        3.6,
        "simdgroup matrix instructions run on the vector lanes (metal-benchmarks)",
        "predicted",
      ),
      f32: perDevice(
        3.6,
        "simdgroup matrix instructions run on the vector lanes (metal-benchmarks)",
        "predicted",
      ),
    },
    links: [{ kind: "on-package", bytesPerNsEachWay: perDevice(100, specifications) }],
  },
};
