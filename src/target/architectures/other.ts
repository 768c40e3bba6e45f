/** GPUs that Wavetile plans for and writes no code for: AMD CDNA 3 and Apple's. */
import { perBlock, perSm, perThread } from "../figure.ts";
import type { GpuArchitecture, MatrixInstruction } from "../machine.ts";

const cdnaIsa = "AMD Instinct MI300 CDNA3 Instruction Set Architecture Reference Guide";
const hip = "HIP documentation, Hardware features (rocm.docs.amd.com)";

function mfma(
  operands: MatrixInstruction["operands"],
  accumulator: "f32" | "f64" | "int32",
  shape: readonly [number, number],
): MatrixInstruction {
  const [edge, k] = shape;
  return {
    name: "v_mfma",
    operands,
    accumulators: [accumulator],
    m: [edge],
    n: [edge],
    k: [k],
    source: `${cdnaIsa}, Matrix Arithmetic Instructions`,
  };
}

export const cdna3: GpuArchitecture = {
  name: "gfx942",
  warpThreads: 64,
  threadsPerBlock: perBlock(1024, hip),
  threadsPerSm: perSm(2048, `${hip}: 32 waves of 64`),
  blocksPerSm: perSm(16, `${cdnaIsa}: work-groups of more than one wave per compute unit`),
  registersPerThread: perThread(512, `${cdnaIsa}: 256 VGPRs and 256 AccVGPRs`),
  registersPerBlock: perBlock(131072, `${cdnaIsa}: 4 SIMDs x 512 registers x 64 lanes`),
  registersPerSm: perSm(131072, `${cdnaIsa}: 4 SIMDs x 512 registers x 64 lanes`),
  sharedBytesPerBlock: perBlock(64 * 1024, `${cdnaIsa}: LDS`),
  sharedBytesPerBlockDefault: perBlock(64 * 1024, `${cdnaIsa}: LDS`),
  sharedBytesReservedPerBlock: perBlock(0, `${cdnaIsa}: LDS`),
  sharedBytesPerSm: perSm(64 * 1024, `${cdnaIsa}: LDS`),
  f32LanesPerSm: perSm(128, "AMD CDNA 3 white paper: 256 FP32 FLOP per clock and compute unit"),
  warpInstructionsPerCycle: perSm(4, "AMD CDNA 3 white paper: 4 SIMDs"),
  sharedBytesPerCycle: perSm(128, "AMD CDNA 3 white paper: LDS, 128 bytes per clock"),
  l2BytesPerCycle: perSm(
    53.9,
    "AMD CDNA 3 white paper: 16 channels of 128 bytes per clock for the 38 compute units of a die",
  ),
  features: ["mfma", "bf16", "tf32", "fp8"],
  matrixInstructions: [
    mfma("f16", "f32", [32, 8]),
    mfma("f16", "f32", [16, 16]),
    mfma("bf16", "f32", [32, 8]),
    mfma("bf16", "f32", [16, 16]),
    mfma("tf32", "f32", [32, 4]),
    mfma("tf32", "f32", [16, 8]),
    mfma("fp8", "f32", [32, 16]),
    mfma("fp8", "f32", [16, 32]),
    mfma("int8", "int32", [32, 16]),
    mfma("int8", "int32", [16, 32]),
    mfma("f32", "f32", [32, 2]),
    mfma("f32", "f32", [16, 4]),
    mfma("f64", "f64", [16, 4]),
  ],
};

const metal = "Metal Feature Set Tables (developer.apple.com/metal/Metal-Feature-Set-Tables.pdf)";
const benchmarks = "philipturner/metal-benchmarks, README (GitHub)";

export const appleGpu: GpuArchitecture = {
  name: "apple-gpu",
  warpThreads: 32,
  threadsPerBlock: perBlock(1024, metal),
  threadsPerSm: perSm(3072, benchmarks, "measured"),
  blocksPerSm: perSm(96, `${benchmarks}: 96 SIMD-groups of 32`, "measured"),
  registersPerThread: perThread(128, `${benchmarks}: 256 16-bit registers`, "measured"),
  registersPerBlock: perBlock(53248, `${benchmarks}: 208 KiB of registers per core`, "measured"),
  registersPerSm: perSm(53248, `${benchmarks}: 208 KiB of registers per core`, "measured"),
  sharedBytesPerBlock: perBlock(32 * 1024, metal),
  sharedBytesPerBlockDefault: perBlock(32 * 1024, metal),
  sharedBytesReservedPerBlock: perBlock(0, metal),
  sharedBytesPerSm: perSm(60 * 1024, `${benchmarks}: about 60 KiB per core`, "measured"),
  f32LanesPerSm: perSm(128, `${benchmarks}: 128 ALUs per core`, "measured"),
  warpInstructionsPerCycle: perSm(4, benchmarks, "measured"),
  sharedBytesPerCycle: perSm(64, benchmarks, "measured"),
  l2BytesPerCycle: perSm(32, "half of threadgroup memory's, assumed: not published", "predicted"),
  features: ["simdgroup-matrix"],
  matrixInstructions: [
    {
      name: "simdgroup_multiply_accumulate",
      operands: "f16",
      accumulators: ["f16", "f32"],
      m: [8],
      n: [8],
      k: [8],
      source: "Metal Shading Language Specification, SIMD-group Matrix Functions",
    },
    {
      name: "simdgroup_multiply_accumulate",
      operands: "f32",
      accumulators: ["f32"],
      m: [8],
      n: [8],
      k: [8],
      source: "Metal Shading Language Specification, SIMD-group Matrix Functions",
    },
  ],
};
