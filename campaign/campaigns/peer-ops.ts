/**
 * Operators with random shapes, attributes and operands: the oracle and WebAssembly against
 * onnxruntime-node. What the peer does not take is a skip with its words.
 */
import { Rng } from "../../src/support/rng.ts";
import { type Campaign, passed } from "../campaign.ts";
import { operatorMakers } from "../operators/makers.ts";
import { disagreement } from "../operators/operator-case.ts";

const names = Object.keys(operatorMakers);

export const peerOps: Campaign = {
  name: "peer-ops",
  summary: "operators with random shapes against onnxruntime, computed by the oracle and as wasm",
  targets: ["wasm"],
  defaultCount: names.length,
  names: () => names,
  open: async () => async (seed) => {
    const maker = operatorMakers[names[seed % names.length]!]!;
    const domain = maker.domain;
    const drawn = maker.make(new Rng(seed));
    const found = { ...drawn, node: { ...drawn.node, domain } };
    const reason = await disagreement(found, seed);
    return reason === undefined ? passed : { kind: "failed", reason };
  },
};
