/** Apple M1 Ultra: GPU and CPU on one memory. Planning only: no emitter writes its code. */
import { appleGpu } from "../architectures/other.ts";
import { perDevice } from "../figure.ts";
import type { MachineFile } from "../machine-target.ts";

const specifications =
  "Apple M1 Ultra technical specifications (apple.com/newsroom, support.apple.com)";
const cluster = "philipturner/metal-benchmarks, README (GitHub)";

export const appleM1Ultra: MachineFile = {
  name: "apple-m1-ultra",
  summary: "Apple M1 Ultra, 128 GB at most (planning only)",
  machine: {
    kind: "gpu",
    vendor: "Apple",
    driverNames: ["Apple M1 Ultra"],
    architecture: appleGpu,
    multiprocessors: perDevice(64, specifications),
    boostMhz: perDevice(1296, cluster, "measured"),
    memoryKind: "LPDDR5",
    unifiedMemory: true,
    memoryBytes: perDevice(128 * 2 ** 30, specifications),
    memoryBytesPerNs: perDevice(800, specifications),
    l2Bytes: perDevice(
      96 * 2 ** 20,
      "system level cache, philipturner/metal-benchmarks, README (GitHub)",
      "measured",
    ),
    vectorTeraops: {
      f32: perDevice(21, specifications),
      f16: perDevice(21, specifications),
    },
    matrixTeraops: {
      f16: perDevice(
        21,
        "simdgroup matrix instructions run on the vector lanes (metal-benchmarks)",
        "predicted",
      ),
      f32: perDevice(
        21,
        "simdgroup matrix instructions run on the vector lanes (metal-benchmarks)",
        "predicted",
      ),
    },
    links: [{ kind: "on-package", bytesPerNsEachWay: perDevice(800, specifications) }],
  },
};
