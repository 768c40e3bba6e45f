/** All built-in targets by name. Adding a machine is a file under machines/ and a row here. */

import { type MachineFile, targetOfMachine } from "./machine-target.ts";
import { a10040gb } from "./machines/a100-40gb.ts";
import { a10080gb } from "./machines/a100-80gb.ts";
import { appleM1 } from "./machines/apple-m1.ts";
import { appleM1Max } from "./machines/apple-m1-max.ts";
import { appleM1Ultra } from "./machines/apple-m1-ultra.ts";
import { appleM2 } from "./machines/apple-m2.ts";
import { appleM4Max } from "./machines/apple-m4-max.ts";
import { b200 } from "./machines/b200.ts";
import { dgxSpark } from "./machines/dgx-spark.ts";
import { epyc9654 } from "./machines/epyc-9654.ts";
import { gb200 } from "./machines/gb200.ts";
import { h100 } from "./machines/h100.ts";
import { h200 } from "./machines/h200.ts";
import { jetsonThor } from "./machines/jetson-thor.ts";
import { l4 } from "./machines/l4.ts";
import { l40s } from "./machines/l40s.ts";
import { mi300x } from "./machines/mi300x.ts";
import { neoverseN1 } from "./machines/neoverse-n1.ts";
import { neoverseV1 } from "./machines/neoverse-v1.ts";
import { neoverseV2 } from "./machines/neoverse-v2.ts";
import { rtx3060 } from "./machines/rtx-3060.ts";
import { rtx3090 } from "./machines/rtx-3090.ts";
import { rtx4090 } from "./machines/rtx-4090.ts";
import { rtx5090 } from "./machines/rtx-5090.ts";
import { rtxPro6000 } from "./machines/rtx-pro-6000.ts";
import { t4 } from "./machines/t4.ts";
import { wasmTargets } from "./machines/wasm.ts";
import { x64Targets } from "./machines/x64.ts";
import { x8664v3 } from "./machines/x86-64-v3.ts";
import { x8664v4 } from "./machines/x86-64-v4.ts";
import { xeon8480 } from "./machines/xeon-8480.ts";
import type { Target } from "./target.ts";

/** Machines known by their data sheets, GPUs by age, then CPUs. */
export const machineFiles: readonly MachineFile[] = [
  t4,
  rtx3060,
  rtx3090,
  a10040gb,
  a10080gb,
  l4,
  l40s,
  rtx4090,
  h100,
  h200,
  b200,
  gb200,
  jetsonThor,
  rtx5090,
  rtxPro6000,
  dgxSpark,
  mi300x,
  appleM1,
  appleM1Max,
  appleM1Ultra,
  appleM2,
  appleM4Max,
  x8664v3,
  x8664v4,
  xeon8480,
  epyc9654,
  neoverseN1,
  neoverseV1,
  neoverseV2,
];

export const targets: ReadonlyMap<string, Target> = new Map(
  [...wasmTargets, ...x64Targets, ...machineFiles.map(targetOfMachine)].map((target) => [
    target.name,
    target,
  ]),
);

export type { Target } from "./target.ts";
