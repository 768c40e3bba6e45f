/** All campaigns that `npm run campaign -- NAME` knows, one file each. */
import type { Campaign } from "./campaign.ts";
import { affine } from "./campaigns/affine.ts";
import { bigModels } from "./campaigns/big-models.ts";
import { browser } from "./campaigns/browser.ts";
import { conformance } from "./campaigns/conformance.ts";
import { congruence } from "./campaigns/congruence.ts";
import { convNets } from "./campaigns/conv-nets.ts";
import { exported } from "./campaigns/export.ts";
import { extraction } from "./campaigns/extraction.ts";
import { fuzzOnnx } from "./campaigns/fuzz-onnx.ts";
import { gpuMutants } from "./campaigns/gpu-mutants.ts";
import { instructionLegality } from "./campaigns/instruction-legality.ts";
import { kernelLimits } from "./campaigns/kernel-limits.ts";
import { models } from "./campaigns/models.ts";
import { mutants } from "./campaigns/mutants.ts";
import { peerOps } from "./campaigns/peer-ops.ts";
import { placement } from "./campaigns/placement.ts";
import { ptx } from "./campaigns/ptx.ts";
import { randomOps } from "./campaigns/random-ops.ts";
import { rules } from "./campaigns/rules.ts";
import { scheduleLegality } from "./campaigns/schedule-legality.ts";
import { solver } from "./campaigns/solver.ts";

export const campaigns: readonly Campaign[] = [
  // one a line
  affine,
  scheduleLegality,
  conformance,
  fuzzOnnx,
  instructionLegality,
  ptx,
  gpuMutants,
  congruence,
  extraction,
  models,
  bigModels,
  randomOps,
  peerOps,
  convNets,
  placement,
  kernelLimits,
  rules,
  exported,
  solver,
  browser,
  mutants,
];
