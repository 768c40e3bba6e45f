/** Apple M1: GPU and CPU on one memory. Planning only. */
import { perDevice } from "../figure.ts";
import { appleMachine, measuredMhz } from "./apple-silicon.ts";

const specifications =
  "Apple M1, apple.com/newsroom/2020/11/apple-unleashes-m1 (8-core GPU, 2.6 teraflops, 16 GB); support.apple.com MacBook Air (M1, 2020); LPDDR4X-4266 on 128 bits";

export const appleM1 = appleMachine({
  name: "apple-m1",
  chip: "Apple M1",
  gib: 16,
  memoryKind: "LPDDR4X",
  gbPerSecond: 68.25,
  gpuCores: 8,
  specifications,
  megahertz: measuredMhz(1278),
  cacheMib: 8,
  teraflops: perDevice(2.6, specifications),
});
