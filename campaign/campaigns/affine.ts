/**
 * The integer-set library against isl: every trial draws one operation and its operands and compares
 * the answers (bench/isl/). An answer of ours that is "unknown" is a skip with its reason, and
 * when more than 1 in 200 are, the trial that makes it so fails.
 */

import { IslDriver, prepareIsl } from "../../bench/isl/isl-driver.ts";
import { judge } from "../../bench/isl/judge.ts";
import { questions } from "../../bench/isl/questions.ts";
import { exitCodes, Refusal } from "../../bench/refusal.ts";
import { Rng } from "../../src/support/rng.ts";
import type { Campaign, Finding } from "../campaign.ts";

/** Unknown answers that are allowed: this share of all, and a few in a short run. */
const mostUnknown = { share: 1 / 200, few: 2 };

export const affine: Campaign = {
  name: "affine",
  summary: "integer sets and maps against isl, every operation on random operands",
  targets: ["isl"],
  defaultCount: 20_000,
  atOnce: 4,
  open: async () => {
    const missing = prepareIsl(false);
    if (missing !== undefined) throw new Refusal(missing, exitCodes.environment);
    const driver = new IslDriver();
    const tally = { asked: 0, unknown: 0 };
    return (seed) => randomTrial(driver, seed, tally);
  },
};

async function randomTrial(
  driver: IslDriver,
  seed: number,
  tally: { asked: number; unknown: number },
): Promise<Finding> {
  const rng = new Rng(seed);
  const question = rng.pick(questions);
  const found = await judge(driver, question, question.draw(rng));
  tally.asked++;
  if (found.kind !== "unknown") return found;
  tally.unknown++;
  const { share, few } = mostUnknown;
  if (tally.unknown <= few + share * tally.asked) return { kind: "skipped", reason: found.reason };
  const rate = `${tally.unknown} of ${tally.asked} answers are unknown`;
  return { kind: "failed", reason: `${rate}; the last: ${found.reason}` };
}
