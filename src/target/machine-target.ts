/**
 * From a machine's data sheet to the target that the compiler reads: rates of one core or one
 * multiprocessor. Every number made here says by which formula, and is marked as predicted.
 */
import { predicted, type Sourced } from "./figure.ts";
import type { CpuMachine, GpuMachine, Machine, NumberType } from "./machine.ts";
import type { BlockLimits, MatrixRates, MemoryLevel, Target } from "./target.ts";
import { x64Capabilities } from "./x64-capabilities.ts";

/** What a data file says beside the machine itself. */
export interface MachineFile {
  readonly name: string;
  readonly summary: string;
  readonly emitter?: "x64" | "ptx" | "wgsl";
  readonly machine: Machine;
}

export function targetOfMachine(file: MachineFile): Target {
  const { name, summary, emitter, machine } = file;
  const rates = machine.kind === "gpu" ? gpuRates(machine) : cpuRates(machine, emitter);
  return { name, summary, ...(emitter && { emitter }), ...rates, machine };
}

type Rates = Omit<Target, "name" | "summary" | "emitter" | "machine">;

/** Vector instructions of all kinds that a core finishes in a cycle: two multiply-adds and a load. */
const issueWidth = 3;

/** Reading rates of L1, L2 and L3 against L1: 551, 201 and 117 GB/s, measured on a Zen 5 core. */
const levelRatios = [1, 0.36, 0.21] as const;
/** GB/s that one core draws from memory: its misses in flight, not the channels, are the limit. */
const aloneFromMemory = predicted(
  33,
  "one Zen 5 core reading 256 MB, measured; others assumed alike",
);

/** Vector registers that a register tile leaves for its operands. */
const operandRegisters = 4;

function cpuRates(machine: CpuMachine, emitter: Target["emitter"]): Rates {
  const { extensions } = machine;
  const ghz = machine.clockMhz.value / 1000;
  const lanes = machine.vectorBits.value / 32;
  const fma = machine.fmaPerCycle.value;
  return {
    capabilities: new Set([
      ...extensions,
      ...(emitter === "x64" ? x64Capabilities(extensions) : []),
    ]),
    vectorBytes: machine.vectorBits.value / 8,
    vectorRegisters: machine.vectorRegisters.value - operandRegisters,
    memory: cpuLevels(machine, ghz),
    f32FlopsPerNsPerCore: predicted(
      2 * lanes * fma * ghz,
      `2 x ${lanes} lanes x ${fma} multiply-adds a cycle x ${ghz} GHz`,
    ),
    vectorOpsPerNsPerCore: predicted(issueWidth * ghz, `${issueWidth} a cycle x ${ghz} GHz`),
    multiplyAddLatencyNs: predicted(
      machine.fmaLatencyCycles.value / ghz,
      `${machine.fmaLatencyCycles.value} cycles at ${ghz} GHz`,
    ),
    barrierNs: predicted(200, "two transfers of a cache line between cores, about 100 ns each"),
    maxMemoryBytes: machine.memoryBytes?.value ?? 2 ** 40,
    alignmentBytes: 64,
  };
}

function cpuLevels(machine: CpuMachine, ghz: number): readonly MemoryLevel[] {
  const load = machine.loadBytesPerCycle.value;
  const levels = machine.caches.map((cache, i): MemoryLevel => {
    const ratio = levelRatios[Math.min(i, levelRatios.length - 1)]!;
    return {
      name: `L${cache.level}`,
      capacityBytes: cache.bytes,
      bytesPerNsPerCore: predicted(
        load * ratio * ghz,
        `${load} bytes a cycle from L1 x ${ratio} (the ratio measured on a Zen 5 core) x ${ghz} GHz`,
      ),
    };
  });
  return [...levels, { name: "memory", bytesPerNsPerCore: memoryRate(machine) }];
}

function memoryRate({ memoryBytesPerNs: whole }: CpuMachine): Sourced {
  return whole && whole.value < aloneFromMemory.value ? whole : aloneFromMemory;
}

const launchGap = predicted(1300, "gap between dependent kernels of a graph, as seen on an H100");

function l2RatePerSm({ architecture, boostMhz }: GpuMachine): Sourced {
  const { value, source } = architecture.l2BytesPerCycle;
  const ghz = boostMhz.value / 1000;
  return predicted(
    value * ghz,
    `${value} bytes a cycle and multiprocessor (${source}) x ${ghz} GHz`,
  );
}

/** What a whole GPU sustains: the one place that prices of compiled and of planned kernels read. */
export function sustainedRates(
  machine: GpuMachine,
): Pick<BlockLimits, "memoryBytesPerNs" | "nearBytesPerNs" | "launchNs" | "memoryLatencyNs"> {
  const { multiprocessors, memoryBytesPerNs } = machine;
  const cores = multiprocessors.value;
  const near = l2RatePerSm(machine);
  return {
    // Copies reach 88 % of the data sheet's rate on an H200.
    memoryBytesPerNs: predicted(
      memoryBytesPerNs.value * 0.9,
      `0.9 x ${memoryBytesPerNs.value} GB/s, as copies and reads reach on an H200`,
    ),
    nearBytesPerNs: predicted(near.value * cores, `${cores} multiprocessors x ${near.source}`),
    launchNs: launchGap,
    memoryLatencyNs: predicted(500, "unloaded DRAM read on an H100"),
  };
}

