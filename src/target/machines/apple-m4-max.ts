/** Apple M4 Max: GPU and CPU on one memory. Planning only. */
import { perDevice } from "../figure.ts";
import { appleMachine, lanesTimesClock } from "./apple-silicon.ts";

const specifications =
  "Apple M4 Max, apple.com/newsroom/2024/10/apple-introduces-m4-pro-and-m4-max (40-core GPU, 128 GB, 546 GB/s)";
const gpuCores = 40;
const megahertz = perDevice(
  1578,
  "highest state of the GPU that powermetrics lists; Apple states none",
  "measured",
);

export const appleM4Max = appleMachine({
  name: "apple-m4-max",
  chip: "Apple M4 Max",
  gib: 128,
  memoryKind: "LPDDR5X",
  gbPerSecond: 546,
  gpuCores,
  specifications,
  megahertz,
  cacheMib: 48,
  teraflops: lanesTimesClock(gpuCores, megahertz),
});
