/**
 * The kinds of x86-64 core that machine code is emitted for: AVX-512 (F, BW, VL, DQ), with VNNI and
 * without, and AVX2 with FMA, F16C and BMI2. Rates are those of one Zen 4 core, which runs 512 bits in two
 * passes of 256, and of one Zen 3 core for AVX2; a program is chosen by the ratios between them. A core with
 * whole paths of 512 bits does twice as many multiply-adds, loads and stores a cycle, in the same ratio to each
 * other; what it has less of beside them are issue slots and bytes from L2 on, which `wavetile calibrate` finds
 * (a figure may move by a factor of four). The named target stays one kind of core, so that its artifacts are the
 * same bytes wherever they are made. x86-64-v3 and -v4 are the levels for planning.
 */
import type { Target } from "../target.ts";
import {
  avx2Extensions,
  avx512Extensions,
  brainExtension,
  vnniExtension,
  x64Capabilities,
} from "../x64-capabilities.ts";

const measuredAvx2 = "read loops and multiply-adds on one 3.4 GHz Zen 3 core (2026)";
/** Those that `npx tsx bench/correlation/fit-rates.ts` finds to rank schedules best. */
const ranked = "bench/correlation/fit-rates.ts on one Zen 3 core (2026)";
const measured =
  "read loops, stores and multiply-adds of 512 bits on one 3.3 GHz Zen 4 core (2026)";
const rankedWide = "bench/correlation/fit-rates.ts on one Zen 4 core (2026)";
/** Each line at the address that the one before holds, in pages of their own. */
const chased = "chains of lines 2,624 bytes apart on one core of a shared Zen 4 (2026)";
const shared =
  "what one core has of the 32 MB that eight share, rounded up: a chain of lines takes 16 ns each in 4 MB and 100 in 8 MB on a shared Zen 4 (2026)";
const waiting = "twice the time of a byte on a Zen 5 core; from L2 that of a Zen 3 core";

const wide = [...avx2Extensions, ...avx512Extensions];

const avx512: Target = {
  name: "x64-avx512",
  summary: "x86-64 machine code, AVX-512 F, BW, VL, DQ",
  emitter: "x64",
  capabilities: new Set(x64Capabilities(wide)),
  vectorBytes: 64,
  vectorRegisters: 28,
  memory: [
    {
      name: "L1",
      capacityBytes: {
        value: 32 * 1024,
        source: "smallest L1d of cores with AVX-512",
        origin: "datasheet",
      },
      bytesPerNsPerCore: { value: 170, source: measured, origin: "measured" },
    },
    {
      name: "L2",
      capacityBytes: {
        value: 1024 * 1024,
        source: "Zen 4, Zen 5, Skylake-SP and later",
        origin: "datasheet",
      },
      bytesPerNsPerCore: { value: 95, source: measured, origin: "measured" },
      stallNsPerByte: { value: 0.003, source: waiting, origin: "predicted" },
    },
    {
      name: "L3",
      capacityBytes: { value: 8 * 1024 * 1024, source: shared, origin: "measured" },
      bytesPerNsPerCore: { value: 77, source: measured, origin: "measured" },
      stallNsPerByte: { value: 0.017, source: waiting, origin: "predicted" },
      latencyNs: { value: 35, source: chased, origin: "measured" },
    },
    {
      name: "memory",
      bytesPerNsPerCore: { value: 31, source: measured, origin: "measured" },
      stallNsPerByte: { value: 0.06, source: waiting, origin: "predicted" },
      latencyNs: { value: 150, source: chased, origin: "measured" },
    },
  ],
  coreRates: {
    issuePerNs: { value: 6, source: `${rankedWide}; two a cycle`, origin: "measured" },
    scalarSlots: {
      value: 0.5,
      source: `a third by the width of the core, six a cycle; ${rankedWide}`,
      origin: "measured",
    },
    loadsPerNs: {
      value: 2.6,
      source: "9 loads for 8 multiply-adds in tiles of 8 rows by one vector, 78 GFLOP/s",
      origin: "measured",
    },
    storesPerNs: { value: 1.5, source: measured, origin: "measured" },
    overlapLoss: { value: 0.3, source: "that of AVX2", origin: "predicted" },
  },
  f32FlopsPerNsPerCore: {
    value: 107,
    source: `one 16-lane FMA a cycle at 3.3 GHz; ${measured}`,
    origin: "measured",
  },
  vectorOpsPerNsPerCore: {
    value: 6.6,
    source: "two 512-bit operations a cycle at 3.3 GHz, four pipes of 256 bits",
    origin: "predicted",
  },
  multiplyAddLatencyNs: { value: 1.25, source: measured, origin: "measured" },
  additionLatencyNs: { value: 0.92, source: measured, origin: "measured" },
  barrierNs: {
    value: 150,
    source: "spinning barrier of two threads on a 4.4 GHz Zen 5 (2026)",
    origin: "measured",
  },
  maxMemoryBytes: 256 * 1024 * 1024 * 1024,
  alignmentBytes: 64,
};

