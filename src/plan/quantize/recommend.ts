/**
 * Which weight format to use. Every format is judged and ranked, the ones that cannot be used with the
 * reason: above the model's own format, no instructions for it on a device, does not fit.
 *
 * Among formats that fit, a preference weighs time against rounding error:
 *   quality   the smallest error, differences below 0.03 % not counted, then the shorter time
 *   balanced  rest + weights x (1 + error / 6 %)
 *   speed     rest + weights x (1 + error / 20 %)
 * where the time is that of one token of the answer and three of the prompt, by prediction, and weights
 * is the part of it that goes into weights. A format that needs calibration data ranks behind those
 * that need none: it is not made from the weights alone.
 */
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { linkBetween, type PlanDevice, rateFor } from "../device.ts";
import { checkNumber } from "../number.ts";
import { type FormatName, type WeightFormat, weightFormats } from "./formats.ts";
import {
  activationBytes,
  checkWorkload,
  kvCacheBytes,
  prefillChunk,
  reserveBytes,
  type Split,
  type Spread,
  spread,
  type Workload,
} from "./memory.ts";
import type { ModelDescription } from "./model.ts";
import { queryHeads } from "./tensor-split.ts";
import { isAbove, keptEndsBytes, readPerStep, type WeightBytes, weightBytes } from "./weights.ts";

export type Preference = "quality" | "balanced" | "speed";

export interface QuantizeRequest {
  readonly model: ModelDescription;
  readonly devices: readonly PlanDevice[];
  readonly load: Workload;
  readonly split: Split;
  readonly preference: Preference;
}

/** One format judged. */
export interface FormatPlan {
  readonly format: FormatName;
  readonly rank: number;
  /** Offered and fits. */
  readonly usable: boolean;
  readonly fits: boolean;
  readonly bitsPerWeight: number;
  readonly weightBytes: number;
  readonly kvBytes: number;
  readonly activationBytes: number;
  readonly reserveBytes: number;
  readonly totalBytes: number;
  readonly shortfallBytes: number;
  readonly error: number;
  /** Bound by the devices' memory and arithmetic; no implementation is faster. */
  readonly tokensPerSecond: number;
  /** The same for reading the prompt. */
  readonly promptTokensPerSecond: number;
  readonly limitedBy: string;
  readonly shares: readonly {
    readonly device: string;
    readonly bytes: number;
    /** Of the weights. */
    readonly share: number;
    /** Of a tensor split: the KV heads that it holds. */
    readonly kvHeads?: number;
  }[];
  readonly reason: string;
}

export interface QuantizePlan {
  readonly recommended?: FormatPlan;
  readonly formats: readonly FormatPlan[];
}

interface Judged {
  readonly plan: Omit<FormatPlan, "rank">;
  readonly format: WeightFormat;
  readonly timeNs: number;
  /** Part of the time that goes into weights, not into the KV cache. */
  readonly weightPart: number;
  readonly error: number;
  /** Not offered, whether or not it fits. */
  readonly refused: boolean;
}

export function recommendFormat(request: QuantizeRequest): Result<QuantizePlan> {
  const faults = checkRequest(request);
  if (faults.length > 0) return fail(...faults);
  const judged = weightFormats.map((format) => judge(request, format));
  judged.sort((a, b) => compareJudged(a, b, request.preference));
  const formats = judged.map((j, i) => ({ ...j.plan, rank: i + 1 }));
  const [best] = formats;
  return ok({ formats, ...(best?.usable && { recommended: best }) });
}

function checkRequest({ model, devices, load, split }: QuantizeRequest): readonly Diagnostic[] {
  const faults = [
    ...checkWorkload(load),
    ...devices.flatMap((d) => [
      checkNumber("PLN001", `memory of ${d.name}`, d.memoryBytes.value, {
        least: 1,
        most: 2 ** 50,
      }),
      checkNumber("PLN001", `bandwidth of ${d.name}`, d.memoryBytesPerNs.value, {
        least: 1e-3,
        most: 1e9,
      }),
    ]),
  ].filter((f) => f !== undefined);
  const heads = model.decoder && queryHeads(model.decoder);
  if (split === "tensor" && heads !== undefined && devices.length > heads) {
    const found = `a tensor split over ${devices.length} devices: ${model.name} has ${heads} query heads`;
    const help = "name at most as many devices, or split by layers";
    faults.push(diagnostic("PLN001", found, { at: "--split", help }));
  }
  if (devices.length > 0) return faults;
  return [
    ...faults,
    diagnostic("PLN001", "there is no device to plan for", { help: "give --device" }),
  ];
}

