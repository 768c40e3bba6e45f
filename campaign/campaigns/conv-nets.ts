/**
 * Random convolutional networks, compiled and run as machine code (`cpu`) or WebAssembly (`wasm`), against
 * the float64 oracle: feature maps in blocks of channels, their conversions, ragged blocks and edges. Every
 * other trial chooses by figures of a core as far from the target's as a calibration may find them: what one
 * machine's prices hide, another's choose.
 */
import { unwrap } from "../../bench/sessions/import-hints.ts";
import { analyticalModel, type CostModel, mostScaled } from "../../src/cost/calibration.ts";
import { runGraph } from "../../src/interp/graph.ts";
import { Rng } from "../../src/support/rng.ts";
import type { Target } from "../../src/target/target.ts";
import { type Campaign, type Finding, passed } from "../campaign.ts";
import { randomConvNet } from "../random-conv-net.ts";
import { drawInputs, firstDifference } from "../random-values.ts";
import { places, runCompiled } from "./random-ops.ts";

export const convNets: Campaign = {
  name: "conv-nets",
  summary: "random convolutional networks against the oracle",
  targets: ["cpu", "wasm"],
  defaultCount: 500,
  open: async (target) => async (seed) => {
    const { model, extents } = randomConvNet(seed);
    const { graph, weights } = model;
    const inputs = drawInputs({ graph, extents }, new Rng(seed));
    const expected = unwrap(runGraph(graph, inputs, weights));
    const place = places[target as keyof typeof places](seed);
    const prices = seed % 2 === 1 ? drawPrices(place.target, new Rng(seed)) : undefined;
    const found = await runCompiled(model, inputs, place, prices);
    for (const [i, want] of expected.entries()) {
      const reason = firstDifference(found[i]!, want);
      if (reason !== undefined) return { kind: "failed", reason: `output ${i}: ${reason}` };
    }
    return passed satisfies Finding;
  },
};

function drawPrices(target: Target, rng: Rng): CostModel {
  const model = analyticalModel(target);
  const drawn = Object.entries(model.core).map(([figure, value]) => {
    return [figure, value * mostScaled ** (2 * rng.uniform() - 1)];
  });
  return { ...model, core: { ...model.core, ...Object.fromEntries(drawn) } };
}