/** With the dot products of bytes of AVX512_VNNI. */
const vnni: Target = {
  ...avx512,
  name: "x64-avx512-vnni",
  summary: "x86-64 machine code, AVX-512 F, BW, VL, DQ, VNNI",
  capabilities: new Set(x64Capabilities([...wide, vnniExtension])),
};

/** And with those of bf16 of AVX512_BF16. */
const brain: Target = {
  ...vnni,
  name: "x64-avx512-bf16",
  summary: "x86-64 machine code, AVX-512 F, BW, VL, DQ, VNNI, BF16",
  capabilities: new Set(x64Capabilities([...wide, vnniExtension, brainExtension])),
};

const avx2: Target = {
  ...avx512,
  name: "x64-avx2",
  summary: "x86-64 machine code, AVX2, FMA, F16C, BMI2",
  capabilities: new Set(x64Capabilities(avx2Extensions)),
  vectorBytes: 32,
  vectorRegisters: 12,
  memory: [
    {
      name: "L1",
      capacityBytes: { value: 32 * 1024, source: "Zen to Zen 3, Haswell", origin: "datasheet" },
      bytesPerNsPerCore: { value: 198, source: measuredAvx2, origin: "measured" },
    },
    {
      name: "L2",
      capacityBytes: { value: 512 * 1024, source: "Zen 2 and Zen 3 cores", origin: "datasheet" },
      bytesPerNsPerCore: { value: 103, source: measuredAvx2, origin: "measured" },
      stallNsPerByte: { value: 0.003, source: ranked, origin: "measured" },
    },
    {
      name: "L3",
      capacityBytes: {
        value: 8 * 1024 * 1024,
        source: `that of AVX-512: ${shared}`,
        origin: "predicted",
      },
      bytesPerNsPerCore: { value: 80, source: measuredAvx2, origin: "measured" },
      stallNsPerByte: { value: 0.04, source: ranked, origin: "measured" },
      latencyNs: { value: 35, source: chased, origin: "predicted" },
    },
    {
      name: "memory",
      bytesPerNsPerCore: { value: 21, source: measuredAvx2, origin: "measured" },
      stallNsPerByte: {
        value: 0.2,
        source: "that of L3 times the ratio of their latencies, about 5",
        origin: "predicted",
      },
      latencyNs: { value: 150, source: chased, origin: "predicted" },
    },
  ],
  coreRates: {
    issuePerNs: { value: 13, source: `${ranked}; 4 a cycle`, origin: "measured" },
    loadsPerNs: {
      value: 5.5,
      source: "9 loads for 8 multiply-adds in tiles of 8 rows by one vector, 78.6 GFLOP/s",
      origin: "measured",
    },
    storesPerNs: { value: 3, source: "one a cycle at 3.0 GHz", origin: "predicted" },
    overlapLoss: { value: 0.3, source: ranked, origin: "measured" },
  },
  f32FlopsPerNsPerCore: {
    value: 105,
    source: "two 8-lane FMA a cycle at 3.3 GHz",
    origin: "predicted",
  },
  vectorOpsPerNsPerCore: {
    value: 10.2,
    source: "three 256-bit operations a cycle at 3.4 GHz",
    origin: "predicted",
  },
  multiplyAddLatencyNs: { value: 1.2, source: "4 cycles at 3.4 GHz", origin: "predicted" },
  additionLatencyNs: { value: 0.9, source: "3 cycles at 3.4 GHz", origin: "predicted" },
};

export const x64Targets: readonly Target[] = [brain, vnni, avx512, avx2];
