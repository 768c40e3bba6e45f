/** Apple M1 Ultra: GPU and CPU on one memory. Planning only. */
import { perDevice } from "../figure.ts";
import { appleMachine, measuredMhz } from "./apple-silicon.ts";

const specifications =
  "Apple M1 Ultra, apple.com/newsroom/2022/03/apple-unveils-m1-ultra (64-core GPU, 21 teraflops, 128 GB, 800 GB/s)";

export const appleM1Ultra = appleMachine({
  name: "apple-m1-ultra",
  chip: "Apple M1 Ultra",
  gib: 128,
  memoryKind: "LPDDR5",
  gbPerSecond: 800,
  gpuCores: 64,
  specifications,
  megahertz: measuredMhz(1296),
  cacheMib: 96,
  teraflops: perDevice(21, specifications),
});
