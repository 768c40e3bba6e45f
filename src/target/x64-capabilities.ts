/**
 * What programs of machine code may use on an x86-64 processor. In: its extensions, by the names of data
 * sheets. Out: capabilities, none where the emitter needs more (AVX2, FMA, F16C, BMI2). An extension that
 * no program uses (AMX, AVX512-FP16) adds nothing, and no machine is asked for it.
 */
import { byteProducts, costlyHalves, flushesSubnormals, halfFactors, halfLanes } from "./target.ts";

export const avx2Extensions = ["avx2", "fma", "f16c", "bmi2"] as const;
export const avx512Extensions = ["avx512f", "avx512bw", "avx512dq", "avx512vl"] as const;
export const [vnniExtension, brainExtension] = ["avx512-vnni", "avx512-bf16"] as const;

/** Capabilities of programs with vectors of 512 bits, and of those without them. */
export const [wideVectors, narrowVectors] = ["avx512", "avx2"] as const;

export const dotsOfBytes = (lanes: number): string => `vpdpbusd.i32x${lanes}`;
export const dotsOfBrains = (lanes: number): string => `vdpbf16ps.f32x${lanes}`;

export function x64Capabilities(extensions: readonly string[]): readonly string[] {
  const has = (name: string): boolean => extensions.includes(name);
  if (!avx2Extensions.every(has)) return [];
  const isWide = avx512Extensions.every(has);
  const lanes = isWide ? [4, 8, 16] : [4, 8];
  const sumsBytes = isWide && has(vnniExtension);
  return [
    ...[isWide ? wideVectors : narrowVectors, "fma", "threads", "fma.f32", "fma.f64"],
    ...[halfLanes, costlyHalves, halfFactors, flushesSubnormals],
    ...[byteProducts, `vpdpwssd.i32x${lanes.at(-1)!}`],
    ...lanes.flatMap((n) => [`fma.f32x${n}`, `fma.f64x${Math.max(2, n / 2)}`]),
    ...(sumsBytes ? lanes.map(dotsOfBytes) : []),
    ...(sumsBytes && has(brainExtension) ? lanes.map(dotsOfBrains) : []),
  ];
}