function judge(request: QuantizeRequest, format: WeightFormat): Judged {
  const { model, load } = request;
  const weights = weightBytes(model, format);
  const laid = spread({ ...request, weights });
  const time = timePerToken(request, { format, weights, laid });
  const prompt = promptTokenNs(request, { format, weights, laid });
  const used = usedDevices(laid);
  const refused = refusal(model, used, format);
  const error = format.name === model.originalFormat ? 0 : format.error;
  const kv = kvCacheBytes(model, load);
  const activations = activationBytes(model, load);
  const reserve = used.reduce((sum, d) => sum + reserveBytes(d).value, 0);
  const usable = refused === undefined && laid.fits;
  const plan = {
    format: format.name,
    usable,
    fits: laid.fits,
    bitsPerWeight: (weights.total * 8) / model.parameters.value,
    weightBytes: weights.total,
    kvBytes: kv,
    activationBytes: activations,
    reserveBytes: reserve,
    totalBytes: weights.total + kv + activations * used.length + reserve,
    shortfallBytes: laid.shortfallBytes,
    error,
    tokensPerSecond: (load.batch * 1e9) / time.ns,
    promptTokensPerSecond: 1e9 / prompt,
    limitedBy: time.limitedBy,
    shares: laid.shares.map(({ device, bytes, share, kvHeads }) => ({
      ...{ device: device.name, bytes, share },
      ...(kvHeads !== undefined && { kvHeads }),
    })),
    reason: refused ?? reasonOf({ model, format, error, laid, limitedBy: time.limitedBy }),
  };
  const weightPart = weights.readPerToken / (weights.readPerToken + kv);
  const timeNs = time.ns / load.batch + promptTokensPerAnswerToken * prompt;
  return { plan, format, timeNs, weightPart, error, refused: refused !== undefined };
}

/** Devices that hold a part of the model; all of them when no part found a place. */
function usedDevices({ shares }: Spread): readonly PlanDevice[] {
  const used = shares.filter((s) => s.share > 0);
  return (used.length > 0 ? used : shares).map((s) => s.device);
}

/** Why a format is not offered at all. */
function refusal(
  model: ModelDescription,
  devices: readonly PlanDevice[],
  format: WeightFormat,
): string | undefined {
  if (isAbove(model, format)) {
    return `above the model's own ${model.originalFormat} (${model.originalBits.toFixed(2)} bits): larger and no better`;
  }
  const lacking = devices.find(
    (d) => format.needs && !(d.kind === "cpu" && format.needs === "bf16") && !has(d, format.needs),
  );
  return lacking && `${lacking.name} has no ${format.needs} instructions`;
}

function has(device: PlanDevice, feature: string): boolean {
  return device.features.includes(feature) || device.features.includes(`avx512-${feature}`);
}

function reasonOf(why: {
  readonly model: ModelDescription;
  readonly format: WeightFormat;
  readonly error: number;
  readonly laid: Spread;
  readonly limitedBy: string;
}): string {
  if (!why.laid.fits) return `${gib(why.laid.shortfallBytes)} too large`;
  const percent = why.error < 1e-3 ? "below 0.1" : (why.error * 100).toFixed(1);
  const rounding = why.error === 0 ? "the weights as they are" : `${percent} % rounding error`;
  const data = why.format.needsCalibration ? "; needs calibration data" : "";
  const kept = keptEndsBytes(why.model, why.format);
  const ends = kept > 0 ? `; where embedding and output stay at 16 bits ${gib(kept)} more` : "";
  return `fits, ${rounding}, limited by ${why.limitedBy}${data}${ends}`;
}

function gib(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}

interface Time {
  readonly ns: number;
  readonly limitedBy: string;
}

