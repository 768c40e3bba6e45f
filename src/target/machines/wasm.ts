/**
 * WebAssembly with fixed-width SIMD, as V8 runs it on a current x86-64 core. The two variants differ by
 * relaxed SIMD's fused multiply-add, which engines may lack; the runtime probes for it.
 */
import { byteProducts, costlyHalves, halfLanes, type Target } from "../target.ts";

const measured = "hand-encoded kernels, Node 20, one 4.4 GHz Zen 5 core (2026)";
/** Those that schedules are ranked best by. */
const ranked = "npm run bench -- correlation --record, Node 20, one Zen 3 core (2026)";
/** Each line at the address that the one before holds, in pages of their own. */
const chased = "chains of lines 2,624 bytes apart, Node 20, one core of a shared Zen 4 (2026)";

const simd128: Target = {
  name: "wasm",
  summary: "WebAssembly, 128-bit SIMD, threads on shared memory",
  emitter: "wasm",
  compiledByEngine: true,
  capabilities: new Set([
    ...["simd128", "threads", byteProducts, "vpdpwssd.i32x4"],
    ...[halfLanes, costlyHalves],
  ]),
  vectorBytes: 16,
  vectorRegisters: 16,
  memory: [
    {
      name: "L1",
      capacityBytes: {
        value: 32 * 1024,
        source: "smallest L1d of current x86-64 and arm64 cores",
        origin: "datasheet",
      },
      bytesPerNsPerCore: {
        value: 140,
        source: `two 16-byte loads a cycle; ${measured}`,
        origin: "measured",
      },
    },
    {
      name: "L2",
      capacityBytes: { value: 1024 * 1024, source: "Zen 4 and Zen 5 cores", origin: "datasheet" },
      bytesPerNsPerCore: { value: 85, source: ranked, origin: "measured" },
      stallNsPerByte: { value: 0.003, source: ranked, origin: "measured" },
    },
    {
      name: "L3",
      capacityBytes: {
        value: 8 * 1024 * 1024,
        source:
          "what one core has of 32 MB that eight share, rounded up: a chain of lines takes 16 ns each in 4 MB and 100 in 8 MB on a shared Zen 4 (2026)",
        origin: "measured",
      },
      bytesPerNsPerCore: { value: 80, source: measured, origin: "measured" },
      stallNsPerByte: { value: 0.006, source: "half the time of a byte", origin: "predicted" },
      latencyNs: { value: 35, source: chased, origin: "measured" },
    },
    {
      name: "memory",
      bytesPerNsPerCore: { value: 30, source: measured, origin: "measured" },
      stallNsPerByte: { value: 0.017, source: "half the time of a byte", origin: "predicted" },
      latencyNs: { value: 150, source: chased, origin: "measured" },
    },
  ],
  f32FlopsPerNsPerCore: {
    value: 45.5,
    source: `2x16 and 4x8 register tiles, multiply and add; ${measured}`,
    origin: "measured",
  },
  vectorOpsPerNsPerCore: {
    value: 11.8,
    source: `40 instructions a step of the 4x16 tile at 37.7 GFLOP/s; ${measured}`,
    origin: "measured",
  },
  multiplyAddLatencyNs: {
    value: 1.6,
    source: "3 + 4 cycles of multiply and add at 4.4 GHz",
    origin: "predicted",
  },
  barrierNs: {
    value: 400,
    source: `spinning barrier of two workers; ${measured}`,
    origin: "measured",
  },
  maxMemoryBytes: 4 * 1024 * 1024 * 1024,
  alignmentBytes: 64,
};

const relaxed: Target = {
  ...simd128,
  name: "wasm-relaxed",
  summary: "WebAssembly with relaxed SIMD (fused multiply-add)",
  capabilities: new Set([...simd128.capabilities, "fma"]),
  f32FlopsPerNsPerCore: {
    value: 40.7,
    source: `4x16 register tile, relaxed_madd; ${measured}`,
    origin: "measured",
  },
};

export const wasmTargets: readonly Target[] = [simd128, relaxed];
