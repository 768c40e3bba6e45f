/** Apple M2: GPU and CPU on one memory. Planning only. */
import { perDevice } from "../figure.ts";
import { appleMachine, measuredMhz } from "./apple-silicon.ts";

const specifications =
  "Apple M2, apple.com/newsroom/2022/06/apple-unveils-m2 (10-core GPU, 3.6 teraflops, 24 GB, 100 GB/s)";

export const appleM2 = appleMachine({
  name: "apple-m2",
  chip: "Apple M2",
  gib: 24,
  memoryKind: "LPDDR5",
  gbPerSecond: 100,
  gpuCores: 10,
  specifications,
  megahertz: measuredMhz(1398),
  cacheMib: 8,
  teraflops: perDevice(3.6, specifications),
});
