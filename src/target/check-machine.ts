/** Figures of a machine that cannot all be true. Each check says which keys disagree and how. */
import { type Diagnostic, diagnostic } from "../support/diagnostic.ts";
import type { CpuMachine, GpuMachine, Machine } from "./machine.ts";

type Check = readonly [holds: boolean, at: string, message: string];

export function contradictions(machine: Machine): readonly Diagnostic[] {
  const checks = machine.kind === "gpu" ? gpuChecks(machine) : cpuChecks(machine);
  return checks
    .filter(([holds]) => !holds)
    .map(([, at, message]) =>
      diagnostic("TGT004", `machine.${at}: ${message}`, {
        at: `machine.${at}`,
        help: "compare both figures with their sources: block, multiprocessor and device differ",
      }),
    );
}

function gpuChecks(machine: GpuMachine): readonly Check[] {
  return [...sharedChecks(machine), ...threadChecks(machine), ...rateChecks(machine)];
}

function sharedChecks({ architecture: a }: GpuMachine): readonly Check[] {
  const block = a.sharedBytesPerBlock.value;
  const taken = block + a.sharedBytesReservedPerBlock.value;
  const perSm = a.sharedBytesPerSm.value;
  const least = a.sharedBytesPerBlockDefault.value;
  const cluster = a.sharedBytesPerCluster?.value;
  const blocks = a.blocksPerCluster?.value ?? 0;
  return [
    [
      taken <= perSm,
      "architecture.sharedBytesPerBlock",
      `a block takes ${taken} bytes with what is reserved, a multiprocessor has ${perSm}`,
    ],
    [
      least <= block,
      "architecture.sharedBytesPerBlockDefault",
      `${least} bytes without asking, ${block} at most`,
    ],
    [
      cluster === undefined || cluster <= blocks * block,
      "architecture.sharedBytesPerCluster",
      `${cluster} bytes in ${blocks} blocks of ${block}`,
    ],
  ];
}

function threadChecks({ architecture: a }: GpuMachine): readonly Check[] {
  const block = a.threadsPerBlock.value;
  const registers = a.registersPerBlock.value;
  return [
    [
      block <= a.threadsPerSm.value,
      "architecture.threadsPerBlock",
      `${block} threads a block, ${a.threadsPerSm.value} a multiprocessor`,
    ],
    [
      block % a.warpThreads === 0,
      "architecture.threadsPerBlock",
      `${block} threads are no whole number of warps of ${a.warpThreads}`,
    ],
    [
      registers <= a.registersPerSm.value,
      "architecture.registersPerBlock",
      `${registers} registers a block, ${a.registersPerSm.value} a multiprocessor`,
    ],
    [
      a.registersPerThread.value <= registers,
      "architecture.registersPerThread",
      `${a.registersPerThread.value} registers a thread, ${registers} a block`,
    ],
  ];
}

/** Data sheets round, and state rates at another clock: hence the tolerance. */
const rateTolerance = 1.12;
/** A rate below this part of lanes x clock was written in another unit. */
const leastOfLanes = 0.5;
/** Operations a cycle and multiprocessor: four times the most that was built (a B200's FP4). */
const mostPerCycle = 2 ** 17;

function rateChecks(machine: GpuMachine): readonly Check[] {
  const { architecture: a, multiprocessors, boostMhz, vectorTeraops } = machine;
  const lanes = a.f32LanesPerSm.value * multiprocessors.value;
  const most = (2 * lanes * boostMhz.value) / 1e6;
  const cycles = (multiprocessors.value * boostMhz.value) / 1e6;
  const port = a.sharedBytesPerCycle.value;
  const drawn = machine.memoryBytesPerNs.value / (1000 * cycles);
  const types = Object.keys(machine.matrixTeraops);
  const spelled = new Set<string>(a.matrixInstructions.map((i) => i.operands));
  const unknown = types.filter((t) => !spelled.has(t));
  return [
    [
      vectorTeraops.f32.value <= most * rateTolerance,
      "vectorTeraops.f32",
      `${vectorTeraops.f32.value} x 10^12 a second, and ${lanes} lanes at ${boostMhz.value} MHz give ${most.toFixed(1)}`,
    ],
    [
      vectorTeraops.f32.value >= most * leastOfLanes,
      "vectorTeraops.f32",
      `${vectorTeraops.f32.value} x 10^12 a second, and ${lanes} lanes at ${boostMhz.value} MHz give ${most.toFixed(1)}`,
    ],
    ...Object.entries(machine.matrixTeraops).map(([type, { value }]): Check => {
      const perCycle = value / cycles;
      return [
        perCycle <= mostPerCycle,
        `matrixTeraops.${type}`,
        `${value} x 10^12 a second are ${Math.round(perCycle)} operations a cycle on each of ${multiprocessors.value} multiprocessors`,
      ];
    }),
    [
      drawn <= port,
      "memoryBytesPerNs",
      `${machine.memoryBytesPerNs.value} GB/s are ${Math.round(drawn)} bytes a cycle on each of ${multiprocessors.value} multiprocessors, whose own memory hands out ${port}`,
    ],
    [
      machine.l2Bytes.value < machine.memoryBytes.value,
      "l2Bytes",
      `${machine.l2Bytes.value} bytes of L2, ${machine.memoryBytes.value} of memory`,
    ],
    [
      unknown.length === 0,
      `matrixTeraops.${unknown[0]}`,
      `a rate for ${unknown.join(", ")}, for which the architecture has no matrix instruction`,
    ],
  ];
}

function cpuChecks({ caches, memoryBytes, vectorBits }: CpuMachine): readonly Check[] {
  const outwards = caches.every((c, i) => {
    const inner = caches[i - 1];
    return !inner || (c.level > inner.level && c.bytes.value >= inner.bytes.value);
  });
  const last = caches.at(-1)!.bytes.value;
  return [
    [outwards, "caches", "levels and sizes must grow from the core outwards"],
    [
      memoryBytes === undefined || last < memoryBytes.value,
      "caches",
      `${last} bytes in the last cache, ${memoryBytes?.value} of memory`,
    ],
    [
      Number.isInteger(Math.log2(vectorBits.value)),
      "vectorBits",
      `${vectorBits.value} is no power of two`,
    ],
  ];
}
