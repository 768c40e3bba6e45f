/** Apple M1: GPU and CPU on one memory. Planning only: no emitter writes its code. */
import { appleGpu } from "../architectures/other.ts";
import { perDevice } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";

const specifications = "Apple M1 technical specifications (apple.com/newsroom, support.apple.com)";
const cluster = "philipturner/metal-benchmarks, README (GitHub)";

export const appleM1: MachineFile = {
  name: "apple-m1",
  summary: "Apple M1, 16 GB at most (planning only)",
  machine: {
    kind: "gpu",
    vendor: "Apple",
    driverNames: ["Apple M1"],
    architecture: appleGpu,
    multiprocessors: perDevice(8, specifications),
    boostMhz: perDevice(1278, cluster, "measured"),
    memoryKind: "LPDDR4X",
    unifiedMemory: true,
    memoryBytes: perDevice(16 * 2 ** 30, specifications),
    memoryBytesPerNs: perDevice(68.25, specifications),
    l2Bytes: perDevice(
      8 * 2 ** 20,
      "system level cache, philipturner/metal-benchmarks, README (GitHub)",
      "measured",
    ),
    vectorTeraops: {
      f32: perDevice(2.6, specifications),
      f16: perDevice(2.6, specifications),
    },
    matrixTeraops: {
      f16: perDevice(
        2.6,
        "simdgroup matrix instructions run on the vector lanes (metal-benchmarks)",
        "predicted",
      ),
      f32: perDevice(
        2.6,
        "simdgroup matrix instructions run on the vector lanes (metal-benchmarks)",
        "predicted",
      ),
    },
    links: [{ kind: "on-package", bytesPerNsEachWay: perDevice(68.25, specifications) }],
  },
};
