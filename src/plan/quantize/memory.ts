/**
 * What a model in a format needs of a device's memory beside its weights, and how it is split over
 * several devices. Formulas: docs/planning.md.
 */
import type { Diagnostic } from "../../support/diagnostic.ts";
import { predicted, type Sourced } from "../../target/figure.ts";
import type { PlanDevice } from "../device.ts";
import { checkNumber } from "../number.ts";
import { kvSequenceBytes, type ModelDescription } from "./model.ts";
import { splitTensors, type TensorPart } from "./tensor-split.ts";
import type { WeightBytes } from "./weights.ts";

export interface Workload {
  /** Tokens of prompt and answer together. */
  readonly context: number;
  /** Sequences at once. */
  readonly batch: number;
  /** Bits a value of the KV cache. */
  readonly kvBits: number;
}

export function checkWorkload({ context, batch, kvBits }: Workload): readonly Diagnostic[] {
  const whole = (most: number) => ({ least: 1, most, integer: true });
  return [
    checkNumber("PLN001", "--context", context, whole(1e9)),
    checkNumber("PLN001", "--batch", batch, whole(1e6)),
    checkNumber("PLN001", "--kv-bits", kvBits, { least: 2, most: 32 }),
  ].filter((f) => f !== undefined);
}

/** Tokens of a prompt that go through the model at once. */
export const prefillChunk = 512;

export function kvCacheBytes({ decoder }: ModelDescription, load: Workload): number {
  return decoder ? kvSequenceBytes(decoder, load.context, load.kvBits) * load.batch : 0;
}

/**
 * Activations of one layer in flight at 16 bits (input, normed input, queries, keys, values, attention
 * and its output: about six of the hidden width, and two of the intermediate one) for a chunk of the
 * prompt, and the f32 scores of one token a sequence.
 */
export function activationBytes({ decoder }: ModelDescription, load: Workload): number {
  if (!decoder) return 0;
  const tokens = Math.max(Math.min(load.context, prefillChunk), load.batch);
  const layer = tokens * (6 * decoder.hidden + 2 * decoder.intermediate) * 2;
  return layer + load.batch * decoder.vocabulary * 4;
}

/** A DGX Spark of 121.7 GiB has 102 free after booting (MiaAI-Lab/GLM-5.3-Flash-EXL3-2x-DGX-Sparks#47). */
const mostForSystem = 32 * 2 ** 30;

/** What the driver, the allocator's gaps and, where memory is shared, the system keep. */
export function reserveBytes(device: PlanDevice): Sourced {
  const memory = device.memoryBytes.value;
  if (device.unifiedMemory) {
    return predicted(
      Math.round(Math.min(memory * 0.2, mostForSystem)),
      "a fifth of a memory that the system lives in, 32 GiB at most",
    );
  }
  const context = 512 * 2 ** 20;
  return predicted(
    Math.round(Math.min(memory, context + memory * 0.05)),
    "512 MiB of driver context and 5 % of gaps between allocations",
  );
}

/** How layers or tensors are laid over devices. */
export type Split = "layers" | "tensor";

export interface DeviceShare {
  readonly device: PlanDevice;
  /** Part of the weights that it holds, 0 to 1. */
  readonly share: number;
  readonly cacheShare: number;
  /** Of a tensor split: the KV heads whose keys and values it holds. */
  readonly kvHeads?: number;
  readonly bytes: number;
  readonly budgetBytes: number;
}

export interface Spread {
  readonly shares: readonly DeviceShare[];
  readonly fits: boolean;
  /** Bytes missing over all devices. */
  readonly shortfallBytes: number;
}

export interface SpreadInput {
  readonly model: ModelDescription;
  readonly weights: WeightBytes;
  readonly load: Workload;
  readonly devices: readonly PlanDevice[];
  readonly split: Split;
}

/**
 * Layers go whole to devices, so each device takes a number of layers that its budget holds; a tensor
 * split gives each device a part of all layers (tensor-split.ts).
 */
export function spread(input: SpreadInput): Spread {
  const { model, weights, load, devices, split } = input;
  const cache = kvCacheBytes(model, load);
  const activations = activationBytes(model, load);
  const budgets = devices.map((d) => d.memoryBytes.value - reserveBytes(d).value - activations);
  const { parts, shortfallBytes: lacking } =
    split === "tensor" ? tensorParts(input, budgets) : layerParts(input, budgets);
  const rows = devices.map((device, i): DeviceShare => {
    const { weightShare: share, cacheShare, kvHeads } = parts[i]!;
    const state = share * weights.total + cacheShare * cache;
    return {
      ...{ device, share, cacheShare },
      ...(kvHeads !== undefined && { kvHeads }),
      // Who holds no layer runs none: it needs no activations either.
      bytes: share > 0 ? Math.ceil(state + activations) : 0,
      budgetBytes: Math.max(0, Math.floor(budgets[i]! + activations)),
    };
  });
  const over = rows.reduce((sum, r) => sum + Math.max(0, r.bytes - r.budgetBytes), 0);
  const shortfallBytes = split === "tensor" ? lacking : lacking + over;
  return { shares: rows, fits: shortfallBytes === 0, shortfallBytes };
}

interface Parts {
  readonly parts: readonly (Omit<TensorPart, "kvHeads"> & { readonly kvHeads?: number })[];
  readonly shortfallBytes: number;
}

function tensorParts({ model, weights, load, devices }: SpreadInput, budgets: readonly number[]) {
  const cacheBytes = kvCacheBytes(model, load);
  return splitTensors(
    { weightBytes: weights.total, cacheBytes, decoder: model.decoder },
    devices.map((d, i) => ({ budgetBytes: budgets[i]!, bytesPerNs: d.memoryBytesPerNs.value })),
  );
}

function layerParts(input: SpreadInput, budgets: readonly number[]): Parts {
  const state = input.weights.total + kvCacheBytes(input.model, input.load);
  const shares = layerShares(input, budgets);
  const placed = shares.reduce((a, b) => a + b, 0);
  const unplaced = Math.ceil(Math.max(0, 1 - placed) * state);
  const parts = shares.map((share) => ({ weightShare: share, cacheShare: share }));
  return { parts, shortfallBytes: unplaced > 1 ? unplaced : 0 };
}

/** Whole layers, the fastest memory first; what no budget holds is left out. */
function layerShares({ model, weights, load, devices }: SpreadInput, budgets: readonly number[]) {
  const state = weights.total + kvCacheBytes(model, load);
  const layers = devices.length === 1 ? 1 : (model.decoder?.layers ?? 1);
  const layerBytes = Math.max(state / layers, devices.length > 1 ? weights.largest : 0);
  const shares = devices.map(() => 0);
  let left = 1;
  const order = devices
    .map((_, i) => i)
    .sort((a, b) => devices[b]!.memoryBytesPerNs.value - devices[a]!.memoryBytesPerNs.value);
  for (const i of order) {
    const whole = Math.floor(Math.max(0, budgets[i]!) / layerBytes) / layers;
    shares[i] = Math.min(left, whole);
    left = Math.max(0, left - shares[i]!);
  }
  if (left > 1e-9 && devices.length === 1) shares[0] = 1;
  return shares;
}
