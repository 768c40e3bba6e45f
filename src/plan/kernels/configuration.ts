/**
 * A kernel's launch on a machine, and the judge of whether the machine can take it. The judge shares no
 * code with what makes configurations: every rule stands here once more, from the machine's data.
 */
import type { GpuArchitecture, GpuMachine } from "../../target/machine.ts";
import type { Target } from "../../target/target.ts";
import type { Form } from "./counts.ts";

export interface Tile {
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

export interface KernelConfiguration {
  /** What Wavetile would emit: the strategy, in the words of the emitters. */
  readonly implementation: string;
  /** Whether an emitter writes it today. */
  readonly emitted: boolean;
  readonly tile: Tile;
  /** What a tile stands for. */
  readonly form: Form;
  /** Matrix instruction, as the manual spells its shape; absent on vector units. */
  readonly instruction?: string;
  readonly instructionTile?: Tile;
  readonly unroll: number;
  readonly sharedBytes: number;
  readonly registersPerThread: number;
  readonly grid: readonly [number, number, number];
  readonly block: readonly [number, number, number];
  /** Bytes of one load of a thread or lane. */
  readonly vectorBytes: number;
  readonly stages: number;
  /** Blocks that share operands. */
  readonly cluster: number;
  /** Predicted nanoseconds, and what bounds them. */
  readonly estimateNs: number;
  readonly bound: "memory" | "arithmetic" | "latency";
  readonly reasons: readonly string[];
}

/** A configuration before it is known to be worth telling: its reasons are spelled when asked for. */
export interface Candidate extends Omit<KernelConfiguration, "reasons" | "emitted"> {
  /** What lowering and the emitters write today. */
  readonly plain?: boolean;
  readonly why: () => readonly string[];
}

/** Limits of a launch that no architecture differs in (CUDA C++ Programming Guide 13.0, table 30). */
const mostGrid = [2 ** 31 - 1, 65535, 65535] as const;

type Launch = Omit<KernelConfiguration, "reasons" | "emitted">;

/** Vector registers of a core, those that a tile leaves for operands among them. */
export function registersOf({ machine, vectorRegisters }: Target): number {
  return machine?.kind === "cpu" ? machine.vectorRegisters.value : vectorRegisters;
}

/** What the machine cannot take; empty: it can. */
export function limitFaults(config: Launch, target: Target): readonly string[] {
  const { machine } = target;
  const faults: string[] = [];
  const whole = [...config.grid, ...config.block, config.stages, config.cluster, config.unroll];
  if (whole.some((n) => !Number.isSafeInteger(n) || n < 1)) faults.push(`extents ${whole}`);
  if (!(config.estimateNs > 0)) faults.push(`estimate ${config.estimateNs}`);
  if (machine?.kind === "gpu") return [...faults, ...gpuFaults(config, machine)];
  faults.push(...registerFaults(config, target));
  faults.push(...above(config.vectorBytes, target.vectorBytes, "bytes a vector"));
  return faults;
}

/** Vector registers for the sums of a tile, or the eight tile registers of 16 x 64 bytes of AMX. */
function registerFaults({ tile, form, ...config }: Launch, target: Target): readonly string[] {
  if (form === "rows" || form === "elements") return [];
  if (!config.instructionTile) {
    const registers = (tile.m * tile.n * 4) / target.vectorBytes;
    return above(registers, registersOf(target), "accumulator registers");
  }
  const { m, n } = config.instructionTile;
  const [down, across] = [tile.m / m, tile.n / n];
  const registers = down * across + down + across;
  const fits = Number.isInteger(registers) && registers <= 8;
  return fits ? [] : [`${registers} tile registers`];
}

/** The instruction is in the architecture's table and covers the tile without a rest. */
function instructionFaults(
  { instruction = "", instructionTile: i, tile, form }: Launch,
  a: GpuArchitecture,
): readonly string[] {
  if (!i) return [];
  const [name] = instruction.split(/ (?=m\d)/);
  const listed = a.matrixInstructions.some(
    (row) => row.name === name && row.m.includes(i.m) && row.n.includes(i.n) && row.k.includes(i.k),
  );
  const faults = listed ? [] : [`${a.name} has no ${instruction}`];
  const whole = tile.m % i.m === 0 && tile.n % i.n === 0;
  if (!whole || (form === "product" && tile.k % i.k !== 0)) {
    faults.push(`${instruction} does not divide ${tile.m} x ${tile.n} x ${tile.k}`);
  }
  // 128 lanes of 512 columns: a tile of f32 sums must find room.
  const memory = a.tensorMemoryBytesPerSm?.value;
  if (name === "tcgen05.mma" && memory !== undefined && 4 * tile.m * tile.n > memory) {
    faults.push(`${4 * tile.m * tile.n} B of sums in tensor memory, the limit is ${memory}`);
  }
  return faults;
}

/** `262144 B shared, the limit is 232448`; empty when it is kept. */
function above(found: number, limit: number, what: string): readonly string[] {
  return found > limit ? [`${found} ${what}, the limit is ${limit}`] : [];
}

function gpuFaults(config: Launch, { architecture: a }: GpuMachine): readonly string[] {
  const threads = config.block.reduce((x, y) => x * y);
  const { sharedBytes: shared, registersPerThread: registers, cluster } = config;
  const kept = shared + a.sharedBytesReservedPerBlock.value;
  const clusterBytes = a.sharedBytesPerCluster?.value ?? Infinity;
  return [
    ...above(threads, a.threadsPerBlock.value, "threads a block"),
    ...(threads % a.warpThreads === 0 ? [] : [`${threads} threads are no whole warps`]),
    ...above(shared, a.sharedBytesPerBlock.value, "B of shared memory a block"),
    ...above(kept, a.sharedBytesPerSm.value, "B of shared memory with what the system keeps"),
    ...above(cluster * shared, clusterBytes, "B of shared memory a cluster"),
    ...above(registers, a.registersPerThread.value, "registers a thread"),
    ...above(registers * threads, a.registersPerBlock.value, "registers a block"),
    ...above(threads, a.threadsPerSm.value, "threads a multiprocessor"),
    ...above(cluster, a.blocksPerCluster?.value ?? 1, "blocks a cluster"),
    ...instructionFaults(config, a),
    ...copyFaults(config),
    ...config.grid.flatMap((n, axis) => above(n, mostGrid[axis]!, `blocks on axis ${axis}`)),
    ...(config.grid[0] % cluster === 0 ? [] : ["the grid is no whole clusters"]),
  ];
}

function copyFaults({ implementation, vectorBytes }: Launch): readonly string[] {
  const wide = [1, 2, 4, 8, 16].includes(vectorBytes) ? [] : [`${vectorBytes} B loads`];
  const bulk = /bulk tensor copies/.test(implementation) && vectorBytes < 16;
  const asynchronous = /asynchronous copies/.test(implementation) && vectorBytes < 4;
  return [
    ...wide,
    ...(bulk ? [`bulk tensor copies of rows at ${vectorBytes} B`] : []),
    ...(asynchronous ? [`asynchronous copies of rows at ${vectorBytes} B`] : []),
  ];
}
