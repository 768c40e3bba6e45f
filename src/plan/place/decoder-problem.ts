/**
 * A decoder as a placement problem: the embedding, each layer and the output as a chain of tasks for one
 * token of every sequence. Times are rooflines: bytes of weights and KV cache over the device's
 * bandwidth, or two operations a weight and sequence over its rate, whichever is longer. Between tasks
 * goes the hidden state.
 */
import { predicted, type Sourced } from "../../target/figure.ts";
import type { NumberType } from "../../target/machine.ts";
import { linkBetween, type PlanDevice, rateFor } from "../device.ts";
import { formatNamed } from "../quantize/formats.ts";
import { activationBytes, kvCacheBytes, reserveBytes, type Workload } from "../quantize/memory.ts";
import type { ModelDescription } from "../quantize/model.ts";
import { decoderParts, readPerStep, type WeightChoice } from "../quantize/weights.ts";
import type { PlaceProblem, PlaceTask, PlaceTransfer } from "./problem.ts";

export interface DecoderPlacement {
  readonly model: ModelDescription;
  readonly format: WeightChoice;
  readonly load: Workload;
  readonly devices: readonly PlanDevice[];
}

/** Undefined when the model's sizes are not known. */
export function decoderProblem(input: DecoderPlacement): PlaceProblem | undefined {
  const { model, format, load, devices } = input;
  const { decoder } = model;
  if (!decoder) return undefined;
  const parts = decoderParts(model, format);
  const known = format === "stored" ? formatNamed(model.originalFormat) : format;
  const multiplies = known?.multiplies ?? "f16";
  const layerWeights = Math.ceil(parts.layers.bytes / decoder.layers);
  const layerCache = Math.ceil(kvCacheBytes(model, load) / decoder.layers);
  const state = load.batch * decoder.hidden * 2;
  const task = (name: string, at: number, part: Part): PlaceTask => ({
    name,
    inputs: at === 0 ? [] : [{ from: at - 1, bytes: state }],
    timeNs: devices.map((d) => taskNs(part, d, multiplies)),
    memoryBytes: part.weights + part.cache,
  });
  const flops = (parameters: number): number => 2 * parameters * load.batch;
  const { embedding, output: last } = parts;
  const row = (load.batch * decoder.hidden * embedding.bytes) / Math.max(1, embedding.parameters);
  const embed = { weights: embedding.bytes, cache: 0, read: row, flops: 0 };
  const layer = {
    weights: layerWeights,
    cache: layerCache,
    read: readPerStep(parts.layers, model, load.batch) / decoder.layers + layerCache,
    flops: flops((parts.layers.parameters * parts.layers.active) / decoder.layers),
  };
  const output = { weights: last.bytes, cache: 0, read: last.bytes, flops: flops(last.parameters) };
  const tasks = [
    task("embedding", 0, embed),
    ...Array.from({ length: decoder.layers }, (_, i) => task(`layer ${i}`, i + 1, layer)),
    task("output", decoder.layers + 1, output),
  ];
  const room = (d: PlanDevice): number =>
    d.memoryBytes.value - reserveBytes(d).value - activationBytes(model, load);
  return {
    tasks,
    devices: devices.map((d) => ({ name: d.name, memoryBytes: Math.max(0, Math.floor(room(d))) })),
    transfers: transfersOf(devices),
  };
}

interface Part {
  readonly weights: number;
  readonly cache: number;
  readonly read: number;
  readonly flops: number;
}

function taskNs(part: Part, device: PlanDevice, multiplies: NumberType): number {
  const memory = part.read / device.memoryBytesPerNs.value;
  return Math.max(memory, part.flops / rateFor(device, multiplies).value);
}

/** A copy between devices costs at least this: a launch, and the peer's notice of it. */
export const transferLatency: Sourced = predicted(
  10_000,
  "NCCL's and cudaMemcpyPeer's small messages take about 10 µs",
);

export function transfersOf(devices: readonly PlanDevice[]): readonly (readonly PlaceTransfer[])[] {
  return devices.map((a) =>
    devices.map((b) => ({
      latencyNs: transferLatency.value,
      bytesPerNs: linkBetween(a, b).value,
    })),
  );
}
