/** Extensions of the x86-64 levels (x86-64 psABI, Micro-Architecture Levels), by the names targets use. */

export const levelSource =
  "x86-64 psABI, section 3.1.1, Micro-Architecture Levels (gitlab.com/x86-psABIs/x86-64-ABI)";

export const v3Extensions: readonly string[] = [
  "sse4.2",
  "avx",
  "avx2",
  "fma",
  "f16c",
  "bmi1",
  "bmi2",
  "lzcnt",
  "movbe",
];

export const v4Extensions: readonly string[] = [
  ...v3Extensions,
  "avx512f",
  "avx512bw",
  "avx512cd",
  "avx512dq",
  "avx512vl",
];
