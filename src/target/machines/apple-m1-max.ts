/** Apple M1 Max: GPU and CPU on one memory. Planning only. */
import { perDevice } from "../figure.ts";
import { appleMachine, measuredMhz } from "./apple-silicon.ts";

const specifications =
  "Apple M1 Max, apple.com/newsroom/2021/10/introducing-m1-pro-and-m1-max (32-core GPU, 10.4 teraflops, 64 GB, 400 GB/s)";

export const appleM1Max = appleMachine({
  name: "apple-m1-max",
  chip: "Apple M1 Max",
  gib: 64,
  memoryKind: "LPDDR5",
  gbPerSecond: 400,
  gpuCores: 32,
  specifications,
  megahertz: measuredMhz(1296),
  cacheMib: 48,
  teraflops: perDevice(10.4, specifications),
});
