/** The weight formats for a model on devices, ranked, with bytes, bound and reason. */
import type { PlanDevice } from "../../plan/device.ts";
import { readCount } from "../../plan/number.ts";
import { formatNamed } from "../../plan/quantize/formats.ts";
import type { Workload } from "../../plan/quantize/memory.ts";
import { type ModelDescription, modelOfSize } from "../../plan/quantize/model.ts";
import {
  type FormatPlan,
  type Preference,
  type QuantizePlan,
  recommendFormat,
} from "../../plan/quantize/recommend.ts";
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { Action } from "../command.ts";
import { describeModel, originalOf } from "../library/describe-model.ts";
import { findDevices } from "../library/find-devices.ts";
import { formatBytes } from "./format.ts";
import { deviceLines, SourceList } from "./sources.ts";
import { printTable } from "./table.ts";

export interface QuantizeArgs {
  readonly model?: string | undefined;
  readonly params?: string | undefined;
  readonly original: string;
  readonly device: readonly string[];
  readonly context: number;
  readonly batch: number;
  readonly kvBits: number;
  readonly prefer: Preference;
  readonly split: "layers" | "tensor";
}

export const planQuantizeAction: Action<QuantizeArgs> = async (args) => {
  const model = await modelOf(args);
  if (!model.ok) return model;
  const devices = await findDevices(args.device);
  if (!devices.ok) return devices;
  const load: Workload = { context: args.context, batch: args.batch, kvBits: args.kvBits };
  const request = {
    model: model.value,
    devices: devices.value,
    load,
    split: args.split,
    preference: args.prefer,
  };
  const planned = recommendFormat(request);
  if (!planned.ok) return planned;
  const { tensors, ...about } = model.value;
  const data = {
    model: { ...about, tensors: tensors.length },
    devices: devices.value,
    load,
    split: args.split,
    preference: args.prefer,
    recommended: planned.value.recommended?.format ?? null,
    formats: planned.value.formats,
    origins: numberOrigins,
  };
  const text = describe(model.value, devices.value, planned.value);
  const failed = planned.value.recommended ? {} : { failed: [nothingFits(planned.value)] };
  return ok({ data, text, ...failed }, devices.warnings);
};

/** How the numbers of a format are known. */
const numberOrigins = {
  load: "given, or assumed: 4096 tokens, one sequence, 16 bits",
  model: "detected from the file's header, or of the model that decoderSource names",
  bitsPerWeight: "predicted: weight bytes over parameters",
  totalBytes: "predicted: the sum of weights, cache, activations and reserve",
  shortfallBytes: "predicted: what no device has room for",
  shares: "predicted: docs/planning.md, Time of a token and Tensor splits",
  rank: "predicted: docs/planning.md, Choice",
  weightBytes: "predicted: tensors x bits of the format's blocks",
  kvBytes: "predicted: 2 x layers x KV heads x head width x context x batch x bits / 8",
  activationBytes: "predicted: docs/planning.md, Activations",
  reserveBytes: "predicted: docs/planning.md, Reserve",
  error: "predicted: rounding of normally distributed weights",
  tokensPerSecond: "predicted: roofline bound from the devices' bandwidth and arithmetic",
  promptTokensPerSecond: "predicted: the same for chunks of the prompt",
} as const;

async function modelOf(args: QuantizeArgs): Promise<Result<ModelDescription>> {
  if ((args.model === undefined) === (args.params === undefined)) {
    return fail(
      diagnostic("CLI001", "give either a model or --params", {
        help: "for example wavetile plan quantize --params 70B --device h200",
      }),
    );
  }
  if (args.model !== undefined) return describeModel(args.model);
  const original = originalOf(args.original, formatNamed(args.original)?.mixedBits);
  if (!original.ok) return original;
  const count = readCount("--params", args.params!);
  return count.ok ? modelOfSize(count.value, original.value) : count;
}

function nothingFits({ formats }: QuantizePlan) {
  // Of those that the devices can run the nearest ranks first.
  const [least] = formats;
  const offered = formats.some((f) => f.fits);
  return diagnostic(
    "PLN003",
    offered
      ? "no format that fits can be used on these devices"
      : `no format fits: ${least!.format} is the nearest and ${formatBytes(least!.shortfallBytes)} too large`,
    { help: "add devices, shorten --context, lower --batch, or choose a smaller model" },
  );
}

function describe(
  model: ModelDescription,
  devices: readonly PlanDevice[],
  { formats, recommended }: QuantizePlan,
): string {
  const rows = formats.map((f) => [
    `${f.rank}`,
    f.format,
    f.bitsPerWeight.toFixed(2),
    formatBytes(f.weightBytes),
    formatBytes(f.totalBytes),
    f.fits ? "yes" : "no",
    formatRate(f.tokensPerSecond),
    f.promptTokensPerSecond.toFixed(0),
    f.reason,
  ]);
  const sources = new SourceList();
  const head = ["#", "format", "bits", "weights", "all", "fits", "tokens/s", "prompt", "why"];
  return [
    `${model.name}: ${(model.parameters.value / 1e9).toPrecision(4)} billion parameters (${model.parameters.origin}: ${model.parameters.source}), ${model.originalFormat}`,
    `decoder: ${decoderLine(model)}`,
    ...deviceLines(devices, sources),
    recommended ? `use ${recommended.format}` : "nothing fits",
    "",
    printTable(head, rows, [2, 3, 4, 6, 7]),
    "",
    needs(recommended ?? formats[0]!),
    "bits, bytes, tokens/s (of the answer, of the prompt) and prompt are predicted (docs/planning.md, Quantisation); the rates are bounds: no implementation is faster",
    ...sources.lines(),
  ].join("\n");
}

function formatRate(rate: number): string {
  return rate < 100 ? rate.toPrecision(3) : rate.toFixed(0);
}

function decoderLine({ decoder, decoderSource }: ModelDescription): string {
  if (!decoder) return `unknown, no KV cache and no activations counted (${decoderSource})`;
  const { layers, hidden, kvHeads, headWidth, latentWidth, cached, experts } = decoder;
  const kept = latentWidth ? `a latent of ${latentWidth}` : `${kvHeads} KV heads of ${headWidth}`;
  const window = cached
    ? `, kept whole in ${cached.fullLayers} layers${cached.windowLayers > 0 ? ` and for the last ${cached.windowTokens} tokens in ${cached.windowLayers}` : ""}`
    : "";
  const mixture = experts ? `, ${experts} experts, ${decoder.expertsUsed ?? experts} used` : "";
  return `${layers} layers of ${hidden}, ${kept}${window}${mixture} (${decoderSource})`;
}

function needs(plan: FormatPlan): string {
  const parts = [
    `weights ${formatBytes(plan.weightBytes)}`,
    `KV cache ${formatBytes(plan.kvBytes)}`,
    `activations ${formatBytes(plan.activationBytes)} a device`,
    `reserve ${formatBytes(plan.reserveBytes)}`,
  ];
  const heads = (n: number | undefined): string => (n ? ` with ${formatHeads(n)}` : "");
  const shares = plan.shares
    .map((s) => `${s.device} ${formatBytes(s.bytes)}${heads(s.kvHeads)}`)
    .join(", ");
  return `${plan.format}: ${parts.join(" + ")}; on ${shares}`;
}

function formatHeads(count: number): string {
  return count === 1 ? "1 KV head" : `${count} KV heads`;
}
