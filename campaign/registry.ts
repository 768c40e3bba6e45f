/**
 * All campaigns that `npm run campaign -- NAME` knows, one file each. Only those that are asked for are loaded:
 * all of them together take seconds.
 */
import type { Campaign } from "./campaign.ts";

const loaders: Readonly<Record<string, () => Promise<Campaign>>> = {
  affine: async () => (await import("./campaigns/affine.ts")).affine,
  "schedule-legality": async () =>
    (await import("./campaigns/schedule-legality.ts")).scheduleLegality,
  conformance: async () => (await import("./campaigns/conformance.ts")).conformance,
  "fuzz-onnx": async () => (await import("./campaigns/fuzz-onnx.ts")).fuzzOnnx,
  "instruction-legality": async () =>
    (await import("./campaigns/instruction-legality.ts")).instructionLegality,
  ptx: async () => (await import("./campaigns/ptx.ts")).ptx,
  "gpu-mutants": async () => (await import("./campaigns/gpu-mutants.ts")).gpuMutants,
  congruence: async () => (await import("./campaigns/congruence.ts")).congruence,
  extraction: async () => (await import("./campaigns/extraction.ts")).extraction,
  models: async () => (await import("./campaigns/models.ts")).models,
  "light-models": async () => (await import("./campaigns/light-models.ts")).lightModels,
  "big-models": async () => (await import("./campaigns/big-models.ts")).bigModels,
  "random-ops": async () => (await import("./campaigns/random-ops.ts")).randomOps,
  "peer-ops": async () => (await import("./campaigns/peer-ops.ts")).peerOps,
  "conv-nets": async () => (await import("./campaigns/conv-nets.ts")).convNets,
  placement: async () => (await import("./campaigns/placement.ts")).placement,
  "kernel-limits": async () => (await import("./campaigns/kernel-limits.ts")).kernelLimits,
  rules: async () => (await import("./campaigns/rules.ts")).rules,
  export: async () => (await import("./campaigns/export.ts")).exported,
  soak: async () => (await import("./campaigns/soak.ts")).soak,
  solver: async () => (await import("./campaigns/solver.ts")).solver,
  browser: async () => (await import("./campaigns/browser.ts")).browser,
  mutants: async () => (await import("./campaigns/mutants.ts")).mutants,
};

export const campaignNames = Object.keys(loaders);

/** The campaigns whose names are among the words of a command line, or all where none is. */
export function loadCampaigns(words: readonly string[]): Promise<readonly Campaign[]> {
  const named = campaignNames.filter((name) => words.includes(name));
  return Promise.all((named.length > 0 ? named : campaignNames).map((name) => loaders[name]!()));
}
