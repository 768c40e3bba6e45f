/**
 * Random small graphs, computed by the float64 oracle and by the stage under test. Target `nests`:
 * the loop nests of every node, run by the nest interpreter.
 */
import { checkNests } from "../../src/interp/check-nests.ts";
import { Rng } from "../../src/support/rng.ts";
import { type Campaign, passed, type Trial } from "../campaign.ts";
import { randomGraph } from "../random-graph.ts";

const nestsTrial: Trial = (seed) => {
  const { graph, extents } = randomGraph(seed);
  checkNests(graph, { rng: new Rng(seed), extents });
  return passed;
};

export const randomOps: Campaign = {
  name: "random-ops",
  summary: "random small graphs, each stage against the oracle",
  targets: ["nests"],
  defaultCount: 2000,
  open: async () => nestsTrial,
};
