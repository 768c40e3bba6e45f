/**
 * Hopper (9.0) and Blackwell (10.0, 11.0, 12.0, 12.1). wgmma exists on 9.0 alone; tcgen05 with tensor
 * memory on 10.0 and 11.0; 12.x has neither, but warp-wide instructions on FP4 and FP6 operands.
 */
import { perSm } from "../figure.ts";
import { type GpuFeature, steps } from "../machine.ts";
import { instruction, laterInstructions, nvidiaArchitecture } from "./nvidia.ts";
import { l2AsAda } from "./turing-ampere-ada.ts";

const l2AsA100 = perSm(
  47,
  "as the A100 white paper's 5,120 bytes a cycle for 108 multiprocessors; plain loads reach 37 on an H200 (RRZE-HPC/gpu-benches, gpu-l2-cache/h200.txt: 9,700 GB/s)",
  "predicted",
);

const sharedFeatures: readonly GpuFeature[] = [
  "mma",
  "ldmatrix",
  "stmatrix",
  "cp.async",
  "mbarrier",
  "tma",
  "cluster",
  "griddepcontrol",
  "setmaxnreg",
  "bf16",
  "tf32",
  "int8",
  "fp8",
  "redux",
];

/** Legal N of integer wgmma: multiples of 8 to 32, of 16 above. */
const integerN = [8, 16, 24, 32, ...steps(48, 256, 16)];
const anyN = steps(8, 256, 8);

export const sm90a = nvidiaArchitecture({
  capability: "9.0",
  l2BytesPerCycle: l2AsA100,
  ptxTarget: "sm_90a",
  ptxVersion: "8.0",
  sharedKibPerSm: 228,
  reservedKib: 1,
  threadsPerSm: 2048,
  blocksPerSm: 32,
  f32LanesPerSm: 128,
  lanesSource: "NVIDIA H100 Tensor Core GPU Architecture white paper, 128 FP32 cores per SM",
  clusters: true,
  features: [...sharedFeatures, "wgmma"],
  matrixInstructions: [
    instruction("wgmma.mma_async", "f16", ["f16", "f32"], [[64], anyN, [16]]),
    instruction("wgmma.mma_async", "bf16", ["f32"], [[64], anyN, [16]]),
    instruction("wgmma.mma_async", "tf32", ["f32"], [[64], anyN, [8]]),
    instruction("wgmma.mma_async", "fp8", ["f16", "f32"], [[64], anyN, [32]]),
    instruction("wgmma.mma_async", "int8", ["int32"], [[64], integerN, [32]]),
    ...laterInstructions,
  ],
});

/** One CTA issues (cta_group::1). */
const tensorMemoryInstructions = [
  instruction("tcgen05.mma", "f16", ["f16", "f32"], [[64], anyN, [16]]),
  instruction("tcgen05.mma", "f16", ["f16", "f32"], [[128], steps(16, 256, 16), [16]]),
  instruction("tcgen05.mma", "bf16", ["f32"], [[64], anyN, [16]]),
  instruction("tcgen05.mma", "bf16", ["f32"], [[128], steps(16, 256, 16), [16]]),
  instruction("tcgen05.mma", "tf32", ["f32"], [[64], anyN, [8]]),
  instruction("tcgen05.mma", "tf32", ["f32"], [[128], steps(16, 256, 16), [8]]),
  instruction("tcgen05.mma", "fp8", ["f16", "f32"], [[64], anyN, [32]]),
  instruction("tcgen05.mma", "fp8", ["f16", "f32"], [[128], steps(16, 256, 16), [32]]),
  instruction("tcgen05.mma", "fp6", ["f16", "f32"], [[64], anyN, [32]]),
  instruction("tcgen05.mma", "fp6", ["f16", "f32"], [[128], steps(16, 256, 16), [32]]),
  instruction("tcgen05.mma", "int8", ["int32"], [[64], integerN, [32]]),
  instruction("tcgen05.mma", "int8", ["int32"], [[128], steps(16, 256, 16), [32]]),
  instruction("tcgen05.mma block-scaled", "fp4", ["f32"], [[128], anyN, [64]]),
  ...laterInstructions,
];

const tensorMemoryFeatures: readonly GpuFeature[] = [
  ...sharedFeatures,
  "tcgen05",
  "fp6",
  "fp4",
  "block-scale",
];

export const sm100a = nvidiaArchitecture({
  capability: "10.0",
  l2BytesPerCycle: l2AsA100,
  ptxTarget: "sm_100a",
  ptxVersion: "8.6",
  sharedKibPerSm: 228,
  reservedKib: 1,
  threadsPerSm: 2048,
  blocksPerSm: 32,
  f32LanesPerSm: 128,
  lanesSource:
    "Blackwell Tuning Guide (docs.nvidia.com/cuda/blackwell-tuning-guide), 128 FP32 cores",
  clusters: true,
  tensorMemoryKib: 256,
  features: tensorMemoryFeatures,
  matrixInstructions: tensorMemoryInstructions,
});

export const sm110a = nvidiaArchitecture({
  capability: "11.0",
  l2BytesPerCycle: l2AsA100,
  ptxTarget: "sm_110a",
  ptxVersion: "9.0",
  sharedKibPerSm: 228,
  reservedKib: 1,
  threadsPerSm: 1536,
  blocksPerSm: 24,
  f32LanesPerSm: 128,
  lanesSource:
    "deviceQuery on Jetson AGX Thor: 20 multiprocessors of 128 cores (NVIDIA/cutlass#2784)",
  clusters: true,
  tensorMemoryKib: 256,
  features: tensorMemoryFeatures,
  matrixInstructions: tensorMemoryInstructions,
});

const warpBlackwellFeatures: readonly GpuFeature[] = [
  ...sharedFeatures,
  "fp8-mma",
  "fp6",
  "fp4",
  "block-scale",
];

const warpBlackwellInstructions = [
  ...laterInstructions,
  instruction("mma.sync", "fp6", ["f32"], [[16], [8], [32]]),
  instruction("mma.sync block-scaled", "fp8", ["f32"], [[16], [8], [32]]),
  instruction("mma.sync block-scaled", "fp4", ["f32"], [[16], [8], [64]]),
];

const warpBlackwell = {
  l2BytesPerCycle: l2AsAda,
  sharedKibPerSm: 100,
  reservedKib: 1,
  threadsPerSm: 1536,
  blocksPerSm: 24,
  f32LanesPerSm: 128,
  clusters: true,
  features: warpBlackwellFeatures,
  matrixInstructions: warpBlackwellInstructions,
} as const;

export const sm120a = nvidiaArchitecture({
  ...warpBlackwell,
  capability: "12.0",
  ptxTarget: "sm_120a",
  ptxVersion: "8.7",
  lanesSource: "NVIDIA RTX Blackwell GPU Architecture white paper, 128 CUDA cores per SM",
});

export const sm121a = nvidiaArchitecture({
  ...warpBlackwell,
  capability: "12.1",
  ptxTarget: "sm_121a",
  ptxVersion: "8.8",
  lanesSource: "deviceQuery on DGX Spark: 48 multiprocessors of 128 cores",
});
