/** Turing (7.5), Ampere (8.0 and 8.6) and Ada (8.9): warp-wide matrix instructions only. */
import { perSm } from "../figure.ts";
import type { GpuFeature } from "../machine.ts";
import {
  adaInstructions,
  ampereInstructions,
  nvidiaArchitecture,
  turingInstructions,
} from "./nvidia.ts";

const l2Bench = "RRZE-HPC/gpu-benches, gpu-l2-cache";
/** Ada keeps Ampere's gaming L2, larger; the professional and the gaming Blackwell Ada's. */
const adaL2 = `${l2Bench}/l40.txt: 5,220 GB/s to 142 multiprocessors at 2.49 GHz`;
export const l2AsAda = perSm(14.8, `as Ada: ${adaL2}`, "predicted");

const turingFeatures: readonly GpuFeature[] = ["mma", "ldmatrix"];
const ampereFeatures: readonly GpuFeature[] = [
  ...turingFeatures,
  "cp.async",
  "mbarrier",
  "bf16",
  "tf32",
  "int8",
  "redux",
];

export const sm75 = nvidiaArchitecture({
  capability: "7.5",
  l2BytesPerCycle: perSm(
    20,
    "Jia et al. 2019, Dissecting the NVidia Turing T4 GPU via Microbenchmarking: 1,270 GB/s to 40 multiprocessors at 1.59 GHz",
    "measured",
  ),
  ptxTarget: "sm_75",
  ptxVersion: "6.3",
  sharedKibPerSm: 64,
  reservedKib: 0,
  threadsPerSm: 1024,
  blocksPerSm: 16,
  f32LanesPerSm: 64,
  lanesSource: "NVIDIA Turing GPU Architecture white paper (WP-09183), 64 FP32 cores per SM",
  clusters: false,
  features: turingFeatures,
  matrixInstructions: turingInstructions,
});

export const sm80 = nvidiaArchitecture({
  capability: "8.0",
  l2BytesPerCycle: perSm(
    47,
    `NVIDIA A100 Tensor Core GPU Architecture white paper: 5,120 bytes a cycle for 108 multiprocessors; plain loads reach 35.5 (${l2Bench}/a100_80.txt: 5,400 GB/s)`,
  ),
  ptxTarget: "sm_80",
  ptxVersion: "7.0",
  sharedKibPerSm: 164,
  reservedKib: 1,
  threadsPerSm: 2048,
  blocksPerSm: 32,
  f32LanesPerSm: 64,
  lanesSource: "NVIDIA A100 Tensor Core GPU Architecture white paper, 64 FP32 cores per SM",
  clusters: false,
  features: ampereFeatures,
  matrixInstructions: ampereInstructions,
});

export const sm86 = nvidiaArchitecture({
  capability: "8.6",
  l2BytesPerCycle: l2AsAda,
  ptxTarget: "sm_86",
  ptxVersion: "7.1",
  sharedKibPerSm: 100,
  reservedKib: 1,
  threadsPerSm: 1536,
  blocksPerSm: 16,
  f32LanesPerSm: 128,
  lanesSource: "NVIDIA Ampere GA102 GPU Architecture white paper, 128 FP32 cores per SM",
  clusters: false,
  features: ampereFeatures,
  matrixInstructions: ampereInstructions,
});

export const sm89 = nvidiaArchitecture({
  capability: "8.9",
  l2BytesPerCycle: perSm(14.8, adaL2, "measured"),
  ptxTarget: "sm_89",
  ptxVersion: "7.8",
  sharedKibPerSm: 100,
  reservedKib: 1,
  threadsPerSm: 1536,
  blocksPerSm: 24,
  f32LanesPerSm: 128,
  lanesSource: "NVIDIA Ada GPU Architecture white paper, 128 CUDA cores per SM",
  clusters: false,
  features: [...ampereFeatures, "fp8", "fp8-mma"],
  matrixInstructions: adaInstructions,
});
