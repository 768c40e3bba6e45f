/** Kinds of layers with what each needs: dimensions, work, traffic, working memory, taste in layouts. */
import { bytesPerElement } from "./machine.ts";

export type Dims = Readonly<Record<string, number>>;
export type Layout = "row" | "column" | "block";
export type Place = "sram" | "dram";

/** One way to run a layer: what the search calls a state. */
export interface TileState {
  readonly tileM: number;
  readonly tileN: number;
  readonly layout: Layout;
  readonly place: Place;
}

export const layouts: readonly Layout[] = ["row", "column", "block"];
export const places: readonly Place[] = ["sram", "dram"];

interface LayerKind {
  readonly dims: readonly string[];
  readonly flops: (d: Dims) => number;
  /** Bytes between the memories for one run in tiles of this size. */
  readonly traffic: (d: Dims, tile: TileState) => number;
  /** Tiles that are in the fast memory at once. */
  readonly workingTiles: number;
  readonly affinity: Readonly<Record<Layout, number>>;
}

export const layerKinds = {
  linear: {
    dims: ["M", "N", "K"],
    flops: (d) => 2 * d.M! * d.N! * d.K!,
    traffic: (d, tile) => matrixTraffic([d.M!, d.N!, d.K!], tile),
    workingTiles: 3,
    affinity: { row: 0.15, block: 0.08, column: 0 },
  },
  conv2d: {
    dims: ["H", "W", "Cin", "Cout", "KH", "KW"],
    flops: (d) => 2 * d.H! * d.W! * d.Cin! * d.Cout! * d.KH! * d.KW!,
    traffic: (d, tile) => matrixTraffic([d.H! * d.W!, d.Cout!, d.Cin! * d.KH! * d.KW!], tile),
    workingTiles: 3,
    affinity: { row: 0.08, block: 0.15, column: 0 },
  },
  depthwise: {
    dims: ["H", "W", "C", "KH", "KW"],
    flops: (d) => 2 * d.H! * d.W! * d.C! * d.KH! * d.KW!,
    traffic: depthwiseTraffic,
    workingTiles: 2.5,
    affinity: { row: 0.05, block: 0.2, column: 0 },
  },
  softmax: {
    dims: ["M", "N"],
    flops: (d) => d.M! * d.N!,
    traffic: softmaxTraffic,
    workingTiles: 4,
    affinity: { row: 0.2, block: 0.03, column: 0 },
  },
  relu: {
    dims: ["M", "N"],
    flops: (d) => d.M! * d.N!,
    traffic: (d) => 2 * d.M! * d.N! * bytesPerElement,
    workingTiles: 2,
    affinity: { row: 0.05, block: 0.05, column: 0.05 },
  },
  layernorm: {
    dims: ["M", "N"],
    flops: (d) => d.M! * d.N!,
    traffic: (d) => 2 * d.M! * d.N! * bytesPerElement,
    workingTiles: 3,
    affinity: { row: 0.05, block: 0.05, column: 0.05 },
  },
} as const satisfies Record<string, LayerKind>;

export type LayerType = keyof typeof layerKinds;

export interface Layer {
  readonly name: string;
  readonly type: LayerType;
  readonly dims: Dims;
}

export function kindOf(layer: Layer): LayerKind {
  return layerKinds[layer.type];
}

/** Both operands are read again for every tile of the other, the result is written once. */
function matrixTraffic([m, n, k]: readonly [number, number, number], tile: TileState): number {
  const left = Math.ceil(n / tile.tileN) * m * k;
  const right = Math.ceil(m / tile.tileM) * k * n;
  return (left + right + m * n) * bytesPerElement;
}

/** One pass when a row fits the tile, else the row is read twice a tile. */
function softmaxTraffic(d: Dims, tile: TileState): number {
  const steps = Math.ceil(d.N! / tile.tileN);
  const passes = steps === 1 ? 1 : 2 * steps;
  return (passes + 1) * d.M! * d.N! * bytesPerElement;
}

/** The halo of each tile is read twice, the kernel once a tile. */
function depthwiseTraffic(d: Dims, tile: TileState): number {
  const kernel = d.KH! * d.KW!;
  const elements = d.H! * d.W! * d.C!;
  const halo = Math.min(1, kernel / (tile.tileM * tile.tileN));
  const tiles = Math.ceil(d.H! / tile.tileM) * Math.ceil(d.W! / tile.tileN);
  return (elements * (1 + halo) + tiles * kernel * d.C! + elements) * bytesPerElement;
}
