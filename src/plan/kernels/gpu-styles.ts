/**
 * The ways in which a GPU can multiply: on each matrix unit that its architecture lists, and on vector
 * units. A style knows its tiles, with the instruction that covers each, and what a block needs for them.
 */
import type { GpuMachine, MatrixInstruction } from "../../target/machine.ts";
import type { Tile } from "./configuration.ts";
import type { ProblemType } from "./problem.ts";

export interface StyleTile {
  readonly m: number;
  readonly n: number;
  /** Absent on vector units. */
  readonly instruction?: Tile & { readonly name: string };
}

export interface Style {
  readonly name: string;
  readonly flopsPerNs: number;
  readonly tiles: readonly StyleTile[];
  /** Results that a warp works on; more warps share a tile, up to `mostWarps`. */
  readonly resultsPerWarp: number;
  /** Threads of a block by the tile's rows, where they are not by its results. */
  readonly threadsOf?: (m: number) => number;
  /** Registers of a thread beside its accumulators. */
  readonly overhead: number;
  /** Accumulators live in registers; tensor memory keeps them elsewhere. */
  readonly accumulatorsInRegisters: boolean;
  /** The unit reads its operands from shared memory, not from registers. */
  readonly operandsInShared: boolean;
  /** Operands come by bulk tensor copies, whose rows begin at multiples of 16 bytes. */
  readonly bulk: boolean;
  /** Threads that only feed the others. */
  readonly producers: number;
  readonly clusters: readonly number[];
  /** Extents of the tile whose operands shared memory hands out once. */
  readonly reach: readonly [m: number, n: number];
}

const mostWarps = 8;

export function threadsOf(style: Style, { m, n }: StyleTile, warpThreads: number): number {
  if (style.threadsOf) return style.threadsOf(m);
  const wanted = 2 ** Math.ceil(Math.log2((m * n) / style.resultsPerWarp));
  return warpThreads * Math.max(1, Math.min(mostWarps, wanted));
}

const made = new WeakMap<GpuMachine, Map<ProblemType, readonly Style[]>>();

/** Matrix units first, then vector units; made once a machine and type. */
export function stylesFor(machine: GpuMachine, type: ProblemType): readonly Style[] {
  const known = made.get(machine) ?? new Map<ProblemType, readonly Style[]>();
  made.set(machine, known);
  const styles = known.get(type) ?? [...matrixStyles(machine, type), vectorStyle(machine)];
  known.set(type, styles);
  return styles;
}

const square = [64, 128] as const;
const plain = {
  resultsPerWarp: 2048,
  overhead: 60,
  accumulatorsInRegisters: true,
  operandsInShared: false,
  bulk: false,
  producers: 0,
  clusters: [1],
} as const;

/** Of the rate, where threads copy what the tensor memory accelerator cannot address. */
const copiedShare = 0.8;

function matrixStyles(machine: GpuMachine, type: ProblemType): readonly Style[] {
  const { matrixInstructions, features } = machine.architecture;
  const rate = (machine.matrixTeraops[type]?.value ?? 0) * 1000;
  if (rate === 0) return [];
  const own = matrixInstructions.filter(
    (i) => i.operands === type && !i.name.includes("block-scaled"),
  );
  const of = (name: string) => own.filter((i) => i.name === name);
  const [wgmma, tensor, warp] = [of("wgmma.mma_async"), of("tcgen05.mma"), of("mma.sync")];
  const others = own.filter((i) => ![...wgmma, ...tensor, ...warp].includes(i));
  const copies = features.includes("cp.async") ? "asynchronous copies" : "copies through registers";
  const bulkStyles: readonly Style[] = [
    {
      ...plain,
      operandsInShared: true,
      bulk: true,
      name: "wgmma, bulk tensor copies, producer and consumer warpgroups",
      flopsPerNs: rate,
      tiles: tilesOf(square, [16, 32, 64, 128, 192, 256], wgmma),
      threadsOf: (m) => 128 * (1 + m / 64),
      overhead: 40,
      producers: 128,
      clusters: [1, 2],
      reach: [128, 256],
    },
    {
      ...plain,
      operandsInShared: true,
      bulk: true,
      name: "tcgen05, bulk tensor copies, accumulators in tensor memory",
      flopsPerNs: rate,
      tiles: tilesOf(square, [32, 64, 128, 256], tensor),
      threadsOf: () => 192,
      overhead: 64,
      accumulatorsInRegisters: false,
      clusters: [1, 2],
      reach: [128, 256],
    },
  ];
  const styles: readonly Style[] = [
    ...bulkStyles,
    ...bulkStyles.map((s) => ({
      ...s,
      bulk: false,
      name: s.name.replace("bulk tensor copies", "copies by threads"),
      flopsPerNs: copiedShare * s.flopsPerNs,
      clusters: [1],
    })),
    {
      ...plain,
      name: `mma.sync, ${copies}`,
      // Beside a newer unit the older instruction reaches a part of its rate.
      flopsPerNs: (wgmma.length + tensor.length > 0 ? 0.62 : 1) * rate,
      tiles: tilesOf([16, ...square], [32, 64, 128], warp),
      reach: [64, 32],
    },
    {
      ...plain,
      name: `${others[0]?.name}, copies through registers`,
      flopsPerNs: rate,
      tiles: tilesOf([32, ...square], [32, 64, 128], others),
      reach: [64, 64],
    },
  ];
  return styles.filter((s) => s.tiles.length > 0);
}

function vectorStyle(machine: GpuMachine): Style {
  const widths = [16, 32, 64, 128];
  return {
    ...plain,
    name: "vector units, register tiles",
    flopsPerNs: machine.vectorTeraops.f32.value * 1000,
    tiles: [16, ...square].flatMap((m) => widths.map((n) => ({ m, n }))),
    resultsPerWarp: 1024,
    overhead: 48,
    reach: [32, 32],
  };
}

/** Tiles of the cross product that whole instructions cover. */
function tilesOf(
  heights: readonly number[],
  widths: readonly number[],
  instructions: readonly MatrixInstruction[],
): readonly StyleTile[] {
  return heights.flatMap((m) =>
    widths.flatMap((n) => {
      const instruction = instructionFor(instructions, m, n);
      return instruction ? [{ m, n, instruction }] : [];
    }),
  );
}

/** The largest instruction that covers a tile without a rest. */
function instructionFor(
  rows: readonly MatrixInstruction[],
  m: number,
  n: number,
): StyleTile["instruction"] {
  const found = rows.flatMap((row) => {
    const height = row.m.filter((x) => m % x === 0).at(-1);
    const width = row.n.filter((x) => n % x === 0).at(-1);
    const k = Math.max(...row.k);
    return height && width ? [{ name: row.name, m: height, n: width, k }] : [];
  });
  return found.sort((a, b) => b.m * b.n * b.k - a.m * a.n * a.k)[0];
}
