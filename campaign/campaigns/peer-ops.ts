/**
 * Operators with random shapes, attributes and operands: the oracle and WebAssembly against
 * onnxruntime-node, or (target `cuda-interp`) the oracle and what is compiled for a GPU, interpreted. What the
 * peer does not take is a skip with its words, and so is what a GPU has no one program for: it runs in stages.
 */
import { wavetileRuntime } from "../../bench/sessions/wavetile.ts";
import { DiagnosticError } from "../../src/support/diagnostic.ts";
import { Rng } from "../../src/support/rng.ts";
import { type Campaign, type Finding, passed } from "../campaign.ts";
import { blocksRuntime } from "../operators/blocks-runtime.ts";
import { operatorMakers } from "../operators/makers.ts";
import { disagreement } from "../operators/operator-case.ts";

const names = Object.keys(operatorMakers);

export const peerOps: Campaign = {
  name: "peer-ops",
  summary: "operators with random shapes against onnxruntime, computed by the oracle and compiled",
  targets: ["wasm", "cuda-interp"],
  defaultCount: names.length,
  names: () => names,
  open: async (target) => async (seed) => {
    const maker = operatorMakers[names[seed % names.length]!]!;
    const domain = maker.domain;
    const drawn = maker.make(new Rng(seed));
    const found = { ...drawn, node: { ...drawn.node, domain } };
    const compiled = target === "wasm" ? wavetileRuntime("wasm", 1) : blocksRuntime;
    try {
      const reason = await disagreement(found, seed, undefined, { compiled });
      return reason === undefined ? passed : { kind: "failed", reason };
    } catch (error) {
      return inStages(error);
    }
  },
};

/** A refusal of the one program, where data decide sizes; anything else is a find. */
function inStages(error: unknown): Finding {
  if (!(error instanceof DiagnosticError)) throw error;
  if (!error.diagnostics.every((d) => d.code === "SCH015")) throw error;
  return { kind: "skipped", reason: error.message };
}