/**
 * A step makes one token for each sequence: weights are read once, the KV cache of each sequence once,
 * two operations a weight and sequence. Devices that hold layers work one after another; a tensor split
 * works at once and exchanges the hidden state twice a layer.
 */
function timePerToken(
  { model, load, split }: QuantizeRequest,
  { format, weights, laid }: { format: WeightFormat; weights: WeightBytes; laid: Spread },
): Time {
  const kv = kvCacheBytes(model, load);
  const read = readPerStep(weights, model, load.batch);
  const flops = 2 * model.parameters.value * weights.active * load.batch;
  const parts = laid.shares.map(({ device, share, cacheShare }) => {
    const memory = (read * share + kv * cacheShare) / device.memoryBytesPerNs.value;
    const compute = (flops * share) / rateFor(device, format.multiplies).value;
    return memory >= compute
      ? { ns: memory, limitedBy: "memory bandwidth" }
      : { ns: compute, limitedBy: "arithmetic" };
  });
  const slowest = parts.reduce((a, b) => (b.ns > a.ns ? b : a));
  const sum = parts.reduce((total, part) => total + part.ns, 0);
  const devices = usedDevices(laid);
  const exchange = devices.length > 1 ? exchangeNs({ model, load, devices, split }) : 0;
  const ns = (split === "tensor" ? slowest.ns : sum) + exchange;
  const limitedBy = exchange > slowest.ns ? "exchange between devices" : slowest.limitedBy;
  return { ns: Math.max(ns, 1e-6), limitedBy };
}

/** Prompts are about this much longer than answers. */
const promptTokensPerAnswerToken = 3;

/** A chunk of the prompt shares one reading of the weights; two operations a weight and token. */
function promptTokenNs(
  { model, split }: QuantizeRequest,
  { format, weights, laid }: { format: WeightFormat; weights: WeightBytes; laid: Spread },
): number {
  const parts = laid.shares.map(({ device, share }) => {
    const read = (weights.total * share) / device.memoryBytesPerNs.value / prefillChunk;
    const flops = 2 * model.parameters.value * weights.active * share;
    return Math.max(read, flops / rateFor(device, format.multiplies).value);
  });
  const ns = split === "tensor" ? Math.max(...parts) : parts.reduce((a, b) => a + b, 0);
  return Math.max(ns, 1e-6);
}

/** A message costs at least this; NCCL's small messages on NVLink take about as long. */
const messageNs = 10_000;

function exchangeNs({
  model: { decoder },
  load,
  devices,
  split,
}: Pick<QuantizeRequest, "model" | "load" | "devices" | "split">): number {
  if (!decoder) return 0;
  const bytes = load.batch * decoder.hidden * 2;
  const slowest = devices.slice(1).reduce((least, device, i) => {
    const rate = linkBetween(devices[i]!, device).value;
    return Math.min(least, rate);
  }, Infinity);
  const once = messageNs + bytes / slowest;
  if (split === "layers") return once * (devices.length - 1);
  // A ring all-reduce sends 2 (n - 1) / n of the data.
  const ring = (2 * (devices.length - 1)) / devices.length;
  return 2 * decoder.layers * (messageNs + (ring * bytes) / slowest);
}

const tolerances: Readonly<Record<"balanced" | "speed", number>> = { balanced: 0.06, speed: 0.2 };
const unnoticed = 3e-4;

function compareJudged(a: Judged, b: Judged, preference: Preference): number {
  const order = (j: Judged): readonly number[] => {
    // Who is too large by the least comes next; what the devices cannot run, or is pointless, last.
    if (!j.refused && !j.plan.usable) return [1, j.plan.shortfallBytes];
    const place = j.refused ? 2 : 0;
    const calibration = j.format.needsCalibration ? 1 : 0;
    if (preference === "quality") {
      return [place, calibration, Math.max(j.error, unnoticed), j.timeNs, j.error];
    }
    const cost = j.timeNs * (1 + (j.weightPart * j.error) / tolerances[preference]);
    return [place, calibration, cost, j.format.bits];
  };
  const [left, right] = [order(a), order(b)];
  const at = left.findIndex((x, i) => x !== right[i]);
  return at < 0 ? 0 : left[at]! - right[at]!;
}
