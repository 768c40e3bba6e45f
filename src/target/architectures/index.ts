/** All GPU architectures by name, for data files that refer to one. */
import type { GpuArchitecture } from "../machine.ts";
import { sm90a, sm100a, sm110a, sm120a, sm121a } from "./hopper-blackwell.ts";
import { appleGpu, cdna3 } from "./other.ts";
import { sm75, sm80, sm86, sm89 } from "./turing-ampere-ada.ts";

export const architectures: ReadonlyMap<string, GpuArchitecture> = new Map(
  [sm75, sm80, sm86, sm89, sm90a, sm100a, sm110a, sm120a, sm121a, cdna3, appleGpu].map((a) => [
    a.name,
    a,
  ]),
);