function blockLimits(machine: GpuMachine): BlockLimits {
  const { architecture: a, l2Bytes } = machine;
  const cores = machine.multiprocessors.value;
  const ghz = machine.boostMhz.value / 1000;
  const issue = a.warpInstructionsPerCycle.value;
  return {
    sharedBytesPerNsPerCore: sharedRate(machine),
    warpMatrixFlopsPerNs: matrixRates(machine, "mma"),
    groupMatrixFlopsPerNs: matrixRates(machine, "wgmma"),
    warpThreads: a.warpThreads,
    threadsPerBlock: a.threadsPerBlock.value,
    cores,
    threadsPerCore: a.threadsPerSm.value,
    blocksPerCore: a.blocksPerSm.value,
    registersPerThread: a.registersPerThread.value,
    registersPerCore: a.registersPerSm.value,
    sharedBytesPerBlock: a.sharedBytesPerBlock.value,
    sharedBytesPerCore: a.sharedBytesPerSm.value,
    sharedBytesReserved: a.sharedBytesReservedPerBlock.value,
    warpInstructionsPerNsPerCore: predicted(
      issue * ghz,
      `${issue} warp instructions a cycle x ${ghz} GHz`,
    ),
    ...sustainedRates(machine),
    nearBytes: l2Bytes.value,
  };
}

/** Where whole warpgroups multiply, single warps reach a part of the peak: 0.3 of it on an H200, of 0.8. */
const warpShare = 0.4;

/** Types that programs multiply by each. */
const halves = ["bf16", "f16"] as const;
const bytes = ["u8", "i8"] as const;
const byteFloats = ["f8e4m3fn", "f8e5m2"] as const;
const multiplied = [...halves, ...bytes, ...byteFloats] as const;
/**
 * Part of the rate of f16 that products of 8-bit floats reach where the assembler widens them first: ptxas 13.0
 * makes two of f16 and twelve conversions of each for sm_90a.
 */
const widenedShare = 0.7;
/** What data sheets call them. */
const sheetTypes: Readonly<Record<keyof MatrixRates, NumberType>> = {
  ...{ bf16: "bf16", f16: "f16", u8: "int8", i8: "int8" },
  ...{ f8e4m3fn: "fp8", f8e5m2: "fp8", f32: "tf32" },
};

function matrixRates(machine: GpuMachine, by: "mma" | "wgmma"): MatrixRates {
  const { features } = machine.architecture;
  if (!features.includes(by) || !features.includes("ldmatrix")) return {};
  const share = by === "mma" && features.includes("wgmma") ? warpShare : 1;
  const rates: { -readonly [D in keyof MatrixRates]: Sourced } = {};
  for (const dtype of multiplied) {
    const type = sheetTypes[dtype];
    const isNarrow = type === "int8" || type === "fp8";
    if (isNarrow && !features.includes(type)) continue;
    const isWidened = type === "fp8" && by === "mma" && !features.includes("fp8-mma");
    const peak = machine.matrixTeraops[isWidened ? "f16" : type]?.value;
    if (peak === undefined) continue;
    const part = isWidened ? share * widenedShare : share;
    rates[dtype] = predicted(part * peak * 1000, `${part} x ${peak} TFLOP/s for ${by}`);
  }
  return rates;
}

function sharedRate({ architecture, boostMhz }: GpuMachine): Sourced {
  const [bytes, ghz] = [architecture.sharedBytesPerCycle.value, boostMhz.value / 1000];
  return predicted(bytes * ghz, `${bytes} bytes a cycle x ${ghz} GHz`);
}

function gpuRates(machine: GpuMachine): Rates {
  const { architecture, multiprocessors, memoryBytesPerNs, l2Bytes } = machine;
  const ghz = machine.boostMhz.value / 1000;
  const count = multiprocessors.value;
  const issue = architecture.warpInstructionsPerCycle.value;
  const memory: readonly MemoryLevel[] = [
    {
      name: "shared",
      capacityBytes: architecture.sharedBytesPerBlock,
      bytesPerNsPerCore: sharedRate(machine),
    },
    {
      name: "L2",
      capacityBytes: l2Bytes,
      bytesPerNsPerCore: l2RatePerSm(machine),
    },
    {
      name: "memory",
      bytesPerNsPerCore: predicted(
        memoryBytesPerNs.value / count,
        `${memoryBytesPerNs.value} GB/s over ${count} multiprocessors`,
      ),
    },
  ];
  return {
    capabilities: new Set([
      "fma",
      ...architecture.features,
      ...(architecture.ptxTarget ? [architecture.ptxTarget] : []),
    ]),
    vectorBytes: architecture.warpThreads * 4,
    vectorRegisters: architecture.registersPerThread.value,
    memory,
    f32FlopsPerNsPerCore: predicted(
      (machine.vectorTeraops.f32.value * 1000) / count,
      `${machine.vectorTeraops.f32.value} TFLOP/s over ${count} multiprocessors`,
    ),
    vectorOpsPerNsPerCore: predicted(
      issue * ghz,
      `${issue} warp instructions a cycle x ${ghz} GHz`,
    ),
    multiplyAddLatencyNs: predicted(4 / ghz, `4 cycles at ${ghz} GHz`),
    barrierNs: launchGap,
    blocks: blockLimits(machine),
    maxMemoryBytes: machine.memoryBytes.value,
    // What cuMemAlloc promises.
    alignmentBytes: 256,
  };
}
